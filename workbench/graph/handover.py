"""Hand-over between host threads: a thread that is idle until another finishes something.

Between two threads that take turns (main thread and autograd engine) control passes where one falls idle and the other,
idle until then, goes on. Threads that are busy at the same time, and threads that run no operators (watchdogs), are only
believed to be waited for where they worked through most of a long gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.graph import kernels

TURNS = 0.05
"""Threads whose activity overlaps by less than this share of the less busy one take turns."""
SHORTEST_NS = 5_000
"""Gaps below this length are too short for a hand-over to be told from noise [ns]."""
LONG_NS = 200_000
"""Threads not known to take turns: only gaps above this length count as waiting [ns] ..."""
WORKED = 0.5
"""... and only where the other worked for at least this share of the gap until it fell idle."""


@dataclass(frozen=True)
class Handovers:
    """Thread ``waiter`` is idle over ``begin..end``; at ``end`` thread ``giver`` has finished what it was waited for."""

    waiter: np.ndarray  # int32 [H]
    giver: np.ndarray  # int32 [H]
    begin: np.ndarray  # int64 [H] [ns]
    end: np.ndarray  # int64 [H] [ns]


def handovers(ptr: np.ndarray, begin: np.ndarray, end: np.ndarray, rank: np.ndarray, has_ops: np.ndarray) -> Handovers:
    """Find hand-overs from busy intervals.

    Parameters
    ----------
    ptr : int64 [T + 1]
    begin, end : int64 [ns]
        Disjoint busy intervals of each thread, in time order.
    rank : int32 [T]
        Only threads of one rank hand over to each other.
    has_ops : bool [T]
        Threads that run framework operators.
    """
    count = len(ptr) - 1
    spans = [(begin[ptr[t] : ptr[t + 1]], end[ptr[t] : ptr[t + 1]]) for t in range(count)]
    found: list[tuple[int, int, int, int]] = []
    for waiter in range(count):
        low, high = spans[waiter]
        gap_low = np.concatenate([[np.int64(-1)], high[:-1]]) if len(high) else high
        best = np.full(len(low), -1, dtype=np.int64)
        giver = np.full(len(low), -1, dtype=np.int32)
        for other in range(count):
            if other == waiter or rank[other] != rank[waiter] or not len(spans[other][0]) or not len(low):
                continue
            turns = has_ops[waiter] and has_ops[other] and _overlap(spans[waiter], spans[other]) < TURNS
            done = _given(gap_low, low, spans[other], turns=turns)
            better = done > best
            best[better], giver[better] = done[better], other
        hits = np.flatnonzero(giver >= 0)
        found += [(waiter, int(giver[k]), int(gap_low[k]), int(best[k])) for k in hits]
    table = np.array(found, dtype=np.int64).reshape(-1, 4)
    return Handovers(table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2], table[:, 3])


def _given(gap_low: np.ndarray, gap_high: np.ndarray, other: tuple[np.ndarray, np.ndarray], *, turns: bool) -> np.ndarray:
    """Int64 [gaps]: when the other thread fell idle inside each gap and stayed idle to its end (-1: it did not) [ns]."""
    begin, end = other
    k = np.searchsorted(end, gap_high, "right") - 1
    done = end[np.maximum(k, 0)]
    later = np.where(k + 1 < len(begin), begin[np.minimum(k + 1, len(begin) - 1)], np.iinfo(np.int64).max)
    opening = gap_low < 0
    hit = (k >= 0) & (done > gap_low) & (later >= gap_high)
    if turns:
        hit &= opening | (done - gap_low >= SHORTEST_NS)
    else:
        before = np.concatenate([[0], np.cumsum(end - begin)])
        first = np.searchsorted(end, gap_low, "right")
        cut = np.clip(gap_low - begin[np.minimum(first, len(begin) - 1)], 0, None)
        worked = before[np.maximum(k, 0) + 1] - before[np.minimum(first, len(begin))] - cut
        hit &= ~opening & (done - gap_low >= LONG_NS) & (worked >= WORKED * (done - gap_low))
    return np.where(hit, done, -1)


def _overlap(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> float:
    """Share of the less busy thread's time in which both are busy."""
    low = np.concatenate([a[0], b[0]])
    high = np.concatenate([a[1], b[1]])
    order = np.argsort(low, kind="stable")
    _, begin, end = kernels.union(np.array([0, len(order)]), low[order], high[order])
    busy = float((a[1] - a[0]).sum()), float((b[1] - b[0]).sum())
    both = sum(busy) - float((end - begin).sum())
    return both / max(min(busy), 1.0)
