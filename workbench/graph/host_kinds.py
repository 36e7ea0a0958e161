"""Which kind of host work a node of a host thread is: Python, a framework's operator, library code, computation, a runtime call."""

from __future__ import annotations

import numpy as np

from workbench.graph.calls import Call, classify
from workbench.graph.graph import ROW_HOST, Graph, NodeKind
from workbench.hardware.host import KINDS
from workbench.trace.trace import HOST_CALLS, Trace

LIBRARY_S = 1e-3
"""A gap between records this long [s] is library code (image processing, tokens, files): Python between operators takes microseconds."""
COMPUTES_S = 30e-6
"""An operator that calls no runtime and takes this long [s] computes on the host: one that only reshapes a tensor takes microseconds."""
CALLING = (NodeKind.LAUNCH, NodeKind.LAUNCH_RETURN, NodeKind.HOST_CALL, NodeKind.SYNC)


def host_kinds(graph: Graph, trace: Trace) -> np.ndarray:
    """Return the kind of host work of every node.

    Parameters
    ----------
    graph : Graph
    trace : Trace
        The recording it was built from.

    Returns
    -------
    int8 [V]
        Index into `workbench.hardware.host.KINDS`; -1 where the duration does not scale with the host.
    """
    number = {kind: at for at, kind in enumerate(KINDS)}
    host = graph.op == ROW_HOST
    out = np.where(host, number["interpreter"], -1).astype(np.int8)
    out[host & (graph.kind == NodeKind.GAP) & (graph.measured_s >= LIBRARY_S)] = number["library"]
    work = np.flatnonzero(host & (graph.kind == NodeKind.HOST_WORK))
    out[work] = number["operators"]
    long = work[(graph.measured_s[work] >= COMPUTES_S) & (graph.event[work] >= 0)]
    out[long[~_calls(trace, graph.event[long])]] = number["compute"]
    call = np.flatnonzero(host & np.isin(graph.kind, CALLING) & (graph.event >= 0))
    role = classify(trace.events.name[graph.event[call]], trace.strings)
    copies = np.isin(role, (Call.COPY, Call.COPY_SYNC)) & (graph.kind[call] == NodeKind.LAUNCH)
    out[call] = np.where(role == Call.LAUNCH, number["launch"], np.where(copies, number["copy"], number["call"]))
    return out


def _calls(trace: Trace, event: np.ndarray) -> np.ndarray:
    """Bool [N]: whether a runtime call of the same track begins inside an event."""
    e = trace.events
    begins = np.flatnonzero(np.isin(e.category, HOST_CALLS))
    key = np.lexsort((e.start_ns[begins], e.track[begins]))
    begins = begins[key]
    out = np.zeros(len(event), dtype=bool)
    for track in np.unique(e.track[event]):
        mine = np.flatnonzero(e.track[event] == track)
        starts = e.start_ns[begins[e.track[begins] == track]]
        low = e.start_ns[event[mine]]
        out[mine] = np.searchsorted(starts, low + e.dur_ns[event[mine]]) > np.searchsorted(starts, low)
    return out
