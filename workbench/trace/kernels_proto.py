"""Compiled scan of protobuf wire format: fields of a message, events and statistics of a profile.

Source: Protocol Buffers, Encoding (protobuf.dev/programming-guides/encoding): a key is ``number << 3 | wire type``; wire types are
0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes. Positions are byte offsets; a broken message is told by ``-1 - offset``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
INTEGER, REAL, TEXT, REFERENCE = 0, 1, 2, 3
"""Types of a statistic's value."""


@njit(cache=True, nogil=True)
def varint(b, at, stop):
    """Return (value as int64, next position); next is -1 where the bytes end or run over ten."""
    value = np.uint64(0)
    shift = np.uint64(0)
    while at < stop and shift < 70:
        byte = np.uint64(b[at])
        at += 1
        if shift < 64:
            value |= (byte & np.uint64(127)) << shift
        if byte < 128:
            return np.int64(value), at
        shift += np.uint64(7)
    return np.int64(0), -1


@njit(cache=True, nogil=True)
def step(b, at, stop):
    """Return one field: (number, wire type, low, high, next). A varint's value is ``low``; else its payload is b[low:high].

    ``next`` is -1 where the field is broken: it runs past ``stop``, or its number or wire type does not exist.
    """
    key, at = varint(b, at, stop)
    number, wire = key >> 3, key & 7
    if at < 0 or number <= 0:
        return 0, 0, 0, 0, -1
    if wire == 0:
        value, after = varint(b, at, stop)
        return number, wire, value, after, after
    if wire == 2:
        size, low = varint(b, at, stop)
        if low < 0 or size < 0 or size > stop - low:
            return 0, 0, 0, 0, -1
        return number, wire, low, low + size, low + size
    size = 8 if wire == 1 else 4 if wire == 5 else -1
    if size < 0 or at + size > stop:
        return 0, 0, 0, 0, -1
    return number, wire, at, at + size, at + size


@njit(cache=True, nogil=True)
def scan(b, start, stop, number, wire, low, high):
    """Fill the arrays with the fields of one message as long as there is room; return how many there are, or -1 - offset if broken."""
    at, count = start, 0
    while at < stop:
        n, w, first, last, after = step(b, at, stop)
        if after < 0:
            return -1 - at
        if count < len(number):
            number[count], wire[count], low[count], high[count] = n, w, first, last
        count += 1
        at = after
    return count


@njit(cache=True, nogil=True)
def packed(b, start, stop, out):
    """Fill ``out`` with the varints in b[start:stop] as long as there is room; return how many there are, or -1 - offset if broken."""
    at, count = start, 0
    while at < stop:
        value, after = varint(b, at, stop)
        if after < 0:
            return -1 - at
        if count < len(out):
            out[count] = value
        count += 1
        at = after
    return count


@njit(cache=True, nogil=True)
def events(b, low, high, out):
    """Read profile events b[low[i]:high[i]] into out [E, 4]: kind, start and length [ps], statistics; return 0, or -1 - offset if broken.

    XEvent of xplane.proto: metadata_id = 1, offset_ps = 2, duration_ps = 3, stats = 4, num_occurrences = 5 (an aggregate without a
    time of its own: its start is -1).
    """
    for i in range(len(low)):
        at = low[i]
        while at < high[i]:
            n, w, first, _, after = step(b, at, high[i])
            if after < 0:
                return -1 - at
            if w == 0 and 1 <= n <= 3:
                out[i, n - 1] = first
            elif n == 5 and w == 0:
                out[i, 1] = -1
            elif n == 4 and w == 2:
                out[i, 3] += 1
            at = after
    return 0


@njit(cache=True, nogil=True)
def statistics(b, low, high, event, key, kind, first_byte, last_byte):
    """Read the statistics of events; one row each, in order. Return 0, or -1 - offset if broken.

    XStat: metadata_id = 1, double = 2, uint64 = 3, int64 = 4, str = 5, bytes = 6, ref = 7. Of an integer or a reference ``first_byte``
    is the value, of a real number its bits.
    """
    row = 0
    for i in range(len(low)):
        at = low[i]
        while at < high[i]:
            n, w, first, last, at_next = step(b, at, high[i])
            if at_next < 0:
                return -1 - at
            at = at_next
            if n == 4 and w == 2:
                if statistic(b, first, last, row, key, kind, first_byte, last_byte) < 0:
                    return -1 - first
                event[row] = i
                row += 1
    return 0


@njit(cache=True, nogil=True)
def statistic(b, at, stop, row, key, kind, first_byte, last_byte):
    """Read one statistic into a row; return -1 if broken."""
    key[row], kind[row], first_byte[row], last_byte[row] = -1, 0, 0, 0
    while at < stop:
        n, w, first, last, at = step(b, at, stop)
        if at < 0:
            return -1
        if n == 1 and w == 0:
            key[row] = first
        elif n == 2 and w == 1:
            bits = np.uint64(0)
            for j in range(8):
                bits |= np.uint64(b[first + j]) << np.uint64(8 * j)
            kind[row], first_byte[row] = 1, np.int64(bits)
        elif (n == 3 or n == 4) and w == 0:
            kind[row], first_byte[row] = 0, first
        elif (n == 5 or n == 6) and w == 2:
            kind[row], first_byte[row], last_byte[row] = 2, first, last
        elif n == 7 and w == 0:
            kind[row], first_byte[row] = 3, first
    return 0
