"""Account: where the time of every step went, in parts that add up to it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from workbench.graph.graph import EdgeKind, Graph, NodeKind
from workbench.replay import kernels_account as kernels
from workbench.replay.timeline import Account, Timeline

WORK = (NodeKind.HOST_WORK, NodeKind.HOST_CALL, NodeKind.LAUNCH, NodeKind.LAUNCH_RETURN)
"""Host nodes that count as work of the host. A GAP is time no record explains: it counts as idle."""
BLOCKING = (EdgeKind.SYNC, EdgeKind.SYNC_INFERRED, EdgeKind.QUEUE)


def account(graph: Graph, timeline: Timeline, *, on_card: bool = False) -> Account:
    """Split every step by what happened in it.

    Parameters
    ----------
    graph : Graph
    timeline : Timeline
        A replay of the graph.
    on_card : bool
        Operators recorded on the host without device work (`NodeKind.HOST_WORK` with a row of the table) are replayed with the times
        of a card: they count as kernels of it. As recorded they are work of the host.

    Returns
    -------
    Account
        Every moment of a step's window belongs to the first of: a kernel of the step's rank runs; a collective runs; a copy or fill
        runs; a collective waits for its peers (counted as waiting); a host thread works; a host thread is blocked in a call or on a
        full queue (or returns from such a call, also waiting); none of these (*idle*: gaps on the host that no record explains,
        latencies of the device). The six parts add up to ``step_s``. Device work counts where it runs, also when an earlier step
        launched it; the device is busy while its collectives wait for their peers.
    """
    rank = graph.rank[graph.step_begin]
    begin, step = timeline.start_s[graph.step_begin], timeline.step_s
    parts, communication, busy = np.zeros((len(step), 7)), np.zeros(len(step)), np.zeros(len(step))
    for r in np.unique(rank):
        intervals = _classes(graph, timeline, (graph.rank == r) | (graph.rank < 0), on_card)
        ptr, low, high = _pack(intervals)
        mine = np.flatnonzero(rank == r)
        for s in mine:
            kernels.owned(ptr, low, high, float(begin[s]), float(begin[s] + step[s]), parts[s])
            rest = int(np.argmax(parts[s]))
            parts[s, rest] = step[s] - np.delete(parts[s], rest).sum()
        communication[mine] = _total([intervals[1]], begin[mine], step[mine])
        busy[mine] = _total([_union(*(np.concatenate([part[i] for part in intervals[:4]]) for i in range(2)))], begin[mine], step[mine])
    compute, exposed, copies, peers, host, waiting, idle = np.ascontiguousarray(parts.T)
    return Account(compute, exposed, copies, host, peers + waiting, idle, step, communication, busy)


def _classes(graph: Graph, timeline: Timeline, own: np.ndarray, on_card: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Disjoint intervals of compute, communication, copies, waiting for peers, host work and other waiting of some nodes [s]."""
    start, finish = timeline.start_s, timeline.finish_s
    target = np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))
    moved = (graph.kind == NodeKind.HOST_WORK) & (graph.op >= 0) & on_card
    out = []
    for kinds in ((NodeKind.COMPUTE,), (NodeKind.COMMUNICATION,), (NodeKind.COPY,), WORK):
        mine = ((_among(graph.kind, kinds) & ~moved) | (moved & (kinds[0] == NodeKind.COMPUTE))) & own
        out.append(_union(start[mine], finish[mine]))
    met = (graph.edge_kind == EdgeKind.ARRIVAL) & own[target]
    out.insert(3, _union(finish[graph.edge_from[met]], start[target[met]]))
    begin, end = _blocked(graph, timeline, target, own)
    back = (graph.kind == NodeKind.SYNC) & own
    out.append(_union(np.concatenate([begin, start[back]]), np.concatenate([end, finish[back]])))
    return out


def _blocked(graph: Graph, timeline: Timeline, target: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals in which a thread had come to a waiting call, but what it waits for had not ended [s]."""
    waits = np.zeros(len(graph), dtype=bool)
    waits[target[_among(graph.edge_kind, BLOCKING)]] = True
    before = (graph.edge_kind == EdgeKind.PROGRAM) & waits[target] & own[target]
    at = target[before]
    return timeline.finish_s[graph.edge_from[before]], timeline.start_s[at]


def _among(codes: np.ndarray, wanted: Sequence[IntEnum]) -> np.ndarray:
    """Bool like ``codes``: which are one of ``wanted`` (a table look-up: ten times faster than `np.isin` on small codes)."""
    table = np.zeros(128, dtype=bool)
    table[[int(code) for code in wanted]] = True
    return table[codes]


def _union(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(start, kind="stable")
    return kernels.union(start[order], end[order])


def _pack(intervals: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ptr = np.cumsum([0, *(len(low) for low, _ in intervals)])
    return ptr, np.concatenate([low for low, _ in intervals]), np.concatenate([high for _, high in intervals])


def _total(intervals: list[tuple[np.ndarray, np.ndarray]], begin: np.ndarray, step_s: np.ndarray) -> np.ndarray:
    ptr, low, high = _pack(intervals)
    out = np.empty((len(step_s), 2))
    for s in range(len(step_s)):
        kernels.owned(ptr, low, high, float(begin[s]), float(begin[s] + step_s[s]), out[s])
    return np.ascontiguousarray(out[:, 0])
