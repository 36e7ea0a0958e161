"""Step marks as nodes, and which step every node belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Note
from workbench.graph.links import Links
from workbench.graph.rows import Rows
from workbench.trace.trace import Trace

OUTSIDE = 0.01
"""Share of the device time outside every step that is worth a word [1]."""


@dataclass(frozen=True)
class Marks:
    """Step windows in time order; one window over everything a rank did, number -1, when the recording has no marks."""

    number: np.ndarray  # int64 [S]
    begin: np.ndarray  # int64 [S] [ns]
    end: np.ndarray  # int64 [S] [ns]
    event: np.ndarray  # int32 [S] (-1: no mark)
    thread: np.ndarray  # int32 [S], thread the mark is on (-1: the whole recording)
    rank: np.ndarray  # int32 [S]


def marks(trace: Trace, rows: Rows) -> Marks:
    """Return the step windows of a recording (the reader has noted when it has no marks)."""
    steps = trace.steps
    if len(steps):
        begin = steps.start_ns - rows.origin
        thread = np.array([_thread(rows, trace, int(e), int(r)) for e, r in zip(steps.event, steps.rank, strict=True)], dtype=np.int32)
        end = begin + np.maximum(steps.dur_ns, 0)
        return Marks(steps.number.astype(np.int64), begin, end, steps.event, thread, steps.rank)
    return _whole(trace, rows)


def _whole(trace: Trace, rows: Rows) -> Marks:
    """One window a rank over all it did."""
    parts = (
        (rows.calls.start, rows.calls.end, rows.thread_rank[rows.calls.thread]),
        (rows.ops.start, rows.ops.end, rows.thread_rank[rows.ops.thread]),
        (rows.device.start, rows.device.end, rows.lane_rank[rows.device.lane]),
    )
    start, end, of = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    ranks = np.unique(of)
    if len(ranks) <= 1:
        ranks = np.array([trace.ranks[0].rank if trace.ranks else 0], dtype=np.int32)
        begin, last = np.zeros(1, dtype=np.int64), np.array([end.max(initial=0)], dtype=np.int64)
    else:
        begin = np.array([start[of == r].min() for r in ranks], dtype=np.int64)
        last = np.array([end[of == r].max() for r in ranks], dtype=np.int64)
    none = np.full(len(ranks), -1, dtype=np.int32)
    return Marks(none.astype(np.int64), begin, last, none, none, ranks.astype(np.int32))


def _thread(rows: Rows, trace: Trace, event: int, rank: int) -> int:
    """Thread of a mark; the busiest thread of the rank where the marking thread does nothing else."""
    thread = int(rows.thread_of_track[trace.events.track[event]])
    if thread >= 0:
        return thread
    load = np.diff(rows.calls.ptr) + np.diff(rows.ops.ptr)
    mine = np.flatnonzero(rows.thread_rank == rank)
    return int(mine[np.argmax(load[mine])]) if len(mine) else -1


def windows(marks: Marks, start: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Int32 [N]: the step whose window holds each start (the latest that began, -1: none)."""
    out = np.full(len(start), -1, dtype=np.int32)
    for r in np.unique(marks.rank):
        mine = np.flatnonzero(marks.rank == r)
        mine = mine[np.argsort(marks.begin[mine], kind="stable")]
        k = np.searchsorted(marks.begin[mine], start, "right") - 1
        ok = (k >= 0) & (rank == r)
        inside = ok & ((start < marks.end[mine[np.maximum(k, 0)]]) | (marks.event[mine[np.maximum(k, 0)]] < 0))
        out[inside] = mine[k[inside]]
    return out


def device_steps(marks: Marks, rows: Rows, links: Links) -> np.ndarray:
    """Int32 [D]: step of the launch of each device row; of its own start where the launch is not recorded."""
    moment = np.where(links.call >= 0, rows.calls.start[links.call] if len(rows.calls.start) else 0, rows.device.start)
    return windows(marks, moment, rows.lane_rank[rows.device.lane])


def outside_note(device_step: np.ndarray, device_ns: np.ndarray) -> list[Note]:
    """Say how much device work no step holds: it is in no step time, but in the operators of the recording.

    Parameters
    ----------
    device_step : int [D]
        Step of each device row (-1: none).
    device_ns : int64 [D] [ns]
    """
    out = device_step < 0
    share = device_ns[out].sum() / max(int(device_ns.sum()), 1)
    if share <= OUTSIDE:
        return []
    text = f"{share:.0%} of the device time was launched outside every step: it is in no step's time"
    return [Note("outside-steps", "device streams", int(out.sum()), text, "record whole steps, or mark those that matter")]


def measured(marks: Marks, device_step: np.ndarray, device_end: np.ndarray) -> np.ndarray:
    """Float64 [S] [s]: recorded step, the later of the mark's end and the end of the work launched in it."""
    end = marks.end.copy()
    inside = device_step >= 0
    np.maximum.at(end, device_step[inside], device_end[inside])
    return (end - marks.begin) / 1e9
