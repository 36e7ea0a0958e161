"""How many recorded events fall on each piece of host work: what a profiler cost it, in events."""

from __future__ import annotations

import numpy as np

from workbench.graph.graph import Graph, NodeKind
from workbench.trace.trace import HOST_CALLS, Category, Trace

RECORDED = (Category.CPU_OP, Category.PYTHON, Category.ANNOTATION, *HOST_CALLS)
"""What a profiler writes down on a host thread while the program runs."""


def recorded_events(graph: Graph, trace: Trace) -> np.ndarray:
    """Return the number of host events recorded during each node of host work.

    A profiler works when an event begins and when it ends; each counts half. An instant between two nodes counts to the later one.

    Parameters
    ----------
    graph : Graph
    trace : Trace
        The recording it was built from.

    Returns
    -------
    float64 [V]
        0 where a node is no host work. Operators that the host itself computes count (recordings without a device).
    """
    e = trace.events
    out = np.zeros(len(graph))
    host = np.flatnonzero(~graph.resource_is_device[graph.resource] & (graph.measured_s > 0) & (graph.kind != NodeKind.ROOT))
    host = host[np.lexsort((graph.recorded_start_s[host], graph.resource[host]))]
    recorded = np.isin(e.category, RECORDED)
    for resource in np.unique(graph.resource[host]).tolist():
        mine = host[graph.resource[host] == resource]
        known = mine[graph.event[mine] >= 0]
        if not len(known):
            continue
        offset = (e.start_ns[graph.event[known]] - graph.recorded_start_s[known] * 1e9).max()  # a piece may begin inside its event
        events = np.flatnonzero(recorded & np.isin(e.track, np.unique(e.track[graph.event[known]])))
        stamps = np.concatenate((e.start_ns[events], e.start_ns[events] + np.maximum(e.dur_ns[events], 0))) - offset
        place = np.searchsorted(np.round(graph.recorded_start_s[mine] * 1e9), stamps, "right") - 1
        inside = place >= 0
        inside[inside] = stamps[inside] <= (graph.recorded_start_s + graph.measured_s)[mine[place[inside]]] * 1e9 + 0.5
        np.add.at(out, mine[place[inside]], 0.5)
    return out
