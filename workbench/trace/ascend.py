"""Ascend profiles: a kernel table alone as a trace, kernel tables joined to the device rows of a timeline (``trace_view.json``).

Source: CANN profiling guide (trace_view, kernel_details, op_summary). Both files are written from the same records of the device: a row
of the table is the row of the timeline with the same start and stream.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from workbench.errors import Note, Refused, WorkbenchError
from workbench.trace.ascend_facts import facts_notes
from workbench.trace.ascend_folder import identify
from workbench.trace.builder import Builder
from workbench.trace.kernel_table import KernelTable, Task, is_kernel_table, read_kernel_table
from workbench.trace.kineto import to_part
from workbench.trace.part import Part, frozen
from workbench.trace.source import Source, first_bytes
from workbench.trace.trace import DEVICE_WORK, ArgColumn

BELONGS = 0.5
"""Share of a table's rows that must be found in a timeline for both to be of one recording."""
NEAR_NS = 1_000
"""Starts of one task written with different digits differ by less [ns]."""
MESSAGES = ("HCCL", "COMMUNICATION")
STEPS = 10**9
"""Step ids beyond are no steps (torch_npu writes 2**32 - 1 for none)."""
HOST_CORE = "AI_CPU"
BESIDE = ("kernel_details*.csv", "op_summary*.csv")
_GROUP = re.compile(r"__(\d+)_\d+")
_MESSAGE = re.compile(r"(?i)^(?:hcom|hccl|allltoallv?)_*([a-z]+)")


def part_of(table: KernelTable) -> Part:
    """Return a kernel table as a trace of one device: streams are lanes, messages have a lane a communicator."""
    built = Builder()
    for task in table.tasks:
        pid = f"NPU {task.device}"
        lane = _lane(task)
        built.name(pid, pid, lane, lane)
        args: dict[str, object] = {"device": task.device, "stream": task.stream, **task.cells}
        if task.core in MESSAGES:
            args["Collective name"] = message(task.name)
        built.add((pid, lane), task.name, "kernel", task.start_ns, task.dur_ns, args)
    _steps(built, table)
    records = built.records("kernel table", table.digest, table.size, table.damage, no_time=table.timeless)
    part = to_part(records, table.path)
    text = "a kernel table: times on the device are recorded, the host, its launches and dependencies between streams are not"
    fix = "give the trace_view.json of the same profile beside it"
    part.notes.append(Note("host-not-recorded", table.path, len(table.tasks), text, fix))
    _told(part)
    return part


def _steps(built: Builder, table: KernelTable) -> None:
    """Mark the steps of a table that has several: each from the first start of its tasks to their last end."""
    spans: dict[int, tuple[int, int]] = {}
    for task in table.tasks:
        step = task.cells.get("Step Id")
        if isinstance(step, int) and 0 <= step < STEPS:
            low, high = spans.get(step, (task.start_ns, task.start_ns))
            spans[step] = (min(low, task.start_ns), max(high, task.start_ns + task.dur_ns))
    for step, (low, high) in spans.items() if len(spans) > 1 else ():
        built.add(("steps", "steps"), f"ProfilerStep#{step}", "user_annotation", low, high - low, {})


def message(name: str) -> str:
    """Return the collective in a task's name: ``hcom_allReduce__445_2`` is ``allReduce``."""
    found = _MESSAGE.match(name)
    return found[1] if found else name


def _lane(task: Task) -> str:
    if task.stream is not None and task.stream >= 0:
        return f"Stream {task.stream}"
    if task.core in MESSAGES:
        group = _GROUP.search(task.name)
        return f"Communication {group[1]}" if group else "Communication"
    return task.core or "no stream"


def _told(part: Part) -> None:
    """Say how much ran on the device's own CPU."""
    e = part.events
    for key in ("Task Type", "Accelerator Core"):
        column = part.args.get(key)
        if column is None:
            continue
        on = {i for i, text in enumerate(part.strings) if text == HOST_CORE}
        rows = column.event[column.is_text & np.isin(column.value, list(on))]
        rows = rows[np.isin(e.category[rows], DEVICE_WORK)]
        if len(rows):
            names = Counter(part.strings[e.name[i]] for i in rows.tolist())
            text = f"tasks ran on AI CPU, {int(e.dur_ns[rows].sum()) / 1e3:.1f} us in all: {', '.join(n for n, _ in names.most_common(3))}"
            part.notes.append(Note("ai-cpu", part.path, len(rows), text, "operators the cores have no kernel for run there, slowly"))
            return


def is_ascend(part: Part) -> bool:
    """Whether a profile holds a device timeline of the Ascend profiler."""
    return any(track.kind == "device" and track.label.startswith("Stream") for track in part.tracks) and (
        any(part.strings[i] == "HostToDevice" for i in np.unique(part.flows.category).tolist()) or "Task Type" in part.args
    )


def join_tables(parts: Sequence[Part], tables: Sequence[KernelTable]) -> None:
    """Give device rows of profiles the cells of their kernel tables.

    Parameters
    ----------
    parts : sequence of Part
        Profiles; changed in place.
    tables : sequence of KernelTable

    Raises
    ------
    Refused
        A table belongs to none of the profiles.
    """
    for table in tables:
        pairs, home = max(((_pairs(part, table), at) for at, part in enumerate(parts)), key=lambda found: len(found[0]))
        if len(pairs) < BELONGS * len(table.tasks):
            what = f"belongs to none of the profiles: {len(pairs)} of its {len(table.tasks)} tasks are found in {parts[home].path}"
            raise Refused(table.path, what, "give the profile that was recorded with it, or open the table alone")
        _fill(parts[home], table, pairs)


def settle(read: Sequence[object], given: Sequence[Path]) -> list[Part]:
    """Return the profiles of what was read: kernel tables join the Ascend timelines, without these they are profiles themselves.

    Parameters
    ----------
    read : sequence
        What files gave; anything but `Part` and `KernelTable` is left aside.
    given : sequence of Path
        All files that were read.

    Raises
    ------
    Refused
        A table belongs to none of the timelines.
    """
    tables = [one for one in read if isinstance(one, KernelTable)]
    timelines = [one for one in read if isinstance(one, Part) and is_ascend(one)]
    if timelines:
        join_tables(timelines, tables)
    for part in timelines:
        beside(part, given)
    parts = [part_of(one) if isinstance(one, KernelTable) and not timelines else one for one in read]
    found = [part for part in parts if isinstance(part, Part)]
    for part in found:
        if any(part is one for one in timelines) or (tables and not timelines):
            identify(part)
    return found


def beside(part: Part, given: Sequence[Path]) -> None:
    """Join the kernel tables that lie in the folder of an Ascend timeline, where they are of the same recording."""
    folder = Path(part.path).parent
    _told(part)
    known = {path.resolve() for path in given}
    for path in sorted(path for pattern in BESIDE for path in folder.glob(pattern)):
        if path.resolve() in known:
            continue
        try:
            table = read_table(path, first_bytes(path), False)
            pairs = _pairs(part, table) if table else {}
        except WorkbenchError as error:
            text = f"lies beside the timeline and is not used: {error.what}"
            part.notes.append(Note("kernel-table-unread", str(path), 1, text, error.fix))
            continue
        if table is None or len(pairs) < BELONGS * len(table.tasks):
            text = "lies beside the timeline but is not of the same recording: it is not used"
            part.notes.append(Note("kernel-table-stranger", str(path), 1, text))
            continue
        _fill(part, table, pairs)
    cells, said, notes = facts_notes(part, folder)
    _add(part, cells)
    part.metadata = {**said, **part.metadata}
    part.notes += notes


def read_table(path: Path, head: bytes, salvage: bool) -> KernelTable | None:
    """Read a file whose first bytes are ``head`` as a kernel table; None where it is none. Raises `UnreadableInput`."""
    if not is_kernel_table(head):
        return None
    source = Source(path)
    try:
        data = bytes(source.whole())
        return read_kernel_table(data, str(path), source.digest(), salvage, source.fault)
    finally:
        source.close()


def _pairs(part: Part, table: KernelTable) -> dict[int, Task]:
    """Return {row of the profile: task}: equal start and stream, of several the one of that name; then names whose starts are near."""
    e = part.events
    rows = np.flatnonzero(np.isin(e.category, DEVICE_WORK))
    at: dict[int, list[int]] = defaultdict(list)
    for row in rows.tolist():
        at[int(e.start_ns[row])].append(row)
    starts = np.sort(e.start_ns[rows])
    found: dict[int, Task] = {}
    for task in table.tasks:
        low, high = np.searchsorted(starts, (task.start_ns - NEAR_NS + 1, task.start_ns + NEAR_NS)).tolist()
        near = [row for start in sorted(set(starts[low:high].tolist())) for row in at[start] if row not in found]
        best = max(near, key=lambda row: _agreement(part, row, task), default=-1)
        if best >= 0 and _agreement(part, best, task)[0]:
            found[best] = task
    return found


def _agreement(part: Part, row: int, task: Task) -> tuple[bool, bool, bool, bool, int]:
    """How well a row fits a task: (fits at all, start, name, stream, nearness)."""
    e = part.events
    apart = abs(int(e.start_ns[row]) - task.start_ns)
    name = part.strings[e.name[row]] == task.name
    stream = task.stream == part.tracks[e.track[row]].stream
    return (apart == 0 and (name or stream)) or (name and (stream or task.stream is None)), apart == 0, name, stream, -apart


def _fill(part: Part, table: KernelTable, pairs: dict[int, Task]) -> None:
    """Add the cells of tasks to their rows, but none that a row has already."""
    _add(part, {row: t.cells | ({"Collective name": message(t.name)} if t.core in MESSAGES else {}) for row, t in pairs.items()})
    part.digest = f"{part.digest}+{table.digest}"
    text = f"{len(pairs)} of {len(table.tasks)} tasks of {table.path} joined to the timeline (shapes, formats, cores, counters)"
    part.notes.append(Note("kernel-table-joined", part.path, len(pairs), text))
    if table.damage:
        size = sum(d.until - d.start for d in table.damage)
        part.notes.append(Note("salvaged", table.path, len(table.damage), f"{size} bytes were skipped: {table.damage[0].why}"))


def _add(part: Part, cells: Mapping[int, Mapping[str, object]]) -> None:
    """Add arguments to rows that do not have them."""
    number = {text: i for i, text in reversed(list(enumerate(part.strings)))}
    columns: dict[str, dict[int, tuple[int, bool]]] = defaultdict(dict)
    for row, values in sorted(cells.items()):
        for key, value in values.items():
            if isinstance(value, int) and not isinstance(value, bool) and -(2**62) < value < 2**62:
                columns[key][row] = (value, False)
                continue
            text = str(value)
            if text not in number:
                number[text] = len(part.strings)
                part.strings.append(text)
            columns[key][row] = (number[text], True)
    args = dict(part.args)
    for key, column in columns.items():
        args[key] = with_cells(args.get(key), column)
    part.args = args


def with_cells(column: ArgColumn | None, cells: dict[int, tuple[int, bool]]) -> ArgColumn:
    """Return an argument with values added to rows that have none."""
    merged = dict(cells)
    if column is not None:
        rows = zip(column.event.tolist(), column.value.tolist(), column.is_text.tolist(), strict=True)
        merged |= {event: (value, is_text) for event, value, is_text in rows}
    order = sorted(merged)
    event, value = np.array(order, np.int32), np.array([merged[i][0] for i in order], np.int64)
    return ArgColumn(frozen(event), frozen(value), frozen(np.array([merged[i][1] for i in order], bool)))
