"""Grouped products and products with narrow weights: laws that hold whatever the constants."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.cost.estimate import estimate
from workbench.cost.grouped import grouped
from workbench.cost.matrix import products
from workbench.cost.models import operand_sizes
from workbench.cost.pack import pack
from workbench.hardware.npu import load_npu
from workbench.operators.listed import Listed, operator_list
from workbench.operators.table import Dtype, Kind
from workbench.operators.words import Word

CARDS = pack([load_npu("a100-sxm4-80gb"), load_npu("ascend-910b2")], ["bf16"])
BYTES = np.full((1, 3), 2.0)


def seconds(*dims: int) -> np.ndarray:
    return grouped(np.array([dims]), BYTES, np.zeros(1, dtype=int), CARDS).seconds[0]


@settings(max_examples=25)
@given(st.integers(1, 64), st.integers(1, 300), st.integers(1, 3000), st.integers(1, 3000))
def test_equal_groups_cost_what_a_batched_product_costs(groups, each, n, k):
    batched, _ = products(np.array([[groups, each, n, k]], float), BYTES, np.zeros(1, dtype=int), CARDS)
    assert np.allclose(seconds(groups, groups * each, 0, n, k), batched.seconds[0], rtol=1e-12)


def test_empty_groups_cost_nothing():
    """Three rows meet at most three experts, be there 8 or 256; without rows there is no work."""
    assert np.array_equal(seconds(8, 3, 0, 512, 512), seconds(256, 3, 0, 512, 512))
    assert (seconds(8, 0, 0, 512, 512) == 0).all()


def test_one_group_that_takes_all_is_a_plain_product():
    plain, _ = products(np.array([[1, 4096, 2048, 2048]], float), BYTES, np.zeros(1, dtype=int), CARDS)
    assert np.allclose(seconds(8, 4096, 4096, 2048, 2048), plain.seconds[0], rtol=1e-12)


@settings(max_examples=25)
@given(st.integers(2, 64), st.integers(2, 4000), st.floats(0.0, 1.0), st.integers(16, 3000), st.integers(16, 3000))
def test_never_faster_than_its_largest_group(groups, rows, part, n, k):
    busiest = max(1, round(rows * part))
    alone, _ = products(np.array([[1, busiest, n, k]], float), BYTES, np.zeros(1, dtype=int), CARDS)
    assert (seconds(groups, rows, busiest, n, k) >= alone.seconds[0] * (1 - 1e-12)).all() or busiest * groups <= rows


def test_a_listed_grouped_product_is_priced():
    row = Listed("moe", Dtype.BF16, (8, 1024, 512, 2048, 1024), Word(Kind.GROUPED_GEMM))
    cost = estimate(operator_list([row]), [load_npu("h100-sxm")])
    assert np.isfinite(cost.seconds).all()
    assert cost.level_bytes[0, 0, 2] >= (1024 * 1024 + 8 * 1024 * 2048 + 1024 * 2048) * 2.0  # rows, every matrix once, results


def test_narrow_weights_are_read_in_their_own_width():
    """One token, 4096 x 4096: the weights are all there is to read; 16, 8 and 4 bits take 2, 1 and half a byte."""
    rows = [Listed("mm", dtype, (1, 1, 4096, 4096), Word(Kind.GEMM)) for dtype in (Dtype.FP16, Dtype.INT8_WO, Dtype.INT4_WO)]
    cost = estimate(operator_list(rows), [load_npu("a100-sxm4-80gb")])
    read = cost.level_bytes[:, 0, 2] - (4096 + 4096) * 2.0
    assert np.allclose(read, 4096 * 4096 * np.array([2.0, 1.0, 0.5]))
    assert (np.diff(cost.seconds[:, 0]) < 0).all()
    assert (cost.note_code == 0).all()  # running as fp16 is what the type means
    assert operand_sizes(np.array([Dtype.INT8]))[0].tolist() == [1.0, 1.0, 2.0]
