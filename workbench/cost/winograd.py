"""Winograd convolution: fewer products, paid with transforms.

Sources: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (CVPR 2016): F(m, r) gives m outputs of an r-tap filter
with m + r - 1 products; additions of the transforms by their table. The fused kernel (one block of 32 filters and 4 x 8 tiles, its
16 planes of sums in registers) is theirs too; kernels of its own for the transforms around batched products are what libraries
call non-fused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from workbench.cost import kernels
from workbench.cost.cost import Bound
from workbench.cost.layers import (
    ARRAY,
    DATA,
    DOT,
    RELAUNCH,
    VECTOR,
    WEIGHT,
    Block,
    Layer,
    Moves,
    around,
    at,
    blocked,
    kernel,
    memory_rate,
    styles,
)
from workbench.cost.matrix import Priced
from workbench.cost.pack import Cards

DTYPES = ("fp32", "fp16", "bf16", "tf32")
SUMS: Mapping[tuple[int, int], tuple[float, float, float]] = MappingProxyType(
    {(2, 3): (4.0, 4.0, 4.0), (4, 3): (13.0, 9.0, 8.0), (2, 5): (13.0, 8.0, 12.0)}
)
"""Additions of one axis of F(m, r): of an input tile, of an output tile, of a filter."""
FILTERS, TALL, WIDE = 32.0, 4.0, 8.0  # of a fused block: filters, and 2 x 2 output tiles along both axes
STEP = 8.0  # channels a fused block takes at a time
BLOCKS: Mapping[int, Block] = MappingProxyType({VECTOR: (128.0, 32.0, False), DOT: (64.0, 64.0, False)})
BLOCKS_WEIGHT: Mapping[int, Block] = MappingProxyType({VECTOR: (128.0, 64.0, False), DOT: (64.0, 64.0, False)})
"""Least tiles of the batched products, which are one of a batch and so are not split; chosen on NeuSight and
DeepBench (V100, T4, P100), fitting half."""


@dataclass(frozen=True)
class Plan:
    """One axis by the other: outputs a tile, products a tile, additions a tile (input, output, filter); arrays of shape (U,)."""

    tall: np.ndarray
    wide: np.ndarray
    planes: np.ndarray
    into: np.ndarray
    back: np.ndarray
    filters: np.ndarray


def able(of: Layer, names: np.ndarray, m: int) -> np.ndarray:
    """Return which layers F(m, r) computes: 3 (m = 2: or 5) taps along one axis or both, stride 1, one group, a floating type."""
    known = [r for tile, r in SUMS if tile == m]
    r, s = (np.isin(axis, known) for axis in (of.r, of.s))
    square = np.where(r & s, of.r == of.s, (r & (of.s == 1.0)) | (s & (of.r == 1.0)))
    return np.asarray(square & of.unit_stride & (of.groups == 1.0) & np.isin(names, DTYPES))


def plan(of: Layer, m: int) -> Plan:
    """Return the tiles of F(m x m, r x s); an axis with one tap is not transformed."""
    sums, axes = np.array([SUMS.get((m, taps), (0.0, 0.0, 0.0)) for taps in range(6)]), []
    for taps in (of.r, of.s):
        many = taps > 1.0
        added = sums[np.minimum(taps, 5.0).astype(np.int64)].T
        axes.append((np.where(many, float(m), 1.0), np.where(many, m + taps - 1.0, 1.0), taps, added))
    (mh, ah, _, dh), (mw, aw, s, dw) = axes
    # columns first, then rows: an axis is transformed once for each position of the other
    return Plan(mh, mw, ah * aw, aw * dh[0] + ah * dw[0], aw * dh[1] + mh * dw[1], s * dh[2] + ah * dw[2])


def apart(of: Layer, cards: Cards, m: int) -> Priced:
    """Price transforms, batched products and inverse as kernels of their own; transformed tiles pass the memory.

    ``planes`` products of tiles x channels x channels; every transform reads one form and writes the other
    (``planes / (m m)`` times the image). The gradient of weights sums over tiles instead of channels.

    Parameters
    ----------
    of : Layer
        U layers that `able` allows.
    cards : Cards
        S cards.
    m : int
        Outputs a tile and axis.

    Returns
    -------
    Priced
    """
    p, tiles = plan(of, m), _tiles(of, m)
    if of.which == WEIGHT:
        shape, blocks = np.stack((p.planes, of.c, of.k, tiles), axis=1), BLOCKS_WEIGHT
    else:
        _, _, inner, outer = of.made
        shape, blocks = np.stack((p.planes, tiles, outer, inner), axis=1), BLOCKS
    operand = np.repeat(of.size[:, None], 3, axis=1)
    return around(blocked(dict.fromkeys((VECTOR, DOT, ARRAY), shape), operand, of, cards, blocks), moves(of, m), of, cards)


def _tiles(of: Layer, m: int) -> np.ndarray:
    p = plan(of, m)
    height, width, _, _ = of.made
    return np.asarray(of.n * of.deep * np.ceil(height / p.tall) * np.ceil(width / p.wide))


def moves(of: Layer, m: int) -> Moves:
    """Return bytes and additions of the three transforms, of image, filters and result."""
    p, tiles, c, k, size = plan(of, m), _tiles(of, m), of.c, of.k, of.size
    return (
        (of.image + p.planes * tiles * c * size, tiles * c * p.into),
        (of.weights + p.planes * c * k * size, c * k * p.filters),
        (of.result + p.planes * tiles * k * size, tiles * k * p.back),
    )


def fused(of: Layer, cards: Cards) -> Priced:
    """Price F(2x2, 3x3) in one kernel on the vector unit, after a transform of the filters; infinite where a matrix unit multiplies.

    A core works on one block at a time: 32 filters x 4 x 8 tiles, 16 products each, and the input's transform with them. Its first
    loads and its stores are not hidden behind the next block: cores run in step.

    Parameters
    ----------
    of : Layer
        U layers of 3 x 3 taps that `able` allows, forward or data.
    cards : Cards
        S cards.

    Returns
    -------
    Priced
    """
    height, width, inner, outer = of.made
    p, positions = plan(of, 2), TALL * WIDE
    made = of.image if of.which == DATA else of.result
    read = of.result if of.which == DATA else of.image
    blocks = of.n * of.deep * np.ceil(np.ceil(height / p.tall) / TALL) * np.ceil(np.ceil(width / p.wide) / WIDE) * np.ceil(outer / FILTERS)
    waves = np.maximum(np.ceil(blocks[:, None] / at(cards, kernels.CORES, of.column)), 1.0)
    steps = np.ceil(inner / STEP) * STEP * (p.planes * positions * FILTERS + positions * p.into) + positions * FILTERS * p.back
    rate = at(cards, kernels.MACS, of.column) * at(cards, kernels.CLOCK, of.column) * at(cards, kernels.ETA_COMPUTE, of.column)
    window = (TALL * 2.0 + 2.0) * (WIDE * 2.0 + 2.0) * of.size
    filters = p.planes * inner * outer * of.size
    stored = (made + of.weights + filters)[:, None] / memory_rate(cards, of.column)
    near = (blocks * inner * (window + p.planes * FILTERS * of.size))[:, None]
    parts = {
        Bound.VECTOR: waves * steps[:, None] / rate,
        Bound.SHARED: near / at(cards, kernels.RATE_SHARED, of.column),
        Bound.MEMORY: (read + filters)[:, None] / memory_rate(cards, of.column),
    }
    outside = np.repeat((read + made + of.weights + 2.0 * filters)[:, None], len(cards.specs), axis=1)
    out = kernel(of, cards, parts, outside)
    latency = at(cards, kernels.LATENCY_SHARED, of.column) + at(cards, kernels.LATENCY_MEMORY, of.column)
    exposed = 2.0 * waves * latency + RELAUNCH * at(cards, kernels.LAUNCH, of.column)
    out.resource[..., Bound.MEMORY] += stored
    out.resource[..., Bound.LAUNCH] += exposed
    out.detail[..., 1] += exposed
    out.level[..., 1] = near
    out.seconds[:] = np.where(styles(cards, of.column) == VECTOR, out.seconds + stored + exposed, np.inf)
    return out
