"""Convolution by Fourier transform: pointwise complex products of tiles' spectra.

Sources: Mathieu, Henaff and LeCun, Fast Training of Convolutional Networks through FFTs (arXiv 1312.5851); Vasilache et al.,
Fast Convolutional Nets With fbfft (arXiv 1412.7580) for tiles of powers of two; 5 N log2 N operations of a complex transform of N
points (Cooley and Tukey 1965), half of it for real input, whose spectrum holds N / 2 + N_side / 2 + ... = side (side / 2 + 1) values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from workbench.cost.cost import Bound
from workbench.cost.layers import ARRAY, DOT, RELAUNCH, VECTOR, WEIGHT, Block, Layer, blocked, kernel, memory_rate
from workbench.cost.matrix import Priced, plus
from workbench.cost.pack import Cards

DTYPES = ("fp32", "fp64")
SIDES = (16, 32)  # of a tile; libraries' tiled transforms have 32
COMPLEX, REAL = 8.0, 4.0  # bytes a value, of fp32 [B]
BLOCKS: Mapping[int, Block] = MappingProxyType({VECTOR: (32.0, 32.0, False), DOT: (64.0, 64.0, False)})


def able(of: Layer, names: np.ndarray, side: int) -> np.ndarray:
    """Return which layers a tile of ``side`` can compute: more than one tap, stride 1, one group, filters of at most half the tile."""
    fits = (np.maximum(of.r, of.s) <= side / 2.0) & (of.taps > 1.0)
    return np.asarray(fits & of.unit_stride & (of.groups == 1.0) & np.isin(names, DTYPES))


def tiled(of: Layer, cards: Cards, side: int) -> Priced:
    """Price transforms of image, filters and result, and one complex product (4 real ones) for every frequency.

    Parameters
    ----------
    of : Layer
        U layers that `able` allows.
    cards : Cards
        S cards.
    side : int
        Positions along a tile's side; ``side - r + 1`` of them are output.

    Returns
    -------
    Priced
    """
    height, width, inner, outer = of.made
    tiles = of.n * of.deep * np.ceil(height / (side - of.r + 1.0)) * np.ceil(width / (side - of.s + 1.0))
    spectrum = np.full_like(tiles, side * (side / 2.0 + 1.0))
    if of.which == WEIGHT:
        shape = np.stack((spectrum, 2.0 * of.c, 2.0 * of.k, tiles), axis=1)
    else:  # [re im; -im re]: twice the columns and twice the sum
        shape = np.stack((spectrum, tiles, 2.0 * outer, 2.0 * inner), axis=1)
    wide = of.size * COMPLEX / REAL
    values = spectrum[:, None] * np.stack((tiles * of.c, of.c * of.k, tiles * of.k), axis=1) * wide[:, None]
    total = values[:, [0, 2, 1]] if of.which == WEIGHT else values if of.which == "forward" else values[:, [2, 1, 0]]
    operand = np.repeat(of.size[:, None], 3, axis=1)
    out = blocked(dict.fromkeys((VECTOR, DOT, ARRAY), shape), operand, of, cards, BLOCKS, total)
    one = 2.5 * side * side * np.log2(side * side)
    for plain, moved, count in (
        (of.image, values[:, 0], tiles * of.c), (of.weights, values[:, 1], of.c * of.k), (of.result, values[:, 2], tiles * of.k)
    ):  # fmt: skip
        bytes_ = np.repeat((plain + moved)[:, None], len(cards.specs), axis=1)
        work = (one * count)[:, None] / cards.vector_rate[:, of.column].T
        parts = {Bound.MEMORY: bytes_ / memory_rate(cards, of.column), Bound.VECTOR: work}
        out = plus(out, kernel(of, cards, parts, bytes_, RELAUNCH))
    return out
