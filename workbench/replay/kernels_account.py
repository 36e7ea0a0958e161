"""Sweep over disjoint intervals of ranked classes: which class owns every moment, integrated between the ends of steps."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def union(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the union of intervals sorted by start as disjoint intervals; those without length vanish."""
    low = np.empty(len(start))
    high = np.empty(len(start))
    n = 0
    for i in range(len(start)):
        if end[i] <= start[i]:
            continue
        if n > 0 and start[i] <= high[n - 1]:
            high[n - 1] = max(high[n - 1], end[i])
        else:
            low[n], high[n] = start[i], end[i]
            n += 1
    return low[:n], high[:n]


@njit(cache=True, nogil=True)
def owned(ptr: np.ndarray, low: np.ndarray, high: np.ndarray, begin: float, end: float, out: np.ndarray) -> None:
    """Split ``begin..end`` among classes: each moment belongs to the first class with an interval there.

    ``ptr`` splits the intervals by class (disjoint and sorted within a class); ``out`` [classes + 1] receives
    the seconds of each class and, last, of none.
    """
    classes = len(ptr) - 1
    position = np.empty(classes, np.int64)
    for c in range(classes):
        position[c] = ptr[c] + np.searchsorted(high[ptr[c] : ptr[c + 1]], begin, side="right")
    out[:] = 0.0
    now = begin
    while now < end:
        owner = classes
        until = end
        for c in range(classes):
            while position[c] < ptr[c + 1] and high[position[c]] <= now:
                position[c] += 1
            if position[c] == ptr[c + 1]:
                continue
            if low[position[c]] <= now:
                owner = c
                until = min(until, high[position[c]])
                break
            until = min(until, low[position[c]])
        out[owner] += until - now
        now = until
