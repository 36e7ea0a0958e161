"""Priced units: device work grouped by the operator that asked for it, and the table of unique operators.

A unit is the device work of one innermost formula-bearing operator on one stream. Where that does not hold (graph launches,
kernels without an operator, operators spread over streams) it is the single kernel, copy or fill.
A recording without device work has units of host operators instead: each innermost one with a formula, with the self time
of everything inside it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from workbench.graph.callers import launch_calls, operators_by_id
from workbench.graph.kernels_units import climb, mark_wrappers, nearest, self_times
from workbench.graph.signatures import Signatures, message_facts, signatures
from workbench.graph.tasks import described_tasks
from workbench.graph.unit_table import Row, tabulate
from workbench.graph.unlaunched import groups as repeated
from workbench.graph.unlaunched import twins
from workbench.operators.call import Call, Tensor
from workbench.operators.described import Described, Ran, promote
from workbench.operators.kinds import BEARING, describe, ran_of, shorten
from workbench.operators.table import COLLECTIVES, Dtype, Kind, OpTable
from workbench.trace.part import group
from workbench.trace.trace import Category, Trace


def price_units(trace: Trace, duration_ns: np.ndarray | None = None) -> tuple[OpTable, np.ndarray, np.ndarray, np.ndarray]:
    """Group device work into priced units and unique operators.

    Parameters
    ----------
    trace : Trace
        One or several ranks.
    duration_ns : numpy.ndarray, optional
        int64 [E] [ns], durations to count instead of the recorded ones (cleaned ones); negative counts as 0.

    Returns
    -------
    table : OpTable
        Rows deduplicated by signature ``name|dtype|shapes``; ``measured_s`` is the mean over units [s].
    op : numpy.ndarray
        int32 [E], row of the table of each priced event (-1: none).
    unit : numpy.ndarray
        int32 [E], unit of each priced event (-1: none).
    share : numpy.ndarray
        float64 [E], the event's part of its unit's time; sums to 1 over a unit (equal parts where the unit took no time).

    Notes
    -----
    Priced times add up to the device time of the trace: nothing is dropped and nothing counted twice.
    """
    duration = np.maximum(trace.events.dur_ns if duration_ns is None else duration_ns, 0).astype(np.int64)
    known = signatures(trace)
    if np.any(trace.is_device_work):
        events, unit, rows = _device_units(trace, known, duration)
    else:
        duration = self_times(duration, trace.events.parent)
        events, unit, rows = _host_units(trace, known)
    return tabulate(len(trace.events), events, unit, rows, duration)


def _device_units(trace: Trace, known: Signatures, duration: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[Row]]:
    """Return device events, the unit of each, and the row of each unit."""
    device = np.flatnonzero(trace.is_device_work).astype(np.int64)
    call = launch_calls(trace)[device]
    hit = _operators(trace, known, device, call)
    lane = trace.events.track[device].astype(np.int64)
    hit = _drop_spread(hit, lane)
    used, kernel = np.unique(trace.events.name[device], return_inverse=True)
    rans = [ran_of(trace.strings[i]) for i in used]
    own = _own_messages(trace, device, rans, kernel) | {i: Row(*row) for i, row in described_tasks(trace, device).items()}
    hit[list(own)] = -1
    grouped = np.flatnonzero(hit >= 0)
    groups, member = np.unique(hit[grouped], return_inverse=True)
    variant, rows_of = _operator_rows(known, groups, member, device[grouped], kernel[grouped], rans, duration)
    # copies and fills under an operator whose work is not known are priced by their own bytes
    free = np.isin(trace.events.category[device[grouped]], (Category.MEMCPY, Category.MEMSET))
    nameless = np.array([row.described.kind == Kind.UNKNOWN for row in rows_of] or [False])[variant[member]] & free
    hit[grouped[nameless]] = -1
    keep = np.unique(member[~nameless])
    place = np.full(len(groups), -1)
    place[keep] = np.arange(len(keep))
    rows = [rows_of[v] for v in variant[keep]]
    unit = np.full(len(device), -1, dtype=np.int64)
    unit[grouped[~nameless]] = place[member[~nameless]]
    launched = call >= 0
    launched[list(own)] = True
    unit, rows = _with_repeats(trace, device, launched, unit, rows)
    single = np.flatnonzero(unit < 0)
    unit[single] = len(rows) + np.arange(len(single))
    rows += _single_rows(trace, device[single], [own.get(int(i)) for i in single])
    return device, unit, rows


def _with_repeats(
    trace: Trace, device: np.ndarray, launched: np.ndarray, unit: np.ndarray, rows: list[Row]
) -> tuple[np.ndarray, list[Row]]:
    """Add units of work whose launch is not recorded but which repeats launched work (see `workbench.graph.unlaunched`)."""
    if launched.all() or not launched.any():
        return unit, rows
    lane = trace.events.track[device].astype(np.int64)
    ran = np.lexsort((trace.events.start_ns[device], lane))
    key, _ = group(trace.events.name[device], trace.integer_arg("bytes")[device])
    again, of = repeated(twins(lane[ran], key.astype(np.int64)[ran], launched[ran]), unit[ran])
    out = unit.copy()
    mine = again >= 0
    out[ran[mine]] = len(rows) + again[mine]
    return out, rows + [rows[i] for i in of.tolist()]


def _operators(trace: Trace, known: Signatures, device: np.ndarray, call: np.ndarray) -> np.ndarray:
    """Operator event that accounts for each device event, launched by ``call`` (-1: none)."""
    events = trace.events
    is_graph = np.array(["GraphLaunch" in s for s in trace.strings] + [False])
    graph = (call >= 0) & is_graph[np.where(call >= 0, events.name[call], -1)]
    is_operator = events.category == Category.CPU_OP
    inside = nearest(events.parent, is_operator, call)
    orphan = np.flatnonzero(inside < 0)  # calls recorded on another thread than their operators
    by_id = operators_by_id(trace, device[orphan])
    lost = (by_id < 0) & (call[orphan] >= 0)
    by_id[lost] = operators_by_id(trace, call[orphan][lost])
    inside[orphan] = by_id
    inside[graph] = -1
    state = known.per_event(known.state)
    hit = climb(inside, events.parent, state)
    wrapper = mark_wrappers(hit, events.parent, state, known.per_event(known.family))
    hit[(hit >= 0) & wrapper[hit]] = -1
    return hit


def _drop_spread(hit: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """Release operators whose work lies on several streams."""
    order = np.lexsort((lane, hit))
    h, s = hit[order], lane[order]
    spread = np.unique(h[1:][(h[1:] == h[:-1]) & (s[1:] != s[:-1])])
    return np.where(np.isin(hit, spread), -1, hit)


def _own_messages(trace: Trace, device: np.ndarray, rans: list[Ran], kernel: np.ndarray) -> dict[int, Row]:
    """Rows of collective kernels that carry their own arguments, by position in ``device``."""
    if "In msg nelems" not in trace.args:
        return {}
    integers = {key: trace.integer_arg(key) for key in ("In msg nelems", "Out msg nelems", "Group size")}
    texts = {key: trace.text_arg(key) for key in ("Collective name", "dtype")}
    out: dict[int, Row] = {}
    for i in np.flatnonzero(integers["In msg nelems"][device] >= 0):
        ran = rans[kernel[i]]
        name = trace.name_of(int(device[i]))
        facts = message_facts(trace, int(device[i]), integers, texts, [name])
        call = Call("record_param_comms", (), (), facts)
        found = describe(call, ran)
        if found is not None:
            out[int(i)] = _named(shorten(name), call, found)
    return out


def _operator_rows(
    known: Signatures, groups: np.ndarray, member: np.ndarray, event: np.ndarray, kernel: np.ndarray, rans: list[Ran], duration: np.ndarray
) -> tuple[np.ndarray, list[Row]]:
    """Describe each distinct (call, what its kernels' names say); returns the variant of each group and a row each variant."""
    if not len(groups):
        return np.zeros(0, dtype=np.int64), []
    time = duration[event]
    hints = np.array([[int(r.dtype), r.itemsize, r.direction, int(r.kind), r.fp16_accumulate, r.transform] for r in rans], dtype=np.int64)
    working = hints[kernel, 3] != Kind.SET
    longest = _longest(member, np.where(working, time + 1, 0), len(groups))
    telling = _longest(member, np.where(working & (hints[kernel, 0] != 0), time + 1, 0), len(groups))
    opaque = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(opaque, member, hints[kernel, 1])
    direction = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(direction, member, hints[kernel, 2])
    transform = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(transform, member, hints[kernel, 5])
    columns = np.column_stack([known.of[groups], hints[kernel[telling], 0], opaque, direction, hints[kernel[longest]][:, 3:5], transform])
    variant, first = group(columns[:, 0], columns[:, 1], columns[:, 2])
    for column in columns.T[3:]:
        variant, first = group(variant, column)
    rows = []
    for signature, dtype, width, way, kind, half, transformed in columns[first].tolist():
        call = known.calls[signature]
        ran = Ran(Dtype(dtype), float(width), way, Kind(kind), bool(half), bool(transformed))
        found = describe(call, ran) or Described(Kind.UNKNOWN, promote(call.flat) or ran.dtype, (), 0.0, 0.0, 0.0)
        rows.append(_named(call.name, call, found))
    return variant, rows


def _longest(member: np.ndarray, time: np.ndarray, groups: int) -> np.ndarray:
    """Return the position of the longest event of each group (ties: the last)."""
    order = np.lexsort((np.arange(len(time)), time, member))
    out = np.zeros(groups, dtype=np.int64)
    out[member[order]] = order
    return out


def _single_rows(trace: Trace, device: np.ndarray, own: Iterable[Row | None]) -> list[Row]:
    """Rows of kernels, copies and fills that stand alone."""
    name, size, grid = trace.events.name[device], trace.integer_arg("bytes")[device], trace.text_arg("grid")[device]
    kind, first = group(name, size, grid)
    rows = [
        _single(trace, Category(int(trace.events.category[device[i]])), int(name[i]), int(size[i]), int(grid[i])) for i in first.tolist()
    ]
    return [rows[k] if message is None else message for k, message in zip(kind.tolist(), own, strict=True)]


def _single(trace: Trace, category: Category, name: int, size: int, grid: int) -> Row:
    full = trace.strings[name]
    text, ran = shorten(full), ran_of(full)
    if category in (Category.MEMCPY, Category.MEMSET) and size >= 0:
        fill = category == Category.MEMSET
        kind, dims = (Kind.SET, (size,)) if fill else (Kind.COPY, (size, ran.direction))
        found = Described(kind, Dtype.UINT8, dims, 0.0, 0.0 if fill else float(size), float(size))
        return Row(text, f"{text}|uint8|[{size}]", found, True)
    mark = "" if text == full else f"#{zlib.crc32(full.encode()) & 0xFFFF:04x}"
    found = Described(Kind.UNKNOWN, ran.dtype, (), 0.0, 0.0, 0.0)
    launched = f"grid={trace.strings[grid].replace(' ', '')}" if grid >= 0 else ""
    return Row(text, f"{text}{mark}|{ran.dtype.name.lower()}|{launched}", found, False)


def _host_units(trace: Trace, known: Signatures) -> tuple[np.ndarray, np.ndarray, list[Row]]:
    """Units of a recording without device work: the innermost operator with a formula, and all that runs inside it."""
    events = trace.events
    rows = np.flatnonzero(events.category == Category.CPU_OP).astype(np.int64)
    state = known.per_event(known.state)
    bearing = rows[state[rows] == BEARING].astype(np.int32)
    wrapper = mark_wrappers(bearing, events.parent, state, known.per_event(known.family))
    allowed = (state == BEARING) & ~wrapper
    hit = nearest(events.parent, allowed, rows.astype(np.int32))
    rows, hit = rows[hit >= 0], hit[hit >= 0]
    groups, member = np.unique(hit, return_inverse=True)
    described: dict[int, Row] = {}
    for signature in np.unique(known.of[groups]):
        call = known.calls[signature]
        if (found := describe(call)) is not None:
            described[int(signature)] = _named(call.name, call, found)
    return rows, member.astype(np.int64), [described[int(s)] for s in known.of[groups]]


def _named(name: str, call: Call, found: Described) -> Row:
    shapes = "x".join(_group(group, found.dtype) for group in call.tensors if group)
    detail = f" {found.detail}" if found.detail else ""
    message = f"[{found.dims[0]}]" if found.kind in COLLECTIVES else ""
    return Row(name, f"{name}|{found.dtype.name.lower()}|{message or shapes}{detail}", found, call.has_shapes or bool(message))


def _group(group: tuple[Tensor, ...], dtype: Dtype) -> str:
    if len(group) > 4:
        text = ";".join(map(str, group))
        return f"{len(group)} tensors of {sum(t.numel for t in group)}#{zlib.crc32(text.encode()) & 0xFFFF:04x}"
    same = (dtype, Dtype.UNKNOWN, Dtype.FP32 if dtype == Dtype.TF32 else dtype)
    parts = [("" if t.dtype in same else t.dtype.name.lower()) + str(list(t.shape)).replace(" ", "") for t in group]
    return parts[0] if len(parts) == 1 else "(" + ",".join(parts) + ")"
