"""Device work without a recorded launch that repeats launched work: the tail of the step before a recording began, most often.

A profiler that starts while the device still works records kernels whose launches and operators it never saw. A program that repeats
runs the same kernels in the same order in the step it did record, so the order says which operator asked for each.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from workbench.errors import Note

SHORTEST = 8
"""A sequence of this many kernels of the same names in the same order is the same piece of program; fewer may be chance."""


def twins(lane: np.ndarray, key: np.ndarray, launched: np.ndarray) -> np.ndarray:
    """Return for every piece of device work without a launch the launched piece it repeats.

    On each lane the stretches without launches are cut, from their begin, into the longest sequences of keys that also occur among the
    launched work of that lane (of several equally long ones the first).

    Parameters
    ----------
    lane : int64 [D]
        Stream of each piece; pieces of a lane stand in the order they ran.
    key : int64 [D]
        Equal for pieces that look alike: the same kernel name, the same copy of as many bytes.
    launched : bool [D]
        Whether the launch is recorded.

    Returns
    -------
    int64 [D]
        Position of the twin; -1 for launched work, and for work that repeats nothing.
    """
    out = np.full(len(lane), -1, dtype=np.int64)
    for one in np.unique(lane[~launched]):
        mine = np.flatnonzero(lane == one)
        known, loose = mine[launched[mine]], mine[~launched[mine]]
        if len(known) >= SHORTEST and len(loose) >= SHORTEST:
            out[loose] = _matched(key[loose], key[known], known)
    return out


def _matched(asked: np.ndarray, known: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the place of the twin of each key asked for, block by block."""
    starts: dict[bytes, list[int]] = defaultdict(list)
    for at in range(len(known) - SHORTEST + 1):
        starts[known[at : at + SHORTEST].tobytes()].append(at)
    out = np.full(len(asked), -1, dtype=np.int64)
    at = 0
    while at + SHORTEST <= len(asked):
        found = starts.get(asked[at : at + SHORTEST].tobytes(), [])
        best, length = -1, 0
        for begin in found:
            size = min(len(asked) - at, len(known) - begin)
            same = asked[at : at + size] == known[begin : begin + size]
            run = size if same.all() else int(np.argmin(same))
            if run > length:
                best, length = begin, run
        if best >= 0:
            out[at : at + length] = place[best : best + length]
        at += max(length, 1)
    return out


def groups(twin: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group pieces that repeat a whole unit.

    Parameters
    ----------
    twin : int64 [D]
        From `twins`, pieces in the order they ran.
    unit : int64 [D]
        Unit of each piece (-1: not in one of several).

    Returns
    -------
    group : int64 [D]
        Number of the repeated unit a piece belongs to, from 0 (-1: none, or not all of the unit is repeated).
    of : int64 [G]
        The unit each group repeats.
    """
    loose = np.flatnonzero((twin >= 0) & (unit[twin] >= 0))
    group = np.full(len(twin), -1, dtype=np.int64)
    if not len(loose):
        return group, np.zeros(0, dtype=np.int64)
    source = unit[twin[loose]]
    new = np.ones(len(loose), dtype=bool)
    new[1:] = (np.diff(source) != 0) | (np.diff(twin[loose]) <= 0)
    number = np.cumsum(new) - 1
    of = source[new]
    whole = np.bincount(number) == np.bincount(unit[unit >= 0])[of]
    renumbered = np.where(whole, np.cumsum(whole) - 1, -1)
    group[loose] = renumbered[number]
    return group, of[whole]


def repeat_note(launched: np.ndarray, row: np.ndarray, known: np.ndarray) -> list[Note]:
    """Say how much work without a launch is priced as the operators whose work it repeats.

    Parameters
    ----------
    launched : bool [D]
    row : int [D]
        Row of the operator table of each piece (-1: none).
    known : bool [U]
        Operators with shapes; not copies and fills, which are known by themselves.
    """
    mine = ~launched & (row >= 0) & np.isin(row, row[launched])
    mine[mine] = known[row[mine]]
    if not mine.any():
        return []
    text = "device work without a recorded launch repeats launched work in the same order: priced as the same operators"
    return [Note("orphan-repeats", "device streams", int(mine.sum()), text)]
