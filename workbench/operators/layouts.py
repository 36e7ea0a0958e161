"""Layouts of a convolution's image: where the channels lie, and how many of them lie together.

Sources: NVIDIA, cuDNN developer guide (NC/4HW4, NC/32HW32); Huawei, CANN data formats (NC1HWC0: C0 channels of 32 bytes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType

import numpy as np


class Layout(IntEnum):
    """Order of an image's axes in memory; the last two letters of a packed one are the channels of a block."""

    UNSTATED = 0  # whatever the unit that computes wants
    NCHW = 1
    NHWC = 2
    NC1HWC0 = 3  # blocks of 32 bytes of channels
    NCHW4 = 4  # NC/4HW4: blocks of 4 channels
    NCHW8 = 5
    NCHW16 = 6
    NCHW32 = 7


PACKED: Mapping[Layout, int] = MappingProxyType({Layout.NCHW4: 4, Layout.NCHW8: 8, Layout.NCHW16: 16, Layout.NCHW32: 32})
"""Channels of a block, of layouts that fix them."""
BLOCK_BYTES = 32.0  # of NC1HWC0 [B]
OTHERS = frozenset({"ND", "FRACTAL_Z", "FRACTAL_NZ", "NZ", "FRACTAL_Z_3D", "NCL", "NULL", "ANY", "UNDEFINED"})
"""Formats that vendors' tables state beside convolutions and that say nothing of an image's channels."""
_NAMES: Mapping[str, Layout] = MappingProxyType(
    {name: layout for name, layout in Layout.__members__.items() if layout}
    | {"CHANNELS_FIRST": Layout.NCHW, "CHANNELS_LAST": Layout.NHWC, "NCDHW": Layout.NCHW, "NDHWC": Layout.NHWC, "NDC1HWC0": Layout.NC1HWC0}
    | {"5HD": Layout.NC1HWC0, "NHWC4": Layout.NCHW4, "NHWC8": Layout.NCHW8}
    | {f"NC{block}HW{block}": layout for layout, block in PACKED.items()}
)
NAMES = tuple(_NAMES)
"""Names understood, beside the slash of ``NC/32HW32`` and any case."""


def layout_of(text: str) -> Layout | None:
    """Return the layout a table states, of the first operand where it states several; None for a word that is no format.

    Parameters
    ----------
    text : str
        ``NHWC``, ``channels_last``, ``NC/32HW32``, ``"NC1HWC0;FRACTAL_Z"`` ...
    """
    first = re.split(r"[;,\s]", text.strip().strip("\"'"))[0].strip("\"'").upper().replace("/", "").replace("-", "_")
    if first in OTHERS or not first:
        return Layout.UNSTATED
    return _NAMES.get(first)


def layout_of_strides(shape: Sequence[int], strides: Sequence[int]) -> Layout:
    """Return the layout that the strides of an image prove: where the channels lie.

    Parameters
    ----------
    shape : sequence of int
        Images, channels, then the spatial extents.
    strides : sequence of int
        In elements, as PyTorch's profiler records them.

    Returns
    -------
    Layout
        NHWC where channels are densest and a pixel's channels lie together, NCHW where the last axis is; UNSTATED where the extents
        leave it open (one channel, one pixel) or the image is not dense.
    """
    if len(shape) < 3 or len(shape) != len(strides) or min(shape) < 1:
        return Layout.UNSTATED
    channels, pixels = shape[1], shape[2:]
    if channels == 1 or all(extent == 1 for extent in pixels):
        return Layout.UNSTATED

    def dense(order: Sequence[int]) -> bool:
        step = 1
        for axis in order:
            if shape[axis] > 1 and strides[axis] != step:
                return False
            step *= shape[axis]
        return True

    spatial = range(len(shape) - 1, 1, -1)
    if dense((1, *spatial)):
        return Layout.NHWC
    return Layout.NCHW if dense((*spatial, 1)) else Layout.UNSTATED


def channel_block(layout: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the channels a layout keeps together; 1 where it keeps none.

    Parameters
    ----------
    layout : ndarray of int
        `Layout` codes.
    size : ndarray
        Bytes an element [B].

    Returns
    -------
    ndarray
        float64: a layer whose channels are no multiple of it stores, moves and multiplies the padding too.
    """
    out = np.ones(np.broadcast(layout, size).shape)
    for code, block in PACKED.items():
        out = np.where(layout == code, float(block), out)
    return np.where(layout == Layout.NC1HWC0, np.maximum(BLOCK_BYTES / size, 1.0), out)
