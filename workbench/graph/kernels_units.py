"""Loops over events behind `workbench.graph.units` (numpy and numba only)."""

from __future__ import annotations

import numba
import numpy as np

BEARING, BLIND, SHAPED, STUCK = 1, 2, 3, 4  # as in workbench.operators.kinds


@numba.njit(cache=True, nogil=True)
def climb(start: np.ndarray, parent: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Find the operator that accounts for work launched at each event of ``start`` (-1: none).

    The innermost event of state BEARING; without one the innermost SHAPED, else the innermost BLIND or STUCK. These two stop the
    climb: what encloses them does not describe their work.
    """
    out = np.full(len(start), -1, dtype=np.int32)
    for i in range(len(start)):
        at = start[i]
        shaped, hit = -1, -1
        while at >= 0:
            kind = state[at]
            if kind == BEARING or kind == BLIND or kind == STUCK:
                hit = at
                break
            if kind == SHAPED and shaped < 0:
                shaped = at
            at = parent[at]
        if hit >= 0 and (state[hit] == BEARING or shaped < 0):
            out[i] = hit
        else:
            out[i] = shaped
    return out


@numba.njit(cache=True, nogil=True)
def mark_wrappers(hits: np.ndarray, parent: np.ndarray, state: np.ndarray, family: np.ndarray) -> np.ndarray:
    """Mark operators that enclose working operators of their own family: they are wrappers of the same work.

    Returns bool [E]. ``family`` groups kinds (0: none); only BEARING events can be wrappers.
    """
    wrapper = np.zeros(len(parent), dtype=np.bool_)
    for i in range(len(hits)):
        at = hits[i]
        if at < 0 or state[at] != BEARING:
            continue
        own = family[at]
        up = parent[at]
        while up >= 0:
            if state[up] == BEARING and family[up] == own:
                if wrapper[up]:
                    break
                wrapper[up] = True
            up = parent[up]
    return wrapper


@numba.njit(cache=True, nogil=True)
def nearest(parent: np.ndarray, allowed: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the innermost event at or above each of ``start`` for which ``allowed`` holds (-1: none)."""
    out = np.full(len(start), -1, dtype=np.int32)
    for i in range(len(start)):
        at = start[i]
        while at >= 0 and not allowed[at]:
            at = parent[at]
        out[i] = at
    return out


@numba.njit(cache=True, nogil=True)
def self_times(duration: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Duration of each event less that of its children, at least 0 (int64 [ns])."""
    out = duration.copy()
    for i in range(len(parent)):
        if parent[i] >= 0:
            out[parent[i]] -= duration[i]
    return np.maximum(out, 0)


@numba.njit(cache=True, nogil=True)
def enclosing(
    time: np.ndarray, track: np.ndarray, order: np.ndarray, first: np.ndarray, start: np.ndarray, end: np.ndarray, parent: np.ndarray
) -> np.ndarray:
    """Return the innermost event of a track that covers each point in time (-1: none).

    ``order`` lists events by (track, start, longer first); ``first[t]:first[t + 1]`` are those of track t.
    """
    out = np.full(len(time), -1, dtype=np.int32)
    for i in range(len(time)):
        low, high = first[track[i]], first[track[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if start[order[middle]] <= time[i]:
                low = middle + 1
            else:
                high = middle
        if low == first[track[i]]:
            continue
        at = order[low - 1]
        while at >= 0 and end[at] < time[i]:
            at = parent[at]
        out[i] = at
    return out
