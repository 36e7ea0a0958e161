"""Profiler step marks: found on the host, once each, per rank."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from workbench.trace.part import frozen
from workbench.trace.trace import Category, Events, Steps, Track

STEP_NAME = re.compile(r"^ProfilerStep\s*#\s*(\d{1,18})\b")
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
