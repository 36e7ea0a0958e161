"""Grouped products: counts by hand, and every form in which they are recorded or listed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.operators.formulas import gemm
from workbench.operators.grouped import active_groups, grouped_gemm
from workbench.operators.shaped import extents
from workbench.operators.table import Kind
from workbench.operators.words import Word, word


def test_counts_by_hand():
    """5 rows on 3 experts of 4 x 2, the largest takes 4: 2 x 5 x 2 x 4 FLOPs; 20 inputs and two matrices of 8 are read, 10 written."""
    assert [float(x) for x in grouped_gemm(3, 5, 4, 2, 4, 2.0, 2.0)] == [80.0, (20 + 2 * 8) * 2.0, 20.0]
    # 8-bit weights halve only the matrices
    assert float(grouped_gemm(3, 5, 4, 2, 4, 2.0, 2.0, 1.0).read) == 20 * 2.0 + 2 * 8 * 1.0


@pytest.mark.parametrize(
    ("groups", "rows", "busiest", "active"), [(8, 0, 0, 0), (8, 3, 0, 3), (8, 100, 0, 8), (8, 100, 100, 1), (8, 100, 98, 3), (1, 7, 7, 1)]
)
def test_groups_without_rows_do_not_count(groups, rows, busiest, active):
    assert active_groups(groups, rows, busiest) == active


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 512), st.integers(1, 512))
def test_equal_groups_are_a_batched_product(groups, each, n, k):
    ours, batched = grouped_gemm(groups, groups * each, 0, n, k, 2.0, 2.0), gemm(groups, each, n, k, 2.0, 2.0)
    assert all(np.isclose(float(a), float(b)) for a, b in zip(ours, batched, strict=True))


@pytest.mark.parametrize(
    "name", ["aten::_grouped_mm", "aclnnGroupedMatmulV4", "GroupedMatmul", "ragged_dot", "moe_gemm_fp8", "fused_moe_kernel"]
)
def test_names(name):
    found = word(name)
    assert found is not None and found.kind == Kind.GROUPED_GEMM


@pytest.mark.parametrize("shapes", ["96,64;8,64,32", "8,12,64;8,64,32", "96,64;8,32,64"])
def test_shapes(shapes):
    assert extents(Word(Kind.GROUPED_GEMM), shapes) == {"groups": 8, "rows": 96, "n": 32, "k": 64}


def test_shapes_that_do_not_fit_settle_nothing():
    assert extents(Word(Kind.GROUPED_GEMM), "96,64;8,63,32") == {}
