"""Streams that wait for events of other streams, from synchronisation records, else inferred from the order of calls and flagged."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from workbench.errors import Note
from workbench.graph.calls import Call
from workbench.graph.graph import EdgeKind
from workbench.graph.links import NEVER, Links
from workbench.graph.rows import Rows
from workbench.graph.unseen import unseen_waits
from workbench.graph.waits import Launched, SyncRecords, by_correlation

WALK_BACK = 16
"""A wait without a record may refer to one of this many latest event records on its thread."""
SOON_NS = 1_000_000
"""A thread that launches this soon after its wait call launches what waits; later, the next launch of any thread does [ns]."""
CLOSE_NS = 100_000
"""Work that starts this soon after other work ended may have waited for it [ns]."""


@dataclass(frozen=True)
class EventEdges:
    """Device rows that wait for device rows of other streams."""

    source: np.ndarray  # int32 [W]
    target: np.ndarray  # int32 [W]
    kind: np.ndarray  # int8 [W], EdgeKind.EVENT or EVENT_INFERRED


def event_edges(rows: Rows, links: Links, records: SyncRecords, correlation: np.ndarray) -> tuple[EventEdges, list[Note]]:
    """Find which device work waits for which, across streams: one edge per wait, two waits on one kernel both count."""
    launched = Launched(rows, links)
    call_rank = rows.thread_rank[rows.calls.thread]
    record_call = by_correlation(call_rank, correlation, rows.role == Call.RECORD)
    wait_call = by_correlation(call_rank, correlation, rows.role == Call.WAIT)
    out: set[tuple[int, int, int]] = set()
    told: set[int] = set()
    for k in [k for k, what in enumerate(records.what) if "Wait Event" in what]:
        rank = int(records.rank[k])
        wait = wait_call.get((rank, int(records.correlation[k])), -1)
        made = record_call.get((rank, int(records.record[k])), -1)
        told.add(wait)
        moment = int(rows.calls.start[wait]) if wait >= 0 else int(records.at[k])
        recorded = int(rows.calls.start[made]) if made >= 0 else moment
        kind = int(EdgeKind.EVENT if made >= 0 else EdgeKind.EVENT_INFERRED)
        targets = [row for row in (launched.next(lane, moment) for lane in launched.lanes(rank, int(records.stream[k]))) if row >= 0]
        sources = [row for row in (launched.last(lane, recorded) for lane in launched.lanes(rank, int(records.wait_stream[k]))) if row >= 0]
        for s, t in itertools.product(sources, targets):
            done = s if made >= 0 else launched.ended(s, int(rows.device.start[t]))
            if done >= 0 and rows.device.lane[s] != rows.device.lane[t]:
                out.add((done, t, kind))
    out.update(_inferred(rows, links, told))
    unrecorded = _unrecorded(rows, links, launched, told)
    unseen = unseen_waits(rows, links, records)
    out.update(unrecorded | unseen)
    inferred = sum(kind == EdgeKind.EVENT_INFERRED for *_, kind in out) - len(unrecorded | unseen)
    table = np.array(sorted(out), dtype=np.int64).reshape(-1, 3)
    notes = []
    if inferred:
        notes.append(
            Note("event-inferred", "device streams", inferred, "waits between streams without a record: inferred from the order of calls")
        )
    if unrecorded:
        text = "waits between streams for events whose recording was not traced: taken to wait for the work another stream was given last"
        notes.append(Note("event-unrecorded", "device streams", len(unrecorded), text))
    if unseen:
        text = "waits between streams no call tells of: work launched long before starts right after work of another stream"
        notes.append(Note("event-unseen", "device streams", len(unseen), text))
    return EventEdges(table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2].astype(np.int8)), notes


def _inferred(rows: Rows, links: Links, told: set[int]) -> set[tuple[int, int, int]]:
    """Edges of wait calls no record explains: from the work launched last before a record call to that launched next after the wait call.

    The record is the latest on the thread whose work runs on another stream than the waiting one, had ended when that started, and is not
    already taken by another wait of the same work.
    """
    calls, dev = rows.calls, rows.device
    out: set[tuple[int, int, int]] = set()
    linked = np.flatnonzero(links.call >= 0)
    linked = linked[np.lexsort((dev.start[linked], calls.start[links.call[linked]]))]
    rank = rows.lane_rank[dev.lane[linked]]
    for t in range(len(rows.threads)):
        low, high = int(calls.ptr[t]), int(calls.ptr[t + 1])
        role = rows.role[low:high]
        waits = [w for w in (np.flatnonzero(role == Call.WAIT) + low).tolist() if w not in told]
        made = np.flatnonzero(role == Call.RECORD) + low
        anyone = linked[rank == rows.thread_rank[t]]
        mine = anyone[(links.call[anyone] >= low) & (links.call[anyone] < high)]
        if not waits or not len(made) or not len(mine):
            continue
        own, all_at, launch = calls.start[links.call[mine]], calls.start[links.call[anyone]], links.call[mine]
        targets = _next_launched(mine, own, anyone, all_at, calls.start[waits])
        for w, target in zip(waits, targets.tolist(), strict=True):
            for r in made[: int(np.searchsorted(made, w))][::-1][:WALK_BACK].tolist() if target >= 0 else ():
                j = int(np.searchsorted(launch, r, "left")) - 1
                source = int(mine[j]) if j >= 0 else -1
                fits = source >= 0 and dev.lane[source] != dev.lane[target] and dev.end[source] <= dev.start[target]
                edge = (source, target, int(EdgeKind.EVENT_INFERRED))
                if fits and edge not in out:
                    out.add(edge)
                    break
    return out


def _next_launched(mine: np.ndarray, own: np.ndarray, anyone: np.ndarray, all_at: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Device row launched next after each moment: by the thread itself if it does so soon, else by whichever thread does (-1: none)."""
    k, j = np.searchsorted(own, moment, "right"), np.searchsorted(all_at, moment, "right")
    soon = np.append(own, NEVER)[k] - moment <= SOON_NS
    return np.where(soon, np.append(mine, -1)[k], np.append(anyone, -1)[j])


def _unrecorded(rows: Rows, links: Links, launched: Launched, told: set[int]) -> set[tuple[int, int, int]]:
    """Edges of wait calls in recordings that hold no event record calls at all.

    The waiting work waits for the work another stream was given last before the call: the one that ended last, if that was shortly
    before the waiting work started or there is only one other stream.
    """
    calls, dev = rows.calls, rows.device
    call_rank = rows.thread_rank[calls.thread]
    out: set[tuple[int, int, int]] = set()
    linked = np.flatnonzero(links.call >= 0)
    linked = linked[np.lexsort((dev.start[linked], calls.start[links.call[linked]]))]
    for rank in np.unique(call_rank).tolist():
        mine = call_rank == rank
        waits = np.array([w for w in np.flatnonzero(mine & (rows.role == Call.WAIT)).tolist() if w not in told], dtype=np.int64)
        anyone = linked[rows.lane_rank[dev.lane[linked]] == rank]
        if not len(waits) or not len(anyone) or (mine & (rows.role == Call.RECORD)).any():
            continue
        all_at, thread = calls.start[links.call[anyone]], calls.thread[links.call[anyone]]
        target = np.full(len(waits), -1, dtype=np.int64)
        for t in np.unique(calls.thread[waits]).tolist():
            own, asked = thread == t, calls.thread[waits] == t
            target[asked] = _next_launched(anyone[own], all_at[own], anyone, all_at, calls.start[waits[asked]])
        waits, target = waits[target >= 0], target[target >= 0]
        source, candidates = _given_last(rows, launched, rank, calls.start[waits], target)
        sure = (source >= 0) & ((candidates == 1) | (dev.start[target] - dev.end[source] <= CLOSE_NS))
        out.update((s, t, int(EdgeKind.EVENT_INFERRED)) for s, t in zip(source[sure].tolist(), target[sure].tolist(), strict=True))
    return out


def _given_last(rows: Rows, launched: Launched, rank: int, moment: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the work other streams were given last before each moment and that had ended when its target starts: the last to end, how many."""
    dev = rows.device
    source, candidates = np.full(len(target), -1, dtype=np.int64), np.zeros(len(target), dtype=np.int64)
    for lane in launched.lanes(rank):  # rows of later lanes are larger: the last of several that end at once
        row = launched.last_of(lane, moment)
        ended = (row >= 0) & (dev.lane[target] != lane) & (dev.end[row] <= dev.start[target])
        source = np.where(ended & ((source < 0) | (dev.end[row] >= dev.end[source])), row, source)
        candidates += ended
    return source, candidates
