"""Structured sparsity: the data sheet's twice the rate, half the bytes of the weights and their index, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cost.tables import table
from workbench.cost.choices import Choices
from workbench.cost.estimate import estimate
from workbench.cost.pack import pack
from workbench.cost.sparsity import pruned
from workbench.errors import InvalidSpec, Refused
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind


def test_a100_reaches_the_sparse_peak_of_its_data_sheet():
    """NVIDIA A100 data sheet: 624 TFLOP/s bf16 and 1248 TOP/s int8 with sparsity."""
    cards = pack([load_npu("a100-sxm4-80gb")], ["bf16", "int8"])
    sparse, bytes_ = pruned(cards, np.full((2, 3), 2.0), np.array([0, 1]))
    assert 2.0 * sparse.mac_rate[0] == pytest.approx([624e12, 1248e12], rel=2e-3)
    assert bytes_[0].tolist() == [2.0, 2.0 / 2 + 2 / 16, 2.0]  # half the weights, 2 bits for each that is kept


def test_sparse_products_are_faster_but_never_twice_as_fast_as_dense():
    rows = table([(Kind.GEMM, Dtype.BF16, (1, m, 4096, 4096)) for m in (1, 64, 4096, 16384)])
    dense, sparse = (estimate(rows, [load_npu("h100-sxm")], choices=Choices(sparse=on)).seconds[:, 0] for on in (False, True))
    assert (sparse < dense).all() and (sparse > dense / 2).all()


def test_cards_without_sparsity_refuse():
    with pytest.raises(Refused, match="npu-x states no structured sparsity of bf16"):
        estimate(table([(Kind.GEMM, Dtype.BF16, (1, 64, 64, 64))]), [load_npu("npu-x")], choices=Choices(sparse=True))


def test_a_factor_needs_a_rate_and_speeds_up():
    spec = load_npu("a100-sxm4-80gb")
    with pytest.raises(InvalidSpec, match="would slow sparse products down"):
        spec.with_({"matrix.sparse.bf16": 0.5})
    with pytest.raises(InvalidSpec, match="a factor for fp8, but no rate"):
        spec.with_({"matrix.sparse.fp8": 2})
