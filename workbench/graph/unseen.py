"""Waits between streams in recordings that hold no wait call at all: seen only in when work starts."""

from __future__ import annotations

import numpy as np

from workbench.graph.calls import Call
from workbench.graph.graph import EdgeKind
from workbench.graph.links import Links
from workbench.graph.rows import Rows
from workbench.graph.settle import DEEP_NS
from workbench.graph.waits import SyncRecords

NEXT_NS = 20_000
"""Work that starts this soon after the end of earlier work of another stream took its turn [ns]."""


def unseen_waits(rows: Rows, links: Links, records: SyncRecords) -> set[tuple[int, int, int]]:
    """Return (source, target, kind) of waits no call and no record tells of.

    Work that was launched long before, whose stream was free, and that starts right after earlier launched work of another stream of
    its device has ended waited for that. Only ranks that recorded no wait call and no wait record are asked.
    """
    dev, calls = rows.device, rows.calls
    told = set(rows.thread_rank[calls.thread[rows.role == Call.WAIT]].tolist())
    told |= {int(r) for r, what in zip(records.rank, records.what, strict=True) if "Wait Event" in what}
    rank, device = rows.lane_rank[dev.lane], rows.lane_device[dev.lane]
    out: set[tuple[int, int, int]] = set()
    for r in sorted(set(rank.tolist()) - told):
        for d in np.unique(device[rank == r]).tolist():
            mine = np.flatnonzero((rank == r) & (device == d) & (links.call >= 0))
            if len(np.unique(dev.lane[mine])) > 1:
                out |= _of_device(rows, links, mine)
    return out


def _of_device(rows: Rows, links: Links, mine: np.ndarray) -> set[tuple[int, int, int]]:
    dev = rows.device
    out: set[tuple[int, int, int]] = set()
    before = np.full(len(dev.lane), -(2**62))
    before[1:] = np.where(dev.lane[1:] == dev.lane[:-1], dev.end[:-1], before[1:])
    free = np.maximum(before[mine], rows.calls.end[links.call[mine]])
    by_end = mine[np.argsort(dev.end[mine], kind="stable")]
    ends = dev.end[by_end]
    for t in mine[dev.start[mine] - free > DEEP_NS].tolist():
        low, high = np.searchsorted(ends, [dev.start[t] - NEXT_NS, dev.start[t]], side="right")
        found = [
            s
            for s in by_end[low:high].tolist()
            if dev.lane[s] != dev.lane[t] and links.call[s] != links.call[t] and links.launched_at[s] <= links.launched_at[t]
        ]
        if found:
            out.add((found[-1], t, int(EdgeKind.EVENT_INFERRED)))
    return out
