"""How far the clocks of ranks are apart, from the common ends of matched messages.

All members of a synchronising collective end together, so the difference of their recorded ends is that of their clocks. The median
over all such ends is the offset (one late reader does not move it), the median distance from it the uncertainty.
As in dPRO (Hu et al., MLSys 2022, section 4.1), which aligns clocks by the order of sends and receives.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from workbench.graph.kernels_ranks import steepness
from workbench.graph.rank_match import Matches
from workbench.graph.rank_messages import Messages, Sense

FEW = 8
"""A drift needs at least this many common ends."""
SHARPER = 0.5
"""A drift is believed when it leaves at most this part of the spread."""
STEEPEST = 1e-3
"""No clock drifts faster than this [s/s]."""
SAMPLE = 400
"""Ends used for a drift at most."""


@dataclass(frozen=True)
class Clocks:
    """Clock of each rank against the reference of its part; arrays of length R.

    With u = t - offset_ns[r], a time t of rank r is ``u - drift[r] * (u - pivot_ns)`` on the clock of its reference.
    """

    rank: np.ndarray  # int32, ascending
    reference: np.ndarray  # int32, the rank its clock is compared with
    offset_ns: np.ndarray  # int64 [ns], at the pivot
    drift: np.ndarray  # float64 [s/s] (0: none the ends support)
    spread_ns: np.ndarray  # int64 [ns], median distance of the ends from the fit, added along the way to the reference (-1: not known)
    worst_ns: np.ndarray  # int64 [ns], largest distance of an end from the fit (-1: not known)
    ends: np.ndarray  # int32, common ends the offset rests on
    weak: np.ndarray  # bool, from messages that need not end together (point-to-point, all-to-all)
    pivot_ns: int

    def row(self, rank: np.ndarray) -> np.ndarray:
        """Return the rows of some ranks."""
        return np.searchsorted(self.rank, rank)

    def correction(self, rank: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return what the drift adds to times of some ranks beyond the constant offset [ns], to be subtracted; int64."""
        row = self.row(rank)
        return np.rint(self.drift[row] * (time - self.offset_ns[row] - self.pivot_ns)).astype(np.int64)


@dataclass(frozen=True)
class _Fit:
    offset: float
    drift: float
    spread: float
    worst: float
    count: int


def clocks(m: Messages, matches: Matches, ranks: np.ndarray) -> Clocks:
    """Estimate the clock of every rank.

    Parameters
    ----------
    m : Messages
    matches : Matches
        Also those of which members are missing: the others end together all the same.
    ranks : int [R]
        All ranks of the recording, ascending.

    Returns
    -------
    Clocks
        Ranks that share no message with the others are references of their own.
    """
    count = len(ranks)
    out = Clocks(
        ranks.astype(np.int32),
        ranks.astype(np.int32).copy(),
        np.zeros(count, np.int64),
        np.zeros(count),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int32),
        np.zeros(count, bool),
        _middle(m, matches),
    )
    strong, weak = _common(m, matches, True), _common(m, matches, False)
    done: set[int] = set()
    for rank in ranks.tolist():
        if rank in done:
            continue
        done.add(rank)
        _spread_from(out, strong, weak, done)
    return out


def _middle(m: Messages, matches: Matches) -> int:
    """Median end of the matched messages of the first rank that has any [ns]."""
    rows = np.flatnonzero(matches.of >= 0)
    return int(np.median(m.end[rows[m.rank[rows] == m.rank[rows].min()]])) if len(rows) else 0


def _common(m: Messages, matches: Matches, strong: bool) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """Rows two ranks have in common, both ways: of every match the first member with each other one."""
    which = (matches.of >= 0) & ((m.sense == Sense.ALL) == strong)
    rows = np.flatnonzero(which)
    rows = rows[np.lexsort((m.rank[rows], matches.of[rows]))]
    out: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    head = -1
    for row in rows.tolist():
        if head < 0 or matches.of[row] != matches.of[head]:
            head = row
            continue
        a, b = int(m.rank[head]), int(m.rank[row])
        out[a][b].append((int(m.end[head]), int(m.end[row])))
        out[b][a].append((int(m.end[row]), int(m.end[head])))
    return out


def _spread_from(
    out: Clocks, strong: dict[int, dict[int, list[tuple[int, int]]]], weak: dict[int, dict[int, list[tuple[int, int]]]], done: set[int]
) -> None:
    """Reach every rank that shares messages with those already known, along the most common ends first."""
    while True:
        best: tuple[int, int, int, int] | None = None
        for level, ends in enumerate((strong, weak)):
            for a in sorted(done & ends.keys()):
                for b, pairs in ends[a].items():
                    if b not in done:
                        offer = (-level, len(pairs), -a, -b)
                        best = offer if best is None or offer > best else best
            if best is not None:
                break
        if best is None:
            return
        level, a, b = -best[0], -best[2], -best[3]
        _place(out, a, b, (strong, weak)[level][a][b], bool(level))
        done.add(b)


def _place(out: Clocks, a: int, b: int, pairs: list[tuple[int, int]], weak: bool) -> None:
    """Set the clock of b from that of a and their common ends."""
    i, j = (int(np.searchsorted(out.rank, r)) for r in (a, b))
    ends = np.array(pairs, dtype=np.int64)
    fit = _fit(ends[:, 0] - out.offset_ns[i], ends[:, 1] - ends[:, 0], out.pivot_ns)
    out.reference[j] = out.reference[i]
    out.offset_ns[j] = out.offset_ns[i] + round(fit.offset)
    out.drift[j] = out.drift[i] + fit.drift
    out.spread_ns[j] = out.spread_ns[i] + round(fit.spread)
    out.worst_ns[j] = out.worst_ns[i] + round(fit.worst)
    out.ends[j] = fit.count
    out.weak[j] = weak or out.weak[i]


def _fit(at: np.ndarray, difference: np.ndarray, pivot: int) -> _Fit:
    """Median of the differences, and their drift where it makes them clearly sharper (Theil and Sen's median of slopes)."""
    base = int(difference[0])
    d = (difference - base).astype(np.float64)
    middle = float(np.median(d))
    away = np.abs(d - middle)
    flat = _Fit(base + middle, 0.0, float(np.median(away)), float(away.max()), len(d))
    if len(d) < FEW or at.min() == at.max():
        return flat
    t = (at - pivot).astype(np.float64)
    pick = np.unique(np.linspace(0, len(d) - 1, SAMPLE).astype(np.int64))
    slope = float(steepness(t[pick], d[pick]))
    rest = d - slope * t
    level = float(np.median(rest))
    left = np.abs(rest - level)
    spread = float(np.median(left))
    drifts = abs(slope) * float(t.max() - t.min()) > 4 * max(spread, 1.0)
    if not drifts or abs(slope) > STEEPEST or spread > SHARPER * flat.spread:
        return flat
    return _Fit(base + level, slope, spread, float(left.max()), len(d))
