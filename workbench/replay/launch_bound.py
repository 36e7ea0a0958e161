"""Launch-bound regions: stretches of a step in which the device waits for the host to launch, one kernel after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.graph.graph import DEVICE_KINDS, EdgeKind, Graph
from workbench.replay.timeline import Timeline

LAUNCHED = (EdgeKind.LAUNCH, EdgeKind.FALLBACK, EdgeKind.ROOT)
"""What sets the start of a piece of device work where the host is late with it."""


@dataclass(frozen=True)
class LaunchBound:
    """Regions in time order, arrays [R]: step index, begin and end since the root [s], time the device was idle in it [s], pieces of work.

    A region is a run of device work of one rank, in order of start, each of whose pieces found all streams of its rank idle and began
    when its launch reached the device.
    """

    step: np.ndarray
    begin_s: np.ndarray
    end_s: np.ndarray
    idle_s: np.ndarray
    launches: np.ndarray
    share: np.ndarray  # float64 [S], time in regions over the step

    def __len__(self) -> int:
        return len(self.step)


def launch_bound(graph: Graph, timeline: Timeline) -> LaunchBound:
    """Find the launch-bound regions of a replay.

    Parameters
    ----------
    graph : Graph
    timeline : Timeline
        Of this graph.

    Returns
    -------
    LaunchBound
        ``share`` counts the idle time before each piece and the pieces themselves: all that shortens with a faster host.
    """
    order, late, idle = launched_late(graph, timeline)
    start, finish, rank, step = timeline.start_s[order], timeline.finish_s[order], graph.rank[order], graph.step[order]
    new = late.copy()
    new[1:] &= ~late[:-1] | (step[1:] != step[:-1]) | (rank[1:] != rank[:-1])
    number = np.cumsum(new) - 1
    mine = np.flatnonzero(late)
    first = np.flatnonzero(new)
    last = np.zeros(len(first), dtype=np.int64)
    last[number[mine]] = mine
    begin, end = (start - idle)[first], finish[last]
    count = len(graph.step_numbers)
    whole = np.bincount(step[first], weights=end - begin, minlength=count)
    share = np.divide(whole, timeline.step_s, out=np.zeros(count), where=timeline.step_s > 0)
    sums = np.bincount(number[mine], weights=idle[mine], minlength=len(first))
    return LaunchBound(step[first], begin, end, sums, np.bincount(number[mine], minlength=len(first)), np.minimum(share, 1.0))


def launched_late(graph: Graph, timeline: Timeline) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the device work that the device had to wait for: idle on all streams of its rank, it began when its launch reached it.

    Parameters
    ----------
    graph : Graph
    timeline : Timeline
        Of this graph.

    Returns
    -------
    order : numpy.ndarray
        Int64 [D], nodes of device work inside steps, by rank, then start.
    late : numpy.ndarray
        Bool [D], those that were waited for.
    idle_s : numpy.ndarray
        Float64 [D] [s], how long the device was idle before each of them, inside its step (0 for the others).
    """
    device = np.flatnonzero(np.isin(graph.kind, DEVICE_KINDS) & (graph.step >= 0))
    order = device[np.lexsort((timeline.start_s[device], graph.rank[device]))]
    start, finish, rank, step = timeline.start_s[order], timeline.finish_s[order], graph.rank[order], graph.step[order]
    before = np.zeros(len(order))
    for one in np.unique(rank):
        mine = np.flatnonzero(rank == one)
        latest = np.maximum.accumulate(finish[mine])
        before[mine[1:]] = latest[:-1]
    edge = timeline.binding[order]
    late = (edge >= 0) & np.isin(graph.edge_kind[edge], LAUNCHED) & (start >= before)
    begins_step = timeline.start_s[graph.step_begin][step]
    return order, late, np.where(late, start - np.maximum(before, begins_step), 0.0)
