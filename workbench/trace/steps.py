"""Profiler step marks: found on the host, once each, per rank."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from workbench.errors import Note
from workbench.trace.part import frozen, group
from workbench.trace.trace import HOST_CALLS, Category, Events, Steps, Trace, Track

STEP_NAME = re.compile(r"^ProfilerStep\s*#\s*(\d{1,18})\b")
LOST = 0.01
"""Share of launches without device work from which a step is incomplete."""
SOURCES = (Category.ANNOTATION, Category.CPU_OP, Category.OTHER)  # the first category that has marks is the one used


def steps_of(events: Events, strings: Sequence[str], tracks: Sequence[Track]) -> Steps:
    """Collect the step marks of all ranks.

    A mark repeated for the same step in an overlapping window (another thread) counts once: the earliest, then the longest.
    The projection of a mark on the device never counts. 2021 traces record the marks as operators.
    """
    number = {i: int(m[1]) for i, text in enumerate(strings) if (m := STEP_NAME.match(text))}
    host = np.array([t.kind != "device" for t in tracks], bool)
    rank = np.array([t.rank for t in tracks], np.int64)
    rows = np.flatnonzero(np.isin(events.name, list(number))) if number else np.empty(0, np.int64)
    rows = rows[host[events.track[rows]]] if len(rows) else rows
    found: list[int] = []
    for r in sorted(set(rank.tolist())) if len(rows) else []:
        mine = rows[rank[events.track[rows]] == r]
        source = next((c for c in SOURCES if (events.category[mine] == c).any()), None)
        found += _once(mine[events.category[mine] == source], events, number) if source is not None else []
    found.sort(key=lambda i: (int(events.start_ns[i]), int(rank[events.track[i]]), i))
    at = np.array(found, np.int32)
    numbers = np.array([number[int(events.name[i])] for i in found], np.int64)
    ranks = rank[events.track[at]].astype(np.int32) if found else np.empty(0, np.int32)
    return Steps(*map(frozen, (numbers, events.start_ns[at], events.dur_ns[at], at, ranks)))


def _once(rows: np.ndarray, events: Events, number: dict[int, int]) -> list[int]:
    kept: list[int] = []
    until: dict[int, int] = {}
    for i in sorted(rows.tolist(), key=lambda i: (events.start_ns[i], -events.dur_ns[i], i)):
        step, start = number[int(events.name[i])], int(events.start_ns[i])
        stop = start + max(int(events.dur_ns[i]), 0)
        if step not in until or start >= until[step]:
            kept.append(i)
        until[step] = max(stop, until.get(step, stop))
    return kept


def complete_steps(trace: Trace) -> np.ndarray:
    """Return which steps have their device work, bool [S].

    A recording that stops at an event cap keeps the launches of its last steps but loses their kernels. A step is incomplete if
    its share of launches with device work is more than 1 % below that of the best step of its rank (some launches never have
    any). Launches are calls of a name that starts device work anywhere in the trace.
    """
    e, steps = trace.events, trace.steps
    rank_of = np.array([t.rank for t in trace.tracks], np.int64)
    calls = np.flatnonzero(np.isin(e.category, HOST_CALLS) & (e.correlation >= 0))
    work = np.flatnonzero(trace.is_device_work & (e.correlation >= 0))
    both = np.concatenate((work, calls))
    if not len(steps) or not len(calls) or not len(work):
        return np.ones(len(steps), bool)
    member, first = group(rank_of[e.track[both]], e.correlation[both])
    has_work = np.bincount(member[: len(work)], minlength=len(first)) > 0
    done = has_work[member[len(work) :]]
    launches = np.isin(e.name[calls], np.unique(e.name[calls[done]]))
    calls, done = calls[launches], done[launches]
    share, best = np.ones(len(steps)), np.ones(len(steps))
    for rank in np.unique(steps.rank).tolist():
        mine, here = steps.rank == rank, rank_of[e.track[calls]] == rank
        order = np.argsort(e.start_ns[calls[here]], kind="stable")
        start, ended = e.start_ns[calls[here]][order], np.concatenate(([0], np.cumsum(done[here][order])))
        low, high = (np.searchsorted(start, steps.start_ns[mine] + length) for length in (0, steps.dur_ns[mine]))
        high = np.maximum(low, high)
        share[mine] = np.where(high > low, (ended[high] - ended[low]) / np.maximum(high - low, 1), 1.0)
        best[mine] = share[mine].max()
    return share >= (1.0 - LOST) * best


def incomplete_notes(trace: Trace) -> list[Note]:
    """Name the steps whose device work is missing."""
    missing = np.flatnonzero(~complete_steps(trace))
    if not len(missing):
        return []
    names = ", ".join(str(n) for n in trace.steps.number[missing])
    text = f"launches of step {names} have no device work: the recording lost it; leave these steps out of averages"
    return [Note("incomplete-step", ", ".join(trace.counts), len(missing), text, "record fewer steps, or raise the profiler's event cap")]
