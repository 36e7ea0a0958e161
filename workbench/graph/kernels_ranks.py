"""Loops over pairs of common ends."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def steepness(time: np.ndarray, value: np.ndarray) -> float:
    """Return the median of the slopes between all pairs of points (0 where all times are equal)."""
    n = len(time)
    slope = np.empty(n * (n - 1) // 2)
    count = 0
    for i in range(n):
        for j in range(i):
            if time[i] != time[j]:
                slope[count] = (value[i] - value[j]) / (time[i] - time[j])
                count += 1
    return np.median(slope[:count]) if count > 0 else 0.0
