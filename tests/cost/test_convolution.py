"""A fixed algorithm of convolutions: the best of both is the cheapest, and what Winograd cannot do stays implicit GEMM."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import list_operators, load_npu
from workbench.cost.choices import Choices
from workbench.cost.convolution import ALGORITHMS
from workbench.cost.estimate import estimate

LAYER = {"op": "conv", "N": 16, "H": 56, "W": 56, "R": 3, "S": 3, "pad_h": 1, "pad_w": 1}


@pytest.mark.parametrize("card", ["npu-x", "p100-pcie-16gb", "a100-sxm4-80gb"])
def test_cheapest_is_the_better_of_both(card):
    rows = list_operators([LAYER | {"C": c, "K": c} for c in (8, 64, 512)], dtype="fp16").table
    cheapest, implicit, winograd = (estimate(rows, [load_npu(card)], choices=Choices(algorithm=name)).seconds for name in ALGORITHMS)
    assert np.array_equal(cheapest, np.minimum(implicit, winograd))
    assert not np.array_equal(implicit, winograd)


@pytest.mark.parametrize("change", [{"R": 1, "S": 1, "pad_h": 0, "pad_w": 0}, {"stride_h": 2, "stride_w": 2}, {"op": "conv_bwd_weight"}])
def test_what_winograd_cannot_compute_stays_implicit(change):
    rows = list_operators([LAYER | {"C": 64, "K": 64} | change], dtype="fp16").table
    _, implicit, winograd = (estimate(rows, [load_npu("p100-pcie-16gb")], choices=Choices(algorithm=name)).seconds for name in ALGORITHMS)
    assert np.array_equal(implicit, winograd)


def test_winograd_needs_at_most_2_25_times_fewer_products():
    """Lavin and Gray: 16 products in place of 36 for each 2 x 2 output, so where products bound, 2.25 is the most."""
    rows = list_operators([LAYER | {"C": 256, "K": 256}], dtype="fp32").table
    _, implicit, winograd = (
        estimate(rows, [load_npu("p100-pcie-16gb")], choices=Choices(algorithm=name)).seconds[0, 0] for name in ALGORITHMS
    )
    assert 1 < implicit / winograd <= 2.25
