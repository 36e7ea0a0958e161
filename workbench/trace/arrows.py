"""Arrows of Ascend timelines: which call launched a task (``HostToDevice``), which operator asked for it (``async_npu``).

A HostToDevice arrow begins inside the call of the runtime that launched the task; one call may launch several tasks. An async_npu
arrow begins at the start of the operator. Source: CANN profiling guide, trace_view; the handed timeline.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.trace import kernels
from workbench.trace.trace import DEVICE_WORK, HOST_CALLS, Category, Flows

LAUNCH = "HostToDevice"
ASK = ("async_npu", "async_task_npu")


def link_launches(columns: tuple[np.ndarray, ...], flows: Flows, strings: Sequence[str], correlation: np.ndarray) -> int:
    """Give a launching call and its tasks one correlation, where the tasks have none; return how many tasks.

    Parameters
    ----------
    columns : (start, dur, track, category)
        Of all events; int64 [ns], int64 [ns], int32, int8.
    flows : Flows
    strings : sequence of str
    correlation : int64 [E]
        Filled in place.
    """
    return _tie(columns, flows, strings, (LAUNCH,), HOST_CALLS, correlation)


def link_operators(columns: tuple[np.ndarray, ...], flows: Flows, strings: Sequence[str], external: np.ndarray) -> int:
    """Give an operator and the tasks it asked for one external id, where they have none; return how many tasks."""
    return _tie(columns, flows, strings, ASK, (Category.CPU_OP,), external)


def _tie(
    columns: tuple[np.ndarray, ...],
    flows: Flows,
    strings: Sequence[str],
    words: tuple[str, ...],
    hosts: tuple[Category, ...],
    number: np.ndarray,
) -> int:
    start, _, track, category = columns
    named = [i for i, text in enumerate(strings) if text in words]
    mine = np.isin(flows.category, named)
    begin, end = np.flatnonzero(mine & (flows.phase == ord("s"))), np.flatnonzero(mine & (flows.phase == ord("f")))
    tasks = np.flatnonzero(np.isin(category, DEVICE_WORK) & (number < 0))
    if not len(begin) or not len(end) or not len(tasks):
        return 0
    arrival = dict(zip(zip(flows.track[end].tolist(), flows.start_ns[end].tolist(), strict=True), end.tolist(), strict=True))
    departure = dict(zip(zip(flows.category[begin].tolist(), flows.id[begin].tolist(), strict=True), begin.tolist(), strict=True))
    pairs = []
    for task, place in zip(tasks.tolist(), zip(track[tasks].tolist(), start[tasks].tolist(), strict=True), strict=True):
        flow = arrival.get(place)
        origin = None if flow is None else departure.get((int(flows.category[flow]), int(flows.id[flow])))
        if origin is not None:
            pairs.append((task, origin))
    rows = np.flatnonzero(np.isin(category, hosts))
    where = covering(rows, columns, np.array([flows.track[o] for _, o in pairs], np.int32), np.array([flows.start_ns[o] for _, o in pairs]))
    linked = 0
    for (task, origin), host in zip(pairs, where.tolist(), strict=True):
        if host >= 0:
            if number[host] < 0:
                number[host] = abs(int(flows.id[origin]))
            number[task] = number[host]
            linked += 1
    return linked


def covering(rows: np.ndarray, columns: tuple[np.ndarray, ...], track: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return the innermost of some events that covers each point of a track, int64 (-1: none)."""
    start, dur, lane = (column[rows] for column in columns[:3])
    order = np.lexsort((-dur, start, lane))
    parent = kernels.nest(order, lane, start, dur, np.zeros(len(rows), bool))
    ordered, begin = lane[order], start[order]
    found = np.full(len(time), -1, np.int64)
    for one in np.unique(track).tolist():
        low, high = np.searchsorted(ordered, (one, one + 1)).tolist()
        mine = np.flatnonzero(track == one)
        at = low + np.searchsorted(begin[low:high], time[mine], "right") - 1
        found[mine[at >= low]] = order[at[at >= low]]
    end = start + np.maximum(dur, 0)
    while True:
        early = np.flatnonzero(found >= 0)
        early = early[end[found[early]] < time[early]]
        if not len(early):
            return np.where(found >= 0, rows[found], -1) if len(rows) else found
        found[early] = parent[found[early]]
