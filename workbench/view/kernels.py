"""Kernels of the pictures: what of millions of intervals a screen can show, without lying about busy time.

Intervals lie in lanes: lane l owns rows ``ptr[l]:ptr[l + 1]``, sorted by start. ``reach`` is the running
maximum of ``finish`` within a lane, so a window can be searched even where intervals overlap.
"""

from __future__ import annotations

import numpy as np
from numba import njit

KINDS = 16
"""Upper bound on interval kinds; kinds are small integers below it."""
RARE = 0.02
"""A kind with less than this part of its lane's busy time is drawn beside the dominant one, not under it."""
FLAG_CRITICAL = 1
FLAG_RARE = 2
FLAG_AGGREGATED = 4


@njit(cache=True, nogil=True)
def running_max(ptr, finish, reach):
    """Write the running maximum of ``finish`` of every lane into ``reach``."""
    for lane in range(len(ptr) - 1):
        high = -np.inf
        for i in range(ptr[lane], ptr[lane + 1]):
            high = max(high, finish[i])
            reach[i] = high


@njit(cache=True, nogil=True)
def _window(start, reach, low, high, t0, t1):
    """Rows of [low, high) that may touch [t0, t1]."""
    first = low + np.searchsorted(reach[low:high], t0)
    last = low + np.searchsorted(start[low:high], t1, side="right")
    return first, max(first, last)


@njit(cache=True, nogil=True)
def _inside(begin, end, t0, t1):
    """Whether [begin, end] shares more than an end with [t0, t1] (an interval without length: lies in it)."""
    return (begin < t1 and end > t0) or (begin == end and t0 <= begin <= t1)


@njit(cache=True, nogil=True)
def _spread(busy, kind, begin, end, t0, width, bins):
    """Add the interval [begin, end] to the bins it covers."""
    low = min(max(int((begin - t0) / width), 0), bins - 1)
    high = min(max(int((end - t0) / width), 0), bins - 1)
    for b in range(low, high + 1):
        left = max(begin, t0 + b * width)
        right = min(end, t0 + (b + 1) * width)
        if right > left:
            busy[b, kind] += right - left
    return low


@njit(cache=True, nogil=True)
def _bin_lane(rows, start, finish, kind, critical, t0, t1, bins, busy, count, longest, hot):
    """Fold the intervals of one lane narrower than a bin; returns how many are wide enough to stand alone.

    ``busy`` [s] is [bins, KINDS], ``count`` and ``longest`` (row of the longest interval) are [bins],
    ``hot`` marks bins with a critical interval.
    """
    width = (t1 - t0) / bins
    busy[:bins] = 0.0
    count[:bins] = 0
    longest[:bins] = -1
    hot[:bins] = 0
    wide = 0
    for i in range(rows[0], rows[1]):
        if not _inside(start[i], finish[i], t0, t1):
            continue
        begin, end = max(start[i], t0), min(finish[i], t1)
        if finish[i] - start[i] >= width:
            wide += 1
            continue
        b = _spread(busy, kind[i], begin, end, t0, width, bins)
        count[b] += 1
        best = longest[b]
        if best < 0 or finish[i] - start[i] > finish[best] - start[best]:
            longest[b] = i
        if critical[i]:
            hot[b] = 1
    return wide


@njit(cache=True, nogil=True)
def _rare_kinds(busy, bins):
    """Bool [KINDS]: kinds that hold less than RARE of the lane's folded busy time."""
    total = np.zeros(KINDS)
    for b in range(bins):
        total += busy[b]
    rare = np.zeros(KINDS, dtype=np.bool_)
    for k in range(KINDS):
        rare[k] = 0.0 < total[k] < RARE * total.sum()
    return rare


@njit(cache=True, nogil=True)
def _pick(busy_b, rare):
    """Dominant kind of a bin and the rare kind beside it (-1: none)."""
    top, beside = 0, -1
    for k in range(KINDS):
        if busy_b[k] > busy_b[top]:
            top = k
    for k in range(KINDS):
        if k != top and rare[k] and busy_b[k] > 0.0 and (beside < 0 or busy_b[k] > busy_b[beside]):
            beside = k
    return top, beside


@njit(cache=True, nogil=True)
def _emitted(busy, count, bins, wide):
    """How many rectangles a folded lane needs."""
    rare = _rare_kinds(busy, bins)
    out = wide
    for b in range(bins):
        if count[b] or busy[b].sum() > 0.0:
            out += 1 if _pick(busy[b], rare)[1] < 0 else 2
    return out


@njit(cache=True, nogil=True)
def _level(needed, budget):
    """Largest equal allowance f with sum(min(needed, f)) <= budget."""
    order = np.sort(needed)
    left = budget
    for i in range(len(order)):
        fair = left // (len(order) - i)
        if order[i] > fair:
            return fair
        left -= order[i]
    return budget


@njit(cache=True, nogil=True)
def _put(box, index, tag, row, pos, x0, x1, share, i, n, lane, kind, flags):
    box[pos, 0], box[pos, 1], box[pos, 2] = x0, x1, share
    index[pos, 0], index[pos, 1] = i, n
    tag[pos, 0], tag[pos, 1] = kind, flags
    row[pos] = lane
    return pos + 1


@njit(cache=True, nogil=True)
def detail(ptr, start, finish, reach, kind, critical, t0, t1, pixels, budget):
    """Rectangles that show [t0, t1] of every lane on ``pixels`` columns with at most ``budget`` of them.

    Intervals of at least a bin stand alone (share 1); narrower ones are folded into bins that carry their
    busy share, so the sum of share x width is the busy time of the window. A bin is a pixel, or several
    where a lane would need more than its part of the budget. A rare kind gets a rectangle of its own.

    Returns
    -------
    tuple of ndarray
        box float64 [R, 3] (x0 [s], x1 [s], busy share), index int32 [R, 2] (row of the longest interval,
        intervals folded), lane int32 [R], tag uint8 [R, 2] (kind, flags).
    """
    lanes = len(ptr) - 1
    busy = np.zeros((pixels, KINDS))
    count = np.zeros(pixels, dtype=np.int32)
    longest = np.full(pixels, -1, dtype=np.int64)
    hot = np.zeros(pixels, dtype=np.uint8)
    rows = np.zeros((lanes, 2), dtype=np.int64)
    bins = np.full(lanes, pixels, dtype=np.int64)
    needed = np.zeros(lanes, dtype=np.int64)
    for lane in range(lanes):
        rows[lane, 0], rows[lane, 1] = _window(start, reach, ptr[lane], ptr[lane + 1], t0, t1)
        if rows[lane, 1] > rows[lane, 0]:
            wide = _bin_lane(rows[lane], start, finish, kind, critical, t0, t1, pixels, busy, count, longest, hot)
            needed[lane] = _emitted(busy, count, pixels, wide)
    fair = _level(needed, budget)
    for lane in range(lanes):
        sure = max(1, (fair - 2) // 3)  # a lane never needs more than 3 bins + 2
        while needed[lane] > fair and bins[lane] > sure:
            bins[lane] = max(sure, bins[lane] // 2)
            wide = _bin_lane(rows[lane], start, finish, kind, critical, t0, t1, bins[lane], busy, count, longest, hot)
            needed[lane] = _emitted(busy, count, bins[lane], wide)
    size = needed.sum()
    box, index = np.zeros((size, 3)), np.zeros((size, 2), dtype=np.int32)
    tag, row = np.zeros((size, 2), dtype=np.uint8), np.zeros(size, dtype=np.int32)
    pos = 0
    for lane in range(lanes):
        if needed[lane]:
            n = bins[lane]
            _bin_lane(rows[lane], start, finish, kind, critical, t0, t1, n, busy, count, longest, hot)
            width = (t1 - t0) / n
            for i in range(rows[lane, 0], rows[lane, 1]):
                if finish[i] - start[i] >= width and _inside(start[i], finish[i], t0, t1):
                    flags = FLAG_CRITICAL if critical[i] else 0
                    pos = _put(box, index, tag, row, pos, max(start[i], t0), min(finish[i], t1), 1.0, i, 1, lane, kind[i], flags)
            pos = _put_bins(box, index, tag, row, pos, busy, count, longest, hot, n, t0, width, lane)
    return box, index, row, tag


@njit(cache=True, nogil=True)
def _put_bins(box, index, tag, row, pos, busy, count, longest, hot, bins, t0, width, lane):
    """Write the folded bins of one lane."""
    rare = _rare_kinds(busy, bins)
    for b in range(bins):
        total = busy[b].sum()
        if not count[b] and total <= 0.0:
            continue
        top, beside = _pick(busy[b], rare)
        own = total - busy[b, beside] if beside >= 0 else total
        x0, x1 = t0 + b * width, t0 + (b + 1) * width
        flags = (FLAG_AGGREGATED if count[b] != 1 else 0) | (FLAG_CRITICAL if hot[b] else 0)
        pos = _put(box, index, tag, row, pos, x0, x1, own / width, longest[b], count[b], lane, top, flags)
        if beside >= 0:
            pos = _put(box, index, tag, row, pos, x0, x1, busy[b, beside] / width, longest[b], count[b], lane, beside, flags | FLAG_RARE)
    return pos


@njit(cache=True, nogil=True)
def raster(ptr, start, finish, reach, kind, t0, t1, pixels):
    """Dominant kind (uint8, 255: idle) and busy share (float32) of every lane and pixel, both [L, pixels].

    A rare kind takes the pixel it appears in, so a single short message is not lost among compute.
    """
    lanes = len(ptr) - 1
    top = np.full((lanes, pixels), 255, dtype=np.uint8)
    share = np.zeros((lanes, pixels), dtype=np.float32)
    width = (t1 - t0) / pixels
    busy = np.zeros((pixels, KINDS))
    for lane in range(lanes):
        low, high = _window(start, reach, ptr[lane], ptr[lane + 1], t0, t1)
        busy[:] = 0.0
        for i in range(low, high):
            begin, end = max(start[i], t0), min(finish[i], t1)
            if end > begin:
                _spread(busy, kind[i], begin, end, t0, width, pixels)
        rare = _rare_kinds(busy, pixels)
        for b in range(pixels):
            total = busy[b].sum()
            if total > 0.0:
                main, beside = _pick(busy[b], rare)
                top[lane, b] = main if beside < 0 else beside
                share[lane, b] = total / width
    return top, share


@njit(cache=True, nogil=True)
def interval_statistics(ptr, start, finish, reach, kind, wanted, t0, t1):
    """Statistics of the intervals of the ``wanted`` lanes (bool [L]) that touch [t0, t1].

    Returns
    -------
    ndarray
        float64 [KINDS, 5] by kind: count, seconds inside the window, sum of whole durations [s], shortest [s], longest [s].
    """
    out = np.zeros((KINDS, 5))
    out[:, 3] = np.inf
    for lane in range(len(ptr) - 1):
        if not wanted[lane]:
            continue
        low, high = _window(start, reach, ptr[lane], ptr[lane + 1], t0, t1)
        for i in range(low, high):
            begin, end = max(start[i], t0), min(finish[i], t1)
            if not _inside(start[i], finish[i], t0, t1):
                continue
            k, length = kind[i], finish[i] - start[i]
            out[k, 0] += 1
            out[k, 1] += end - begin
            out[k, 2] += length
            out[k, 3] = min(out[k, 3], length)
            out[k, 4] = max(out[k, 4], length)
    for k in range(KINDS):
        if out[k, 0] == 0:
            out[k, 3] = 0.0
    return out
