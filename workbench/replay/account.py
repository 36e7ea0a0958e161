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


def account(graph: Graph, timeline: Timeline) -> Account:
    """Split every step by what happened in it.

    Parameters
    ----------
    graph : Graph
    timeline : Timeline
        A replay of the graph.

    Returns
    -------
    Account
        Every moment of a step's window belongs to the first of: a kernel runs; a collective runs; a copy or fill runs;
        a host thread works; a host thread is blocked in a call or on a full queue (or returns from such a call);
        none of these (*idle*: gaps on the host that no record explains, latencies of the device). The six parts
        add up to ``step_s``. Device work counts where it runs, also when an earlier step launched it.
    """
    intervals = _classes(graph, timeline)
    steps = len(timeline.step_s)
    begin = timeline.start_s[graph.step_begin]
    parts = np.zeros((steps, 6))
    ptr, low, high = _pack(intervals)
    for s in range(steps):
        kernels.owned(ptr, low, high, float(begin[s]), float(begin[s] + timeline.step_s[s]), parts[s])
        rest = int(np.argmax(parts[s]))
        parts[s, rest] = timeline.step_s[s] - np.delete(parts[s], rest).sum()
    communication = _total([intervals[1]], begin, timeline.step_s)
    busy = _total([_union(*(np.concatenate([part[i] for part in intervals[:3]]) for i in range(2)))], begin, timeline.step_s)
    compute, exposed, copies, host, waiting, idle = np.ascontiguousarray(parts.T)
    return Account(compute, exposed, copies, host, waiting, idle, timeline.step_s, communication, busy)


def _classes(graph: Graph, timeline: Timeline) -> list[tuple[np.ndarray, np.ndarray]]:
    """Disjoint intervals of compute, communication, copies, host work and waiting [s]."""
    start, finish = timeline.start_s, timeline.finish_s
    out = []
    for kinds in ((NodeKind.COMPUTE,), (NodeKind.COMMUNICATION,), (NodeKind.COPY,), WORK):
        mine = _among(graph.kind, kinds)
        out.append(_union(start[mine], finish[mine]))
    begin, end = _blocked(graph, timeline)
    back = graph.kind == NodeKind.SYNC
    out.append(_union(np.concatenate([begin, start[back]]), np.concatenate([end, finish[back]])))
    return out


def _blocked(graph: Graph, timeline: Timeline) -> tuple[np.ndarray, np.ndarray]:
    """Intervals in which a thread had come to a waiting call, but what it waits for had not ended [s]."""
    target = np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))
    waits = np.zeros(len(graph), dtype=bool)
    waits[target[_among(graph.edge_kind, BLOCKING)]] = True
    before = (graph.edge_kind == EdgeKind.PROGRAM) & waits[target]
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
