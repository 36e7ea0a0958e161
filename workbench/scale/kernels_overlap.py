"""Two streams of one card in time: computation, and the messages of data parallelism. Seconds throughout."""

from __future__ import annotations

import numpy as np
from numba import njit

END, COMPUTE, WAITING, SLOWED, GATHER, REDUCE, MESSAGES = range(7)
"""Columns of the result; `GATHER` waits are split by ``part`` into a column of their own behind the last."""
COLUMNS = 9


@njit(cache=True, nogil=True)
def two_streams(
    unit_s: np.ndarray,
    ready_s: np.ndarray,
    gather_s: np.ndarray,
    reduce_s: np.ndarray,
    part: np.ndarray,
    ahead: int,
    slowdown: float,
    out: np.ndarray,
) -> None:
    """Run C cases of n units of computation, one after another, and their messages, one after another.

    Parameters
    ----------
    unit_s : float64 [C, n]
        Time of a unit that has the card for itself.
    ready_s : float64 [C, n]
        When a unit may start at the earliest.
    gather_s : float64 [C, n]
        Message a unit waits for (negative: none). It is asked for when unit ``j - 1 - ahead`` has finished.
    reduce_s : float64 [C, n]
        Message that is sent when a unit has finished (negative: none).
    part : uint8 [n]
        0 or 1: where the wait for a gathered unit is booked.
    slowdown : float
        Computation takes 1 + slowdown times as long while a message is under way.
    out : float64 [C, COLUMNS]
        End; computation; waits for ``ready_s``; slowed by messages; 0; messages after the last unit; all messages; waits of part 0 and 1.
    """
    cases, n = unit_s.shape
    gathered = np.empty(n)
    for c in range(cases):
        free = 0.0
        wire = 0.0
        asked = 0
        out[c, :] = 0.0
        for j in range(n):
            while asked <= j + ahead and asked < n:
                gathered[asked] = 0.0
                if gather_s[c, asked] >= 0:
                    wire = max(wire, free) + gather_s[c, asked]
                    gathered[asked] = wire
                    out[c, MESSAGES] += gather_s[c, asked]
                asked += 1
            start = max(free, ready_s[c, j])
            out[c, WAITING] += start - free
            if gathered[j] > start:
                out[c, MESSAGES + 1 + part[j]] += gathered[j] - start
                start = gathered[j]
            work = unit_s[c, j]
            beside = wire - start
            longer = 0.0
            if slowdown > 0 and beside > 0:
                longer = min(work * slowdown, beside - beside / (1.0 + slowdown))
            out[c, COMPUTE] += work
            out[c, SLOWED] += longer
            free = start + work + longer
            if reduce_s[c, j] >= 0:
                wire = max(wire, free) + reduce_s[c, j]
                out[c, MESSAGES] += reduce_s[c, j]
        out[c, END] = max(free, wire)
        out[c, REDUCE] = max(wire - free, 0.0)
