"""Which steps count, and how long a step lasts when steps overlap."""

from __future__ import annotations

import numpy as np

from workbench.graph.graph import Graph
from workbench.replay.timeline import Timeline

OUTLIER = 0.10
"""A step this far from the median step is named [1]."""
OVERLAP = 1.05
"""A step this much longer than its period overlaps with the next."""


def overlaps(step_s: float, period_s: float) -> bool:
    """Return whether steps [s] that follow each other every ``period_s`` [s] overlap."""
    return step_s > OVERLAP * period_s


def kept_steps(complete: np.ndarray) -> np.ndarray:
    """Return the steps that count for the median: the complete ones, or all where none is complete. Bool [S]."""
    return complete if complete.any() else np.ones_like(complete)


def outlying(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps far from the median one, as recorded.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    warm, far : ndarray of int
        Indices of the first steps of the recording, as long as each is longer than the median by `OUTLIER`: warming up; and of the
        other steps that differ from it by more. Both are empty with fewer than three steps.
    """
    steps = graph.measured_step_s
    none = np.zeros(0, dtype=np.int64)
    if len(steps) < 3:
        return none, none
    typical = float(np.median(steps[kept_steps(graph.step_complete)]))
    long = steps > (1 + OUTLIER) * typical
    first = np.cumprod(long).astype(bool)
    if first.all():
        first[:] = False
    return np.flatnonzero(first), np.flatnonzero((np.abs(steps - typical) > OUTLIER * typical) & ~first)


def period(graph: Graph, timeline: Timeline) -> float:
    """Return the median time between the ends of successive complete steps of one rank [s].

    A step lasts from its mark to the end of the device work it launched. Where the host runs ahead, the device is still
    busy with one step while the next has begun: steps overlap, and what a long job pays for each is this period.

    Parameters
    ----------
    graph : Graph
    timeline : Timeline
        Of the same graph.

    Returns
    -------
    float
        [s]; the step itself where fewer than two complete steps follow each other.
    """
    ends = timeline.start_s[graph.step_begin] + timeline.step_s
    order = np.argsort(graph.rank[graph.step_begin], kind="stable")
    ends, complete, rank = ends[order], graph.step_complete[order], graph.rank[graph.step_begin][order]
    follows = complete[1:] & complete[:-1] & (rank[1:] == rank[:-1])
    between = np.diff(ends)[follows]
    if not len(between):
        return float(np.median(timeline.step_s[kept_steps(graph.step_complete)]))
    return float(np.median(between))
