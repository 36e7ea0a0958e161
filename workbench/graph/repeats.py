"""Repeating blocks of a sequence of tokens: where it runs through the same block several times in a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LONGEST = 4096
"""Longer blocks are not looked for [tokens]."""
DISTINCT = 3
"""A block of fewer different tokens is no layer."""
NEARLY = 0.5
"""Of blocks that cover more than half of what the best covers the shortest is taken: two layers in a row, or a stage of them, are no
layer, while a block within one of two layers covers less [1]."""


@dataclass(frozen=True)
class Run:
    """``count`` blocks of ``period`` tokens from ``start`` on."""

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        """One behind the last token."""
        return self.start + self.period * self.count


def runs(tokens: np.ndarray) -> list[Run]:
    """Return the runs of repeating blocks, in order; the longest is found first, then those left and right of it.

    Where a run could begin at several tokens (what precedes it equals the end of its block) it begins at the first.

    Parameters
    ----------
    tokens : ndarray of int [N]

    Examples
    --------
    >>> runs(np.array([9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8]))
    [Run(start=1, period=3, count=3)]
    """
    found: list[Run] = []
    todo = [(0, len(tokens))]
    while todo:
        low, high = todo.pop()
        best = _longest(tokens[low:high])
        if best is None:
            continue
        best = Run(best.start + low, best.period, best.count)
        found.append(best)
        todo += [(low, best.start), (best.stop, high)]
    return sorted(found, key=lambda run: run.start)


def _longest(tokens: np.ndarray) -> Run | None:
    count = len(tokens)
    candidates: list[tuple[int, int, int]] = []  # (tokens covered, period, start)
    best = 0
    for period in range(DISTINCT, min(count // 2, LONGEST) + 1):
        if count < best * NEARLY:
            break
        equal = tokens[period:] == tokens[:-period]
        if int(equal.sum()) < period:
            continue
        breaks = np.flatnonzero(~equal)
        edges = np.concatenate([[-1], breaks, [len(equal)]])
        lengths = np.diff(edges) - 1
        at = int(np.argmax(lengths))
        if lengths[at] < period:
            continue
        start = int(edges[at]) + 1
        covered = (int(lengths[at]) + period) // period * period
        if len(np.unique(tokens[start : start + period])) >= DISTINCT:
            candidates.append((covered, period, start))
            best = max(best, covered)
    near = [one for one in candidates if one[0] > NEARLY * best]
    if not near:
        return None
    covered, period, start = min(near, key=lambda one: (one[1], one[2]))
    return Run(start, period, covered // period)
