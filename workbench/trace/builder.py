"""Rows of a reader that has no JSON -> the form of a scanned Chrome trace, so that lanes, categories and links are found in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.trace import kernels_json as kj
from workbench.trace.scanner import Damage, Records

COUNTERS = ("no_dur", "no_time", "overflow", "empty", "not_object", "no_ph", "comma", "missing")
MOST = 2**62
Columns = Mapping[str, tuple[np.ndarray, np.ndarray | bool, np.ndarray]]
"""Arguments in columns: (value, is text, has it)."""


@dataclass
class Builder:
    """Events added one by one or in columns; `records` joins them.

    Attributes
    ----------
    top : dict
        What the file says of itself; becomes the rank's metadata.
    """

    top: dict[str, object] = field(default_factory=dict)
    _number: dict[str, int] = field(default_factory=lambda: {"": 0})
    _keys: dict[int, int] = field(default_factory=dict)
    _place: dict[str, int] = field(default_factory=dict)
    _events: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    _args: list[tuple[int, int, int, bool]] = field(default_factory=list)
    _metas: list[tuple[int, int, int, int]] = field(default_factory=list)
    _columns: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    _cells: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    _at: list[int] = field(default_factory=list)
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def string(self, text: str) -> int:
        """Return the number of a text."""
        return self._number.setdefault(text, len(self._number))

    def name(self, pid: str, process: str, tid: str = "", thread: str = "") -> None:
        """Name a process, or a thread of it."""
        at = self.string(pid)
        self._metas.append((self.string("process_name"), at, 0, self.string(process)))
        if tid:
            self._metas.append((self.string("thread_name"), at, self.string(tid), self.string(thread)))

    def add(self, where: tuple[str, str], name: str, category: str, start: int, dur: int, args: Mapping[str, object]) -> None:
        """Add an event.

        Parameters
        ----------
        where : (str, str)
            Process and thread.
        name, category : str
        start, dur : int
            [ns]
        args : mapping
            Whole numbers stay numbers, anything else becomes its text; None and "" are left out.
        """
        event, self._count = self._count, self._count + 1
        self._at.append(event)
        self._events.append((start, dur, self.string(name), self.string(category), self.string(where[0]), self.string(where[1])))
        for key, value in args.items():
            if value is None or value == "":
                continue
            at = self._place.get(key, -1)
            if at < 0:
                at = self._place[key] = self._keys.setdefault(self.string(key), len(self._keys))
            plain = isinstance(value, int) and not isinstance(value, bool) and -MOST < value < MOST
            self._args.append((event, at, value if plain else self.string(str(value)), not plain))  # type: ignore[arg-type]

    def strings(self, texts: Iterable[str]) -> np.ndarray:
        """Return the numbers of texts, int64."""
        return np.array([self.string(text) for text in texts], np.int64)

    def add_columns(
        self, pid: np.ndarray, tid: np.ndarray, name: np.ndarray, category: str, start: np.ndarray, dur: np.ndarray, args: Columns
    ) -> None:
        """Add many events of one category.

        Parameters
        ----------
        pid, tid, name : int64 [N]
            Numbers of texts (`strings`).
        category : str
        start, dur : int64 [N]
            [ns]
        args : mapping of key to (value, is text, has it)
            int64 [N], bool [N] or bool, bool [N].
        """
        first, same = self._count, np.ones(len(start), np.int64)
        self._count += len(start)
        self._columns.append((first + np.arange(len(start)), start, dur, name, self.string(category) * same, pid, tid))
        for key, (value, is_text, has) in args.items():
            if has.any():
                number = self._keys.setdefault(self.string(key), len(self._keys))
                rows = np.flatnonzero(has)
                texts = np.broadcast_to(np.asarray(is_text, bool), has.shape)
                self._cells.append((rows + first, number * same[rows], value[rows], texts[rows]))

    def records(self, layout: str, digest: str, size: int, damage: list[Damage] | None = None, **counters: int) -> Records:
        """Return what was added, as the scanner would."""
        singles = [(at, *event) for at, event in zip(self._at, self._events, strict=True)]
        place, *rest = _joined(singles, self._columns, (np.int64, np.int64, np.int64, np.int32, np.int32, np.int32, np.int32))
        order = np.argsort(place, kind="stable")
        columns = kj.Columns(*(column[order] for column in rest) if self._columns else rest)
        cells = _joined(self._args, self._cells, (np.int32, np.int32, np.int64, np.bool_))
        if self._cells:
            order = np.argsort(cells[0], kind="stable")
            cells = [column[order] for column in cells]
        arguments = kj.Arguments(*cells)
        flows = kj.FlowRows(*(np.empty(0, kind) for kind in (np.int64, np.int64, np.int32, np.int32, np.int32, np.uint8)))
        metas = kj.MetaRows(*_table(self._metas, (np.int32,) * 4))
        keys = np.full(len(self._number), -1, np.int32)
        for text, at in self._keys.items():
            keys[text] = at
        counts = dict.fromkeys(COUNTERS, 0) | {"records": len(self)} | counters
        strings = list(self._number)
        phases = {"X": len(self)}
        return Records(columns, arguments, flows, metas, strings, keys, counts, phases, self.top, damage or [], layout, digest, size, True)


def _joined(rows: Sequence[tuple[int, ...]], blocks: Sequence[tuple[np.ndarray, ...]], types: tuple[type, ...]) -> list[np.ndarray]:
    """Return rows and the blocks behind them as columns."""
    first = _table(rows, types)
    return [np.concatenate((one, *(block[i] for block in blocks))).astype(one.dtype, copy=False) for i, one in enumerate(first)]


def _table(rows: Sequence[tuple[int, ...]], types: tuple[type, ...]) -> list[np.ndarray]:
    if not rows:
        return [np.empty(0, kind) for kind in types]
    return [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
