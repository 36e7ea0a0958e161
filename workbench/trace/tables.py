"""The scanner's output arrays: they start small and grow by half when full."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from workbench.trace import kernels_json as kj

_Rows = TypeVar("_Rows", kj.Columns, kj.Arguments, kj.FlowRows, kj.MetaRows)

COLUMNS = ("i8", "i8", "i4", "i4", "i4", "i4")
ARGUMENTS = ("i4", "i4", "i8", "?")
FLOWS = ("i8", "i8", "i4", "i4", "i4", "u1")
METAS = ("i4", "i4", "i4", "i4")


def _empty(kind: type[_Rows], types: tuple[str, ...], rows: int) -> _Rows:
    return kind(*(np.empty(rows, dtype) for dtype in types))


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    new = np.empty(size, array.dtype)
    new[: len(array)] = array
    return new


def cut(rows: _Rows, count: int) -> _Rows:
    """Return the first ``count`` rows of a table (views)."""
    return type(rows)(*(array[:count] for array in rows))


class Tables:
    """Strings, columns, arguments, flows and names, filled by `kernels_json.scan`.

    Parameters
    ----------
    s : ndarray, int64
        The scanner's state; its counters say how full each table is.
    """

    def __init__(self, s: np.ndarray) -> None:
        self._s = s
        table, size = np.full(4096, -1, np.int32), 1024
        offset, heap = np.zeros(size + 1, np.int64), np.empty(1 << 16, np.uint8)
        self.strings = kj.Strings(table, np.empty(size, np.uint64), offset, np.empty(size, np.int32), heap)
        self.columns = _empty(kj.Columns, COLUMNS, 4096)
        self.args = _empty(kj.Arguments, ARGUMENTS, 16384)
        self.flows = _empty(kj.FlowRows, FLOWS, 1024)
        self.metas = _empty(kj.MetaRows, METAS, 1024)
        for text in kj.FIXED:
            raw = np.frombuffer(text.encode(), np.uint8).copy()
            kj.intern(raw, 0, len(raw), self.strings, s)

    def grow(self) -> None:
        """Enlarge the table that was full."""
        which = int(self._s[kj.S_FULL])
        if which < kj.FULL_STRINGS:
            name = ("columns", "args", "flows", "metas")[which]
            rows = getattr(self, name)
            setattr(self, name, type(rows)(*(_grown(array, 3 * len(array) // 2) for array in rows)))
        elif which == kj.FULL_HEAP:
            self.strings = self.strings._replace(heap=_grown(self.strings.heap, 2 * len(self.strings.heap)))
        else:
            t, size = self.strings, 2 * len(self.strings.hash)
            table = np.full(4 * size, -1, np.int32)
            self.strings = kj.Strings(table, _grown(t.hash, size), _grown(t.offset, size + 1), _grown(t.key, size), t.heap)
            kj.rehash(self.strings, int(self._s[kj.S_STRINGS]))
