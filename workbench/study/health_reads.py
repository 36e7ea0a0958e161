"""Device work that reads a tensor while the work that makes it still runs on another stream, told by the tensors of execution traces."""

from __future__ import annotations

import numpy as np

from workbench.graph.kernels_units import nearest
from workbench.operators.kinds import shorten
from workbench.study.documents_health import FindingDocument
from workbench.study.findings import finding, names_of
from workbench.study.health_order import NOISE_S
from workbench.study.seen import Seen
from workbench.trace.storages import Role


def reads_while_written(seen: Seen) -> list[FindingDocument]:
    """Find operators whose device work starts before that of the last writer of one of their operands has ended, on another stream.

    Operators without device work of their own (views, wrappers) neither read nor write. Without execution traces nothing is told: see
    `workbench.study.health_order` for what is suspected then.
    """
    found = seen.lives
    if not len(seen.device) or not found:
        return []
    told = np.zeros(len(seen.trace.events), dtype=bool)
    told[[one.event for life in found for one in life.mentions]] = True
    first, last, lane = _device_spans(seen, told)
    pairs: dict[tuple[int, int], float] = {}
    for life in found:
        writer = -1
        for one in life.mentions:
            working = one.event in first
            if one.role == Role.READ and working and writer >= 0 and writer != one.event and lane[writer] != lane[one.event]:
                common = last[writer] - first[one.event]
                if common > NOISE_S and first[one.event] >= first[writer]:
                    pairs[writer, one.event] = common
            if one.role in (Role.CREATE, Role.WRITE) and working:
                writer = one.event
    if not pairs:
        return []
    names = [f"{shorten(seen.name(b), 40)} before the end of {shorten(seen.name(a), 40)}" for a, b in pairs]
    text = "operators read a tensor on one stream while the kernel that writes it still runs on another"
    fix = "let the reader's stream wait for the writer's event (wait_stream), and keep the tensor alive on it (record_stream)"
    return [finding(seen, "read-while-written", text, names_of(names, np.array(list(pairs.values()))), len(pairs), 0.0, fix, "likely")]


def _device_spans(seen: Seen, told: np.ndarray) -> tuple[dict[int, float], dict[int, float], dict[int, int]]:
    """First start and last end of the device work [s], and its stream, of each operator that names tensors and keeps to one stream."""
    graph, nodes = seen.graph, seen.device
    call = seen.calls[graph.event[nodes]]
    nodes, call = nodes[call >= 0], call[call >= 0]
    owner = nearest(seen.trace.events.parent, told, call.astype(np.int32))
    start, end = seen.device_times
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    lane: dict[int, int] = {}
    for event, node in zip(owner.tolist(), nodes.tolist(), strict=True):
        if event < 0:
            continue
        first[event] = min(first.get(event, np.inf), float(start[node]))
        last[event] = max(last.get(event, -np.inf), float(end[node]))
        own = int(graph.resource[node])
        lane[event] = own if lane.get(event, own) == own else -1 - event  # spread over streams: a stream of its own
    return first, last, lane
