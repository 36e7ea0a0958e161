"""Operators that work row by row (softmax, norms): passes over a row, what of them comes from outside, dependent trips.

A row that a group of lanes holds is read once. A longer one is read again for every pass, from the shared level as long as all
rows being worked on fit there. Each pass is a chain of accesses that wait for each other; so many chains run side by side as a
core has groups of lanes (Little's law).
Sources: PyTorch (BSD-3), SoftMax.cu and layer_norm_kernel.cu: three passes of up to 512 lanes and a ragged end element by
element; two passes of 128 lanes, and two kernels where rows are no whole number of wide accesses. vLLM (Apache-2.0),
layernorm_kernels.cu: two passes of up to 1024 lanes, element by element. Online softmax in two passes after Milakov and
Gimelshein (arXiv 1805.02867). Constants chosen on rows of NeuSight (MIT) on V100, A100, T4 and P100 and of vidur (MIT) on A100,
fitting half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.cost.pack import Cards
from workbench.cost.pack_vector import GROUP_LANES, WORD
from workbench.operators.table import Kind

KINDS = (Kind.SOFTMAX, Kind.NORM)
MOST_LANES, NORM_LANES, NARROW_LANES = 512.0, 128.0, 1024.0
"""Lanes of a SIMT core that share a row: most of them, those of a norm, most of a kernel that fetches element by element."""
CORES, WIDE_CORES = 48.0, 24.0
"""Cores whose rows lie between two passes over one: of what measured cards of 40 to 108 cores lose the model explains most so (more
cores keep more rows in flight, but serve the oldest first, and share the bandwidth). Cores with one wide word: those of a card of
today, not measured."""
LIBRARY_HELD = 1024.0  # columns up to which libraries hold a row, padded to a power of two (PyTorch, PersistentSoftmax.cuh)
MEETINGS = 8.0  # latencies of the shared level that the groups of lanes of a softmax take to meet at the end of a pass
LOADED = 2.0  # latency of an access while others are on their way, over that of one alone
KEPT, GONE = 0.1, 1.0
"""Bytes used between two uses, over the shared level, up to which all and from which nothing is found there. A cache that is
shared in halves, or divided by channels unevenly, loses its first lines long before it is full."""
PLAIN_WORK, NORM_WORK = 20.0, 25.0
"""Instructions of a SIMT lane an element: the arithmetic of `workbench.operators.formulas` and addresses, bounds and conversions
around it; in a norm Welford's divisions too. Cards with one wide word pay the arithmetic alone."""
PLAIN_STEP, NORM_STEP = 8.0, 40.0
"""Instructions of a lane in one step of a sum across a group of lanes: shuffle and add; shuffle and combine means and squares."""


@dataclass(frozen=True)
class Rows:
    """Of U operators on S cards [U, S]: ``passes`` over a row, ``again`` of them (beyond the first) that come from outside,
    ``trips`` of dependent accesses [s], ``work`` instructions of all lanes beyond plain arithmetic, ``kernels`` launched.
    """

    passes: np.ndarray
    again: np.ndarray
    trips: np.ndarray
    work: np.ndarray
    kernels: np.ndarray


def missed(bytes_: np.ndarray, cards: Cards) -> np.ndarray:
    """Return the share of accesses that do not find their data in the shared level after ``bytes_`` of others [U, S]."""
    room = cards.side.shared
    filled = np.divide(bytes_, room, out=np.full(np.broadcast_shapes(np.shape(bytes_), room.shape), GONE), where=room > 0)
    return np.clip((filled - KEPT) / (GONE - KEPT), 0.0, 1.0)


def rowwise(
    kind: np.ndarray, rows: np.ndarray, cols: np.ndarray, size: np.ndarray, narrow: np.ndarray, cold: np.ndarray, cards: Cards
) -> Rows:
    """Return what working row by row costs.

    Parameters
    ----------
    kind : ndarray of int, shape (U,)
        One of `KINDS` each.
    rows, cols : ndarray, shape (U,)
        Independent rows, elements in each.
    size : ndarray, shape (U,)
        Bytes an element [B].
    narrow : ndarray of bool, shape (U,)
        Kernels that fetch element by element where lanes are threads.
    cold : ndarray, shape (U, S)
        Share of the first pass that comes from outside.
    cards : Cards
        S packed cards.
    """
    side = cards.side
    kind, rows, cols, size, narrow = (each[:, None] for each in (kind, np.maximum(rows, 1.0), np.maximum(cols, 1.0), size, narrow))
    soft, norm = kind == Kind.SOFTMAX, kind == Kind.NORM
    simt = side.simt[None, :]
    held = np.where(simt, (cols * 4.0 <= cards.row_room) & ~norm, cols * size <= cards.row_room)  # registers hold 4 bytes an element
    passes = np.where(held, 1.0, np.where(soft & simt, 3.0, 2.0))
    wide = np.where(narrow, 1.0, np.maximum(WORD / size, 1.0))
    odd = norm & (cols % wide > 0) & simt
    lanes = np.where(simt, _lanes(cols, wide, held, norm, narrow), side.lanes)
    at_once = np.where(simt, np.maximum(side.groups * GROUP_LANES / lanes, 1.0), 1.0)
    in_work = np.maximum(rows / cards.cores, 1.0)
    busy = np.where(odd, rows, np.minimum(np.where(simt, CORES * at_once, WIDE_CORES), rows))  # odd rows: a kernel for every pass
    between = busy * cols * size
    lost = missed(between, cards)
    steps = np.where(simt, np.where(held & soft, 1.0, _steps(cols, wide, lanes, norm, odd)), cols * size / side.flight)
    trip = np.where(simt, LOADED, 1.0) * (passes * side.near + (cold + (passes - 1.0) * lost) * side.far)
    welford = norm & ~narrow
    meet = np.where(simt & soft & ~held, MEETINGS * passes * side.near, 0.0)
    each = np.where(simt & (soft | norm), np.where(welford, NORM_WORK, PLAIN_WORK), 0.0)
    across = np.log2(np.where(simt, GROUP_LANES, np.maximum(lanes, 2.0))) * np.where(welford, NORM_STEP, PLAIN_STEP)
    whole = np.where(cols <= LIBRARY_HELD, 2.0 ** np.ceil(np.log2(cols)), cols)
    padded = np.where(simt & soft & held, np.maximum(whole, GROUP_LANES), cols)
    work = rows * (padded * each + np.where(held, 0.0, lanes * across))
    return Rows(passes, (passes - 1.0) * lost, np.maximum(in_work / at_once, 1.0) * (steps * trip + meet), work, 1.0 + odd)


def _lanes(cols: np.ndarray, wide: np.ndarray, held: np.ndarray, norm: np.ndarray, narrow: np.ndarray) -> np.ndarray:
    """Return how many lanes of a SIMT core share a row: a power of two that leaves each one or two accesses, within limits."""
    fit = np.clip(2.0 ** np.floor(np.log2(np.maximum(cols / wide - 1.0, 1.0))), GROUP_LANES, MOST_LANES)
    by_kind = np.where(norm, NORM_LANES, np.where(held, GROUP_LANES, fit))
    return np.where(narrow, np.clip(cols, GROUP_LANES, NARROW_LANES), by_kind)


def _steps(cols: np.ndarray, wide: np.ndarray, lanes: np.ndarray, norm: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Return dependent accesses of one pass: wide ones, and the ragged end of a softmax or all of an odd norm element by element."""
    whole = np.floor(cols / (wide * lanes))
    ragged = whole + np.ceil((cols - whole * wide * lanes) / lanes)
    return np.where(norm, np.ceil(cols / np.where(odd, lanes, wide * lanes)), ragged)
