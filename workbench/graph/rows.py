"""The rows of a trace the graph is made of, in a deterministic order: host calls, framework operators, device work."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from workbench.graph import kernels
from workbench.graph.calls import classify
from workbench.trace.part import group
from workbench.trace.trace import DEVICE_WORK, HOST_CALLS, Category, Events, Trace, Track

MARKS = re.compile(r"^ProfilerStep\s*#\d+$")
"""Step marks are labels, whatever category an old producer gave them."""


@dataclass(frozen=True)
class HostRows:
    """Calls or operators of the host threads, sorted by (thread, start, longer first)."""

    event: np.ndarray  # int32 [N], row in Trace.events
    thread: np.ndarray  # int32 [N]
    start: np.ndarray  # int64 [N] [ns]
    end: np.ndarray  # int64 [N] [ns]
    ptr: np.ndarray  # int64 [T + 1]


@dataclass(frozen=True)
class DeviceRows:
    """Device work, sorted by (lane, start); a lane is one stream, or its records without a launch that overlap the rest."""

    event: np.ndarray  # int32 [D]
    lane: np.ndarray  # int32 [D]
    start: np.ndarray  # int64 [D] [ns]
    end: np.ndarray  # int64 [D] [ns]
    correlation: np.ndarray  # int64 [D], -1: none
    ptr: np.ndarray  # int64 [number of lanes + 1]


@dataclass(frozen=True)
class Rows:
    """Everything the graph is made of. Times are ns since ``origin``, the earliest of all."""

    origin: int
    calls: HostRows
    role: np.ndarray  # int8 [calls], Call
    ops: HostRows
    device: DeviceRows
    threads: tuple[str, ...]
    thread_rank: np.ndarray  # int32 [T]
    thread_of_track: np.ndarray  # int32 [tracks], -1: no host thread
    lanes: tuple[str, ...]
    lane_rank: np.ndarray  # int32
    lane_device: np.ndarray  # int32
    lane_stream: np.ndarray  # int32


def name_order(trace: Trace) -> np.ndarray:
    """Return int32 [strings]: alphabetical rank of every interned text, so that ties do not depend on file order."""
    order = sorted(range(len(trace.strings)), key=trace.strings.__getitem__)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank


def select(trace: Trace) -> Rows:
    """Pick and sort what the graph is made of, from a cleaned trace."""
    e = trace.events
    start = e.start_ns.astype(np.int64)
    end = start + np.maximum(e.dur_ns, 0)
    marks = np.array([bool(MARKS.match(s)) for s in trace.strings], dtype=bool)
    is_mark = marks[e.name] if len(e) else np.zeros(0, dtype=bool)
    is_mark[trace.steps.event] = True
    is_call = np.isin(e.category, HOST_CALLS)
    is_op = (e.category == Category.CPU_OP) & ~is_mark
    is_device = np.isin(e.category, DEVICE_WORK)
    used = is_call | is_op | is_device
    used[trace.steps.event] = True
    origin = int(start[used].min()) if used.any() else 0
    start, end = start - origin, end - origin
    tie = name_order(trace)[e.name] if len(e) else np.zeros(0, dtype=np.int32)
    thread_of_track, threads, thread_rank = _threads(trace, is_call, is_op, start, end)
    host = [_host_rows(np.flatnonzero(mask), thread_of_track, e, start, end, tie, len(threads)) for mask in (is_call, is_op)]
    role = classify(e.name[host[0].event], trace.strings)
    device, lanes, lane_key = _device_rows(trace, np.flatnonzero(is_device), start, end, tie)
    rank, dev, stream = (lane_key[:, i] for i in range(3))
    return Rows(origin, host[0], role, host[1], device, threads, thread_rank, thread_of_track, lanes, rank, dev, stream)


def _host_rows(
    rows: np.ndarray, thread_of_track: np.ndarray, e: Events, start: np.ndarray, end: np.ndarray, tie: np.ndarray, count: int
) -> HostRows:
    thread = thread_of_track[e.track[rows]]
    rows, thread = rows[thread >= 0], thread[thread >= 0]
    order = np.lexsort((e.external_id[rows], e.correlation[rows], tie[rows], -end[rows], start[rows], thread))
    rows, thread = rows[order], thread[order]
    ptr = np.searchsorted(thread, np.arange(count + 1))
    return HostRows(rows.astype(np.int32), thread, start[rows], end[rows], ptr)


def _threads(
    trace: Trace, is_call: np.ndarray, is_op: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """Map tracks to host threads; a track with calls only that fit inside another thread's operators joins it.

    Old Kineto writes some calls of a thread under its pthread id instead of its system id.
    """
    tracks = trace.tracks
    host = is_call | is_op
    busy = np.flatnonzero(np.bincount(trace.events.track[host], minlength=len(tracks)) > 0)
    busy = (
        busy[np.lexsort(([tracks[t].tid for t in busy], [tracks[t].pid for t in busy], [tracks[t].rank for t in busy]))]
        if len(busy)
        else busy
    )
    has_op = np.bincount(trace.events.track[is_op], minlength=len(tracks)) > 0
    home = {int(t): int(t) for t in busy}
    for t in busy[~has_op[busy]]:
        home[int(t)] = _home(
            trace, int(t), [int(x) for x in busy if has_op[x] and tracks[x].rank == tracks[t].rank], is_call, is_op, start, end
        )
    kept = [int(t) for t in busy if home[int(t)] == t]
    index = {t: i for i, t in enumerate(kept)}
    out = np.full(len(tracks), -1, dtype=np.int32)
    for t in busy:
        out[t] = index[home[int(t)]]
    names = tuple(_thread_name(tracks[t]) for t in kept)
    return out, names, np.array([tracks[t].rank for t in kept], dtype=np.int32)


def _thread_name(track: Track) -> str:
    label = track.label.removeprefix(f"thread {track.tid}").strip()
    label = label if label.startswith("(") or not label else f"({label})"
    return f"rank {track.rank} thread {track.tid} {label}".strip()


def _home(trace: Trace, track: int, others: list[int], is_call: np.ndarray, is_op: np.ndarray, start: np.ndarray, end: np.ndarray) -> int:
    on = trace.events.track
    mine = np.flatnonzero(is_call & (on == track))
    best, share = track, 0.9
    for other in others:
        ops = np.flatnonzero(is_op & (on == other))
        calls = np.flatnonzero(is_call & (on == other))
        inside = _covered(start[mine], end[mine], start[ops], end[ops], whole=True)
        clash = _covered(start[mine], end[mine], start[calls], end[calls], whole=False)
        fit = float(np.mean(inside & ~clash))
        if fit > share:
            best, share = other, fit
    return best


def _covered(start: np.ndarray, end: np.ndarray, by_start: np.ndarray, by_end: np.ndarray, *, whole: bool) -> np.ndarray:
    """Bool [N]: intervals that lie wholly inside (or that overlap at all) the union of others."""
    if not len(by_start):
        return np.zeros(len(start), dtype=bool)
    order = np.argsort(by_start, kind="stable")
    _, low, high = kernels.union(np.array([0, len(order)]), by_start[order], by_end[order])
    k = np.searchsorted(low, start, "right") - 1
    inside = (k >= 0) & (high[k] >= end)
    if whole:
        return inside
    nxt = np.minimum(k + 1, len(low) - 1)
    return ((k >= 0) & (high[k] > start)) | ((low[nxt] < end) & (low[nxt] >= start))


def _device_rows(
    trace: Trace, rows: np.ndarray, start: np.ndarray, end: np.ndarray, tie: np.ndarray
) -> tuple[DeviceRows, tuple[str, ...], np.ndarray]:
    e, tracks = trace.events, trace.tracks
    correlation = _correlations(trace, rows)
    device, stream = (trace.integer_arg(key)[rows] for key in ("device", "stream"))
    on = e.track[rows]
    device = np.where(device >= 0, device, np.array([t.device for t in tracks], dtype=np.int64)[on] if len(tracks) else device)
    stream = np.where(stream >= 0, stream, np.array([t.stream for t in tracks], dtype=np.int64)[on] if len(tracks) else stream)
    rank = np.array([t.rank for t in tracks], dtype=np.int64)[on] if len(tracks) else device
    named = _track_order(trace)[on] if len(tracks) else on
    lane_track = np.where(stream >= 0, -1, named)
    key = np.stack([rank, device, stream, lane_track, np.zeros(len(rows), dtype=np.int64)], axis=1)
    key[:, 4] = _overlapping_records(key[:, :4], correlation, start[rows], end[rows])
    keys, lane = _distinct(key)
    order = np.lexsort((tie[rows], correlation, end[rows], start[rows], lane))
    rows, lane, correlation = rows[order], lane[order].astype(np.int32), correlation[order]
    names = tuple(_lane_name(k, trace) for k in keys.tolist())
    ptr = np.searchsorted(lane, np.arange(len(keys) + 1))
    return DeviceRows(rows.astype(np.int32), lane, start[rows], end[rows], correlation, ptr), names, keys[:, :3]


def _distinct(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of an integer table, sorted, and the place of each row among them: as `numpy.unique`, in linear time."""
    number, first = group(key[:, 0], key[:, 1])
    for column in key.T[2:]:
        number, first = group(number, column)
    keys, place = np.unique(key[first], axis=0, return_inverse=True)
    return keys, place.reshape(-1)[number]


def _track_order(trace: Trace) -> np.ndarray:
    order = sorted(range(len(trace.tracks)), key=lambda t: (trace.tracks[t].rank, trace.tracks[t].pid, trace.tracks[t].tid))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _lane_name(key: list[int], trace: Trace) -> str:
    rank, device, stream, named, extra = key
    if named >= 0:
        track = trace.tracks[int(np.flatnonzero(_track_order(trace) == named)[0])]
        name = f"rank {rank} device {device} {track.label or track.tid}"
    else:
        name = f"rank {rank} device {device} stream {stream}"
    return name + (" (records without launch)" if extra else "")


def _overlapping_records(key: np.ndarray, correlation: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Int64 [D]: 1 for records without a launch on a stream where such records overlap launched work (sub-records, DMA requests)."""
    out = np.zeros(len(start), dtype=np.int64)
    if not len(start) or (correlation >= 0).all():
        return out
    _, lane = _distinct(key)
    for k in np.unique(lane[correlation < 0]):
        loose = np.flatnonzero((lane == k) & (correlation < 0))
        bound = np.flatnonzero((lane == k) & (correlation >= 0))
        if len(bound) and _covered(start[loose], end[loose], start[bound], end[bound], whole=False).any():
            out[loose] = 1
    return out


def _correlations(trace: Trace, rows: np.ndarray) -> np.ndarray:
    """Correlation of device work; where absent, the id of the flow that ends on it."""
    e, flows = trace.events, trace.flows
    correlation = e.correlation[rows].copy()
    missing = np.flatnonzero(correlation < 0)
    if len(missing) and len(flows.id):
        names = np.array([bool(re.search("ac2g|async|gpu", trace.strings[c])) for c in np.unique(flows.category)])
        known = np.isin(flows.category, np.unique(flows.category)[names]) & (flows.phase != ord("s"))
        at = {(int(t), int(s)): int(i) for t, s, i in zip(flows.track[known], flows.start_ns[known], flows.id[known], strict=True)}
        found = [at.get((int(e.track[r]), int(e.start_ns[r])), -1) for r in rows[missing]]
        correlation[missing] = found
    return correlation
