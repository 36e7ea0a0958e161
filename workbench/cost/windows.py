"""Convolution without transforms: as one product of gathered windows, or window by window on the vector unit.

Sources: Chetlur et al., cuDNN (arXiv 1410.0759) for implicit GEMM, whose operand is gathered on the way to the core and never
written; NVIDIA, CUTLASS implicit GEMM convolution, for the gradient of a strided one, which falls into one product for every
remainder of positions by the stride; Huawei, Ascend C (NC1HWC0) for channels multiplied in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from workbench.cost import kernels, vector
from workbench.cost.choices import Copies
from workbench.cost.layers import ARRAY, DATA, DOT, FORWARD, VECTOR, WEIGHT, Block, Layer, Moves, around, blocked
from workbench.cost.matrix import Priced
from workbench.cost.pack import Cards

CHANNEL_BYTES: Mapping[int, float] = MappingProxyType({DOT: 64.0, ARRAY: 32.0})
"""Bytes of channels a matrix unit multiplies at a time for each tap [B]: two 32-byte sectors a GPU's tile loads (fits DeepBench's
first layers on V100, fp16, to a fifth, where 32 bytes miss by half); C0 of an Ascend cube, a TPU's 8 sublanes of fp32."""
BLOCKS: Mapping[str, Mapping[int, Block]] = MappingProxyType(
    {
        FORWARD: MappingProxyType({VECTOR: (128.0, 32.0, False), DOT: (64.0, 64.0, False)}),
        DATA: MappingProxyType({VECTOR: (128.0, 16.0, False), DOT: (64.0, 64.0, False)}),
        WEIGHT: MappingProxyType({VECTOR: (128.0, 32.0, True), DOT: (128.0, 64.0, True)}),
    }
)
"""Least tiles: a block of a GPU gathers the windows of as many neighbouring positions as it has lanes. The sum over channels is not
split, that over positions is. Chosen on NeuSight and DeepBench (V100, P100, T4), fitting half."""

GATHERED = 1.5
"""Time of the multiply-adds of a weight gradient on the vector unit: both its operands are gathered position by position, and their
addresses take half as many instructions again; chosen on DeepBench's fp32 rows (V100, P100), fitting half."""
STRIDED = 1.5
"""Products of the gradient of a strided layer over those of its forward pass: one axis is taken apart by remainders, along the other
tiles hold positions that some taps miss (1 if both were, the stride if only one); chosen on DeepBench (V100, P100), fitting half."""


def implicit(of: Layer, cards: Cards, copies: Copies) -> Priced:
    """Price a convolution as one product (of each group): positions x channels made, over taps x channels summed.

    The gradient of data with stride s has, along each axis, min(r, s) remainders with about r / s taps each; the gradient of
    weights sums over positions.

    Parameters
    ----------
    of : Layer
        U layers.
    cards : Cards
        S cards.
    copies : Copies
        What is warm, see `workbench.cost.choices`.

    Returns
    -------
    Priced
    """
    shape = {}
    for style in (VECTOR, DOT, ARRAY):
        step = CHANNEL_BYTES[style] / of.size if style in CHANNEL_BYTES else np.ones_like(of.size)
        padded = {name: _padded(getattr(of, name), step, of, style) for name in ("c", "k")}
        shape[style] = _shape(of, **padded)
    total, operand = np.stack(of.operands, axis=1), np.repeat(of.size[:, None], 3, axis=1)
    if of.which == WEIGHT:
        cards, turn = _gathering(cards), _turned(of)
        total[:, :2] = np.where(turn[:, None], total[:, 1::-1], total[:, :2])
    return blocked(shape, operand, of, cards, BLOCKS[of.which], total, copies)


def _gathering(cards: Cards) -> Cards:
    """Return cards whose vector units multiply `GATHERED` times slower."""
    matrix = cards.matrix.copy()
    matrix[..., kernels.MACS] /= np.where(matrix[..., kernels.IS_VECTOR] > 0.0, GATHERED, 1.0)
    return replace(cards, matrix=matrix)


def _turned(of: Layer) -> np.ndarray:
    """Return which weight gradients are computed transposed, their tiles then holding less padding."""
    tall, wide, _ = BLOCKS[WEIGHT][VECTOR]
    m, n = of.c * of.taps, of.k
    padded = [np.ceil(a / tall) * tall * np.ceil(b / wide) * wide for a, b in ((m, n), (n, m))]
    return np.asarray(padded[1] < padded[0])


def _padded(channels: np.ndarray, step: np.ndarray, of: Layer, style: int) -> np.ndarray:
    """Return channels in whole steps where more than one tap is summed over; a single tap is a plain product."""
    return channels if style == VECTOR else np.where(of.taps > 1.0, np.ceil(channels / step) * step, channels)


def _shape(of: Layer, c: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return batch, m, n, k of the product; ``c`` and ``k`` are the channels where they are gathered by taps."""
    if of.which == FORWARD:
        shape = (of.groups, of.outputs, of.k, c * of.taps)
    elif of.which == DATA:
        strided = of.stride_h * of.stride_w > 1.0
        parts = np.minimum(of.r, of.stride_h) * np.minimum(of.s, of.stride_w)
        rows = np.where(strided, of.outputs, of.n * of.h * of.w * of.depth)
        shape = (of.groups * parts, rows, of.c, k * of.taps / parts * np.where(strided, STRIDED, 1.0))
    else:
        sides, turn = (c * of.taps, of.k), _turned(of)
        shape = (of.groups, np.where(turn, *sides[::-1]), np.where(turn, *sides), of.outputs)
    return np.stack(shape, axis=1)


def windows_of(of: Layer) -> Moves:
    """Return bytes and additions of adding windows into an image: every value of every window is read, the image written (col2im)."""
    values = of.outputs * of.c * of.taps * of.groups
    return ((values * of.size + of.image, values),)


def scattered(of: Layer, cards: Cards) -> Priced:
    """Price the gradient of data as a product that writes whole windows, and a kernel that adds them into the image.

    Nothing is wasted on few channels or on positions a stride leaves out, but windows pass the memory (Jia et al., Caffe,
    arXiv 1408.5093: col2im).

    Parameters
    ----------
    of : Layer
        U layers, gradients of data.
    cards : Cards
        S cards.

    Returns
    -------
    Priced
    """
    shape = np.stack((of.groups, of.outputs, of.c * of.taps, of.k), axis=1)
    operand = np.repeat(of.size[:, None], 3, axis=1)
    product = blocked(dict.fromkeys((VECTOR, DOT, ARRAY), shape), operand, of, cards, BLOCKS[DATA])
    return around(product, windows_of(of), of, cards)


def direct(of: Layer, cards: Cards, copies: Copies) -> Priced:
    """Price a convolution on the vector unit: a load and a multiply-add for every tap, every operand read once from outside."""
    made = of.operands[2] / of.size
    work = 2.0 * of.outputs * of.k * of.groups * of.c * of.taps
    first, second, last = of.operands
    return vector.streams(vector.maps(made, work, first + second, last, of.column), cards, copies)
