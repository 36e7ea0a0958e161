"""Convolution: the cheapest of what libraries have for it, or a fixed algorithm.

`windows` (implicit GEMM, direct), `winograd` and `fourier` price one algorithm each and name their sources; here lies which of them
a layer may run as, and what a stated layout adds. A transform is priced only where its products alone could undercut the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

import numpy as np

from workbench.cost import fourier, windows, winograd
from workbench.cost.choices import CHEAPEST, COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.layers import (
    DATA,
    DOT,
    FORWARD,
    RELAUNCH,
    VECTOR,
    WEIGHT,
    Layer,
    kernel,
    layer,
    least_seconds,
    memory_rate,
    styles,
)
from workbench.cost.matrix import Priced, plus
from workbench.cost.pack import Cards
from workbench.errors import Refused
from workbench.operators.layouts import PACKED, Layout, channel_block
from workbench.operators.table import Kind

IMPLICIT, DIRECT, WINOGRAD, WINOGRAD2, WINOGRAD4, FFT = "implicit", "direct", "winograd", "winograd2", "winograd4", "fft"
ALGORITHMS = (CHEAPEST, DIRECT, IMPLICIT, WINOGRAD, WINOGRAD2, WINOGRAD4, FFT)
"""``direct``: no transform: implicit GEMM, the vector unit where groups are many, or (gradient of data) a product whose windows are
added up; ``winograd``: the better of F(2, r) and F(4, r)."""
PASSES = {
    Kind.CONV_FORWARD: (FORWARD,),
    Kind.CONV_BACKWARD_DATA: (DATA,),
    Kind.CONV_BACKWARD_WEIGHT: (WEIGHT,),
    Kind.CONV_BACKWARD: (DATA, WEIGHT),
}
RUNS = ("", IMPLICIT, "vector", "scattered", WINOGRAD2, WINOGRAD4, FFT)
"""How a pass runs, by the code in ``Priced.algorithm``; ``vector``: direct on the vector unit, ``scattered``: windows added up."""
Rule = Callable[[Layer], Priced]


def convolution(
    dims: np.ndarray,
    flops: np.ndarray,
    which: str,
    size: np.ndarray,
    column: np.ndarray,
    cards: Cards,
    algorithm: str = CHEAPEST,
    copies: Copies = COLD,
) -> Priced:
    """Price one pass of a convolution.

    Parameters
    ----------
    dims : ndarray, shape (U, MAX_DIMS)
        As `DIMS` names them for convolutions.
    flops : ndarray, shape (U,)
        FLOPs of the pass; they give the positions along the third axis, whose stride and padding ``dims`` does not hold [FLOP].
    which : {"forward", "data", "weight"}
        Pass.
    size : ndarray, shape (U,)
        Bytes an element [B].
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    algorithm : str
        One of `ALGORITHMS`. What a fixed transform cannot compute is priced as implicit GEMM.
    copies : Copies
        What is warm, see `workbench.cost.choices`.

    Returns
    -------
    Priced

    Raises
    ------
    Refused
        An algorithm nobody knows.
    """
    if algorithm not in ALGORITHMS:
        raise Refused(f"convolution {algorithm!r}", "no such algorithm", f"use {', '.join(ALGORITHMS)}")
    of = layer(dims, flops, which, size, column)
    out = _run(windows.implicit(of, cards, copies), IMPLICIT)
    if algorithm in (CHEAPEST, DIRECT) and (of.groups > 1.0).any():
        out = cheaper(out, _run(windows.direct(of, cards, copies), "vector"), of.groups > 1.0)
    if algorithm in (CHEAPEST, DIRECT) and which == DATA:
        least = least_seconds(of, cards, 1.0, windows.windows_of(of))
        rows = np.flatnonzero(((of.taps > 1.0)[:, None] & (least < out.seconds)).any(axis=1))
        if len(rows):
            found = _run(windows.scattered(of.take(rows), cards), "scattered")
            _keep(out, found, rows, np.zeros(out.seconds.shape, dtype=bool))
    if algorithm not in (DIRECT, IMPLICIT):
        fixed = np.full(out.seconds.shape, algorithm != CHEAPEST)
        for name, able, least, price in _transforms(of, cards, algorithm):
            rows = np.flatnonzero((able[:, None] & (fixed | (least < out.seconds))).any(axis=1))
            if len(rows):
                _keep(out, _run(price(of.take(rows)), name), rows, fixed)
    return _relaid(of, out, cards)


def _transforms(of: Layer, cards: Cards, algorithm: str) -> Iterator[tuple[str, np.ndarray, np.ndarray, Rule]]:
    """Yield a name of `RUNS`, which rows each transform algorithm can compute, its least seconds, and its price; the likeliest first."""
    names = np.asarray(cards.dtypes)[of.column]
    for m, asked in ((4, WINOGRAD4), (2, WINOGRAD2)):
        able = winograd.able(of, names, m)
        if algorithm not in (CHEAPEST, WINOGRAD, asked) or not able.any():
            continue
        p = winograd.plan(of, m)
        fewer = np.where(able, p.tall * p.wide * of.taps / p.planes, 1.0)
        if m == 2 and of.which != WEIGHT:  # fused in one kernel, where no matrix unit takes its operands from memory
            square = able & (of.r == 3.0) & (of.s == 3.0) & (styles(cards, of.column) == VECTOR).any(axis=1)
            yield asked, square, least_seconds(of, cards, fewer), lambda some: winograd.fused(some, cards)
        least = least_seconds(of, cards, fewer, winograd.moves(of, m))
        yield asked, able, least, lambda some, m=m: winograd.apart(some, cards, m)  # type: ignore[misc]
    for side in fourier.SIDES:
        able = fourier.able(of, names, side)
        if algorithm in (CHEAPEST, FFT) and able.any():
            least = least_seconds(of, cards, np.where(able, fourier.fewer(of, side), 1.0), fourier.moves(of, side))
            yield FFT, able, least, lambda some, side=side: fourier.tiled(some, cards, side)  # type: ignore[misc]


def _relaid(of: Layer, out: Priced, cards: Cards) -> Priced:
    """Add what brings image and result from a stated layout to the one a matrix unit works in, and back: each read and written once.

    The vector unit takes any; on cards whose description states a fractal layout `realities` prices the conversion.
    """
    stated = of.layout > Layout.UNSTATED
    if not stated.any():
        return out
    style, fractal = styles(cards, of.column), np.array([spec.matrix.layout is not None for spec in cards.specs])
    wanted = np.where((style == VECTOR) | fractal, of.layout[:, None], Layout.NHWC)
    packed = np.isin(of.layout, list(PACKED))[:, None] & (style == DOT)  # blocks of channels are what a GPU's kernels take too
    differs = stated[:, None] & (wanted != of.layout[:, None]) & ~packed
    block = channel_block(wanted, of.size[:, None])
    for plain in (of.image, of.result):
        channels = np.where(plain is of.image, of.c, of.k)[:, None] * of.groups[:, None]
        grown = np.ceil(channels / block) * block / np.maximum(channels, 1.0)
        bytes_ = np.where(differs, plain[:, None] * (1.0 + grown), 0.0)
        moved = kernel(of, cards, {Bound.MEMORY: bytes_ / memory_rate(cards, of.column)}, bytes_, RELAUNCH)
        out = choose(out, plus(out, moved), differs)
    return out


def _run(found: Priced, name: str) -> Priced:
    """Say, in place, how rows run."""
    found.algorithm[:] = RUNS.index(name)
    return found


def both(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the code of two passes, one after the other, int8."""
    return np.asarray(first + len(RUNS) * second, dtype=np.int8)


def algorithm_names() -> tuple[str, ...]:
    """Return the name of every code of `both` (and of `RUNS`): ``"winograd4"``, ``"scattered+implicit"`` of two gradients."""
    return tuple(first + ("+" if second else "") + second for second in RUNS for first in RUNS)


def cheaper(first: Priced, second: Priced, allowed: np.ndarray) -> Priced:
    """Return, operator and card by card, the faster of two algorithms; the second only where ``allowed`` [U]."""
    return choose(first, second, allowed[:, None] & (second.seconds < first.seconds))


def choose(first: Priced, second: Priced, take: np.ndarray) -> Priced:
    """Return the second where ``take`` [U, S] says so, else the first."""
    parts = ((getattr(first, field.name), getattr(second, field.name)) for field in fields(Priced))
    return Priced(*(np.where(take if one.ndim == 2 else take[..., None], two, one) for one, two in parts))


def _keep(out: Priced, found: Priced, rows: np.ndarray, fixed: np.ndarray) -> None:
    """Put what is faster into some rows of ``out``, and the first that is possible where one algorithm is ``fixed`` [U, S]."""
    take = (found.seconds < out.seconds[rows]) | (fixed[rows] & np.isfinite(found.seconds))
    for field in fields(Priced):
        into, part = getattr(out, field.name), getattr(found, field.name)
        into[rows] = np.where(take if part.ndim == 2 else take[..., None], part, into[rows])
    fixed[rows] &= ~take
