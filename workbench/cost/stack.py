"""The cycle stack: how an operator's time divides, what bounds it and by what margin, what an infinitely fast part would give.

Interval analysis after Huang et al., GPUMech (MICRO 2014), carried over to tiles: a time is launch, fill, and a body in which
resources overlap. A body that joins its resources by a norm of degree p, ``(sum t_i^p)^(1/p)``, divides by Euler's theorem:
resource i carries the share ``t_i^p / sum t_j^p``, its elasticity. What nothing overlaps (hand-over stalls, conversions of layout,
control processors) stands beside the body as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.cost import kernels
from workbench.cost.choices import FREE, Choices
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced
from workbench.cost.models import PRODUCTS, dtype_columns, dtype_names
from workbench.cost.nothing import price
from workbench.cost.pack import Cards, pack
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import OpTable

PARTS = ("matrix", "vector", "local", "shared", "memory", "link", "latency", "handover", "conversion", "fallback", "fill", "launch", "tail")
"""Parts of a stack: units, levels and host link while they set the pace; ``latency`` is waiting for data in flight, ``handover`` the
stalls between separate matrix and vector cores, ``conversion`` operators that change the operands' layout, ``fallback`` control
processors, ``fill`` the way to the first tile and from the last, ``tail`` cores without a tile."""
FASTER = ("compute", "vector", "local", "shared", "memory", "latency", "handover", "launch")
"""What `Stack.without_s` makes infinitely fast."""
POWER = 4.0  # of `kernels.evaluate` and `attention`
_APART = (Bound.HANDOVER, Bound.CONVERSION, Bound.FALLBACK)
"""What nothing else overlaps with."""
_BOUNDS = (Bound.MATRIX, Bound.VECTOR, Bound.LOCAL, Bound.SHARED, Bound.MEMORY, Bound.NETWORK)
ENDLESS = 1e9  # times as fast


@dataclass(frozen=True)
class Stack:
    """Stacks of U operators on one card; rows without a model are nan (shares) and 0 (bounds).

    ``share`` [U, len(PARTS)] adds up to 1 in every row that takes time. ``margin`` [U] is the time of the bounding resource over
    that of ``second``, the next one. ``without_s`` [U, len(FASTER)] is the time with a part infinitely fast and, where nobody
    fixed it, the tiling chosen anew [s].
    """

    seconds: np.ndarray
    share: np.ndarray
    bound: np.ndarray
    second: np.ndarray
    margin: np.ndarray
    without_s: np.ndarray


def stack(table: OpTable, spec: NpuSpec, choices: Choices = FREE) -> Stack:
    """Explain the model's time of every operator on a card.

    Parameters
    ----------
    table : OpTable
        U operators.
    spec : NpuSpec
        Card.
    choices : Choices
        As in `workbench.cost.estimate.estimate`.

    Returns
    -------
    Stack
    """
    cards = pack([spec], dtype_names(table))
    column = dtype_columns(table, cards)
    priced = price(table, cards, column, choices)
    bound, second, margin = margins(priced)
    without = [price(table, faster, column, choices).seconds[:, 0] for faster in _endless(cards).values()]
    alone = np.zeros(len(table), dtype=bool)
    if choices.tile is not None and not choices.tile.double_buffer:
        alone = np.isin(table.kind, PRODUCTS)
    return Stack(priced.seconds[:, 0], shares(priced, alone)[:, 0], bound[:, 0], second[:, 0], margin[:, 0], np.stack(without, axis=1))


def shares(priced: Priced, alone: np.ndarray | None = None) -> np.ndarray:
    """Divide times into `PARTS`: what overlaps with nothing as it is, the rest by the norm of degree `POWER` that joins it.

    Parameters
    ----------
    priced : Priced
        U operators on S cards.
    alone : ndarray of bool, shape (U,), optional
        Products whose cores load and compute in turn (a tile without double buffering): their arithmetic overlaps with nothing.

    Returns
    -------
    ndarray, shape (U, S, len(PARTS))
        Fractions; they add up to 1 where the time is positive and are nan elsewhere.
    """
    launch, fill, idle = np.moveaxis(priced.detail, 2, 0)
    apart = priced.resource[..., list(_APART)]
    arithmetic = priced.resource[..., [Bound.MATRIX, Bound.VECTOR]] * (0.0 if alone is None else alone[:, None, None])
    waiting = priced.resource[..., Bound.LATENCY]
    busy = np.concatenate((priced.resource[..., list(_BOUNDS)], waiting[..., None]), axis=2)
    busy[..., :2] -= arithmetic
    most = busy.max(axis=2, keepdims=True)
    scaled = np.divide(busy, most, out=np.zeros_like(busy), where=most > 0)
    weight = scaled**POWER
    total = weight.sum(axis=2, keepdims=True)
    body = np.maximum(priced.seconds - launch - fill - apart.sum(axis=2) - arithmetic.sum(axis=2), 0.0)
    part = body[..., None] * np.divide(weight, total, out=np.zeros_like(busy), where=total > 0)
    part[..., :2] += arithmetic
    own = part[..., [0, 1, 2, 6]].sum(axis=2)
    tail = np.minimum(idle, own)
    kept = 1.0 - np.divide(tail, own, out=np.zeros_like(own), where=own > 0)
    part[..., [0, 1, 2, 6]] *= kept[..., None]
    every = np.concatenate((part, apart, np.stack((fill, launch, tail), axis=2)), axis=2)
    whole = np.where(np.isfinite(priced.seconds), every.sum(axis=2), np.nan)[..., None]
    return np.divide(every, whole, out=np.full_like(every, np.nan), where=whole > 0)


def margins(priced: Priced) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bounding resource, the next one (int8 [U, S], `Bound`), and the ratio of their times (inf: nothing else counts)."""
    busy = np.where(np.isfinite(priced.seconds)[..., None], priced.resource, 0.0)
    order = np.argsort(-busy, axis=2, kind="stable")[..., :2]
    times = np.take_along_axis(busy, order, axis=2)
    order = np.where(times > 0, order, Bound.UNKNOWN).astype(np.int8)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = np.where(times[..., 0] > 0, times[..., 0] / times[..., 1], np.nan)
    return order[..., 0], order[..., 1], margin


def _endless(cards: Cards) -> Mapping[str, Cards]:
    """Return the cards with each part of `FASTER` infinitely fast, in that order."""

    def changed(faster: tuple[int, ...] = (), gone: tuple[int, ...] = (), **rest: Any) -> Cards:
        matrix = cards.matrix.copy()
        matrix[..., list(faster)] *= ENDLESS
        matrix[..., list(gone)] = 0.0
        return replace(cards, matrix=matrix, **rest)

    vector = {name: getattr(cards, name) * ENDLESS for name in ("vector_rate", "softmax_rate", "special_rate")}
    k, side = kernels, cards.side
    between = range(k.MIDDLE + k.MIDDLE_RATE, cards.matrix.shape[2], k.MIDDLE_SIZE)
    near = replace(side, near=side.near * 0.0, far=side.far * 0.0)
    at_once = {"latency": cards.latency * 0.0, "host_latency": cards.host_latency * 0.0, "side": near}
    met = replace(side, exchange=side.exchange * ENDLESS, exchange_latency=side.exchange_latency * 0)
    return {
        "compute": changed((k.MACS,), **vector),
        "vector": changed(**vector),
        "local": changed((k.PORT,)),
        "shared": changed((k.RATE_SHARED, k.RATE_WRITE, *between), shared_rate=cards.shared_rate * ENDLESS),
        "memory": changed((k.RATE_MEMORY,), memory_rate=cards.memory_rate * ENDLESS),
        "latency": changed((), (k.LATENCY_SHARED, k.LATENCY_MEMORY, k.STEP), **at_once),
        "handover": changed(side=met),
        "launch": changed((), (k.LAUNCH,), launch=cards.launch * 0.0),
    }
