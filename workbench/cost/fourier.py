"""Convolution by Fourier transform: pointwise complex products of tiles' spectra.

Sources: Mathieu, Henaff and LeCun, Fast Training of Convolutional Networks through FFTs (arXiv 1312.5851); Vasilache et al.,
Fast Convolutional Nets With fbfft (arXiv 1412.7580) for tiles of powers of two; 5 N log2 N operations of a complex transform of N
points (Cooley and Tukey 1965), half of it for real input, whose spectrum holds side (side / 2 + 1) values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from workbench.cost.layers import ARRAY, DOT, FORWARD, VECTOR, WEIGHT, Block, Layer, Moves, around, blocked
from workbench.cost.matrix import Priced
from workbench.cost.pack import Cards

DTYPES = ("fp32", "fp64")
SIDES = (16, 32)  # of a tile; libraries' tiled transforms have 32
COMPLEX = 2.0  # numbers a value
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
    spectrum, tiles, values = _spectra(of, side)
    if of.which == WEIGHT:
        shape, order = np.stack((spectrum, 2.0 * of.c, 2.0 * of.k, tiles), axis=1), [0, 2, 1]
    else:  # [re im; -im re]: twice the columns and twice the sum
        _, _, inner, outer = of.made
        shape, order = np.stack((spectrum, tiles, 2.0 * outer, 2.0 * inner), axis=1), [0, 1, 2] if of.which == FORWARD else [2, 1, 0]
    operand = np.repeat(of.size[:, None], 3, axis=1)
    product = blocked(dict.fromkeys((VECTOR, DOT, ARRAY), shape), operand, of, cards, BLOCKS, values[:, order])
    return around(product, moves(of, side), of, cards)


def _spectra(of: Layer, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values of a tile's spectrum, tiles, and bytes of the spectra of image, filters and result (U, 3) [B]."""
    height, width, _, _ = of.made
    tiles = of.n * of.deep * np.ceil(height / (side - of.r + 1.0)) * np.ceil(width / (side - of.s + 1.0))
    spectrum = np.full_like(tiles, side * (side / 2.0 + 1.0))
    counts = np.stack((tiles * of.c, of.c * of.k, tiles * of.k), axis=1)
    return spectrum, tiles, (spectrum * of.size * COMPLEX)[:, None] * counts


def moves(of: Layer, side: int) -> Moves:
    """Return bytes and operations of the three transforms, of image, filters and result."""
    _, tiles, values = _spectra(of, side)
    one = 2.5 * side * side * np.log2(side * side)
    counts = (tiles * of.c, of.c * of.k, tiles * of.k)
    return tuple((plain + values[:, i], one * counts[i]) for i, plain in enumerate((of.image, of.weights, of.result)))


def fewer(of: Layer, side: int) -> np.ndarray:
    """Return how many times fewer products a tile needs than the direct algorithm."""
    return np.asarray((side - of.r + 1.0) * (side - of.s + 1.0) * of.taps / (4.0 * side * (side / 2.0 + 1.0)))
