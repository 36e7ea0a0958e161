"""Channels last is recognised from recorded strides, forward and backward, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.graph.recording import Recording, priced
from workbench.operators.layouts import Layout
from workbench.operators.table import Kind

IMAGE, WEIGHT = [8, 16, 32, 32], [32, 16, 3, 3]
FIRST, LAST = [16384, 1024, 32, 1], [16384, 1, 512, 16]
SETTINGS = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]


def convolution(strides: Any, ts: float = 0, correlation: int = 1, made: Recording | None = None) -> Recording:
    dims, types = (
        [IMAGE, WEIGHT, [], [], [], [], [], [], []],
        ["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "", ""],
    )
    stated = {} if strides is None else {"Input Strides": [strides, [144, 9, 3, 1], *[[]] * 7]}
    made = (made or Recording()).op("aten::convolution", ts, 20, dims, types, SETTINGS, **stated)
    return made.launch(ts + 2, correlation).kernel("conv", ts + 30, 5, correlation)


@pytest.mark.parametrize(
    ("strides", "layout"), [(LAST, Layout.NHWC), (FIRST, Layout.UNSTATED), (None, Layout.UNSTATED), ("?", Layout.UNSTATED)]
)
def test_layout_of_a_recorded_convolution(tmp_path: Path, strides: Any, layout: Layout) -> None:
    _, table, *_ = priced(convolution(strides), tmp_path)
    assert table.kind.tolist() == [Kind.CONV_FORWARD]
    assert table.dim("layout").tolist() == [layout]
    assert table.flops[0] == 2 * 8 * 32 * 32 * 32 * 16 * 9
    assert ("nhwc" in table.signature[0]) == (layout == Layout.NHWC)


def test_one_shape_in_two_layouts_is_two_operators(tmp_path: Path) -> None:
    made = convolution(LAST)
    convolution(FIRST, 100, 2, made)
    convolution(LAST, 200, 3, made)
    _, table, op, *_ = priced(made, tmp_path)
    assert sorted(zip(table.count.tolist(), table.dim("layout").tolist(), strict=True)) == [(1, 0), (2, int(Layout.NHWC))]
    assert len(np.unique(op[op >= 0])) == 2
