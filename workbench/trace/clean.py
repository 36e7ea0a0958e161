"""What is set aside or clipped before a graph is built. The trace itself keeps what was recorded; notes say what will change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import Note
from workbench.trace import kernels
from workbench.trace.part import frozen, group
from workbench.trace.trace import HOST_CALLS, Category, Trace


@dataclass(frozen=True)
class Faults:
    """Rows of a trace that a graph cannot take as recorded.

    Parameters
    ----------
    negative : int64 [N]
        Durations below zero: read as zero.
    overflow : int64 [N]
        Device work whose recorded end lies behind the end of a later launch on its stream. A stream runs one launch after the
        other, so the duration is an artefact (a counter that overflowed): it ends at the next start, ``clipped_ns`` long.
    duplicate : int64 [N]
        Second and later copies of one device row or call (same lane, time, name and correlation): set aside.
    overlaps : int
        Device work that starts before its predecessor on the stream has ended, the overflows left out: kept as recorded.
    """

    negative: np.ndarray
    overflow: np.ndarray
    clipped_ns: np.ndarray
    duplicate: np.ndarray
    overlaps: int
    longest_overlap_ns: int


def faults(trace: Trace) -> Faults:
    """Find what `clean` will change."""
    e = trace.events
    duplicate = _duplicates(trace)
    work = trace.is_device_work.copy()
    work[duplicate] = False
    rows = np.flatnonzero(work)
    rows = rows[np.lexsort((e.dur_ns[rows], e.start_ns[rows], e.track[rows]))]
    dur = np.maximum(e.dur_ns[rows], 0)
    clipped = kernels.overflows(e.track[rows], e.start_ns[rows], dur, e.correlation[rows])
    hit = clipped < dur
    count, longest = kernels.overlaps(e.track[rows], e.start_ns[rows], e.start_ns[rows] + clipped)
    return Faults(np.flatnonzero(e.dur_ns < 0), rows[hit], clipped[hit], duplicate, int(count), int(longest))


def clean(trace: Trace) -> Trace:
    """Return the trace as a graph takes it: no negative, overflown or repeated rows. Cleaning twice changes nothing."""
    found = faults(trace)
    e = trace.events
    notes = trace.notes + tuple(n for n in notes_of(trace, found) if n.code not in {known.code for known in trace.notes})
    if not (len(found.negative) or len(found.overflow) or len(found.duplicate)):
        return replace(trace, notes=notes)
    dur, category = e.dur_ns.copy(), e.category.copy()
    dur[found.negative] = 0
    dur[found.overflow] = found.clipped_ns
    category[found.duplicate] = Category.OTHER
    return replace(trace, events=replace(e, dur_ns=frozen(dur), category=frozen(category)), notes=notes)


def notes_of(trace: Trace, found: Faults) -> list[Note]:
    """Say what was found, one note a kind."""
    where, notes = ", ".join(trace.counts), []
    e = trace.events
    if len(found.negative):
        notes.append(Note("negative-duration", where, len(found.negative), "durations below zero count as zero"))
    if len(found.overflow):
        lost = int((e.dur_ns[found.overflow] - found.clipped_ns).sum())
        names = sorted(trace.strings[i] for i in np.unique(e.name[found.overflow]).tolist())[:3]
        text = f"recorded ends lie behind later launches of the same stream; {lost} ns are clipped before use: {', '.join(names)}"
        notes.append(Note("overflow-duration", where, len(found.overflow), text, "record again with a newer profiler"))
    if len(found.duplicate):
        notes.append(Note("duplicate-event", where, len(found.duplicate), "rows recorded twice are used once"))
    if found.overlaps:
        text = f"device work starts before its predecessor on the stream ends, by up to {found.longest_overlap_ns} ns; kept as recorded"
        notes.append(Note("same-stream-overlap", where, found.overlaps, text))
    return notes


def _duplicates(trace: Trace) -> np.ndarray:
    e = trace.events
    rows = np.flatnonzero((trace.is_device_work | np.isin(e.category, HOST_CALLS)) & (e.correlation >= 0))
    if not len(rows):
        return rows
    rows = rows[_repeated(2 * e.correlation[rows] + trace.is_device_work[rows])]
    number, first = group(e.start_ns[rows], e.correlation[rows], e.name[rows])
    if len(first) == len(rows):
        return rows[:0]
    rows = rows[(np.bincount(number) > 1)[number]]
    rows = rows[np.lexsort((rows, e.name[rows], e.dur_ns[rows], e.start_ns[rows], e.track[rows], e.correlation[rows]))]
    same = np.ones(len(rows), bool)
    same[0] = False
    for column in (e.correlation, e.track, e.start_ns, e.dur_ns, e.name):
        same[1:] &= column[rows[1:]] == column[rows[:-1]]
    graph_node = trace.integer_arg("graph node id")
    same[1:] &= graph_node[rows[1:]] == graph_node[rows[:-1]]
    return np.sort(rows[same])


def _repeated(number: np.ndarray) -> np.ndarray:
    """Bool: numbers that may occur more than once; all, where they are too scattered to be counted at once."""
    low = int(number.min())
    if int(number.max()) - low > 8 * len(number) + (1 << 20):
        return np.ones(len(number), bool)
    return np.bincount(number - low)[number - low] > 1
