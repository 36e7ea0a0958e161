"""Byte-level scanner of Chrome-trace records: text in, columns out, one pass, no object per event.

Every function returns the position after what it read, or a negative status (`MORE`, `BAD`, `GROW`, `FULL`). The state array ``s`` carries
the cursor, the place and cause of an error, the last value read and the counters; see the ``S_*`` indices. Grammar: JSON
(RFC 8259), plus control characters inside strings and bare ``nan``/``inf`` words, which real profilers write.

``_nrt=False`` compiles without reference counting, which costs three quarters of the time here: the functions allocate nothing.
"""

# long: functions that call each other share one file, because an on-disk cache of compiled code does not see edits elsewhere

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

MORE, BAD, GROW = -1, -2, -3  # needs more bytes; not JSON; an output array is full
DONE = -4  # the array of records is closed
FULL = -5  # the scratch buffer is too small

# last value: kind, [a, b) and whether that range lies in scratch; error: place and cause; counters
S_KIND, S_A, S_B, S_SCRATCH, S_ERR, S_WHY = range(6)
S_EVENTS, S_ARGS, S_FLOWS, S_METAS, S_STRINGS, S_HEAP, S_KEYS = range(6, 13)
S_RECORDS, S_EMPTY, S_NO_DUR, S_NO_TIME, S_NOT_OBJECT, S_NO_PH, S_COMMA, S_OVERFLOW, S_MISSING = range(13, 22)
BEGIN, END = -(2**63), 1 - 2**63  # lengths of rows that only begin or end an event
MAX_DEPTH = 512
S_POS, S_STATE, S_FULL = 22, 23, 24  # S_FULL: which table of `FULL_*` made a function return `GROW`
S_STACK = 25  # open brackets of a nested value
S_SIZE = 25 + MAX_DEPTH
FULL_COLUMNS, FULL_ARGS, FULL_FLOWS, FULL_METAS, FULL_STRINGS, FULL_HEAP = range(6)

STRING, INTEGER, FLOAT, LITERAL, NULL, MISSING, NESTED = range(1, 8)

WHY_VALUE, WHY_ESCAPE, WHY_COMMA, WHY_COLON, WHY_KEY, WHY_DEPTH, WHY_CLOSE = range(1, 8)

# strings interned before the first byte, in this order
FIXED = ("", "name", "labels", "process_name", "thread_name", "process_labels")

# fields of the record being read
R_PH, R_TS, R_DUR, R_NAME, R_CAT, R_PID, R_TID, R_ID, R_HAS_TS, R_HAS_DUR, R_ARGS, R_FIELDS, R_TIME_BAD = range(13)
R_SIZE = 13
MAX_START, MAX_DUR = 1 << 62, 1 << 53  # [ns]: year 2116 and 104 days, so that ends and sums of thousands stay within 64 bits


class Strings(NamedTuple):
    """Interned text: ``heap[offset[i]:offset[i + 1]]`` is string i; ``key[i]`` its number as an argument key, or -1."""

    table: np.ndarray  # int32, open addressing, -1 empty
    hash: np.ndarray  # uint64 [N]
    offset: np.ndarray  # int64 [N + 1]
    key: np.ndarray  # int32 [N]
    heap: np.ndarray  # uint8


class Columns(NamedTuple):
    """Complete events."""

    start: np.ndarray  # int64 [ns]
    dur: np.ndarray  # int64 [ns]
    name: np.ndarray  # int32, strings
    cat: np.ndarray  # int32, strings
    pid: np.ndarray  # int32, strings
    tid: np.ndarray  # int32, strings


class Arguments(NamedTuple):
    """Arguments of all complete events, in file order."""

    event: np.ndarray  # int32
    key: np.ndarray  # int32, key number
    value: np.ndarray  # int64
    is_text: np.ndarray  # bool


class FlowRows(NamedTuple):
    """Flow records; an id that is no integer is stored as -2 - string."""

    id: np.ndarray  # int64
    start: np.ndarray  # int64 [ns]
    pid: np.ndarray  # int32
    tid: np.ndarray  # int32
    cat: np.ndarray  # int32
    phase: np.ndarray  # uint8


class MetaRows(NamedTuple):
    """Names of processes and threads: what (a string of `FIXED`), pid, tid and the name."""

    what: np.ndarray  # int32
    pid: np.ndarray  # int32
    tid: np.ndarray  # int32
    value: np.ndarray  # int32


@njit(cache=True, nogil=True, _nrt=False)
def skip_space(buf, p, end):
    """Return the first position from p that is not white space."""
    while p < end:
        c = buf[np.uint64(p)]  # an unsigned index spares the test for a negative one: this and the loops below are the hot ones
        if c > 32 or not (c == 32 or c == 10 or c == 13 or c == 9):
            break
        p += 1
    return p


@njit(cache=True, nogil=True, _nrt=False)
def _bad(s, p, why):
    s[S_ERR] = p
    s[S_WHY] = why
    return BAD


@njit(cache=True, nogil=True, _nrt=False)
def _more(s, p):
    s[S_ERR] = p
    return MORE


@njit(cache=True, nogil=True, _nrt=False)
def _hex(c):
    if 48 <= c <= 57:
        return c - 48
    c |= 32
    return c - 87 if 97 <= c <= 102 else -1


@njit(cache=True, nogil=True, _nrt=False)
def _string(buf, p, end, s):
    """Read a string whose quote is at p; [a, b) is its inside, S_KIND 1 if it has escapes."""
    q, escaped = p + 1, 0
    while q < end:
        c = buf[np.uint64(q)]
        if c == 34:
            s[S_A], s[S_B], s[S_KIND] = p + 1, q, escaped
            return q + 1
        if c == 92:
            escaped = 1
            if q + 1 >= end:
                break
            e = buf[q + 1]
            if e == 117:
                for i in range(q + 2, q + 6):
                    if i >= end:
                        return _more(s, p)
                    if _hex(buf[i]) < 0:
                        return _bad(s, q + 1, WHY_ESCAPE)
                q += 4
            elif not (e == 34 or e == 92 or e == 47 or e == 98 or e == 102 or e == 110 or e == 114 or e == 116):
                return _bad(s, q, WHY_ESCAPE)
            q += 1
        q += 1
    return _more(s, p)


@njit(cache=True, nogil=True, _nrt=False)
def _code(buf, p):
    return (_hex(buf[p]) << 12) | (_hex(buf[p + 1]) << 8) | (_hex(buf[p + 2]) << 4) | _hex(buf[p + 3])


@njit(cache=True, nogil=True, _nrt=False)
def _unescape(buf, a, b, out):
    """Write the UTF-8 of the escaped string [a, b) to out; return its length (lone surrogates become U+FFFD)."""
    n = 0
    while a < b:
        c = buf[a]
        if c != 92:
            out[n] = c
            n, a = n + 1, a + 1
            continue
        e = buf[a + 1]
        a += 2
        if e != 117:
            out[n] = 8 if e == 98 else 12 if e == 102 else 10 if e == 110 else 13 if e == 114 else 9 if e == 116 else e
            n += 1
            continue
        u = _code(buf, a)
        a += 4
        if 0xD800 <= u < 0xDC00 and a + 6 <= b and buf[a] == 92 and buf[a + 1] == 117 and 0xDC00 <= _code(buf, a + 2) < 0xE000:
            u = 0x10000 + ((u - 0xD800) << 10) + (_code(buf, a + 2) - 0xDC00)
            a += 6
        elif 0xD800 <= u < 0xE000:
            u = 0xFFFD
        n = _utf8(u, out, n)
    return n


@njit(cache=True, nogil=True, _nrt=False)
def _utf8(u, out, n):
    if u < 0x80:
        out[n] = u
        return n + 1
    if u < 0x800:
        out[n] = 0xC0 | (u >> 6)
        out[n + 1] = 0x80 | (u & 63)
        return n + 2
    if u < 0x10000:
        out[n] = 0xE0 | (u >> 12)
        out[n + 1] = 0x80 | ((u >> 6) & 63)
        out[n + 2] = 0x80 | (u & 63)
        return n + 3
    out[n] = 0xF0 | (u >> 18)
    out[n + 1] = 0x80 | ((u >> 12) & 63)
    out[n + 2] = 0x80 | ((u >> 6) & 63)
    out[n + 3] = 0x80 | (u & 63)
    return n + 4


@njit(cache=True, nogil=True, _nrt=False)
def _digits(buf, p, b):
    while p < b and 48 <= buf[p] <= 57:
        p += 1
    return p


@njit(cache=True, nogil=True, _nrt=False)
def number_kind(buf, a, b):
    """Return INTEGER or FLOAT for a JSON number in [a, b), else 0."""
    p = a + 1 if a < b and buf[a] == 45 else a
    q = _digits(buf, p, b)
    if q == p or (q > p + 1 and buf[p] == 48):
        return 0
    if q == b:
        return INTEGER
    if buf[q] == 46:
        p = q + 1
        q = _digits(buf, p, b)
        if q == p:
            return 0
    if q < b and (buf[q] | 32) == 101:
        p = q + 1
        if p < b and (buf[p] == 43 or buf[p] == 45):
            p += 1
        q = _digits(buf, p, b)
        if q == p:
            return 0
    return FLOAT if q == b else 0


@njit(cache=True, nogil=True, _nrt=False)
def _is_word(buf, a, b, word):
    if b - a != len(word):
        return False
    for i in range(len(word)):
        if buf[a + i] != word[i]:
            return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def _word_kind(buf, a, b):
    """Return the kind of a bare word: a literal, null, a ``nan``/``inf`` spelling, or 0."""
    if _is_word(buf, a, b, b"true") or _is_word(buf, a, b, b"false"):
        return LITERAL
    if _is_word(buf, a, b, b"null"):
        return NULL
    for i in range(a, b - 2):
        x, y, z = buf[i] | 32, buf[i + 1] | 32, buf[i + 2] | 32
        if i <= a + 3 and ((x == 110 and y == 97 and z == 110) or (x == 105 and y == 110 and (z == 102 or z == 100))):
            return MISSING  # NaN, -nan, nan(ind), inf, Infinity, 1.#INF, -1.#IND
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def _bare(buf, p, end, s):
    """Read a number, literal or ``nan``/``inf`` word at p; sets S_KIND, S_A, S_B."""
    q = p
    while q < end:
        c = buf[np.uint64(q)]
        if not (48 <= c <= 57 or c == 46 or c == 45 or c == 43 or 97 <= (c | 32) <= 122 or c == 35 or c == 95 or c == 40 or c == 41):
            break
        q += 1
    if q >= end:
        return _more(s, p)
    kind = number_kind(buf, p, q) if q > p else 0
    if kind == 0:
        kind = _word_kind(buf, p, q)
    if kind == 0:
        return _bad(s, p, WHY_VALUE)
    s[S_KIND], s[S_A], s[S_B], s[S_SCRATCH] = kind, p, q, 0
    return q


@njit(cache=True, nogil=True, _nrt=False)
def _copy(buf, a, b, out, n):
    for i in range(a, b):
        out[n] = buf[i]
        n += 1
    return n


@njit(cache=True, nogil=True, _nrt=False)
def _copy_string(buf, a, b, out, n):
    """Copy a string with its quotes, control characters escaped; the caller left room for 6 bytes each."""
    for i in range(a, b):
        c = buf[i]
        if c < 32:
            out[n], out[n + 1], out[n + 2], out[n + 3] = 92, 117, 48, 48
            out[n + 4] = 48 + (c >> 4)
            out[n + 5] = 48 + (c & 15) if (c & 15) < 10 else 87 + (c & 15)
            n += 6
        else:
            out[n] = c
            n += 1
    return n


@njit(cache=True, nogil=True, _nrt=False)
def _nested(buf, p, end, s, out):
    """Read an array or object at p; out holds it as strict JSON without white space, S_A, S_B its range there."""
    # long: one state machine over bytes; a call per byte would cost more than it tells
    depth, n, want = 0, 0, 0  # want: 0 value, 1 value or ], 2 key or }, 3 key, 4 comma or close
    while True:
        p = skip_space(buf, p, end)
        if p >= end:
            return _more(s, p)
        c = buf[p]
        if want == 4:
            if c == 44:
                want = 3 if s[S_STACK + depth - 1] == 123 else 0
            elif c == s[S_STACK + depth - 1] + 2:
                depth -= 1
            else:
                return _bad(s, p, WHY_COMMA)
            p += 1
        elif (want == 1 and c == 93) or (want == 2 and c == 125):
            depth, want = depth - 1, 4
            p += 1
        elif want == 2 or want == 3:
            if c != 34:
                return _bad(s, p, WHY_KEY)
            q = _string(buf, p, end, s)
            if q < 0:
                return q
            if n + 6 * (q - p) + 8 > len(out):
                return FULL
            n = _copy_string(buf, p, q, out, n)
            p = skip_space(buf, q, end)
            if p >= end:
                return _more(s, p)
            if buf[p] != 58:
                return _bad(s, p, WHY_COLON)
            p, want, c = p + 1, 0, 58
        elif c == 123 or c == 91:
            if depth == MAX_DEPTH:
                return _bad(s, p, WHY_DEPTH)
            s[S_STACK + depth] = c
            depth, want, p = depth + 1, 2 if c == 123 else 1, p + 1
        else:
            q = _string(buf, p, end, s) if c == 34 else _bare(buf, p, end, s)
            if q < 0:
                return q
            if n + 6 * (q - p) + 8 > len(out):
                return FULL
            if c == 34:
                n = _copy_string(buf, p, q, out, n)
            elif s[S_KIND] == MISSING:
                out[n], out[n + 1], out[n + 2], out[n + 3] = 110, 117, 108, 108
                n += 4
            else:
                n = _copy(buf, p, q, out, n)
            p, want, c = q, 4, 0
        if c != 0:
            if n + 8 > len(out):
                return FULL
            out[n] = c
            n += 1
        if depth == 0:
            s[S_KIND], s[S_A], s[S_B], s[S_SCRATCH] = NESTED, 0, n, 1
            return p


@njit(cache=True, nogil=True, _nrt=False)
def _text(buf, p, end, s, out):
    """Read a string at p and decode it; sets S_KIND, S_A, S_B, S_SCRATCH."""
    q = _string(buf, p, end, s)
    if q < 0:
        return q
    if s[S_KIND] == 1:
        if s[S_B] - s[S_A] > len(out):
            return FULL
        s[S_B] = _unescape(buf, s[S_A], s[S_B], out)
        s[S_A], s[S_SCRATCH] = 0, 1
    else:
        s[S_SCRATCH] = 0
    s[S_KIND] = STRING
    return q


@njit(cache=True, nogil=True, _nrt=False)
def read_value(buf, p, end, s, out):
    """Read any value at p (white space before it is skipped)."""
    p = skip_space(buf, p, end)
    if p >= end:
        return _more(s, p)
    c = buf[p]
    if c == 34:
        return _text(buf, p, end, s, out)
    if c == 123 or c == 91:
        return _nested(buf, p, end, s, out)
    return _bare(buf, p, end, s)


@njit(cache=True, nogil=True, _nrt=False)
def _integer(buf, a, b):
    """Return (fits, value) of the integer text [a, b)."""
    negative = buf[a] == 45
    p, value = a + 1 if negative else a, np.int64(0)
    for i in range(p, b):
        d = np.int64(buf[i]) - 48
        if value < -922337203685477580 or (value == -922337203685477580 and d > (8 if negative else 7)):
            return False, np.int64(0)
        value = value * 10 - d
    return True, value if negative else -value


@njit(cache=True, nogil=True, _nrt=False)
def nanoseconds(buf, a, b):
    """Return (fits, ns) of a decimal number of microseconds, exact, half away from zero at the fourth decimal."""
    negative = buf[a] == 45
    p = a + 1 if negative else a
    dot, e = b, b
    for i in range(p, b):
        if buf[i] == 46:
            dot = i
        elif (buf[i] | 32) == 101:
            e = i
            break
    power = np.int64(0)
    if e < b:
        q = e + 1
        if buf[q] == 43 or buf[q] == 45:
            q += 1
        for i in range(q, b):
            power = min(power * 10 + np.int64(buf[i]) - 48, 100000)
        if buf[e + 1] == 45:
            power = -power
    keep = min(dot, e) - p + power + 3  # digits of the mantissa that are whole nanoseconds
    value, k, up = np.int64(0), np.int64(0), False
    for i in range(p, e):
        if buf[i] == 46:
            continue
        d = np.int64(buf[i]) - 48
        if k < keep:
            if value > (9223372036854775806 - d) // 10:
                return False, np.int64(0)
            value = value * 10 + d
        elif k == keep:
            up = d >= 5
        k += 1
    while k < keep and value > 0:
        if value > 922337203685477579:
            return False, np.int64(0)
        value, k = value * 10, k + 1
    if up:
        value += 1
    return True, -value if negative else value


@njit(cache=True, nogil=True, _nrt=False)
def intern(src, a, b, t, s):
    """Return the number of the string src[a:b], adding it if it is new, or GROW."""
    h = np.uint64(14695981039346656037)
    for i in range(a, b):
        h = (h ^ np.uint64(src[np.uint64(i)])) * np.uint64(1099511628211)
    h ^= h >> np.uint64(29)
    mask = len(t.table) - 1
    slot = np.int64(h & np.uint64(mask))
    length = b - a
    while t.table[slot] >= 0:
        i = t.table[slot]
        if t.hash[i] == h:
            o = t.offset[i]
            if t.offset[i + 1] - o == length:
                same = True
                for j in range(length):
                    if t.heap[np.uint64(o + j)] != src[np.uint64(a + j)]:
                        same = False
                        break
                if same:
                    return np.int64(i)
        slot = (slot + 1) & mask
    n = s[S_STRINGS]
    if n >= len(t.hash) or s[S_HEAP] + length > len(t.heap):
        s[S_FULL] = FULL_STRINGS if n >= len(t.hash) else FULL_HEAP
        return np.int64(GROW)
    t.table[slot], t.hash[n], t.key[n] = n, h, -1
    _copy(src, a, b, t.heap, s[S_HEAP])
    s[S_HEAP] += length
    t.offset[n + 1] = s[S_HEAP]
    s[S_STRINGS] = n + 1
    return n


@njit(cache=True, nogil=True, _nrt=False)
def _intern_last(buf, out, t, s):
    if s[S_KIND] == NULL or s[S_KIND] == MISSING:
        return np.int64(0)
    return intern(out if s[S_SCRATCH] == 1 else buf, s[S_A], s[S_B], t, s)


@njit(cache=True, nogil=True, _nrt=False)
def rehash(t, n):
    """Fill the empty table of t with its first n strings."""
    mask = len(t.table) - 1
    for i in range(n):
        slot = np.int64(t.hash[i] & np.uint64(mask))
        while t.table[slot] >= 0:
            slot = (slot + 1) & mask
        t.table[slot] = i


@njit(cache=True, nogil=True, _nrt=False)
def _key(buf, p, end, s, out):
    """Read a key and its colon; return the position of the value."""
    if buf[p] != 34:
        return _bad(s, p, WHY_KEY)
    q = _text(buf, p, end, s, out)
    if q < 0:
        return q
    q = skip_space(buf, q, end)
    if q >= end:
        return _more(s, q)
    if buf[q] != 58:
        return _bad(s, q, WHY_COLON)
    q = skip_space(buf, q + 1, end)
    return q if q < end else _more(s, q)


@njit(cache=True, nogil=True, _nrt=False)
def _after(buf, p, end, s):
    """After a member: return the position of the next key, or of the closing brace."""
    p = skip_space(buf, p, end)
    if p >= end:
        return _more(s, p)
    if buf[p] == 125:
        return p
    if buf[p] != 44:
        return _bad(s, p, WHY_COMMA)
    p = skip_space(buf, p + 1, end)
    if p >= end:
        return _more(s, p)
    return p if buf[p] == 34 else _bad(s, p, WHY_KEY)


@njit(cache=True, nogil=True, _nrt=False)
def _arguments(buf, p, end, s, out, t, args, event):
    """Read the object of arguments at p into args."""
    p = skip_space(buf, p + 1, end)
    if p >= end:
        return _more(s, p)
    while buf[p] != 125:
        p = _key(buf, p, end, s, out)
        if p < 0:
            return p
        name = _intern_last(buf, out, t, s)
        p = read_value(buf, p, end, s, out) if name >= 0 else name
        if p < 0:
            return p
        if s[S_KIND] == MISSING:
            s[S_MISSING] += 1
        else:
            n = s[S_ARGS]
            if n >= len(args.event):
                s[S_FULL] = FULL_ARGS
                return np.int64(GROW)
            is_text, value = True, np.int64(0)
            if s[S_KIND] == INTEGER:
                fits, value = _integer(buf, s[S_A], s[S_B])
                is_text = not fits
            if is_text:
                value = intern(out if s[S_SCRATCH] == 1 else buf, s[S_A], s[S_B], t, s)
                if value < 0:
                    return value
            if t.key[name] < 0:
                t.key[name] = s[S_KEYS]
                s[S_KEYS] += 1
            args.event[n], args.key[n], args.value[n], args.is_text[n] = event, t.key[name], value, is_text
            s[S_ARGS] = n + 1
        p = _after(buf, p, end, s)
        if p < 0:
            return p
    return p + 1


@njit(cache=True, nogil=True, _nrt=False)
def _time(buf, out, s, r, field, has):
    """Store the last value as nanoseconds: a number, or a string that holds one."""
    src = out if s[S_SCRATCH] == 1 else buf
    r[has] = 0
    kind = s[S_KIND]
    if kind == STRING:
        kind = number_kind(src, s[S_A], s[S_B])
    if kind == INTEGER or kind == FLOAT:
        fits, r[field] = nanoseconds(src, s[S_A], s[S_B])
        limit = MAX_START if field == R_TS else MAX_DUR
        fits = fits and -limit <= r[field] <= limit
        r[has] = 1 if fits else 0
        r[R_TIME_BAD] |= 0 if fits else 1


@njit(cache=True, nogil=True, _nrt=False)
def _identifier(buf, out, t, s):
    """Return (status, id): the last value as an integer, or -2 - its string."""
    src = out if s[S_SCRATCH] == 1 else buf
    kind = s[S_KIND]
    if kind == STRING:
        kind = number_kind(src, s[S_A], s[S_B])
    if kind == INTEGER:
        fits, value = _integer(src, s[S_A], s[S_B])
        if fits:
            return np.int64(0), value
    i = _intern_last(buf, out, t, s)
    return (i, np.int64(0)) if i < 0 else (np.int64(0), -2 - i)


@njit(cache=True, nogil=True, _nrt=False)
def _field(src, a, b):
    """Return which field of `R_*` the key [a, b) is, or -1."""
    n = b - a
    if n == 2:
        if src[a] == 116 and src[a + 1] == 115:
            return R_TS
        if src[a] == 112 and src[a + 1] == 104:
            return R_PH
        if src[a] == 105 and src[a + 1] == 100:
            return R_ID
    elif n == 3:
        if src[a + 1] == 105 and src[a + 2] == 100:
            return R_PID if src[a] == 112 else R_TID if src[a] == 116 else -1
        if _is_word(src, a, b, b"cat"):
            return R_CAT
        if _is_word(src, a, b, b"dur"):
            return R_DUR
    elif n == 4:
        if _is_word(src, a, b, b"name"):
            return R_NAME
        if _is_word(src, a, b, b"args"):
            return R_ARGS
    return -1


@njit(cache=True, nogil=True, _nrt=False)
def _record(buf, p, end, s, r, out, t, args):
    """Read the record at p into r and its arguments into args; nothing is committed yet."""
    for i in range(R_SIZE):
        r[i] = 0
    s[S_SCRATCH] = 0
    first, event = s[S_ARGS], s[S_EVENTS]
    p = skip_space(buf, p + 1, end)
    if p >= end:
        return _more(s, p)
    while buf[p] != 125:
        p = _key(buf, p, end, s, out)
        if p < 0:
            return p
        r[R_FIELDS] += 1
        field = _field(out if s[S_SCRATCH] == 1 else buf, s[S_A], s[S_B])
        if field == R_ARGS:
            s[S_ARGS] = first
            if buf[p] == 123:
                p = _arguments(buf, p, end, s, out, t, args, event)
            else:
                p = read_value(buf, p, end, s, out)
        else:
            p = read_value(buf, p, end, s, out)
            if p >= 0 and field >= 0:
                status = np.int64(0)
                if field == R_TS:
                    _time(buf, out, s, r, R_TS, R_HAS_TS)
                elif field == R_DUR:
                    _time(buf, out, s, r, R_DUR, R_HAS_DUR)
                elif field == R_PH:
                    one = s[S_KIND] == STRING and s[S_B] == s[S_A] + 1
                    r[R_PH] = (out if s[S_SCRATCH] == 1 else buf)[s[S_A]] if one else 0
                elif field == R_ID:
                    status, r[R_ID] = _identifier(buf, out, t, s)
                else:
                    status = _intern_last(buf, out, t, s)
                    r[field] = status
                if status < 0:
                    return status
        if p < 0:
            return p
        p = _after(buf, p, end, s)
        if p < 0:
            return p
    return p + 1


@njit(cache=True, nogil=True, _nrt=False)
def _commit(s, r, first, t, cols, args, flows, metas):
    """Store the record in r in the table of its phase; False if that table is full."""
    ph = r[R_PH]
    keep_args = False
    half = ph == 66 or ph == 69
    if r[R_HAS_TS] == 1 and (half or (ph == 88 and r[R_HAS_DUR] == 1)):
        n = s[S_EVENTS]
        if n >= len(cols.start):
            s[S_FULL] = FULL_COLUMNS
            return False
        cols.start[n], cols.name[n] = r[R_TS], r[R_NAME]
        cols.dur[n] = r[R_DUR] if not half else BEGIN if ph == 66 else END
        cols.cat[n], cols.pid[n], cols.tid[n] = r[R_CAT], r[R_PID], r[R_TID]
        s[S_EVENTS], keep_args = n + 1, True
    elif ph == 88 or half:
        s[S_OVERFLOW if r[R_TIME_BAD] == 1 else S_NO_TIME if r[R_HAS_TS] == 0 else S_NO_DUR] += 1
    elif ph == 115 or ph == 116 or ph == 102:
        if r[R_HAS_TS] == 0:
            s[S_ARGS] = first
            s[S_OVERFLOW if r[R_TIME_BAD] == 1 else S_NO_TIME] += 1
            return True
        n = s[S_FLOWS]
        if n >= len(flows.id):
            s[S_FULL] = FULL_FLOWS
            return False
        flows.id[n], flows.start[n], flows.cat[n], flows.phase[n] = r[R_ID], r[R_TS], r[R_CAT], ph
        flows.pid[n], flows.tid[n] = r[R_PID], r[R_TID]
        s[S_FLOWS] = n + 1
    elif ph == 77 and 3 <= r[R_NAME] <= 5:
        for i in range(first, s[S_ARGS]):
            if args.is_text[i] and (args.key[i] == t.key[1] or args.key[i] == t.key[2]):
                n = s[S_METAS]
                if n >= len(metas.what):
                    s[S_FULL] = FULL_METAS
                    return False
                metas.what[n], metas.pid[n], metas.tid[n], metas.value[n] = r[R_NAME], r[R_PID], r[R_TID], args.value[i]
                s[S_METAS] = n + 1
                break
    if not keep_args:
        s[S_ARGS] = first
    return True


@njit(cache=True, nogil=True, _nrt=False)
def scan(buf, end, s, r, phases, out, t, cols, args, flows, metas):
    """Read records from s[S_POS] until the bytes end, an array is full, the JSON breaks, or the array of records closes.

    s[S_STATE] is 0 before the first record, 1 after a record, 2 after a comma. On return s[S_POS] is the start of the record
    (or separator) that could not be read whole, and nothing of it has been stored.
    """
    while True:
        p = skip_space(buf, s[S_POS], end)
        s[S_POS] = p
        if p >= end:
            return _more(s, p)
        c = buf[p]
        if c == 93:
            s[S_COMMA] += 1 if s[S_STATE] == 2 else 0
            s[S_POS] = p + 1
            return DONE
        if s[S_STATE] == 1:
            if c != 44:
                return _bad(s, p, WHY_COMMA)
            s[S_POS], s[S_STATE] = p + 1, 2
            continue
        first, missing = s[S_ARGS], s[S_MISSING]
        q = _record(buf, p, end, s, r, out, t, args) if c == 123 else read_value(buf, p, end, s, out)
        if q < 0 or (c == 123 and not _commit(s, r, first, t, cols, args, flows, metas)):
            s[S_ARGS], s[S_MISSING] = first, missing
            return q if q < 0 else GROW
        s[S_RECORDS] += 1
        if c != 123:
            s[S_NOT_OBJECT] += 1
        elif r[R_FIELDS] == 0:
            s[S_EMPTY] += 1
        else:
            s[S_NO_PH] += 1 if r[R_PH] == 0 else 0
            phases[r[R_PH]] += 1
        s[S_POS], s[S_STATE] = q, 1


@njit(cache=True, nogil=True, _nrt=False)
def resync(buf, p, end):
    """Return the next ``{`` or ``]`` that may follow a damaged record, after ``}`` (and a comma); else -1 - where to go on."""
    while p < end:
        if buf[p] == 125:
            q = skip_space(buf, p + 1, end)
            if q < end and buf[q] == 44:
                q = skip_space(buf, q + 1, end)
            if q >= end:
                return -1 - p
            if buf[q] == 123 or buf[q] == 93:
                return q
        p += 1
    return -1 - p


@njit(cache=True, nogil=True, _nrt=False)
def is_record(buf, p, end, s, r, out, t, args):
    """Return 1 if a whole record with a phase starts at p, 0 if not, or a status; stores nothing."""
    first, missing = s[S_ARGS], s[S_MISSING]
    q = _record(buf, p, end, s, r, out, t, args)
    s[S_ARGS], s[S_MISSING] = first, missing
    if q == MORE or q == GROW or q == FULL:
        return q
    return 1 if q >= 0 and r[R_PH] != 0 else 0


@njit(cache=True, nogil=True, _nrt=False)
def closes(buf, p, end, s, out, in_object, at_end):
    """Return 1 if after the bracket at p - 1 only members and the end of the file follow, 0 if not, or `MORE` / `FULL`."""
    while True:
        p = skip_space(buf, p, end)
        if p >= end:
            return MORE if not at_end else 0 if in_object else 1
        if not in_object:
            return 0
        if buf[p] == 125:
            p, in_object = p + 1, False
            continue
        q = skip_space(buf, p + 1, end)
        if buf[p] != 44 or q >= end:
            return 0 if buf[p] != 44 or at_end else MORE
        q = _key(buf, q, end, s, out)
        q = read_value(buf, q, end, s, out) if q >= 0 else q
        if q < 0:
            return q if q == FULL or (q == MORE and not at_end) else 0
        p = q
