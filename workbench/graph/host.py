"""Host threads as sequences of nodes in program order: calls, operators between them, and gaps.

Time a thread spends waiting for something known is no node: it vanishes when the awaited thing ends sooner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.graph import kernels
from workbench.graph.blocking import Queue
from workbench.graph.graph import NodeKind
from workbench.graph.handover import Handovers, handovers
from workbench.graph.links import NEVER, Links
from workbench.graph.rows import Rows
from workbench.graph.steps import Marks
from workbench.graph.waits import HostWaits

HOLE = -1


@dataclass(frozen=True)
class HostNodes:
    """Nodes of all host threads, thread after thread, in program order."""

    kind: np.ndarray  # int8 [N], NodeKind
    start: np.ndarray  # int64 [N] [ns]
    end: np.ndarray  # int64 [N] [ns]
    event: np.ndarray  # int32 [N], row in Trace.events (-1: gap)
    call: np.ndarray  # int32 [N], row in Rows.calls (-1: none; -2 - s: mark of step s)
    thread: np.ndarray  # int32 [N]
    ptr: np.ndarray  # int64 [T + 1]
    launch_node: np.ndarray  # int32 [calls], node a call launches from (-1: it launches nothing)
    wait_node: np.ndarray  # int32 [calls], node that starts when what the call waits for has ended (-1: it waits for nothing)
    handovers: Handovers
    beside: np.ndarray  # bool [2 * S], marks (begins, then ends) that fall inside a call or a wait and are no part of the sequence


@dataclass(frozen=True)
class Pieces:
    """Parts of calls, sorted by (thread, start)."""

    kind: np.ndarray  # int8, NodeKind or HOLE
    thread: np.ndarray  # int32
    start: np.ndarray  # int64 [ns]
    end: np.ndarray  # int64 [ns]
    call: np.ndarray  # int32, row in Rows.calls (-1: none; -2 - s: mark of step s)


def host_nodes(rows: Rows, links: Links, queue: Queue, waits: HostWaits, marks: Marks, *, self_time: bool) -> HostNodes:
    """Lay out every host thread.

    Parameters
    ----------
    marks : Marks
        Step marks; they become nodes of their thread.
    self_time : bool
        One node a stretch of innermost operator (recordings without device work) instead of outermost operator.
    """
    pieces = call_pieces(rows, links, queue, waits)
    busy_ptr, busy_low, busy_high = _busy(rows, pieces)
    given = handovers(busy_ptr, busy_low, busy_high, rows.thread_rank, np.diff(rows.ops.ptr) > 0)
    pieces, beside = _with_marks(_with_holes(pieces, given), marks)
    work = (
        kernels.flatten(rows.ops.ptr, rows.ops.start, rows.ops.end)
        if self_time
        else kernels.outermost(rows.ops.ptr, rows.ops.start, rows.ops.end)
    )
    count = len(rows.threads)
    has = busy_ptr[1:] > busy_ptr[:-1]
    opening = given.begin < 0
    low, high = np.full(count, NEVER), np.full(count, -NEVER)
    own = marks.thread >= 0
    np.minimum.at(low, marks.thread[own], marks.begin[own])
    np.maximum.at(high, marks.thread[own], marks.end[own])
    np.minimum.at(low, given.waiter[opening], given.end[opening])
    if len(busy_low):
        low = np.where(has, np.minimum(low, busy_low[np.minimum(busy_ptr[:-1], len(busy_low) - 1)]), low)
        high = np.where(has, np.maximum(high, busy_high[np.maximum(busy_ptr[1:] - 1, 0)]), high)
    row, begin, finish = work
    work_ptr = np.searchsorted(rows.ops.thread[row], np.arange(count + 1))
    piece_ptr = np.searchsorted(pieces.thread, np.arange(count + 1))
    woven = kernels.weave(piece_ptr, pieces.start, pieces.end, work_ptr, begin, finish, low, np.maximum(low, high))
    return _assemble(rows, pieces, given, beside, row, woven)


def _assemble(
    rows: Rows, pieces: Pieces, given: Handovers, beside: np.ndarray, row: np.ndarray, woven: tuple[np.ndarray, ...]
) -> HostNodes:
    ptr, source, start, end, what = woven
    piece = np.where(what == 0, source, -1)
    kind = np.where(what == 1, int(NodeKind.HOST_WORK), int(NodeKind.GAP)).astype(np.int8)
    event = np.full(len(kind), -1, dtype=np.int32)
    call = np.full(len(kind), -1, dtype=np.int32)
    is_piece, is_work = piece >= 0, what == 1
    kind[is_piece] = pieces.kind[piece[is_piece]]
    call[is_piece] = pieces.call[piece[is_piece]]
    is_call = call >= 0
    event[is_call] = rows.calls.event[call[is_call]]
    event[is_work] = rows.ops.event[row[-2 - source[is_work]]]
    keep = kind != HOLE
    thread = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)).astype(np.int32)[keep]
    kind, start, end, event, call = kind[keep], start[keep], end[keep], event[keep], call[keep]
    launch_node = np.full(len(rows.calls.start), -1, dtype=np.int32)
    wait_node = launch_node.copy()
    for target, wanted in ((launch_node, NodeKind.LAUNCH), (wait_node, NodeKind.SYNC)):
        at = np.flatnonzero(kind == wanted)
        target[call[at]] = at
    return HostNodes(
        kind, start, end, event, call, thread, np.searchsorted(thread, np.arange(len(ptr))), launch_node, wait_node, given, beside
    )


def call_pieces(rows: Rows, links: Links, queue: Queue, waits: HostWaits) -> Pieces:
    """Split calls into issue, blocked, waiting and the rest; nested calls count with their self time."""
    calls = rows.calls
    row, begin, finish = kernels.flatten(calls.ptr, calls.start, calls.end)
    n = len(row)
    if not n:
        empty = np.zeros(0, dtype=np.int64)
        return Pieces(empty.astype(np.int8), empty.astype(np.int32), empty, empty, empty.astype(np.int32))
    index = np.arange(n)
    first = np.full(len(calls.start), -1)
    first[row[::-1]] = index[::-1]
    last = np.full(len(calls.start), -1)
    last[row] = index
    launches = np.zeros(n, dtype=bool)
    launches[first[np.flatnonzero(links.last_row >= 0)]] = True
    until = np.full(len(calls.start), np.int64(-1))
    np.maximum.at(until, waits.call, rows.device.end[waits.device] if len(waits.device) else np.zeros(0, np.int64))
    waiting = np.zeros(n, dtype=bool)
    waiting[last[np.unique(waits.call)]] = True
    begin = _moved(calls.thread[row], begin, finish, np.where(launches, links.first[row], NEVER))
    freed = np.where(launches & queue.held[row], queue.freed[row], -1)
    opened = np.where(freed >= 0, np.clip(rows.device.end[freed] if len(rows.device.end) else 0, begin, finish), begin)
    issued = np.where(launches, np.clip(np.minimum(links.first, queue.issued_by)[row], opened, finish), opened)
    resumed = np.where(waiting, np.clip(until[row], issued, finish), finish)
    rest = np.where(waiting, int(NodeKind.SYNC), np.where(launches, int(NodeKind.LAUNCH_RETURN), int(NodeKind.HOST_CALL)))
    after = np.where(waiting, resumed, issued)
    parts = [
        (np.full(n, HOLE), begin, opened, opened > begin),
        (np.full(n, int(NodeKind.LAUNCH)), opened, issued, launches),
        (np.full(n, HOLE), issued, after, after > issued),
        (rest, after, finish, waiting | ~launches | (finish > after)),
    ]
    kind, start, end, keep = (np.stack([p[i] for p in parts], axis=1).ravel() for i in range(4))
    return Pieces(
        kind[keep].astype(np.int8),
        np.repeat(calls.thread[row], 4)[keep],
        start[keep],
        end[keep],
        np.repeat(row, 4)[keep].astype(np.int32),
    )


def _moved(thread: np.ndarray, begin: np.ndarray, finish: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Begin of pieces, moved ahead to the start of work that began before its launch (clock skew) as far as the previous piece allows."""
    floor = np.concatenate([[0], np.where(thread[1:] == thread[:-1], finish[:-1], 0)])
    return np.where(first < begin, np.maximum(first, np.minimum(floor, begin)), begin)


def _busy(rows: Rows, pieces: Pieces) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Union of calls and operators per thread."""
    thread = np.concatenate([pieces.thread, rows.ops.thread])
    start = np.concatenate([pieces.start, rows.ops.start])
    end = np.concatenate([pieces.end, rows.ops.end])
    order = np.lexsort((start, thread))
    return kernels.union(np.searchsorted(thread[order], np.arange(len(rows.threads) + 1)), start[order], end[order])


def _with_holes(pieces: Pieces, given: Handovers) -> Pieces:
    """Add the idle time of hand-overs as holes (a thread's first start has none: nothing precedes it)."""
    real = given.begin >= 0
    add = int(real.sum())
    kind = np.concatenate([pieces.kind, np.full(add, HOLE, dtype=np.int8)])
    thread = np.concatenate([pieces.thread, given.waiter[real]])
    start = np.concatenate([pieces.start, given.begin[real]])
    end = np.concatenate([pieces.end, given.end[real]])
    call = np.concatenate([pieces.call, np.full(add, -1, dtype=np.int32)])
    order = np.lexsort((np.arange(len(kind)), end, start, thread))
    return Pieces(kind[order], thread[order], start[order], end[order], call[order])


def _with_marks(pieces: Pieces, marks: Marks) -> tuple[Pieces, np.ndarray]:
    """Add step marks as pieces without length; those inside another piece stay beside the sequence."""
    count = len(marks.number)
    time = np.concatenate([marks.begin, marks.end])
    thread = np.concatenate([marks.thread, marks.thread])
    kind = np.repeat(np.array([NodeKind.STEP_BEGIN, NodeKind.STEP_END], dtype=np.int8), count)
    mark = np.tile(np.arange(count, dtype=np.int32), 2)
    beside = thread < 0
    for i in np.flatnonzero(~beside):
        mine = slice(*np.searchsorted(pieces.thread, [thread[i], thread[i] + 1]))
        beside[i] = bool(((pieces.start[mine] < time[i]) & (pieces.end[mine] > time[i])).any())
    add = ~beside
    first = np.where(kind == NodeKind.STEP_END, 0, 1)
    parts = [
        np.concatenate(pair)
        for pair in (
            (pieces.kind, kind[add]),
            (pieces.thread, thread[add]),
            (pieces.start, time[add]),
            (pieces.end, time[add]),
            (pieces.call, -2 - mark[add]),
            (np.arange(len(pieces.kind)) + 2, first[add]),
        )
    ]
    order = np.lexsort((parts[5], parts[3], parts[2], parts[1]))
    return Pieces(*(part[order] for part in parts[:5])), beside
