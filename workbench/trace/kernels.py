"""Array kernels of the room: grouping of rows, arguments by key, nesting, unions of intervals."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def group_into(a, b, c, table, first, out):
    """Number the distinct rows (a[i], b[i], c[i]) by first appearance; return how many, or -1 if ``first`` is too short.

    Parameters
    ----------
    a, b, c : int64 [N]
    table : int32, all -1, at least twice as long as ``first``, a power of two
    first : int64, becomes the first row of each group
    out : int32 [N], becomes the group of each row

    Notes
    -----
    The probe stands in the loop: as a function of its own, handed six arrays a row, it took 15 times as long.
    """
    count, mask = 0, np.uint64(len(table) - 1)
    for i in range(len(a)):
        x, y, z = a[i], b[i], c[i]
        h = np.uint64(x) * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(29)) ^ np.uint64(y)) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(32)) ^ np.uint64(z)) * np.uint64(0x94D049BB133111EB)
        slot = (h ^ (h >> np.uint64(31))) & mask
        while table[slot] >= 0:
            f = first[table[slot]]
            if a[f] == x and b[f] == y and c[f] == z:
                break
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            if count == len(first):
                return -1
            table[slot], first[count] = count, i
            count += 1
        out[i] = table[slot]
    return count


@njit(cache=True, nogil=True)
def arguments_by_key(event, key, value, is_text, keys):
    """Sort arguments by key, stable; of a key repeated in one event the last stays.

    Returns
    -------
    start, stop : int64 [keys + 1], [keys]: the range of each key
    event, value, is_text : the sorted rows
    """
    start, stop = np.zeros(keys + 1, np.int64), np.empty(keys, np.int64)
    for i in range(len(key)):
        start[key[i] + 1] += 1
    for k in range(keys):
        stop[k] = start[k]
        start[k + 1] += start[k]
    event_out, value_out, text_out = np.empty_like(event), np.empty_like(value), np.empty_like(is_text)
    for i in range(len(key)):
        k = key[i]
        at = stop[k]
        if at > start[k] and event_out[at - 1] == event[i]:
            at -= 1
        else:
            stop[k] += 1
        event_out[at], value_out[at], text_out[at] = event[i], value[i], is_text[i]
    return start, stop, event_out, value_out, text_out


@njit(cache=True, nogil=True)
def nest(order, track, start, dur, loose):
    """Return the parent of each event: the innermost enclosing one on its track, -1 at the top.

    Parameters
    ----------
    order : int64 [E]
        Events by track, start, longer first and a deterministic rest.
    track, start, dur : int32, int64, int64 [E]
    loose : bool [E]
        Events whose end is not trusted (Python frames): one that outlives the event it starts in counts as ending with it,
        so that what follows keeps its true parent.

    Notes
    -----
    An event without length encloses nothing. Of two events that cross, the later one hides the earlier one.
    """
    parent = np.full(len(order), -1, np.int32)
    stack = np.empty(len(order) + 1, np.int32)
    end = np.empty(len(order), np.int64)  # of the events on the stack
    depth, lane = 0, np.int32(-1)
    for i in order:
        if track[i] != lane:
            lane, depth = track[i], 0
        length = max(dur[i], 0)
        stop = start[i] + length
        while depth > 0 and (end[depth - 1] < start[i] or (end[depth - 1] == start[i] and length > 0)):
            depth -= 1
        if loose[i] and depth > 0 and end[depth - 1] < stop:
            stop = end[depth - 1]
        while depth > 0 and end[depth - 1] < stop:
            depth -= 1
        if depth > 0:
            parent[i] = stack[depth - 1]
        if length > 0:
            stack[depth], end[depth] = i, stop
            depth += 1
    return parent


@njit(cache=True, nogil=True)
def overlap_ns(a_start, a_stop, b_start, b_stop):
    """Return the length [ns] of the intersection of two lists of disjoint sorted intervals."""
    total, i, j = np.int64(0), 0, 0
    while i < len(a_start) and j < len(b_start):
        low, high = max(a_start[i], b_start[j]), min(a_stop[i], b_stop[j])
        if low < high:
            total += high - low
        if a_stop[i] < b_stop[j]:
            i += 1
        else:
            j += 1
    return total


@njit(cache=True, nogil=True)
def merged(start, stop):
    """Return the disjoint union of intervals sorted by start."""
    a, b = np.empty_like(start), np.empty_like(stop)
    n = 0
    for i in range(len(start)):
        if stop[i] <= start[i]:
            continue
        if n > 0 and start[i] <= b[n - 1]:
            b[n - 1] = max(b[n - 1], stop[i])
        else:
            a[n], b[n] = start[i], stop[i]
            n += 1
    return a[:n].copy(), b[:n].copy()


@njit(cache=True, nogil=True)
def overlaps(lane, start, stop):
    """Return (count, longest [ns]) of intervals that start before the latest earlier end on their lane; sorted by lane, start."""
    count, longest = 0, np.int64(0)
    until = np.int64(0)
    for i in range(len(start)):
        if i == 0 or lane[i] != lane[i - 1]:
            until = stop[i]
            continue
        if start[i] < until:
            count += 1
            longest = max(longest, min(until, stop[i]) - start[i])
        until = max(until, stop[i])
    return count, longest


@njit(cache=True, nogil=True)
def overflows(lane, start, dur, launch):
    """Return durations [ns] clipped where a recorded end lies behind the end of a later launch on the lane.

    Parameters
    ----------
    lane, start, dur, launch : [K], sorted by lane, start
        ``launch`` is the correlation; work of one launch (a graph) may run side by side and is never clipped against itself.

    Notes
    -----
    Only an event that covers later work (of some length, starting later) whole is clipped, to the next such start.
    """
    out = dur.copy()
    for i in range(len(start)):
        stop = start[i] + dur[i]
        limit = np.int64(-1)
        for j in range(i + 1, len(start)):
            if lane[j] != lane[i] or start[j] >= stop:
                break
            if start[j] == start[i] or (launch[j] == launch[i] and launch[i] >= 0):
                continue
            if limit < 0:
                limit = start[j]
            if dur[j] > 0 and start[j] + dur[j] <= stop:
                out[i] = limit - start[i]
                break
    return out


@njit(cache=True, nogil=True)
def partners(order, lane, name, begins, ends, stack, out):
    """Find the end of each row that begins an event: the innermost open one of its lane, of its name where the end has one.

    Parameters
    ----------
    order : int64 [K], rows that begin or end an event, by lane, then time
    lane, name : int32 [N]
    begins, ends : bool [N]
    stack : int64 [K], scratch
    out : int64 [N], becomes the row of the end (-1: none)
    """
    depth = 0
    for k in range(len(order)):
        i = order[k]
        if k > 0 and lane[order[k - 1]] != lane[i]:
            depth = 0
        if begins[i]:
            stack[depth] = i
            depth += 1
            continue
        at = depth - 1
        while at >= 0 and name[i] != 0 and name[stack[at]] != name[i]:
            at -= 1
        if at < 0:
            continue
        out[stack[at]] = i
        for j in range(at, depth - 1):
            stack[j] = stack[j + 1]
        depth -= 1
