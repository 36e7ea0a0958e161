"""Launch call -> device work, by correlation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Note
from workbench.graph.rows import Rows

NEVER = np.int64(2**61)


@dataclass(frozen=True)
class Links:
    """Who launched what.

    ``first`` and ``last`` are the first start and last end of the device work a call launched [ns] (`NEVER` and -1 when none).
    ``launched_at`` is when each device row was launched: its call's start, or for orphans that of the stream predecessor;
    it never falls along a lane.
    """

    call: np.ndarray  # int32 [D], row in Rows.calls (-1: orphan)
    first: np.ndarray  # int64 [calls] [ns]
    last: np.ndarray  # int64 [calls] [ns]
    last_row: np.ndarray  # int32 [calls], device row that ends last (-1: none)
    launched_at: np.ndarray  # int64 [D] [ns]
    notes: tuple[Note, ...]


def link(rows: Rows, rank_of_call: np.ndarray, correlation: np.ndarray) -> Links:
    """Connect device rows with the calls that launched them.

    Parameters
    ----------
    rows : Rows
    rank_of_call : int32 [calls]
    correlation : int64 [calls]
        -1 where a call has none.
    """
    dev, calls = rows.device, rows.calls
    call = _match(rows, rank_of_call, correlation)
    linked = np.flatnonzero(call >= 0)
    first = np.full(len(calls.start), NEVER)
    np.minimum.at(first, call[linked], dev.start[linked])
    last_row = np.full(len(calls.start), -1, dtype=np.int32)
    by_end = linked[np.argsort(dev.end[linked], kind="stable")]
    last_row[call[by_end]] = by_end
    last = np.where(last_row >= 0, dev.end[last_row] if len(dev.end) else 0, -1)
    at = np.where(call >= 0, calls.start[call] if len(calls.start) else 0, -1)
    for lane in range(len(rows.lanes)):
        part = slice(dev.ptr[lane], dev.ptr[lane + 1])
        at[part] = np.maximum.accumulate(np.minimum(at[part], dev.start[part]))
    orphans = int((call < 0).sum())
    text = "device work without a recorded launch: it follows its stream and the latest host activity"
    notes = (Note("orphan-kernel", "device streams", orphans, text),) if orphans else ()
    return Links(call, first, last, last_row, at, notes)


def _match(rows: Rows, rank_of_call: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Innermost call of the same rank and correlation that starts last before the work does; the earliest one if all start later."""
    dev, calls = rows.device, rows.calls
    out = np.full(len(dev.start), -1, dtype=np.int32)
    have = np.flatnonzero(correlation >= 0)
    want = np.flatnonzero(dev.correlation >= 0)
    if not len(have) or not len(want):
        return out
    length = calls.end[have] - calls.start[have]
    order = have[np.lexsort((-length, calls.start[have], correlation[have], rank_of_call[have]))]
    _, dense = np.unique(np.concatenate([correlation[order], dev.correlation[want]]), return_inverse=True)
    width = int(dense.max()) + 1
    key = rank_of_call[order].astype(np.int64) * width + dense[: len(order)]
    wanted = rows.lane_rank[dev.lane[want]].astype(np.int64) * width + dense[len(order) :]
    low, high = np.searchsorted(key, wanted, "left"), np.searchsorted(key, wanted, "right")
    for i in np.flatnonzero(high - low > 1):
        group = order[low[i] : high[i]]
        early = np.flatnonzero(calls.start[group] <= dev.start[want[i]])
        low[i] += early[-1] if len(early) else 0
    found = high > low
    out[want[found]] = order[low[found]]
    return out
