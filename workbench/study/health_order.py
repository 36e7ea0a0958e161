"""Device work that starts before what it most likely reads is written: copies and messages that nothing orders after their producer."""

from __future__ import annotations

import numpy as np

from workbench.graph.calls import Call, classify
from workbench.graph.graph import EdgeKind, NodeKind
from workbench.operators.kinds import ran_of, shorten
from workbench.study.documents_health import FindingDocument
from workbench.study.findings import finding, names_of
from workbench.study.seen import Seen
from workbench.trace.trace import Category

NOISE_S = 1e-6
"""Times of two streams may differ by this [s]."""
TO_DEVICE = 1


def unordered_work(seen: Seen) -> list[FindingDocument]:
    """Find copies from the device and messages that start while the kernel launched just before them still runs on another stream.

    Such work most often takes what that kernel writes. It is suspected where one thread launched both, the kernel last before the other,
    and neither an event edge into the waiting stream nor a call that makes a stream wait lies between them. Only runtimes whose event
    calls a profiler records (CUDA, HIP) are judged.
    """
    nodes = seen.device[seen.calls[seen.graph.event[seen.device]] >= 0] if _speaks_of_events(seen) else seen.device[:0]
    graph, e = seen.graph, seen.trace.events
    call = seen.calls[graph.event[nodes]]
    order = np.lexsort((e.start_ns[call], e.track[call]))
    nodes, call = nodes[order], call[order]
    thread, computes = e.track[call], graph.kind[nodes] == NodeKind.COMPUTE
    latest = np.maximum.accumulate(np.where(computes, np.arange(len(nodes)), -1))
    takers = np.flatnonzero(_takes(seen, nodes) & (latest >= 0))
    makers = latest[takers]
    start, end = graph.recorded_start_s[nodes], graph.recorded_start_s[nodes] + graph.measured_s[nodes]
    suspect = (thread[makers] == thread[takers]) & (graph.resource[nodes[makers]] != graph.resource[nodes[takers]])
    suspect &= (end[makers] > start[takers] + NOISE_S) & (call[makers] != call[takers]) & (start[makers] < end[takers])
    makers, takers = makers[suspect], takers[suspect]
    told = _waits_between(seen, thread[takers], e.start_ns[call[makers]], e.start_ns[call[takers]]) | _has_event(seen)[nodes[takers]]
    makers, takers = makers[~told], takers[~told]
    if not len(takers):
        return []
    common = np.minimum(end[makers], end[takers]) - np.maximum(start[makers], start[takers])
    pairs = [f"{_called(seen, t)} before the end of {_called(seen, m)}" for m, t in zip(nodes[makers], nodes[takers], strict=True)]
    text = "copies or messages start before the kernel launched just before them, on another stream, has ended, and no event orders the two"
    fix = "if they read what that kernel writes: let their stream wait for it (wait_stream, an event), else nothing"
    where = names_of(pairs, np.maximum(common, NOISE_S))
    return [finding(seen, "unordered-streams", text, where, len(takers), 0.0, fix, "possible")]


def _speaks_of_events(seen: Seen) -> bool:
    """Whether the runtime's calls are those of CUDA or HIP, whose event calls a profiler records with the launches."""
    used = np.unique(seen.trace.events.name[seen.host_calls])
    return any(seen.trace.strings[i].startswith(("cuda", "hip")) for i in used.tolist())


def _takes(seen: Seen, nodes: np.ndarray) -> np.ndarray:
    """Bool [N]: messages, and copies that read the device's memory."""
    e, events = seen.trace.events, seen.graph.event[nodes]
    used, back = np.unique(e.name[events], return_inverse=True)
    upload = (
        np.array([ran_of(seen.trace.strings[i]).direction == TO_DEVICE for i in used.tolist()] or [False])[back] if len(used) else False
    )
    copies = (e.category[events] == Category.MEMCPY) & ~np.asarray(upload)
    return np.asarray(copies | (seen.graph.kind[nodes] == NodeKind.COMMUNICATION))


def _waits_between(seen: Seen, thread: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Bool [N]: the thread makes a stream wait between two moments [ns] (which stream is not recorded)."""
    e = seen.trace.events
    rows = seen.host_calls[classify(e.name[seen.host_calls], seen.trace.strings) == Call.WAIT]
    out = np.zeros(len(thread), dtype=bool)
    for track in np.unique(thread):
        times = np.sort(e.start_ns[rows[e.track[rows] == track]])
        mine = thread == track
        out[mine] = np.searchsorted(times, high[mine], "right") > np.searchsorted(times, low[mine], "left")
    return out


def _has_event(seen: Seen) -> np.ndarray:
    """Bool [V]: nodes that wait for an event of another stream."""
    graph = seen.graph
    into = np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))
    out = np.zeros(len(graph), dtype=bool)
    out[into[np.isin(graph.edge_kind, (EdgeKind.EVENT, EdgeKind.EVENT_INFERRED))]] = True
    return out


def _called(seen: Seen, node: int) -> str:
    return shorten(seen.name(int(seen.graph.event[node])), 40)
