"""Profiles of TensorFlow, JAX and XLA (``*.xplane.pb``): planes are processes, lines are threads and streams.

Field numbers after xplane.proto (openxla/xla, tsl/profiler/protobuf): XSpace planes = 1; XPlane name = 2, lines = 3,
event_metadata = 4, stat_metadata = 5, stats = 6; XLine id = 1, name = 2, timestamp_ns = 3, events = 4, display_id = 10,
display_name = 11; XEventMetadata id = 1, name = 2, display_name = 4, stats = 5; XStatMetadata id = 1, name = 2.
What comes out has the form of a scanned Chrome trace, so that lanes, categories and links are found in one place (`kineto`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from workbench.trace import kernels_json as kj
from workbench.trace import kernels_proto as kp
from workbench.trace.protobuf import BrokenMessage, Message
from workbench.trace.scanner import Damage, Records

PLANES = ("/host:", "/device:", "Task Environment", "#Chip", "/")
ENVIRONMENT = "Task Environment"
_TOP = (1, 2, 3, 4)  # planes, errors, warnings, hostnames


class _Stats(NamedTuple):
    event: np.ndarray
    key: np.ndarray
    kind: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass
class _Building:
    """What grows while planes are read."""

    data: np.ndarray
    number: dict[str, int] = field(default_factory=lambda: {"": 0})
    columns: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    arguments: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    metas: list[tuple[int, int, int, int]] = field(default_factory=list)
    keys: dict[int, int] = field(default_factory=dict)
    top: dict[str, object] = field(default_factory=dict)
    events: int = 0
    aggregates: int = 0

    def string(self, text: str) -> int:
        """Return the number of a text."""
        return self.number.setdefault(text, len(self.number))

    def key(self, text: str) -> int:
        """Return the number of an argument's name."""
        return self.keys.setdefault(self.string(text), len(self.keys))


def is_xplane(data: np.ndarray) -> bool:
    """Whether bytes (at least the first few thousand of a file) begin an XSpace: a plane with a name a profiler gives."""
    number, wire, low, _, after = kp.step(data, 0, len(data)) if len(data) > 8 else (0, 0, 0, 0, -1)
    if after < 0:  # the first plane is longer than the sample: take what is there
        key, at = kp.varint(data, 0, len(data))
        size, low = kp.varint(data, at, len(data)) if at >= 0 else (0, -1)
        number, wire = key >> 3, key & 7
        if low < 0 or size <= 0:
            return False
    if number != 1 or wire != kp.BYTES:
        return False
    at = int(low)
    for _ in range(3):  # id, name
        n, w, first, last, at = kp.step(data, at, len(data))
        if at < 0:
            return False
        if n == 2 and w == kp.BYTES:
            return data[first:last].tobytes().decode("utf-8", "replace").startswith(PLANES)
    return False


def read_xplane(data: np.ndarray, digest: str, salvage: bool) -> Records:
    """Return the records of a profile.

    Parameters
    ----------
    data : ndarray of uint8
        The whole file.
    digest : str
        Of the file.
    salvage : bool
        Keep the planes before a damage; else it is raised.

    Raises
    ------
    BrokenMessage
        The bytes are damaged (with ``salvage``: nothing whole comes before).
    """
    made, damage = _Building(data), []
    at = 0
    while at < len(data):
        number, wire, low, high, after = kp.step(data, at, len(data))
        try:
            if after < 0 or number not in _TOP:
                raise BrokenMessage(at)
            if number == 1 and wire == kp.BYTES:
                _plane(made, Message(data, low, high))
        except BrokenMessage as fault:
            if not salvage or not made.events:
                raise
            until = int(after) if after > 0 and number in _TOP else len(data)
            damage.append(Damage(at, fault.offset, until, str(fault)))
            after = until
        at = after
    return _records(made, damage, digest)


def _plane(made: _Building, plane: Message) -> None:
    name, lines, kinds, stats, own = "", [], {}, {}, []
    for f in plane:
        if f.number == 2:
            name = plane.text(f)
        elif f.number == 3:
            lines.append(plane.part(f))
        elif f.number == 4:
            kinds.update(_entry(plane.part(f)))
        elif f.number == 5:
            stats.update(_entry(plane.part(f)))
        elif f.number == 6:
            own.append((f.low, f.high))
    words = {number: (texts[0] if (texts := message.texts(2)) else "") for number, message in stats.items()}
    described = _Described(made, kinds, words)
    if name == ENVIRONMENT:
        made.top |= {key: value for key, value in described.values(own)}
    pid = made.string(name)
    made.metas.append((made.string("process_name"), pid, 0, pid))
    for line in lines:
        _line(made, line, pid, described)


def _entry(message: Message) -> dict[int, Message]:
    """Return one entry of a map<int64, message>."""
    key, value = 0, None
    for f in message:
        if f.number == 1:
            key = f.low
        elif f.number == 2:
            value = message.part(f)
    return {key: value} if value is not None else {}


class _Described:
    """Names and statistics that events of a plane share."""

    def __init__(self, made: _Building, kinds: dict[int, Message], words: dict[int, str]) -> None:
        self.made, self.words = made, words
        self.name: dict[int, int] = {}
        self.shared: dict[int, list[tuple[str, object]]] = {}
        for number, message in kinds.items():
            long, short = message.texts(2), message.texts(4)
            self.name[number] = made.string((short or long or [""])[0])
            values = self.values([(f.low, f.high) for f in message if f.number == 5])
            if short and long and long[0] != short[0]:
                values.append(("long_name", long[0]))
            if values:
                self.shared[number] = values

    def values(self, places: list[tuple[int, int]]) -> list[tuple[str, object]]:
        """Return (name, value) of statistics lying at some places."""
        out: list[tuple[str, object]] = []
        for low, high in places:
            row = np.zeros((4, 1), np.int64)
            if kp.statistic(self.made.data, low, high, 0, *row) < 0:
                raise BrokenMessage(low)
            key, kind, first, last = row[:, 0].tolist()
            value: object = first
            if kind == kp.REAL:
                value = float(np.array(first, np.int64).view(np.float64))
            elif kind != kp.INTEGER:
                value = self.text(kind, first, last)
            out.append((self.words.get(key, str(key)), value))
        return out

    def text(self, kind: int, first: int, last: int) -> str:
        """Return the text of a statistic: its own bytes, or the name it refers to."""
        if kind == kp.REFERENCE:
            return self.words.get(first, "")
        return self.made.data[first:last].tobytes().decode("utf-8", "replace")


def _line(made: _Building, line: Message, pid: int, described: _Described) -> None:
    number, wire, low, high = line.columns()
    rows = np.flatnonzero((number == 4) & (wire == kp.BYTES))
    ids = {int(n): int(v) for n, w, v in zip(number, wire, low, strict=True) if w == kp.VARINT}
    names = {int(n): line.data[a:b].tobytes().decode("utf-8", "replace") for n, a, b in _texts(number, wire, low, high)}
    tid = made.string(str((ids.get(10) or ids.get(1, 0)) & (2**64 - 1)))
    made.metas.append((made.string("thread_name"), pid, tid, made.string(names.get(11) or names.get(2, ""))))
    out = np.zeros((len(rows), 4), np.int64)
    at = kp.events(line.data, low[rows], high[rows], out)
    if at < 0:
        raise BrokenMessage(-1 - at)
    kept = out[:, 1] >= 0
    made.aggregates += int((~kept).sum())
    rows, out = rows[kept], out[kept]
    start = ids.get(3, 0) + (out[:, 1] + 500) // 1000
    kinds, inverse = np.unique(out[:, 0], return_inverse=True)
    name = np.array([described.name.get(int(k), 0) for k in kinds], np.int32)[inverse] if len(kinds) else np.empty(0, np.int32)
    same = np.ones(len(rows), np.int32)
    made.columns.append((start, (out[:, 2] + 500) // 1000, name, 0 * same, pid * same, tid * same))
    _arguments(made, described, line.data, low[rows], high[rows], out)
    made.events += len(rows)


def _texts(number: np.ndarray, wire: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[tuple[int, int, int]]:
    rows = np.flatnonzero((wire == kp.BYTES) & ((number == 2) | (number == 11)))
    return list(zip(number[rows].tolist(), low[rows].tolist(), high[rows].tolist(), strict=True))


def _arguments(made: _Building, described: _Described, data: np.ndarray, low: np.ndarray, high: np.ndarray, out: np.ndarray) -> None:
    """Add the statistics of a line's events, and those their kinds share."""
    stats = _Stats(*np.zeros((5, int(out[:, 3].sum())), np.int64))
    at = kp.statistics(data, low, high, *stats)
    if at < 0:
        raise BrokenMessage(-1 - at)
    keys, inverse = np.unique(stats.key, return_inverse=True)
    key = np.array([made.key(described.words.get(int(k), str(k))) for k in keys], np.int32)[inverse] if len(keys) else np.empty(0, np.int32)
    value, is_text = stats.low.copy(), stats.kind != kp.INTEGER
    for row in np.flatnonzero(is_text).tolist():
        kind, first, last = int(stats.kind[row]), int(stats.low[row]), int(stats.high[row])
        text = repr(float(np.array(first, np.int64).view(np.float64))) if kind == kp.REAL else described.text(kind, first, last)
        value[row] = made.string(text)
    made.arguments.append((stats.event + made.events, key, value, is_text))
    for kind in set(out[:, 0].tolist()) & described.shared.keys():
        rows = np.flatnonzero(out[:, 0] == kind) + made.events
        for word, said in described.shared[kind]:
            plain = isinstance(said, int) and -(2**63) <= said < 2**63
            number = said if plain else made.string(said if isinstance(said, str) else repr(said))
            fill = np.ones(len(rows), np.int64)
            made.arguments.append((rows, made.key(word) * fill, number * fill, fill == (0 if plain else 1)))  # type: ignore[operator]


def _joined(parts: list[tuple[np.ndarray, ...]], types: tuple[type, ...]) -> list[np.ndarray]:
    """Return columns joined row by row, each of its type."""
    if not parts:
        return [np.empty(0, kind) for kind in types]
    return [np.concatenate(column).astype(kind) for column, kind in zip(zip(*parts, strict=True), types, strict=True)]


def _records(made: _Building, damage: list[Damage], digest: str) -> Records:
    columns = kj.Columns(*_joined(made.columns, (np.int64, np.int64, np.int32, np.int32, np.int32, np.int32)))
    event, key, value, is_text = _joined(made.arguments, (np.int32, np.int32, np.int64, np.bool_))
    order = np.argsort(event, kind="stable")
    flows = kj.FlowRows(*(np.empty(0, kind) for kind in (np.int64, np.int64, np.int32, np.int32, np.int32, np.uint8)))
    metas = kj.MetaRows(*np.array(made.metas or np.empty((0, 4)), np.int32).reshape(-1, 4).T.copy())
    keys = np.full(len(made.number), -1, np.int32)
    for string, at in made.keys.items():
        keys[string] = at
    base = made.top.get("profile_start_time")
    if isinstance(base, int) and len(columns.start) and int(columns.start.max()) < base:
        made.top["baseTimeNanoseconds"] = base
    counters = dict.fromkeys(("no_dur", "no_time", "overflow", "empty", "not_object", "no_ph", "comma", "missing"), 0)
    counters |= {"records": made.events, "aggregates": made.aggregates}
    arguments = kj.Arguments(event[order], key[order], value[order], is_text[order])
    return Records(
        columns, arguments, flows, metas, list(made.number), keys, counters, {"X": made.events}, made.top, damage, "xplane", digest,
        len(made.data), True,
    )  # fmt: skip
