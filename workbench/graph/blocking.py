"""Launch calls that take longer than issuing: those that return only when their work is done, and those a full queue held back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.graph.calls import Call
from workbench.graph.links import NEVER, Links
from workbench.graph.rows import Rows
from workbench.trace.trace import Trace

FEWEST = 8
"""Calls of one name needed to tell that they block."""
SPREAD = 0.25
"""Calls block when the spread of (call end - work end) is below this share of the spread of the work's own length."""
NOISE_NS = 100_000
"""Host and device clocks are trusted to agree this closely where a call is known to wait for its work [ns]."""
DEEP = 4
"""A launch is only taken for held back when at least this many launches are outstanding on its stream (real queues hold about 1 000)."""
PROMPT_NS = 50_000
"""... and when it returns this soon after the work that frees a slot has ended [ns]."""
SLOW = 4.0
"""... and when it lasts at least this many times a quick launch of its thread."""
QUICK = 10.0
"""A quick launch: this percentile of all, since most may be held back."""
DEPTH_SPREAD = 0.02
"""Held-back launches agree on the depth of the queue within this share."""


def blocking_calls(trace: Trace, rows: Rows, links: Links) -> np.ndarray:
    """Bool [calls]: calls that return only when the work they launched is done.

    Synchronous copy calls; asynchronous ones between the device and pageable host memory, which the driver stages; and
    launches of one name that keep ending with their work, however long it is (blocking launches).
    """
    pageable = np.array(["Pageable" in s for s in trace.strings], dtype=bool)
    work, count = links.last_row, len(trace.strings)
    if not len(rows.device.event) or not count:
        return np.zeros(len(work), dtype=bool)
    name = trace.events.name[rows.device.event[work]]
    out = (work >= 0) & ((rows.role == Call.COPY_SYNC) | ((rows.role == Call.COPY) & pageable[name]))
    asked = np.flatnonzero((work >= 0) & ~out & (rows.role != Call.COPY))
    group = rows.calls.thread[asked].astype(np.int64) * count + trace.events.name[rows.calls.event[asked]]
    for key in np.unique(group):
        mine = asked[group == key]
        if len(mine) >= FEWEST and _blocks(rows, links, mine):
            out[mine] = True
    return out


def _blocks(rows: Rows, links: Links, mine: np.ndarray) -> bool:
    """Whether calls keep ending with the work they launched."""
    after = rows.calls.end[mine] - links.last[mine]
    length = links.last[mine] - links.first[mine]
    inside = np.mean((after >= -NOISE_NS) & (links.first[mine] < rows.calls.end[mine]))
    wide = np.subtract(*np.percentile(length, [90, 10]))
    return bool(inside >= 0.9 and np.subtract(*np.percentile(after, [90, 10])) < SPREAD * wide)


def issued_by(trace: Trace, rows: Rows, links: Links, blocking: np.ndarray) -> np.ndarray:
    """Int64 [calls] [ns]: moment by which a launch call has issued its work, whatever the work then waits for (`NEVER`: no limit).

    A blocking call on a busy stream waits inside the call: its issue part is that of the same call on an idle stream,
    or a usual launch of its thread.
    """
    calls, dev = rows.calls, rows.device
    out = np.full(len(calls.start), NEVER)
    mine = np.flatnonzero(blocking & (links.first < NEVER))
    if not len(mine):
        return out
    first_row = np.full(len(calls.start), -1)
    linked = np.flatnonzero(links.call >= 0)[::-1]
    first_row[links.call[linked]] = linked
    row = first_row[mine]
    before = np.where((row > 0) & (dev.lane[row - 1] == dev.lane[row]), dev.end[row - 1], 0)
    busy = before > calls.start[mine]
    length = (calls.end - calls.start).astype(np.float64)
    usual = _typical(rows, np.flatnonzero((links.last_row >= 0) & ~blocking), length)[calls.thread[mine]]
    group = calls.thread[mine].astype(np.int64) * len(trace.strings) + trace.events.name[calls.event[mine]]
    for key in np.unique(group[busy]):
        idle = mine[(group == key) & ~busy]
        if len(idle):
            usual[group == key] = np.median(links.first[idle] - calls.start[idle])
    out[mine[busy]] = calls.start[mine[busy]] + np.maximum(usual[busy], 0).astype(np.int64)
    return out


@dataclass(frozen=True)
class Queue:
    """Launch queues of finite depth.

    ``freed`` is the device row whose end frees the slot a call needs (-1: no limit is known); ``held`` marks the calls that
    had to wait for it in the recording.
    """

    freed: np.ndarray  # int32 [calls]
    held: np.ndarray  # bool [calls]
    issued_by: np.ndarray  # int64 [calls] [ns], see `issued_by`


def launch_queue(trace: Trace, rows: Rows, links: Links, blocking: np.ndarray) -> Queue:
    """Find queue depths from held-back launches, and the slot every launch of such a stream needs."""
    dev, calls = rows.device, rows.calls
    freed = np.full(len(calls.start), -1, dtype=np.int32)
    held = np.zeros(len(calls.start), dtype=bool)
    single = np.bincount(links.call[links.call >= 0], minlength=len(calls.start)) == 1
    length = (calls.end - calls.start).astype(np.float64)
    typical = _typical(rows, np.flatnonzero(single & ~blocking), length)
    for lane in range(len(rows.lanes)):
        part = np.arange(dev.ptr[lane], dev.ptr[lane + 1])
        part = part[links.call[part] >= 0]
        part = part[np.argsort(calls.start[links.call[part]], kind="stable")]
        call = links.call[part]
        if len(part) <= DEEP:
            continue
        by_end = np.sort(dev.end[part])
        outstanding = np.arange(len(part)) - np.searchsorted(by_end, calls.start[call], "right")
        slot = np.searchsorted(by_end, calls.end[call], "right") - 1
        full = (outstanding >= DEEP) & (length[call] > SLOW * typical[calls.thread[call]]) & single[call] & ~blocking[call] & (slot >= 0)
        full[full] &= (by_end[slot[full]] > calls.start[call[full]]) & (calls.end[call[full]] - by_end[slot[full]] < PROMPT_NS)
        depth = np.arange(len(part)) - slot
        usual = np.median(depth[full]) if full.any() else 0
        agree = full & (np.abs(depth - usual) <= DEPTH_SPREAD * usual + 1)
        if agree.sum() < FEWEST or agree.sum() < 0.8 * full.sum():
            continue
        row_by_end = part[np.argsort(dev.end[part], kind="stable")]
        held[call[agree]] = True
        deep = np.arange(len(part)) >= usual
        freed[call[deep]] = row_by_end[np.arange(len(part))[deep] - int(usual)]
        freed[call[agree]] = row_by_end[slot[agree]]
    return Queue(freed, held, issued_by(trace, rows, links, blocking))


def _typical(rows: Rows, launches: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Float64 [T]: a launch of each thread that nothing holds back [ns]."""
    out = np.ones(len(rows.threads))
    launches = launches[rows.role[launches] == Call.LAUNCH]
    for t in np.unique(rows.calls.thread[launches]):
        out[t] = max(1.0, float(np.percentile(length[launches[rows.calls.thread[launches] == t]], QUICK)))
    return out
