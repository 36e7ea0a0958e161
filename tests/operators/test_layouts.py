"""Names of layouts as vendors and frameworks write them, and the blocks of channels they mean."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import list_operators
from workbench.errors import InvalidSpec
from workbench.operators.layouts import Layout, channel_block, layout_of, layout_of_strides

ROW = {"op": "conv", "dtype": "fp16", "N": 1, "C": 3, "H": 8, "W": 8, "K": 8, "R": 3, "S": 3}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("NHWC", Layout.NHWC), ("channels_last", Layout.NHWC), ("channels-first", Layout.NCHW), ("nchw", Layout.NCHW),
        ("NC/32HW32", Layout.NCHW32), ("NCHW4", Layout.NCHW4), ("NC1HWC0;FRACTAL_Z;ND", Layout.NC1HWC0), ('"NHWC;NHWC"', Layout.NHWC),
        ("FRACTAL_NZ", Layout.UNSTATED), ("", Layout.UNSTATED), ("NWHC", None),
    ],
)  # fmt: skip
def test_names(text, meant):
    assert layout_of(text) == meant


def test_blocks():
    """C0 of NC1HWC0 is 32 bytes: 16 channels of fp16, 32 of int8, 8 of fp32 (CANN data formats)."""
    codes = np.array([Layout.UNSTATED, Layout.NHWC, Layout.NCHW32, Layout.NC1HWC0])
    np.testing.assert_array_equal(channel_block(codes, np.full(4, 2.0)), [1, 1, 32, 16])
    np.testing.assert_array_equal(channel_block(np.full(2, Layout.NC1HWC0), np.array([1.0, 4.0])), [32, 8])


def test_a_table_states_it_and_a_wrong_word_is_named():
    table = list_operators([ROW | {"layout": "NHWC"}, ROW | {"layout": ""}]).table
    assert table.dim("layout").tolist() == [Layout.NHWC, Layout.UNSTATED]
    assert "layout=2" in table.signature[0]
    assert "layout" not in table.signature[1]
    with pytest.raises(InvalidSpec, match="NWHC"):
        list_operators([ROW | {"layout": "NWHC"}])


@pytest.mark.parametrize(("shape", "strides", "layout"), [
    ((8, 16, 32, 32), (16384, 1024, 32, 1), Layout.NCHW),
    ((8, 16, 32, 32), (16384, 1, 512, 16), Layout.NHWC),  # torch.channels_last
    ((8, 16, 4, 32, 32), (65536, 1, 16384, 512, 16), Layout.NHWC),  # channels_last_3d
    ((8, 16, 100), (1600, 1, 16), Layout.NHWC),
    ((1, 16, 32, 32), (77, 1, 512, 16), Layout.NHWC),  # the stride of a single image means nothing
    ((8, 1, 32, 32), (1024, 1024, 32, 1), Layout.UNSTATED),  # one channel lies both ways
    ((8, 16, 1, 1), (16, 1, 1, 1), Layout.UNSTATED),  # one pixel likewise
    ((8, 16, 32, 32), (32768, 1024, 32, 1), Layout.NCHW),  # every other image of a batch: images may lie apart
    ((8, 16, 32, 32), (16384, 2048, 32, 1), Layout.UNSTATED),  # every other channel
    ((8, 16, 32, 32), (0, 0, 0, 0), Layout.UNSTATED),
    ((8, 16), (16, 1), Layout.UNSTATED),
    ((8, 16, 32, 32), (1, 2), Layout.UNSTATED),
])  # fmt: skip
def test_strides_prove_a_layout(shape, strides, layout):
    """By hand: the step from one element to the next along each axis."""
    assert layout_of_strides(shape, strides) == layout
