"""Sweeps over sorted intervals and the topological order: all per-event loops of graph building.

Times are int64 ns. ``ptr`` splits rows by thread: rows ``ptr[t]:ptr[t + 1]`` belong to thread t.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def flatten(ptr: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row, begin, finish) of the self-time pieces of nested intervals, in time order per thread.

    Rows of a thread are sorted by start, then longer first. Every row gets at least one piece; an interval that
    crosses its enclosing one keeps its own end and the encloser loses what it overlaps.
    """
    n = len(start)
    row = np.empty(2 * n + 1, np.int32)
    begin = np.empty(2 * n + 1, np.int64)
    finish = np.empty(2 * n + 1, np.int64)
    stack = np.empty(n + 1, np.int32)
    seen = np.zeros(n, np.bool_)
    out = 0
    for t in range(len(ptr) - 1):
        top = 0
        cursor = np.int64(-(2**62))
        for i in range(ptr[t], ptr[t + 1] + 1):
            now = start[i] if i < ptr[t + 1] else np.int64(2**62)
            while top > 0 and end[stack[top - 1]] <= now:
                last = stack[top - 1]
                if end[last] > cursor or not seen[last]:
                    row[out], begin[out], finish[out] = last, cursor, max(cursor, end[last])
                    cursor = finish[out]
                    out += 1
                top -= 1
            if i == ptr[t + 1]:
                break
            if top > 0:
                last = stack[top - 1]
                if now > cursor or not seen[last]:
                    row[out], begin[out], finish[out] = last, cursor, max(cursor, now)
                    cursor = finish[out]
                    seen[last] = True
                    out += 1
            cursor = max(cursor, now)
            stack[top] = i
            top += 1
    return row[:out], begin[:out], finish[:out]


@njit(cache=True, nogil=True)
def outermost(ptr: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row, begin, finish) of the intervals no other encloses; a crossing one is clipped at its predecessor's end."""
    n = len(start)
    row = np.empty(n, np.int32)
    begin = np.empty(n, np.int64)
    finish = np.empty(n, np.int64)
    out = 0
    for t in range(len(ptr) - 1):
        reach = np.int64(-(2**62))
        for i in range(ptr[t], ptr[t + 1]):
            if end[i] > reach and end[i] > start[i]:
                row[out], begin[out], finish[out] = i, max(start[i], reach), end[i]
                reach = end[i]
                out += 1
    return row[:out], begin[:out], finish[:out]


@njit(cache=True, nogil=True)
def union(ptr: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (ptr, begin, finish) of the union of intervals sorted by start, per thread."""
    begin = np.empty(len(start), np.int64)
    finish = np.empty(len(start), np.int64)
    bounds = np.zeros(len(ptr), np.int64)
    out = 0
    for t in range(len(ptr) - 1):
        first = out
        for i in range(ptr[t], ptr[t + 1]):
            if out > first and start[i] <= finish[out - 1]:
                finish[out - 1] = max(finish[out - 1], end[i])
            else:
                begin[out], finish[out] = start[i], end[i]
                out += 1
        bounds[t + 1] = out
    return bounds, begin[:out], finish[:out]


@njit(cache=True, nogil=True)
def weave(
    piece_ptr: np.ndarray,
    piece_start: np.ndarray,
    piece_end: np.ndarray,
    work_ptr: np.ndarray,
    work_start: np.ndarray,
    work_end: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lay pieces of calls, operators between them, and gaps into one gapless sequence per thread.

    Returns
    -------
    ptr : int64 [T + 1]
    source : int32 [N]
        Row of the piece, or ``-2 - row`` of the operator, or -1 for a gap.
    start, end : int64 [N] [ns]
    kind : int8 [N]
        0 piece, 1 operator, 2 gap.
    """
    room = 2 * len(piece_start) + 2 * len(work_start) + 2 * len(low) + 2
    room += len(piece_start) + len(work_start)
    source = np.empty(room, np.int32)
    start = np.empty(room, np.int64)
    end = np.empty(room, np.int64)
    kind = np.empty(room, np.int8)
    ptr = np.zeros(len(piece_ptr), np.int64)
    out = 0
    for t in range(len(piece_ptr) - 1):
        cursor = low[t]
        w = work_ptr[t]
        for p in range(piece_ptr[t], piece_ptr[t + 1] + 1):
            limit = piece_start[p] if p < piece_ptr[t + 1] else high[t]
            while cursor < limit:
                while w < work_ptr[t + 1] and work_end[w] <= cursor:
                    w += 1
                inside = w < work_ptr[t + 1] and work_start[w] < limit
                if inside and work_start[w] <= cursor:
                    source[out], kind[out], stop = -2 - w, 1, min(work_end[w], limit)
                else:
                    source[out], kind[out], stop = -1, 2, work_start[w] if inside else limit
                start[out], end[out] = cursor, stop
                cursor = stop
                out += 1
            if p < piece_ptr[t + 1]:
                source[out], kind[out] = p, 0
                start[out], end[out] = max(cursor, piece_start[p]), max(cursor, piece_end[p])
                cursor = end[out]
                out += 1
        ptr[t + 1] = out
    return ptr, source[:out], start[:out], end[:out], kind[:out]


@njit(cache=True, nogil=True)
def outlasting(lane: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return, for each row, the earlier row of its lane that ends last (-1: none)."""
    out = np.full(len(lane), -1, np.int64)
    last = -1
    for i in range(len(lane)):
        if i > 0 and lane[i] == lane[i - 1]:
            last = i - 1 if last < 0 or end[i - 1] >= end[last] else last
        else:
            last = -1
        out[i] = last
    return out


@njit(cache=True, nogil=True)
def latest_ended(low: np.ndarray, high: np.ndarray, end: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return, of the rows ``low[i]`` to ``high[i] - 1``, the last whose end is not after ``by[i]`` (-1: none)."""
    out = np.full(len(high), -1, np.int64)
    for i in range(len(high)):
        row = high[i] - 1
        while row >= low[i] and end[row] > by[i]:
            row -= 1
        if row >= low[i]:
            out[i] = row
    return out


@njit(cache=True, nogil=True)
def topological(order: np.ndarray, ptr: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (sequence, keep): nodes in ``order`` unless a predecessor has to come first; edges that would close a cycle are not kept.

    ``ptr``/``source`` hold the edges into each node (CSR). Linear in nodes and edges.
    """
    n = len(order)
    sequence = np.empty(n, np.int32)
    keep = np.ones(len(source), np.bool_)
    state = np.zeros(n, np.int8)
    position = ptr[:-1].copy()
    stack = np.empty(n, np.int32)
    out = 0
    for k in range(n):
        if state[order[k]] != 0:
            continue
        top = 1
        stack[0] = order[k]
        state[order[k]] = 1
        while top > 0:
            v = stack[top - 1]
            if position[v] < ptr[v + 1]:
                e = position[v]
                position[v] += 1
                u = source[e]
                if state[u] == 0:
                    state[u] = 1
                    stack[top] = u
                    top += 1
                elif state[u] == 1:
                    keep[e] = False
            else:
                state[v] = 2
                sequence[out] = v
                out += 1
                top -= 1
    return sequence, keep
