"""Matrix products on tiles: GEMM and batched GEMM, and whatever reduces to them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from workbench.cost import kernels
from workbench.cost.choices import COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.kernels_attention import RESIDENT_SHARE, missing_all
from workbench.cost.pack import Cards

PARALLEL_FROM = 4096  # products x cards from which threads pay (the kernel releases the interpreter lock)


@dataclass(frozen=True)
class Priced:
    """Times of U operators on S cards, in the layout of `OpCost`.

    ``detail`` says what of the time is launch, what is fill (latency before the first and after the last tile), and in what
    part of the rest cores stand without a tile. ``algorithm`` says how a convolution runs, see `workbench.cost.convolution.RUNS`,
    ``tile`` what the search of a product chose: rows and columns of results a core works on at a time, parts of K.
    """

    seconds: np.ndarray  # [U, S] [s]
    resource: np.ndarray  # [U, S, len(Bound)] [s]
    level: np.ndarray  # [U, S, Cards.levels] [B]
    detail: np.ndarray  # [U, S, 3] [s]
    algorithm: np.ndarray  # int8 [U, S], 0: no convolution
    tile: np.ndarray  # int32 [U, S, 3], 0: no tiles


def empty(rows: int, cards: Cards) -> Priced:
    """Return a Priced of zeros."""
    size = (rows, len(cards.specs))
    resource, level, detail = (np.zeros((*size, width)) for width in (len(Bound), cards.levels, 3))
    return Priced(np.zeros(size), resource, level, detail, np.zeros(size, dtype=np.int8), np.zeros((*size, 3), dtype=np.int32))


def plus(first: Priced, second: Priced, times: np.ndarray | float = 1.0) -> Priced:
    """Return one operator after the other, the second ``times`` [U, 1] times; algorithm and tile are the first's."""
    each = np.asarray(times, dtype=np.float64)
    most = each[..., None]
    return Priced(
        first.seconds + each * second.seconds,
        first.resource + most * second.resource,
        first.level + most * second.level,
        first.detail + most * second.detail,
        first.algorithm,
        first.tile,
    )


def pass_between(out: Priced, cards: Cards) -> None:
    """Count, in place, what operators without tiles of their own move through the levels between the cores and the shared one."""
    counts = cards.matrix[:, 0, kernels.MIDDLE + kernels.MIDDLE_COUNT :: kernels.MIDDLE_SIZE] if cards.dtypes else np.zeros((1, 0))
    for at, present in enumerate(counts.T > 0.0):
        slot = kernels.FIRST_MIDDLE if at == 0 else kernels.MORE_MIDDLES + at - 1
        own = out.level[..., slot]
        np.copyto(own, out.level[..., 1], where=(own == 0.0) & present)


def sets_of(copies: Copies | np.ndarray, rows: int) -> np.ndarray:
    """Return how many sets of A, B and C take turns, float64 [U, 3]; two numbers are those of both operands, and of results."""
    sets = np.asarray(copies, dtype=np.float64)
    if sets.shape[-1] == 2:
        sets = sets[..., [0, 0, 1]]
    return np.ascontiguousarray(np.broadcast_to(sets, (rows, 3)))


def lost(total: np.ndarray, sets: np.ndarray, column: np.ndarray, cards: Cards) -> np.ndarray:
    """Return the shares of operands and of results that the shared level has lost when a product comes again, float64 [U, S, 2].

    All sets of A, B and C take turns there; of results their own sets. See `kernels_attention.missing`.

    Parameters
    ----------
    total : ndarray, shape (U, 3)
        Distinct bytes of A, B and C [B].
    sets : ndarray, shape (U, 3)
        Sets that take turns; infinite: none is found again.
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    """
    out = np.ones((len(total), len(cards.specs), 2))
    warm = np.flatnonzero(np.isfinite(sets[:, 2]))
    if not len(warm):
        return out
    turns = np.where(total[warm] > 0.0, total[warm] * sets[warm], 0.0)
    held = np.stack((turns.sum(axis=1), turns[:, 2]), axis=1)
    room = cards.matrix[:, np.asarray(column)[warm], kernels.SHARED].T * RESIDENT_SHARE
    ratio = np.divide(held[:, None, :], room[..., None], out=np.full((*room.shape, 2), np.inf), where=room[..., None] > 0.0)
    shares = np.empty(ratio.shape)
    missing_all(ratio.ravel(), shares.ravel())
    out[warm] = shares
    return out


def products(
    shape: np.ndarray,
    operand: np.ndarray,
    column: np.ndarray,
    cards: Cards,
    total: np.ndarray | None = None,
    copies: Copies | np.ndarray = COLD,
    tile: tuple[int, int, int] | None = None,
) -> tuple[Priced, np.ndarray]:
    """Price matrix products by the best feasible tiling (models.md section 1; sources in `kernels`).

    Parameters
    ----------
    shape : ndarray, shape (U, 4)
        batch, m, n, k.
    operand : ndarray, shape (U, 3)
        Bytes an element of A, B and C [B].
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    total : ndarray, shape (U, 3), optional
        Distinct bytes of A, B and C where they are not the plain products (implicit GEMM) [B].
    copies : Copies or ndarray, shape (U, 2) or (U, 3)
        What is warm, see `workbench.cost.choices`: working sets and output sets, or sets of A, B and C.
    tile : tuple of int, optional
        Fixed tm, tn and split of K instead of the search.

    Returns
    -------
    Priced, ndarray of shape (U, S, 3)
        Times, and the chosen tm, tn, split.
    """
    rows, size = len(shape), len(cards.specs)
    shape = np.ascontiguousarray(shape, dtype=np.float64)
    operand = np.ascontiguousarray(operand, dtype=np.float64)
    batch, m, n, k = shape.T
    if total is None:
        total = np.stack((batch * m * k, batch * k * n, batch * m * n), axis=1) * operand
    out, choice = empty(rows, cards), np.zeros((rows, size, 3))
    arrays = (
        shape, operand, np.ascontiguousarray(total, dtype=np.float64), lost(total, sets_of(copies, rows), column, cards),
        np.ascontiguousarray(column, dtype=np.int64), out.seconds, out.resource, out.level, out.detail, choice,
    )  # fmt: skip
    fixed = np.asarray(tile or (0, 0, 0), dtype=np.float64)

    def block(part: slice) -> None:
        first, second, third, fourth, fifth, *results = (array[part] for array in arrays)
        kernels.tile_rows(first, second, third, fourth, fifth, cards.matrix, fixed, *results)

    threads = min(os.cpu_count() or 1, 8)
    if rows * size < PARALLEL_FROM or threads == 1:
        block(slice(0, rows))
        out.tile[:] = choice
        return out, choice
    step = max(1, -(-rows // (4 * threads)))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(block, [slice(begin, begin + step) for begin in range(0, rows, step)]))
    out.tile[:] = choice
    return out, choice
