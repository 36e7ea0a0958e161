"""Messages without numbers: two ranks' sequences laid side by side by what they hold and when they end."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np

BETTER = 0.5
"""Another shift of two equal sequences is believed when the spread of their ends is at most this part of the longest overlap's."""
FEW = 3
"""Fewer common messages than this do not decide by their ends."""
LONG = 3_000
"""Sequences longer than this are only shifted, never searched for gaps."""


def paired(token: np.ndarray, end: np.ndarray, other: np.ndarray, other_end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of common messages in two sequences, int64 [P] each.

    Parameters
    ----------
    token, other : int [N], int [M]
        What each message is (kind and size).
    end, other_end : int64 [ns]
        When it ended, each on its own clock.

    Notes
    -----
    A recording is a window: the sequences are shifted against each other so that all they have in common agrees. Of several such
    shifts the one with the longest overlap counts, unless the ends agree clearly better in another. Where no shift fits (a message
    is missing in the middle), the longest common pieces in order are taken.
    """
    best: tuple[float, int, int] | None = None
    shifts = _fitting(token, other)
    if shifts:
        overlap, shift = max(shifts, key=lambda s: (s[0], -abs(s[1])))
        bound = BETTER * _spread(end, other_end, shift)
        for length, by in shifts if bound > 0 else []:
            if length >= max(FEW, overlap // 4) and (spread := _spread(end, other_end, by)) < bound and (best is None or spread < best[0]):
                best = (spread, length, by)
        overlap, shift = (best[1], best[2]) if best else (overlap, shift)
        if overlap * 2 > min(len(token), len(other)) or best or max(len(token), len(other)) > LONG:
            low = max(shift, 0)
            return np.arange(low, low + overlap), np.arange(low, low + overlap) - shift
    if max(len(token), len(other)) > LONG:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    blocks = SequenceMatcher(None, token.tolist(), other.tolist(), autojunk=False).get_matching_blocks()
    a = [np.arange(b.a, b.a + b.size) for b in blocks]
    b = [np.arange(b.b, b.b + b.size) for b in blocks]
    return np.concatenate(a), np.concatenate(b)


def _fitting(token: np.ndarray, other: np.ndarray) -> list[tuple[int, int]]:
    """Return overlap and shift of every way to lay a sequence beside the other in which all they have in common agrees."""
    out = []
    for shift in range(-(len(other) - 1), len(token)):
        low, high = max(shift, 0), min(shift + len(other), len(token))
        if np.array_equal(token[low:high], other[low - shift : high - shift]):
            out.append((high - low, shift))
    return out


def _spread(end: np.ndarray, other: np.ndarray, shift: int) -> float:
    """Return the median distance of the differences of common ends from their median [ns]."""
    low, high = max(shift, 0), min(shift + len(other), len(end))
    difference = (end[low:high] - other[low - shift : high - shift]).astype(np.float64)
    return float(np.median(np.abs(difference - np.median(difference))))
