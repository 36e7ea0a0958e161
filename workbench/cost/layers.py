"""Convolutional layers as the models of the room read them, and the pieces their prices are made of: one kernel, blocked products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from workbench.cost import kernels
from workbench.cost.choices import COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced, empty, plus, products
from workbench.cost.pack import Cards
from workbench.operators.formulas import output_extent
from workbench.operators.layouts import channel_block
from workbench.operators.table import DIMS, Kind

FORWARD, DATA, WEIGHT = "forward", "data", "weight"
VECTOR, DOT, ARRAY = 0, 1, 2
"""What multiplies: the vector unit, dot-product units of a GPU, a cube or systolic array."""
RELAUNCH = 0.2  # of the launch overhead, for every further kernel of one operator; chosen on NeuSight's convolutions (V100, T4, P100)
Moves = tuple[tuple[np.ndarray, np.ndarray], ...]
"""Bytes [B] and vector operations of the transforms around products, arrays of shape (U,)."""
Block = tuple[float, float, bool]
"""Least rows and columns of a kernel's output tile, and whether it may split the sum."""


@dataclass(frozen=True)
class Layer:
    """U convolutions of one pass; float64 arrays of shape (U,).

    ``c`` and ``k`` are channels a group, padded to the blocks of the layout. ``deep`` counts positions along the third axis.
    ``image``, ``weights`` and ``result`` are distinct bytes [B].
    """

    which: str
    n: np.ndarray
    c: np.ndarray
    k: np.ndarray
    h: np.ndarray
    w: np.ndarray
    p: np.ndarray
    q: np.ndarray
    r: np.ndarray
    s: np.ndarray
    t: np.ndarray
    depth: np.ndarray
    deep: np.ndarray
    stride_h: np.ndarray
    stride_w: np.ndarray
    dilated: np.ndarray
    groups: np.ndarray
    layout: np.ndarray
    size: np.ndarray
    column: np.ndarray
    image: np.ndarray
    weights: np.ndarray
    result: np.ndarray

    def take(self, rows: np.ndarray) -> Layer:
        """Return some rows."""
        return replace(self, **{one.name: getattr(self, one.name)[rows] for one in fields(self) if one.name != "which"})

    @property
    def taps(self) -> np.ndarray:
        """Positions of the window."""
        return self.r * self.s * self.t

    @property
    def outputs(self) -> np.ndarray:
        """Output positions of all images."""
        return self.n * self.p * self.q * self.deep

    @property
    def unit_stride(self) -> np.ndarray:
        """Whether the window moves by one and has no holes: what transform algorithms need."""
        return (self.stride_h == 1.0) & (self.stride_w == 1.0) & ~self.dilated & (self.t == 1.0)

    @property
    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distinct bytes read, read and written by the pass [B]."""
        return {
            FORWARD: (self.image, self.weights, self.result),
            DATA: (self.result, self.weights, self.image),
            WEIGHT: (self.image, self.result, self.weights),
        }[self.which]

    @property
    def made(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Extents of the plane a pass computes (of the output's gradient for weights), channels summed over and channels made."""
        if self.which == DATA:
            return self.h, self.w, self.k, self.c
        return self.p, self.q, self.c, self.k


def layer(dims: np.ndarray, flops: np.ndarray, which: str, size: np.ndarray, column: np.ndarray) -> Layer:
    """Read layers from the dims of an operator table.

    Parameters
    ----------
    dims, flops, which, size, column
        As `workbench.cost.convolution.convolution`: (U, MAX_DIMS), (U,) [FLOP], pass, (U,) [B], (U,).

    Returns
    -------
    Layer
    """
    d = {name: np.maximum(dims[:, i], 0).astype(np.float64) for i, name in enumerate(DIMS[Kind.CONV_FORWARD])}
    for name in ("stride_h", "stride_w", "dilation_h", "dilation_w", "groups", "depth", "t"):
        d[name] = np.maximum(d[name], 1.0)
    p = output_extent(d["h"], d["r"], d["stride_h"], d["pad_h"], d["dilation_h"])
    q = output_extent(d["w"], d["s"], d["stride_w"], d["pad_w"], d["dilation_w"])
    groups, taps = d["groups"], d["r"] * d["s"] * d["t"]
    once = 2.0 * d["n"] * p * q * d["k"] * d["c"] / groups * taps
    deep = np.where(d["depth"] * d["t"] > 1.0, flops / np.maximum(once, 1.0), 1.0)
    block = channel_block(d["layout"], size)
    c, k = (np.ceil(d[name] / block) * block for name in ("c", "k"))
    alone = groups == 1.0
    return Layer(
        which, d["n"], np.where(alone, c, d["c"] / groups), np.where(alone, k, d["k"] / groups), d["h"], d["w"], p, q,
        d["r"], d["s"], d["t"], d["depth"], deep, d["stride_h"], d["stride_w"],
        (d["dilation_h"] > 1.0) | (d["dilation_w"] > 1.0), groups, d["layout"], size, column,
        image=d["n"] * c * d["h"] * d["w"] * d["depth"] * size,
        weights=np.where(alone, c * k, d["c"] * d["k"] / groups) * taps * size,
        result=d["n"] * k * p * q * deep * size,
    )  # fmt: skip


def at(cards: Cards, name: int, column: np.ndarray) -> np.ndarray:
    """Return one column of the packed cards for every row, float64 [U, S]."""
    return np.asarray(cards.matrix[:, column, name].T)


def memory_rate(cards: Cards, column: np.ndarray) -> np.ndarray:
    """Return the sustained outermost bandwidth of kernels around products, float64 [U, S] [B/s]."""
    return at(cards, kernels.RATE_MEMORY, column) * at(cards, kernels.ETA_MEMORY, column)


def styles(cards: Cards, column: np.ndarray) -> np.ndarray:
    """Return what multiplies rows on cards, `VECTOR`, `DOT` or `ARRAY`, int [U, S]."""
    dot = np.array([spec.matrix.dataflow == "dot" for spec in cards.specs])
    return np.where(at(cards, kernels.IS_VECTOR, column) > 0.0, VECTOR, np.where(dot, DOT, ARRAY))


def kernel(of: Layer, cards: Cards, parts: Mapping[Bound, np.ndarray], outside: np.ndarray, further: float = 0.0) -> Priced:
    """Price one kernel: launch, latency, and its resources joined as `kernels.times` does (fourth-power norm).

    Parameters
    ----------
    of : Layer
        U layers.
    cards : Cards
        S cards.
    parts : mapping of Bound to ndarray, shape (U, S)
        Seconds of each resource [s].
    outside : ndarray, shape (U, S)
        Bytes of the outermost level [B].
    further : float
        Part of the launch overhead it pays (0: all of it, for it comes first).

    Returns
    -------
    Priced
    """
    out = empty(len(of.n), cards)
    launch = at(cards, kernels.LAUNCH, of.column) * (further or 1.0)
    latency = at(cards, kernels.LATENCY_SHARED, of.column) + at(cards, kernels.LATENCY_MEMORY, of.column)
    most = np.maximum.reduce([np.zeros_like(launch), *parts.values()])
    scale = np.maximum(most, np.finfo(float).tiny)
    for bound, part in parts.items():
        out.resource[..., bound] += part
    out.resource[..., Bound.LAUNCH] += launch + latency
    out.level[..., 1] = out.level[..., 2] = outside
    out.detail[..., 0], out.detail[..., 1] = launch, latency
    out.seconds[:] = launch + latency + most * sum((part / scale) ** 4 for part in parts.values()) ** 0.25
    return out


def around(product: Priced, moves: Moves, of: Layer, cards: Cards) -> Priced:
    """Add transforms, each a kernel of its own that reads one form and writes the other, to the products between them.

    Parameters
    ----------
    product : Priced
        Products of U layers on S cards.
    moves : Moves
        Of each transform.
    of : Layer
        U layers.
    cards : Cards
        S cards.

    Returns
    -------
    Priced
    """
    for moved, work in moves:
        bytes_ = np.repeat(moved[:, None], len(cards.specs), axis=1)
        parts = {Bound.MEMORY: bytes_ / memory_rate(cards, of.column), Bound.VECTOR: work[:, None] / cards.vector_rate[:, of.column].T}
        product = plus(product, kernel(of, cards, parts, bytes_, RELAUNCH))
    return product


def least_seconds(of: Layer, cards: Cards, fewer: np.ndarray | float = 1.0, moves: Moves = ()) -> np.ndarray:
    """Return what an algorithm cannot undercut: its products, ``fewer`` times fewer than direct ones, and its transforms' bytes.

    Parameters
    ----------
    of : Layer
        U layers.
    cards : Cards
        S cards.
    fewer : float or ndarray, shape (U,)
        Direct products over those of the algorithm.
    moves : Moves
        Of its transforms.

    Returns
    -------
    ndarray, shape (U, S)
        [s]
    """
    macs = of.outputs * of.k * of.c * of.taps * of.groups / fewer
    rate = cards.mac_rate[:, of.column].T * at(cards, kernels.ETA_COMPUTE, of.column)
    moved = sum((bytes_ for bytes_, _ in moves), np.zeros_like(macs))
    return np.asarray(macs[:, None] / rate + moved[:, None] / memory_rate(cards, of.column))


def blocked(
    shape: Mapping[int, np.ndarray],
    operand: np.ndarray,
    of: Layer,
    cards: Cards,
    blocks: Mapping[int, Block],
    total: np.ndarray | None = None,
    copies: Copies = COLD,
) -> Priced:
    """Price products whose kernels work in tiles of at least a block, which depends on what multiplies.

    Parameters
    ----------
    shape : mapping of int to ndarray, shape (U, 4)
        batch, m, n, k by style (`VECTOR`, `DOT`, `ARRAY`).
    operand, total, copies
        As `workbench.cost.matrix.products`.
    of : Layer
        U layers.
    cards : Cards
        S cards.
    blocks : mapping of int to Block
        By style; a style without one works in the card's own quanta.

    Returns
    -------
    Priced
    """
    style = styles(cards, of.column)
    found_styles = np.unique(style).tolist()
    if len(found_styles) == 1:
        one = found_styles[0]
        return products(shape[one], operand, of.column, _in_blocks(cards, blocks.get(one)), total, copies)[0]
    out = empty(len(of.n), cards)
    for one in found_styles:
        rows = np.flatnonzero((style == one).any(axis=1))
        inner = None if total is None else total[rows]
        found, _ = products(shape[one][rows], operand[rows], of.column[rows], _in_blocks(cards, blocks.get(one)), inner, copies)
        take = style[rows] == one
        for field in fields(Priced):
            into, part = getattr(out, field.name), getattr(found, field.name)
            into[rows] = np.where(take if part.ndim == 2 else take[..., None], part, into[rows])
    return out


def _in_blocks(cards: Cards, block: Block | None) -> Cards:
    """Return cards whose products come in tiles of at least a block, as far as their buffers hold one."""
    if block is None:
        return cards
    matrix = cards.matrix.copy()
    tall, wide, split = block
    for column, least in ((kernels.QM, tall), (kernels.QN, wide)):
        quantum = matrix[..., column]
        matrix[..., column] = np.maximum(np.ceil(least / np.maximum(quantum, 1.0)), 1.0) * quantum
    size, step = 4.0, 2.0 * 4.0 * matrix[..., kernels.QK]
    tm, tn = matrix[..., kernels.QM], matrix[..., kernels.QN]
    large = (tm * tn * size > matrix[..., kernels.ACCUMULATOR]) | ((tm + tn) * step > matrix[..., kernels.STAGING])
    for column in (kernels.QM, kernels.QN):
        matrix[..., column] = np.where(large, cards.matrix[..., column], matrix[..., column])
    if not split:
        matrix[..., kernels.SPLIT] = 0.0
    return replace(cards, matrix=matrix)
