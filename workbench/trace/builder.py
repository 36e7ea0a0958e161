"""Rows of a reader that has no JSON -> the form of a scanned Chrome trace, so that lanes, categories and links are found in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.trace import kernels_json as kj
from workbench.trace.scanner import Damage, Records

COUNTERS = ("no_dur", "no_time", "overflow", "empty", "not_object", "no_ph", "comma", "missing")
MOST = 2**62


@dataclass
class Builder:
    """Events added one by one; `records` joins them to columns.

    Attributes
    ----------
    top : dict
        What the file says of itself; becomes the rank's metadata.
    """

    top: dict[str, object] = field(default_factory=dict)
    _number: dict[str, int] = field(default_factory=lambda: {"": 0})
    _keys: dict[int, int] = field(default_factory=dict)
    _events: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    _args: list[tuple[int, int, int, bool]] = field(default_factory=list)
    _metas: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._events)

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
        event = len(self._events)
        self._events.append((start, dur, self.string(name), self.string(category), self.string(where[0]), self.string(where[1])))
        for key, value in args.items():
            if value is None or value == "":
                continue
            at = self._keys.setdefault(self.string(key), len(self._keys))
            plain = isinstance(value, int) and not isinstance(value, bool) and -MOST < value < MOST
            self._args.append((event, at, value if plain else self.string(str(value)), not plain))  # type: ignore[arg-type]

    def records(self, layout: str, digest: str, size: int, damage: list[Damage] | None = None, **counters: int) -> Records:
        """Return what was added, as the scanner would."""
        columns = kj.Columns(*_table(self._events, (np.int64, np.int64, np.int32, np.int32, np.int32, np.int32)))
        arguments = kj.Arguments(*_table(self._args, (np.int32, np.int32, np.int64, np.bool_)))
        flows = kj.FlowRows(*(np.empty(0, kind) for kind in (np.int64, np.int64, np.int32, np.int32, np.int32, np.uint8)))
        metas = kj.MetaRows(*_table(self._metas, (np.int32,) * 4))
        keys = np.full(len(self._number), -1, np.int32)
        for text, at in self._keys.items():
            keys[text] = at
        counts = dict.fromkeys(COUNTERS, 0) | {"records": len(self)} | counters
        strings = list(self._number)
        phases = {"X": len(self)}
        return Records(columns, arguments, flows, metas, strings, keys, counts, phases, self.top, damage or [], layout, digest, size, True)


def _table(rows: Sequence[tuple[int, ...]], types: tuple[type, ...]) -> list[np.ndarray]:
    if not rows:
        return [np.empty(0, kind) for kind in types]
    return [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
