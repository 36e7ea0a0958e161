"""What a part of a divided operator reads: counted by hand, and against cutting real arrays."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.graph.rewrite_operands import cuts, read_by_part, read_whole
from workbench.operators.call import parse_call
from workbench.operators.table import Dtype, Kind


def test_shares_by_hand() -> None:
    """x [8, 128, 64] in four parts of two images: x by a quarter, a bias [64] whole, a mask [8, 1, 64] by a quarter, a scalar whole."""
    shape = (8, 128, 64)
    assert [read_by_part(shape, operand, 4) for operand in (shape, (64,), (8, 1, 64), (128, 64), ())] == [0.25, 1.0, 0.25, 1.0, 1.0]
    assert cuts((2, 6, 5), 4) == (2, 2, 1)
    assert read_by_part((2, 6, 5), (6, 5), 4) == 0.5  # half of the rows, of either image


def test_a_bias_is_read_by_every_part() -> None:
    """bf16 [4096, 4096] + [4096] in 4 parts: each reads 4096 * 4096 * 2 / 4 + 4096 * 2 bytes."""
    call = parse_call("aten::add", "[[4096, 4096], [4096], []]", '["c10::BFloat16", "c10::BFloat16", "Scalar"]', "")
    read = 4096 * 4096 * 2 + 4096 * 2
    part = read / 4 + read_whole(call, Kind.ELEMENTWISE, Dtype.BF16, 4)
    assert part == pytest.approx(4096 * 4096 * 2 / 4 + 4096 * 2)
    assert read_whole(None, Kind.ELEMENTWISE, Dtype.BF16, 4) == 0.0


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_shares_are_those_of_arrays_that_are_cut(shape: list[int], data: st.DataObject) -> None:
    """Elements of an operand under the first piece of a grid of pieces, counted by broadcasting its own numbers."""
    parts = data.draw(st.sampled_from([n for n in range(1, prod(shape) + 1) if prod(shape) % n == 0]))
    operand = [data.draw(st.sampled_from([1, extent])) for extent in shape]
    grid = cuts(shape, parts)
    assert prod(grid) == parts
    whole = np.broadcast_to(np.arange(prod(operand)).reshape(operand), shape)
    piece = whole[tuple(slice(extent // n) for extent, n in zip(shape, grid, strict=True))]
    assert len(np.unique(piece)) == pytest.approx(prod(operand) * read_by_part(shape, operand, parts))
