"""What a recording or a prediction comes to as flat tables: events, timeline, operators, lags. A unit a column, nulls where nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import xarray as xr

from workbench.graph.graph import NodeKind
from workbench.operators.table import DIMS
from workbench.study.prediction import Prediction
from workbench.study.tables import lag_table, operator_table
from workbench.trace.trace import ArgColumn, Category, Trace

MOST_LAGS = 1000
"""Lags of a table, the largest."""
ARGUMENT = "args."
"""Begin of the name of a column that holds an argument of the events."""


@dataclass(frozen=True)
class Column:
    """Values of a column. With ``words`` they are indices into these (-1: null); else null where ``known`` is False."""

    values: np.ndarray
    unit: str = ""
    words: tuple[str, ...] | None = None
    known: np.ndarray | None = None  # bool


@dataclass(frozen=True)
class Table:
    """Columns of one length by name, and what the whole table is of."""

    name: str
    columns: dict[str, Column]
    attributes: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).values)


def events_table(trace: Trace) -> Table:
    """Return every event of a recording as it was recorded, in file order: what `Trace.events` and its arguments hold.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    Table
        start_ns and dur_ns [ns], name, category, raw_category, rank, lane (host, device or other), pid, tid, device, stream,
        correlation, external_id, parent (row of this table), and a column ``args.KEY`` for every argument: integers, or text where
        any value is none (JSON for what is neither).
    """
    events, tracks = trace.events, trace.tracks
    strings = trace.strings
    columns = {
        "start_ns": Column(events.start_ns, "ns"),
        "dur_ns": Column(events.dur_ns, "ns"),
        "name": Column(events.name, words=strings),
        "category": _enumerated(Category, events.category),
        "raw_category": Column(events.raw_category, words=strings),
        "rank": Column(np.array([track.rank for track in tracks], dtype=np.int32)[events.track]),
    }
    for name, texts in (("lane", [t.kind for t in tracks]), ("pid", [t.pid for t in tracks]), ("tid", [t.tid for t in tracks])):
        words, code = np.unique(np.array(texts, dtype=object), return_inverse=True)
        columns[name] = Column(code.astype(np.int32)[events.track], words=tuple(words.tolist()))
    for name in ("device", "stream"):
        columns[name] = _known(np.array([getattr(track, name) for track in tracks], dtype=np.int32)[events.track])
    for name in ("correlation", "external_id", "parent"):
        columns[name] = _known(getattr(events, name))
    for key, argument in sorted(trace.args.items()):
        columns[f"{ARGUMENT}{key}"] = _argument(argument, strings, len(events))
    return Table("events", columns, {"digest": trace.digest})


def timeline_table(prediction: Prediction) -> Table:
    """Return every piece of work of the dependency graph as recorded and as predicted, in topological order.

    Parameters
    ----------
    prediction : Prediction

    Returns
    -------
    Table
        kind, name, resource, rank, step, event (row of the events table), operator (signature), measured_start_s, measured_s,
        predicted_start_s, predicted_s and slack_s [s] (null: the node may take any time), critical.
    """
    graph, table, timeline = prediction.graph, prediction.table, prediction.timeline
    trace = prediction.scenario.workload.trace
    number = np.append(graph.step_numbers, -1)[graph.step]
    names = np.append(trace.events.name, -1)[graph.event]
    columns = {
        "kind": _enumerated(NodeKind, graph.kind),
        "name": Column(names.astype(np.int32), words=trace.strings),
        "resource": Column(graph.resource, words=graph.resources),
        "rank": _known(graph.rank),
        "step": Column(number, known=graph.step >= 0),
        "event": _known(graph.event),
        "operator": Column(np.maximum(graph.op, -1).astype(np.int32), words=table.signature),
        "measured_start_s": Column(graph.recorded_start_s, "s"),
        "measured_s": Column(graph.measured_s, "s"),
        "predicted_start_s": Column(timeline.start_s, "s"),
        "predicted_s": Column(timeline.finish_s - timeline.start_s, "s"),
        "slack_s": Column(timeline.slack_s, "s", known=np.isfinite(timeline.slack_s)),
        "critical": Column(timeline.critical),
    }
    return Table("timeline", columns, _about(prediction))


def operators_table(prediction: Prediction) -> Table:
    """Return `workbench.operator_table` with the dimensions of every operator (null where its kind has none of that name).

    Parameters
    ----------
    prediction : Prediction
    """
    dataset = operator_table(prediction)
    columns = _columns(dataset)
    rows, kinds = dataset["operator"].values, prediction.table.kind
    for name in dict.fromkeys(name for names in DIMS.values() for name in names if name not in columns):
        has = np.isin(kinds, [int(kind) for kind, names in DIMS.items() if name in names])
        if has.any():
            columns[name] = Column(prediction.table.dim(name)[rows], known=has[rows])
    return Table("operators", columns, _about(prediction))


def lags_table(prediction: Prediction) -> Table:
    """Return the `MOST_LAGS` largest lags no record explains, those on the critical path first.

    Parameters
    ----------
    prediction : Prediction
    """
    return Table("lags", _columns(lag_table(prediction, MOST_LAGS)), _about(prediction) | {"most": str(MOST_LAGS)})


def _about(prediction: Prediction) -> dict[str, str]:
    npu = prediction.scenario.npu
    return {"digest": prediction.scenario.workload.digest, "npu": npu.name if npu else "as recorded", "question": prediction.digest}


def _enumerated(enum: type[IntEnum], codes: np.ndarray) -> Column:
    members = list(enum)
    place = np.full(max(members) + 1, -1, dtype=np.int32)
    place[[int(member) for member in members]] = np.arange(len(members))
    return Column(place[codes], words=tuple(member.name.lower() for member in members))


def _known(values: np.ndarray) -> Column:
    """Return a column in which -1 stands for nothing."""
    return Column(values, known=values >= 0)


def _argument(argument: ArgColumn, strings: Sequence[str], size: int) -> Column:
    """Return one argument of all events."""
    dense, known = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=bool)
    if not argument.is_text.any():
        dense[argument.event], known[argument.event] = argument.value, True
        return Column(dense, known=known)
    used, code = np.unique(argument.value[argument.is_text], return_inverse=True)
    numbers, at = np.unique(argument.value[~argument.is_text], return_inverse=True)
    dense[argument.event[argument.is_text]] = code
    dense[argument.event[~argument.is_text]] = len(used) + at
    return Column(dense.astype(np.int32), words=(*(strings[i] for i in used.tolist()), *map(str, numbers.tolist())))


def _columns(dataset: xr.Dataset) -> dict[str, Column]:
    """Return the variables of a dataset of one dimension."""
    out = {}
    for name, variable in dataset.data_vars.items():
        values, unit = variable.values, str(variable.attrs.get("units", ""))
        if values.dtype == object:
            words, code = np.unique(values.astype(str), return_inverse=True)
            out[str(name)] = Column(code.astype(np.int32), unit, tuple(words.tolist()))
        else:
            out[str(name)] = Column(values, unit, known=np.isfinite(values) if values.dtype.kind == "f" else None)
    return out
