"""Two sequences of calls laid side by side: which call of one is which of the other, where calls were inserted or removed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

MOST_EDITS = 1000
"""Insertions and removals beyond which two sequences are not of one program; bounds time and memory (quadratic in it)."""


def matched_calls(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places (in ``a``, in ``b``) of a longest common subsequence, ascending.

    Parameters
    ----------
    a, b : sequence
        Names of calls in calling order.

    Returns
    -------
    list of (int, int)
        Of sequences that differ by more than `MOST_EDITS`, only the common beginning and end.

    Notes
    -----
    The greedy algorithm of E. W. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1 (1986): time and memory
    grow with the number of differences D, so that two recordings of one job are laid side by side in linear time.
    """
    shorter = min(len(a), len(b))
    first = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    last = next((i for i in range(shorter - first) if a[-1 - i] != b[-1 - i]), shorter - first)
    middle = _middle(a[first : len(a) - last], b[first : len(b) - last])
    begin = [(i, i) for i in range(first)]
    end = [(len(a) - i, len(b) - i) for i in range(last, 0, -1)]
    return begin + [(first + i, first + j) for i, j in middle] + end


def _middle(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the matches of two sequences by the furthest places reached with 0, 1, 2 ... edits on every diagonal."""
    if not a or not b:
        return []
    reached = {1: 0}  # diagonal k = i - j -> i
    past: list[dict[int, int]] = []
    for edits in range(min(len(a) + len(b), MOST_EDITS) + 1):
        past.append(dict(reached))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
            i = reached[k + 1] if down else reached[k - 1] + 1
            while i < len(a) and 0 <= i - k < len(b) and a[i] == b[i - k]:
                i += 1
            reached[k] = i
            if i >= len(a) and i - k >= len(b):
                return _walked(past, len(a), len(b))
    return []


def _walked(past: list[dict[int, int]], i: int, j: int) -> list[tuple[int, int]]:
    """Walk back from the ends along the edits; what lies between two edits matches."""
    out: list[tuple[int, int]] = []
    for edits in range(len(past) - 1, -1, -1):
        reached, k = past[edits], i - j
        down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
        before = k + 1 if down else k - 1
        at = reached[before]
        to = at if down else at + 1
        while i > to and i > 0 and j > 0:
            i, j = i - 1, j - 1
            out.append((i, j))
        if edits == 0:
            break
        i, j = at, at - before
    return out[::-1]
