"""PyTorch profiler (Kineto) traces, and Chrome traces whose lanes say which of them are device streams.

Reference: libkineto, ``ActivityType`` names (pytorch/kineto, libkineto/include/ActivityType.h); the Trace Event Format
(Chrome). The tables below are the whole column map: spellings seen from 2020 to 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from workbench.errors import Note
from workbench.trace import kernels
from workbench.trace.arrows import link_launches, link_operators
from workbench.trace.inner_ranks import split_ranks
from workbench.trace.kernels_json import Columns
from workbench.trace.lanes import XLA_LANES, Lanes, lanes_of
from workbench.trace.nesting import nesting
from workbench.trace.pairs import paired
from workbench.trace.part import Part, frozen, group, numbers
from workbench.trace.scanner import Records
from workbench.trace.secrets import without_secrets
from workbench.trace.trace import ArgColumn, Category, Events, Flows

CATEGORIES: dict[str, Category] = {
    **dict.fromkeys(("cpu_op", "Operator", "operator"), Category.CPU_OP),
    **dict.fromkeys(
        ("cuda_runtime", "Runtime", "runtime", "hip_runtime", "mtia_runtime", "xpu_runtime", "privateuse1_runtime", "glow_runtime"),
        Category.RUNTIME,
    ),
    **dict.fromkeys(("cuda_driver", "hip_driver", "xpu_driver", "privateuse1_driver"), Category.DRIVER),
    **dict.fromkeys(("kernel", "Kernel", "mtia_ccp_events", "hpu_op", "privateuse1_kernel", "xpu_kernel"), Category.KERNEL),
    **dict.fromkeys(("gpu_memcpy", "Memcpy", "memcpy", "privateuse1_memcpy"), Category.MEMCPY),
    **dict.fromkeys(("gpu_memset", "Memset", "memset", "privateuse1_memset"), Category.MEMSET),
    **dict.fromkeys(("cuda_sync", "xpu_sync", "hip_sync"), Category.SYNC),
    **dict.fromkeys(("user_annotation", "User_annotation"), Category.ANNOTATION),
    **dict.fromkeys(("gpu_user_annotation", "cuda_profiler_range"), Category.GPU_ANNOTATION),
    **dict.fromkeys(("python_function", "Python", "python"), Category.PYTHON),
    "overhead": Category.OVERHEAD,
    "Trace": Category.TRACE,
}

# other categories that are known and are neither work nor a call
KNOWN_OTHER = frozenset(
    ("", "cpu_instant_event", "external_correlation", "collective_comm", "mtia_workloadd", "mtia_insight", "enqueue", "dequeue")
)

# rows without a category: by their name, on a device stream and elsewhere
ON_STREAM = (
    (re.compile(r"(?i)mem(ory)?[_ ]?cpy|memcpy"), Category.MEMCPY),
    (re.compile(r"(?i)mem(ory)?[_ ]?set"), Category.MEMSET),
    (re.compile(r"(?i)^(event|notify)_?(record|wait|reset)|^stream wait"), Category.SYNC),
)
ON_HOST = ((re.compile(r"^(cu|cuda|hip)[A-Z]\w*|^(AscendCL|Node|Runtime)@"), Category.RUNTIME),)

CORRELATION = ("correlation", "correlation_id")  # first one present wins; the second only on calls and device rows
EXTERNAL = ("External id", "external id")
LAUNCH_FLOWS = ("ac2g", "async_cpu_to_gpu", "async")  # their id is the correlation of the launch


def to_part(records: Records, path: str) -> Part:
    """Turn scanned records into one file's columns."""
    records = paired(records)
    strings, c = records.strings, records.columns
    count = len(c.start)
    args = _columns_of(records)
    raw = np.array([_category(s) for s in strings], np.int8)[c.cat] if count else np.empty(0, np.int8)
    lanes = lanes_of(records, raw, args)
    category, by_lane = _without_category(raw, c, lanes, strings)
    if category is not raw:
        lanes = lanes_of(records, category, args)
    correlation = _first(args, CORRELATION[:1], strings, count)
    called = np.isin(category, (Category.RUNTIME, Category.DRIVER, Category.KERNEL, Category.MEMCPY, Category.MEMSET))
    second = _first(args, CORRELATION[1:], strings, count)
    correlation = np.where((correlation < 0) & called, second, correlation)
    flows = _flows(records, lanes)
    notes = list(_notes(records, path, by_lane))
    linked = _from_flows(correlation, category, c.start, lanes.track, flows, strings)
    if linked:
        notes.append(Note("correlation-from-flow", path, linked, "device rows without a correlation took the id of their flow arrow"))
    external = _first(args, EXTERNAL, strings, count)
    places = (c.start, c.dur, lanes.track, category)
    link_launches(places, flows, strings, correlation)
    link_operators(places, flows, strings, external)
    order_id = np.where(external < 0, _first(args, ("Python id", "Ev Idx"), strings, count), external)
    top = np.full(count, -1, np.int32)
    columns = (c.start, c.dur, lanes.track, c.name, category, c.cat, correlation, external, top)
    events = Events(*map(frozen, columns))
    events = replace(events, parent=frozen(nesting(events, order_id, strings)))
    tracks, inner = split_ranks(lanes.tracks, lanes.track, category, correlation, c.start)
    if inner > 1:
        notes.append(Note("merged-ranks", path, inner, "several ranks lie in this file; they are told apart by their processes"))
    part = Part(path, events, flows, args, strings, tracks, records.digest, notes=notes, inner_ranks=inner)
    _identity(part, records)
    part.counts = _counts(records)
    return part


def _columns_of(records: Records) -> dict[str, ArgColumn]:
    a, keys = records.args, records.keys
    named = np.flatnonzero(keys >= 0)
    start, stop, event, value, is_text = kernels.arguments_by_key(a.event, a.key, a.value, a.is_text, len(named))
    for array in (event, value, is_text):
        frozen(array)
    columns = {}
    for i in named:
        low, high = start[keys[i]], stop[keys[i]]
        if high > low:
            columns[records.strings[i]] = ArgColumn(event[low:high], value[low:high], is_text[low:high])
    return columns


def _first(args: dict[str, ArgColumn], keys: tuple[str, ...], strings: list[str], count: int) -> np.ndarray:
    dense = numbers(args.get(keys[0]), strings, count)
    for key in keys[1:]:
        if key in args:
            dense = np.where(dense < 0, numbers(args[key], strings, count), dense)
    return dense


def _category(text: str) -> Category:
    """Return what a category is; of a list of them (Chrome) the first known one counts."""
    return next((CATEGORIES[part] for part in (text, *text.split(",")) if part.strip() and part in CATEGORIES), Category.OTHER)


def _is_known(text: str) -> bool:
    return text in KNOWN_OTHER or any(part in CATEGORIES for part in text.split(","))


def _without_category(category: np.ndarray, c: Columns, lanes: Lanes, strings: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Give rows without a category one by the lane they lie on and their name; return which of them had an unknown one, bool [E].

    In a file whose categories name no device work, those nobody knows say nothing either: what lies on a device stream is work.
    """
    unknown = np.zeros(len(category), bool)
    if not np.isin(category, (Category.KERNEL, Category.MEMCPY, Category.MEMSET)).any():
        strange = np.zeros(len(strings), bool)
        for i in np.unique(c.cat).tolist():
            strange[i] = not _is_known(strings[i])
        unknown = strange[c.cat] & lanes.is_stream[lanes.track] if len(category) else unknown
    rows = np.flatnonzero((c.cat == 0) | unknown)
    if not len(rows):
        return category, unknown
    category = category.copy()
    on_stream = lanes.is_stream[lanes.track[rows]]
    for where, rules, rest in ((on_stream, ON_STREAM, Category.KERNEL), (~on_stream, ON_HOST, Category.OTHER)):
        names, inverse = np.unique(c.name[rows[where]], return_inverse=True)
        found = [next((kind for rule, kind in rules if rule.search(strings[i])), rest) for i in names]
        category[rows[where]] = np.array(found, np.int8)[inverse] if len(names) else 0
    _outer_operations(category, c, lanes)
    return category, unknown


def _outer_operations(category: np.ndarray, c: Columns, lanes: Lanes) -> None:
    """Make labels of operations on a TPU's lane that hold others (a loop and its body): only the innermost are work."""
    on = np.array([t.label in XLA_LANES for t in lanes.tracks], bool) & lanes.is_stream
    rows = np.flatnonzero(on[lanes.track]) if len(lanes.tracks) else np.empty(0, np.int64)
    order = rows[np.lexsort((-c.dur[rows], c.start[rows], lanes.track[rows]))]
    following = order[1:]
    holds = (lanes.track[order[:-1]] == lanes.track[following]) & (
        c.start[order[:-1]] + c.dur[order[:-1]] >= c.start[following] + c.dur[following]
    )
    holds &= c.dur[order[:-1]] > c.dur[following]
    category[order[:-1][holds]] = Category.GPU_ANNOTATION


def _flows(records: Records, lanes: Lanes) -> Flows:
    f = records.flows
    return Flows(*map(frozen, (f.id, f.start, lanes.flow_track, f.cat, f.phase)))


def _from_flows(
    correlation: np.ndarray, category: np.ndarray, start: np.ndarray, track: np.ndarray, flows: Flows, strings: list[str]
) -> int:
    """Fill missing correlations of device rows from the finish of a launch arrow at the same lane and time; return how many."""
    missing = np.flatnonzero((correlation < 0) & np.isin(category, (Category.KERNEL, Category.MEMCPY, Category.MEMSET)))
    launch = [i for i, s in enumerate(strings) if s in LAUNCH_FLOWS]
    ends = np.flatnonzero(np.isin(flows.category, launch) & (flows.phase != ord("s")) & (flows.id >= 0))
    if not len(missing) or not len(ends):
        return 0
    lane, time = np.concatenate((flows.track[ends], track[missing])), np.concatenate((flows.start_ns[ends], start[missing]))
    place, first = group(lane, time)
    found = np.full(len(first), -1, np.int64)
    found[place[: len(ends)]] = flows.id[ends]
    correlation[missing] = found[place[len(ends) :]]
    return int((correlation[missing] >= 0).sum())


def _identity(part: Part, records: Records) -> None:
    top = records.top
    info = top.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    part.rank = _count(info.get("rank"))
    part.world_size = _count(info.get("world_size"))
    base = top.get("baseTimeNanoseconds")
    part.base_time_ns = base if isinstance(base, int) and not isinstance(base, bool) and 0 <= base < 2**61 else None
    devices = top.get("deviceProperties")
    rows = devices if isinstance(devices, list) else []
    part.devices = tuple(str(d.get("name", "")) for d in rows if isinstance(d, dict))
    part.metadata = without_secrets(top)


def _count(value: object) -> int | None:
    value = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else value
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _counts(records: Records) -> dict[str, int]:
    strings, c, f = records.strings, records.columns, records.flows
    counts = {"events": records.counters["records"], "complete_events": len(c.start), "x_without_dur": records.counters["no_dur"]}
    counts |= {f"ph:{ph}": n for ph, n in records.phases.items()}
    for i, n in zip(*np.unique(c.cat, return_counts=True), strict=True):
        counts[f"cat:{strings[i]}"] = int(n)
    groups, first = group(f.cat, f.phase)
    for n, i in zip(np.bincount(groups, minlength=len(first)), first, strict=True):
        counts[f"flow:{strings[f.cat[i]]}:{chr(f.phase[i])}"] = int(n)
    return counts


def _notes(records: Records, path: str, by_lane: np.ndarray) -> Iterator[Note]:
    n, c = records.counters, records.columns
    told = (
        ("no_dur", "event-without-duration", "complete events without a duration were set aside"),
        ("no_time", "event-without-time", "events and arrows without a time stamp were set aside"),
        ("overflow", "time-out-of-range", "events whose time lies beyond the year 2116 or lasts over 104 days were set aside"),
        ("empty", "empty-record", "empty records were ignored"),
        ("not_object", "not-an-object", "records that are no objects were ignored"),
        ("no_ph", "no-phase", "records without a phase were ignored"),
        ("unpaired", "unpaired-event", "records that begin or end an event have no partner on their thread and were set aside"),
        ("comma", "trailing-comma", "a comma before the closing bracket was tolerated"),
        ("missing", "missing-value", "arguments written as a bare nan or inf count as missing"),
    )
    for counter, code, text in told:
        if n.get(counter) and not (counter == "no_ph" and n["empty"] >= n["no_ph"]):
            yield Note(code, path, n[counter], text)
    pairs = {ph: records.phases[ph] for ph in "bneSTFpP" if ph in records.phases}
    if pairs:
        yield Note("unread-phase", path, sum(pairs.values()), f"async and sample records are not read: {pairs}")
    if records.layout == "unclosed array":
        yield Note("unclosed-array", path, 1, "the array of records is not closed, which the Chrome format allows")
    if records.damage:
        size = sum(d.until - d.start for d in records.damage)
        places = "; ".join(f"record at byte {d.start}: {d.why} at byte {d.offset}" for d in records.damage[:5])
        text = f"{size} bytes were skipped, {records.counters['records']} whole records imported ({places})"
        yield Note("salvaged", path, len(records.damage), text, "write the trace again")
    if by_lane.any():
        words = sorted({records.strings[i] for i in np.unique(c.cat[by_lane])})[:10]
        yield Note(
            "category-by-lane", path, int(by_lane.sum()), f"no category names device work; unknown ones on device streams count: {words}"
        )
    unknown = {text for i in np.unique(c.cat[~by_lane]).tolist() if not _is_known(text := records.strings[i])}
    if unknown:
        rows = int(np.isin(c.cat[~by_lane], [i for i, s in enumerate(records.strings) if s in unknown]).sum())
        yield Note("unknown-category", path, rows, f"events of unknown categories are kept but are no work: {sorted(unknown)[:10]}")
