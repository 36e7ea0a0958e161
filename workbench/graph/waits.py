"""Host calls that wait for device work, from synchronisation records where the recording has them, else inferred and flagged."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from workbench.errors import Note
from workbench.graph.blocking import NOISE_NS
from workbench.graph.calls import WAITING, Call
from workbench.graph.graph import EdgeKind
from workbench.graph.links import Links
from workbench.graph.rows import Rows
from workbench.trace.trace import Category, Trace

NOTES = MappingProxyType(
    {
        "sync-inferred": "synchronising calls without a record: what they wait for follows from launch order",
        "clock-noise": "work that ends less than 0.1 ms after the call that waits for it: clocks of host and device differ",
        "sync-contradicted": "work that outlasts the call said to wait for it: the latest work that had ended is used",
    }
)


@dataclass(frozen=True)
class HostWaits:
    """Device rows a call waits for: ``call[i]`` waits for ``device[i]``."""

    call: np.ndarray  # int32 [W]
    device: np.ndarray  # int32 [W]
    kind: np.ndarray  # int8 [W], EdgeKind.SYNC or SYNC_INFERRED


@dataclass(frozen=True)
class SyncRecords:
    """The recording's own synchronisation rows, by the correlation of the call they belong to."""

    what: np.ndarray  # str [K]
    rank: np.ndarray  # int32 [K]
    correlation: np.ndarray  # int64 [K]
    stream: np.ndarray  # int64 [K]
    wait_stream: np.ndarray  # int64 [K]
    record: np.ndarray  # int64 [K], correlation of the event's record call
    at: np.ndarray  # int64 [K] [ns]


def sync_records(trace: Trace, origin: int) -> SyncRecords:
    """Read the cuda_sync rows of a trace."""
    e = trace.events
    rows = np.flatnonzero(e.category == Category.SYNC)
    rows = rows[np.lexsort((e.correlation[rows], e.start_ns[rows]))]
    what = np.array([trace.strings[i] for i in e.name[rows]], dtype=object)
    keys = ("stream", "wait_on_stream", "wait_on_cuda_event_record_corr_id")
    stream, wait_stream, record = (trace.integer_arg(key)[rows] for key in keys)
    rank = np.array([t.rank for t in trace.tracks], dtype=np.int32)[e.track[rows]] if len(rows) else np.zeros(0, np.int32)
    return SyncRecords(what, rank, e.correlation[rows], stream, wait_stream, record, e.start_ns[rows] - origin)


class Launched:
    """Which device row was the last on a lane, or the next, at a moment of launching."""

    def __init__(self, rows: Rows, links: Links) -> None:
        self.rows, self.links = rows, links

    def lanes(self, rank: int, stream: int | None = None) -> list[int]:
        """Return lanes of a rank, or of one of its streams."""
        r = self.rows
        mine = r.lane_rank == rank
        return np.flatnonzero(mine if stream is None else mine & (r.lane_stream == stream)).tolist()

    def last(self, lane: int, before: int) -> int:
        """Return the last device row of a lane launched before a moment (-1: none)."""
        ptr = self.rows.device.ptr
        k = int(self.links.launched_at[ptr[lane] : ptr[lane + 1]].searchsorted(before, "left")) - 1
        return int(ptr[lane]) + k if k >= 0 else -1

    def last_of(self, lane: int, before: np.ndarray) -> np.ndarray:
        """Return the last device row of a lane launched before each of some moments, int64 (-1: none)."""
        ptr = self.rows.device.ptr
        k = self.links.launched_at[ptr[lane] : ptr[lane + 1]].searchsorted(before, "left") - 1
        return np.where(k >= 0, ptr[lane] + k, -1)

    def next(self, lane: int, after: int) -> int:
        """Return the first device row of a lane launched after a moment (-1: none)."""
        ptr = self.rows.device.ptr
        at = self.links.launched_at[ptr[lane] : ptr[lane + 1]]
        k = int(np.searchsorted(at, after, "left"))
        return int(ptr[lane]) + k if k < len(at) else -1

    def ended(self, row: int, by: int) -> int:
        """Return ``row``, or the latest before it on its lane that has ended by a moment (-1: none)."""
        dev = self.rows.device
        low = int(dev.ptr[dev.lane[row]])
        if dev.end[row] <= by:
            return row
        done = np.flatnonzero(dev.end[low : row + 1] <= by)
        return low + int(done[-1]) if len(done) else -1


def host_waits(
    rows: Rows, links: Links, records: SyncRecords, correlation: np.ndarray, blocking: np.ndarray
) -> tuple[HostWaits, list[Note]]:
    """Find what every waiting call waits for.

    Parameters
    ----------
    rows : Rows
    links : Links
    records : SyncRecords
    correlation : int64 [calls]
    blocking : bool [calls]
        Calls that return only when the work they launched is done.
    """
    launched = Launched(rows, links)
    call_rank = rows.thread_rank[rows.calls.thread]
    stated = {
        (int(r), int(c)): k
        for k, (r, c, w) in enumerate(zip(records.rank, records.correlation, records.what, strict=True))
        if "Wait Event" not in w
    }
    record_call = by_correlation(call_rank, correlation, rows.role == Call.RECORD)
    out: list[tuple[int, int, int]] = []
    counts = dict.fromkeys(NOTES, 0)
    for i in np.flatnonzero(np.isin(rows.role, WAITING)).tolist():
        k = stated.get((int(call_rank[i]), int(correlation[i])), -1) if correlation[i] >= 0 else -1
        awaited, kind = _awaited(launched, rows, records, record_call, i, k, int(call_rank[i]))
        counts["sync-inferred"] += kind == EdgeKind.SYNC_INFERRED and bool(awaited)
        for row in awaited:
            done = _within(launched, rows, row, int(rows.calls.end[i]), counts)
            if done >= 0:
                out.append((i, done, kind))
    copies = np.flatnonzero(blocking & (links.last_row >= 0))
    over = links.last[copies] - rows.calls.end[copies]
    begun = rows.device.start[links.last_row[copies]] < rows.calls.end[copies] if len(copies) else np.zeros(0, dtype=bool)
    copies, over = copies[(over <= NOISE_NS) & begun], over[(over <= NOISE_NS) & begun]
    counts["clock-noise"] += int((over > 0).sum())
    out += [(int(i), int(links.last_row[i]), int(EdgeKind.SYNC)) for i in copies]
    table = np.array(out, dtype=np.int64).reshape(-1, 3)
    notes = [Note(code, "host threads", count, NOTES[code]) for code, count in counts.items() if count]
    return HostWaits(table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2].astype(np.int8)), notes


def _within(launched: Launched, rows: Rows, row: int, end: int, counts: dict[str, int]) -> int:
    """Return the awaited row if it ends by the call's end or clock noise after it; else the latest on its lane that does; count it."""
    dev = rows.device
    late = int(dev.end[row]) > end
    if late and dev.end[row] <= end + NOISE_NS and dev.start[row] < end:
        counts["clock-noise"] += 1
        return row
    counts["sync-contradicted"] += late
    return launched.ended(row, end)


def by_correlation(rank: np.ndarray, correlation: np.ndarray, mask: np.ndarray) -> dict[tuple[int, int], int]:
    """Return the calls of a mask by (rank, correlation)."""
    return {(int(rank[i]), int(correlation[i])): int(i) for i in np.flatnonzero(mask & (correlation >= 0))}


def _awaited(
    launched: Launched, rows: Rows, records: SyncRecords, record_call: dict[tuple[int, int], int], i: int, k: int, rank: int
) -> tuple[list[int], int]:
    """Device rows a waiting call waits for, and whether a record says so."""
    begin, end, role = int(rows.calls.start[i]), int(rows.calls.end[i]), int(rows.role[i])
    everything = [row for row in (launched.last(lane, begin) for lane in launched.lanes(rank)) if row >= 0]
    if role == Call.DEVICE_SYNC:
        return everything, int(EdgeKind.SYNC if k >= 0 else EdgeKind.SYNC_INFERRED)
    if role == Call.FREE:
        busy = [row for row in everything if rows.device.end[row] > begin]
        idle_by_end = all(rows.device.end[row] <= end for row in everything)
        return (busy if idle_by_end else []), int(EdgeKind.SYNC_INFERRED)
    if k >= 0:
        stream = int(records.wait_stream[k]) if records.wait_stream[k] >= 0 else int(records.stream[k])
        made = record_call.get((rank, int(records.record[k])), -1)
        moment = int(rows.calls.start[made]) if made >= 0 else begin
        found = [row for row in (launched.last(lane, moment) for lane in launched.lanes(rank, stream)) if row >= 0]
        if found or made >= 0:
            return found, int(EdgeKind.SYNC)
    ended = [row for row in everything if rows.device.end[row] <= end]
    return [max(ended, key=lambda row: (rows.device.end[row], row))] if ended else [], int(EdgeKind.SYNC_INFERRED)
