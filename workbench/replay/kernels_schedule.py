"""Loops over the operations of a pipeline schedule in time. Seconds throughout.

Operations are rows, stage after stage (``ptr``), each stage in its order. An operation waits for the one before it on its stage and for
at most one other row, ``source``. ``link`` of a row is the directed link its result is sent over (-1: it is not sent).
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def topological(ptr: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (rows in an order in which they may run, how many of them may run); fewer than all: the others wait for each other."""
    n = len(source)
    order = np.empty(n, np.int32)
    done = np.zeros(n, np.bool_)
    next_row = ptr[:-1].copy()
    count = 0
    moved = True
    while moved and count < n:
        moved = False
        for s in range(len(next_row)):
            i = next_row[s]
            while i < ptr[s + 1] and (source[i] < 0 or done[source[i]]):
                done[i] = True
                order[count] = i
                count += 1
                i += 1
                moved = True
            next_row[s] = i
    return order, count


@njit(cache=True, nogil=True)
def run(
    order: np.ndarray,
    stage: np.ndarray,
    source: np.ndarray,
    link: np.ndarray,
    op_s: np.ndarray,
    latency_s: np.ndarray,
    occupancy_s: np.ndarray,
    blocking: bool,
    stages: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Run a schedule once.

    Parameters
    ----------
    latency_s, occupancy_s : float64 [links]
        A message leaves when the link is free, keeps it for the occupancy and arrives the latency later.
    blocking : bool
        Whether the stage that sends does nothing else until its message has arrived.

    Returns
    -------
    start, finish, arrival : float64 [N]
        ``arrival``: when the result is where it is needed.
    waits : bool [N]
        Whether the message, not the stage, set the start.
    behind : int32 [N]
        The row whose message held up the message of this one (-1: none).
    """
    n = len(op_s)
    start, finish, arrival = np.empty(n), np.empty(n), np.empty(n)
    waits = np.zeros(n, np.bool_)
    behind = np.full(n, -1, np.int32)
    free = np.zeros(stages)
    link_free = np.zeros(len(latency_s))
    last = np.full(len(latency_s), -1, np.int32)
    for k in range(n):
        i = order[k]
        s = stage[i]
        begin = free[s]
        u = source[i]
        if u >= 0 and arrival[u] > begin:
            begin = arrival[u]
            waits[i] = True
        end = begin + op_s[i]
        start[i], finish[i], arrival[i], free[s] = begin, end, end, end
        j = link[i]
        if j >= 0:
            leaves = end
            if link_free[j] > leaves:
                leaves = link_free[j]
                behind[i] = last[j]
            link_free[j] = leaves + occupancy_s[j]
            last[j] = i
            arrival[i] = link_free[j] + latency_s[j]
            if blocking:
                free[s] = arrival[i]
    return start, finish, arrival, waits, behind


@njit(cache=True, nogil=True)
def critical_path(
    first: np.ndarray, source: np.ndarray, waits: np.ndarray, behind: np.ndarray, start: np.ndarray, finish: np.ndarray, arrival: np.ndarray
) -> tuple[np.ndarray, float]:
    """Mark the chain of operations that sets the end; return it and the seconds of it that messages take.

    ``first[i]``: whether row i is the first of its stage.
    """
    on = np.zeros(len(finish), np.bool_)
    message = 0.0
    i = np.int64(np.argmax(finish)) if len(finish) else -1
    while i >= 0:
        on[i] = True
        if waits[i]:
            u = np.int64(source[i])
            message += arrival[u] - finish[u]
            while behind[u] >= 0:
                message -= finish[behind[u]]  # the path goes on at an earlier end: what lies between is the message's
                message += finish[u]
                u = np.int64(behind[u])
            i = u
        elif first[i]:
            i = -1
        else:
            message += start[i] - finish[i - 1]
            i -= 1
    return on, message


@njit(cache=True, nogil=True, error_model="numpy")
def block(
    order: np.ndarray,
    stage: np.ndarray,
    source: np.ndarray,
    link: np.ndarray,
    row: np.ndarray,
    value: np.ndarray,
    latency_s: np.ndarray,
    occupancy_s: np.ndarray,
    blocking: bool,
    begin: np.ndarray,
    end: np.ndarray,
) -> None:
    """Run C scenarios side by side.

    Parameters
    ----------
    row : int32 [N]
        Row of ``value`` with the time of every operation.
    value : float64 [R, C]
    latency_s, occupancy_s : float64 [links, C]
    begin, end : float64 [p, C]
        Out: first start and last finish of every stage.
    """
    n, lanes = len(row), value.shape[1]
    arrival = np.empty((n, lanes))
    free = np.zeros(end.shape)
    link_free = np.zeros(latency_s.shape)
    begin[:] = np.inf
    for k in range(n):
        i = order[k]
        s, u, j, r = stage[i], source[i], link[i], row[i]
        for c in range(lanes):
            t = free[s, c]
            if u >= 0 and arrival[u, c] > t:
                t = arrival[u, c]
            if t < begin[s, c]:
                begin[s, c] = t
            t += value[r, c]
            end[s, c] = t
            free[s, c] = t
            if j >= 0:
                t = max(t, link_free[j, c]) + occupancy_s[j, c]
                link_free[j, c] = t
                t += latency_s[j, c]
                if blocking:
                    free[s, c] = t
            arrival[i, c] = t
