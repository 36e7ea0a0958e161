"""Several ranks merged into one file: told apart by their processes, so that equal correlation ids never join two ranks.

A correlation id is unique within a process. Two processes whose calls carry the same ids are therefore two ranks; each device
process goes to the host process that launched its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from workbench.trace.trace import DEVICE_WORK, HOST_CALLS, Track

SHARED = 0.5  # share of the smaller process's ids that must also be the other's: recycled ids of one process are fewer


def split_ranks(
    tracks: Sequence[Track], track: np.ndarray, category: np.ndarray, correlation: np.ndarray, start: np.ndarray
) -> tuple[list[Track], int]:
    """Return the tracks with their rank inside the file, and how many ranks there are.

    Parameters
    ----------
    tracks : sequence of Track
    track, category, correlation, start : [E]
        Columns of the events; ``start`` in ns.
    """
    known = correlation >= 0
    calls, work = known & np.isin(category, HOST_CALLS), known & np.isin(category, DEVICE_WORK)
    callers = _by_process(tracks, track, calls)
    if len(callers) < 2:
        return list(tracks), 1
    launched = {pid: _starts(correlation, start, rows) for pid, rows in callers.items()}
    groups = _collided(launched)
    if len(groups) < 2:
        return list(tracks), 1
    heads = sorted(groups, key=_natural)
    rank_of = {pid: heads.index(head) for head in heads for pid in groups[head]}
    devices = sorted(_by_process(tracks, track, work).items(), key=lambda item: _natural(item[0]))
    served = [0] * len(heads)
    for at, (pid, rows) in enumerate(devices):
        if pid in rank_of:
            continue
        even = at * len(heads) // len(devices)  # merging tools keep the order of processes
        fit = [_fit(launched[head], correlation, start, rows) for head in heads]
        best = [i for i, f in enumerate(fit) if f == max(fit)]
        rank_of[pid] = min(best, key=lambda i: (served[i], i != even))
        served[rank_of[pid]] += 1
    return [replace(t, rank=rank_of.get(t.pid, _nearest(t.pid, heads))) for t in tracks], len(heads)


def _by_process(tracks: Sequence[Track], track: np.ndarray, which: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows of each process, by its name."""
    rows = np.flatnonzero(which)
    used = {tracks[i].pid for i in np.unique(track[rows]).tolist()}
    number = {pid: at for at, pid in enumerate(sorted(used))}
    process = np.array([number.get(t.pid, -1) for t in tracks], np.int64)[track[rows]] if len(rows) else rows
    rows = rows[np.argsort(process, kind="stable")]
    ends = np.cumsum(np.bincount(process, minlength=len(number))).tolist()
    return {pid: rows[low:high] for pid, low, high in zip(number, [0, *ends], ends, strict=False)}


def _starts(correlation: np.ndarray, start: np.ndarray, rows: np.ndarray) -> dict[int, int]:
    return dict(zip(correlation[rows].tolist(), start[rows].tolist(), strict=True))


def _collided(launched: dict[str, dict[int, int]]) -> dict[str, list[str]]:
    """Group processes into ranks: a process that shares its ids with every head so far is a new head."""
    groups: dict[str, list[str]] = {}
    for pid in sorted(launched, key=_natural):
        mine = launched[pid]
        rivals = [head for head in groups if len(mine.keys() & launched[head].keys()) >= SHARED * min(len(mine), len(launched[head]))]
        if len(rivals) == len(groups):
            groups[pid] = [pid]
        else:
            groups[next(head for head in groups if head not in rivals)].append(pid)
    return groups


def _fit(launches: dict[int, int], correlation: np.ndarray, start: np.ndarray, rows: np.ndarray) -> tuple[int, int]:
    """Return (work the process launched, work that does not start before its launch)."""
    pairs = [(launches[c], s) for c, s in zip(correlation[rows].tolist(), start[rows].tolist(), strict=True) if c in launches]
    return len(pairs), sum(begin <= s for begin, s in pairs)


def _natural(text: str) -> tuple[int, int, str]:
    return (0, int(text), "") if text.isascii() and text.isdigit() and len(text) < 19 else (1, 0, text)


def _nearest(pid: str, heads: list[str]) -> int:
    """A process without launches belongs to the rank whose process number lies next below its own."""
    below = [i for i, head in enumerate(heads) if _natural(head) <= _natural(pid)]
    return below[-1] if below and _natural(pid)[0] == 0 else 0
