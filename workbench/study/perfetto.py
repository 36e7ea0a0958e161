"""Measured and predicted timelines as Chrome trace JSON, which Perfetto and chrome://tracing open."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.cost.cost import Bound, Evidence
from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS, EdgeKind, Graph, NodeKind
from workbench.study.prediction import Prediction

MICRO = 1e6  # the format counts in microseconds
MARKS = (NodeKind.ROOT, NodeKind.STEP_BEGIN, NodeKind.STEP_END, NodeKind.ARRIVAL, NodeKind.MEETING)


def perfetto(predictions: Mapping[str, Prediction], predicted: bool = True) -> dict[str, Any]:
    """Return the Chrome trace document of some predictions.

    Parameters
    ----------
    predictions : mapping of label to Prediction
        Each becomes two process groups: measured (as recorded) and predicted. A third lane group in both shows the steps
        and the critical path; arrows are launches.
    predicted : bool
        False: measured alone.

    Returns
    -------
    dict
        ``traceEvents`` and ``displayTimeUnit``; times in us since the start of the recording.
    """
    events: list[dict[str, Any]] = []
    for at, (label, prediction) in enumerate(predictions.items()):
        graph, timeline = prediction.graph, prediction.timeline
        card = prediction.scenario.npu.name if prediction.scenario.npu else "as measured"
        recorded = graph.recorded_start_s
        groups = (
            (2 * at + 1, f"measured: {label}", recorded, recorded + graph.measured_s, prediction.measured_timeline.critical),
            (2 * at + 2, f"predicted on {card}: {label}", timeline.start_s, timeline.finish_s, timeline.critical),
        )
        for pid, title, start, finish, critical in groups if predicted else groups[:1]:
            events += _metadata(graph, pid, title)
            events += _steps(graph, pid, start)
            events += _slices(prediction, pid, start, finish, critical)
            events += _launches(graph, pid, start)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def write_perfetto(path: str | os.PathLike[str], predictions: Mapping[str, Prediction], predicted: bool = True) -> None:
    """Write measured and predicted timelines as Chrome trace JSON, which Perfetto opens.

    Parameters
    ----------
    path : str or path
        The file; compressed where its name ends in ``.gz``.
    predictions : mapping of label to Prediction
        See `perfetto`.
    predicted : bool
        False: measured alone.

    Raises
    ------
    Refused
        When the file cannot be written.
    """
    text = json.dumps(perfetto(predictions, predicted), allow_nan=False, separators=(",", ":"))
    try:
        if str(path).endswith(".gz"):
            Path(path).write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            Path(path).write_text(text, encoding="utf-8")
    except OSError as fault:
        raise Refused(str(path), f"cannot be written: {fault.strerror or fault}", "choose another file") from None


def _metadata(graph: Graph, pid: int, title: str) -> Iterator[dict[str, Any]]:
    lanes = ["steps", "critical path", *graph.resources]
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": title}}
    yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
    for tid, lane in enumerate(lanes):
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": lane}}
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}


def _steps(graph: Graph, pid: int, start: np.ndarray) -> Iterator[dict[str, Any]]:
    for number, first, last in zip(graph.step_numbers, graph.step_begin, graph.step_end, strict=True):
        name = f"step {number}" if number >= 0 else "step"
        yield _slice(name, "step", pid, 0, float(start[first]), float(start[last]), {})


def _slices(prediction: Prediction, pid: int, start: np.ndarray, finish: np.ndarray, critical: np.ndarray) -> Iterator[dict[str, Any]]:
    graph, table, cost = prediction.graph, prediction.table, prediction.cost
    trace = prediction.scenario.workload.trace
    for node in np.flatnonzero(~np.isin(graph.kind, MARKS)):
        kind, row, event = NodeKind(graph.kind[node]), int(graph.op[node]), int(graph.event[node])
        seconds = float(finish[node] - start[node])
        if seconds <= 0 and kind not in DEVICE_KINDS and kind != NodeKind.LAUNCH:
            continue
        name = trace.name_of(event) if event >= 0 else kind.name.lower()
        arguments: dict[str, Any] = {
            "measured_us": round(float(graph.measured_s[node]) * MICRO, 3),
            "slack_us": round(float(min(prediction.timeline.slack_s[node], 1e6)) * MICRO, 3),
            "critical": bool(critical[node]),
        }
        if row >= 0:
            arguments |= {
                "operator": table.signature[row],
                "bound": Bound(cost.bound[row, 0]).name.lower(),
                "evidence": Evidence(cost.evidence[row]).name.lower(),
            }
        category = kind.name.lower() + (",critical" if critical[node] else "")
        ends = float(start[node]), float(finish[node])
        yield _slice(name, category, pid, int(graph.resource[node]) + 2, *ends, arguments)
        if critical[node] and seconds > 0:
            yield _slice(name, "critical", pid, 1, *ends, arguments)


def _slice(name: str, category: str, pid: int, tid: int, start_s: float, finish_s: float, arguments: dict[str, Any]) -> dict[str, Any]:
    first = round(start_s * MICRO, 3)
    duration = max(round(finish_s * MICRO - first, 3), 0.0)
    return {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, "ts": first, "dur": duration, "args": arguments}


def _launches(graph: Graph, pid: int, start: np.ndarray) -> Iterator[dict[str, Any]]:
    into = np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))
    for edge in np.flatnonzero((graph.edge_kind == EdgeKind.LAUNCH) & np.isin(graph.kind[into], (*DEVICE_KINDS, NodeKind.ARRIVAL))):
        tail, head = int(graph.edge_from[edge]), int(into[edge])
        common = {"name": "launch", "cat": "launch", "id": int(edge) + (pid << 32), "pid": pid}
        yield {**common, "ph": "s", "tid": int(graph.resource[tail]) + 2, "ts": round(float(start[tail]) * MICRO, 3)}
        yield {**common, "ph": "f", "bp": "e", "tid": int(graph.resource[head]) + 2, "ts": round(float(start[head]) * MICRO, 3)}
