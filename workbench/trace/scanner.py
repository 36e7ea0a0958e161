"""Streams a JSON trace through the byte-level scanner: a window over the file, tables that grow, damage that is skipped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.errors import UnreadableInput
from workbench.trace import kernels_json as kj
from workbench.trace.ahead import Ahead
from workbench.trace.source import UTF8_BOM, Source, kind_of, line_and_column
from workbench.trace.strangers import stranger
from workbench.trace.tables import Tables, cut
from workbench.trace.window import CHUNK, WHY, Broken, Window

Each = Mapping[str, Callable[[object], None]]


@dataclass(frozen=True)
class Damage:
    """A place that was skipped: its first byte, the byte of the fault, the byte after what was skipped, and the cause."""

    start: int
    offset: int
    until: int
    why: str


@dataclass
class Records:
    """What the scanner read from one file; arrays cut to length."""

    columns: kj.Columns
    args: kj.Arguments
    flows: kj.FlowRows
    metas: kj.MetaRows
    strings: list[str]
    keys: np.ndarray  # int32 per string: its number as an argument key, or -1
    counters: dict[str, int]
    phases: dict[str, int]
    top: dict[str, object] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    layout: str = "object"  # or "array", or "unclosed array"
    digest: str = ""
    size: int = 0
    has_events: bool = False


class Scanner:
    """One pass over one source.

    Parameters
    ----------
    source : Source
        Where the bytes come from.
    salvage : bool
        Skip damaged records instead of refusing.
    chunk : int
        Bytes added to the window at once [B].
    each : mapping, optional
        By key of the file: what is called with every element of the list there, which is not kept; only their number is.
    """

    def __init__(self, source: Source, *, salvage: bool = False, chunk: int = CHUNK, each: Each | None = None) -> None:
        self.source = Ahead(source, chunk) if source.compressed else source
        self.salvage, self.each = salvage, each or {}
        self.s = np.zeros(kj.S_SIZE, np.int64)
        self.window = Window(self.source, chunk, self.s)
        self.r = np.zeros(kj.R_SIZE, np.int64)
        self.phases = np.zeros(256, np.int64)
        self.tables = Tables(self.s)
        self.damage: list[Damage] = []
        self.top: dict[str, object] = {}
        self.layout, self.has_events = "object", False
        self.lost = False  # nothing whole was found behind a damage

    def run(self) -> Records:
        """Read the whole source. Raises `UnreadableInput` (damage without salvage, or no JSON at all)."""
        w = self.window
        while w.fill() and (w.end < 16 or not bytes(w.buf[: w.end]).removeprefix(UTF8_BOM).strip(b" \t\r\n")):
            pass
        head = bytes(w.buf[: w.end]) if w.end < 1 << 16 else bytes(w.buf[: 1 << 16])
        kind = kind_of(head)
        if not kind:
            what, fix = stranger(self.source.path, head)
            raise UnreadableInput(str(self.source.path), f"{self.source.fault or f'is {what}'}: no trace", fix)
        w.start += len(UTF8_BOM) if head.startswith(UTF8_BOM) else 0
        w.peek()
        w.start += 1
        if kind == "array":
            self.layout, self.has_events = "array", True
            self._events()
            self._tail()
        else:
            self._members()
        w.start = w.end
        while w.fill():
            w.start = w.end
        if self.source.fault:
            self._fault(w.at(w.end), self.source.fault)
        return self._records()

    # ---- the top level ----------------------------------------------------------------------------------------------------------

    def _members(self) -> None:
        w = self.window
        first = True
        try:
            while (c := w.peek()) != 125 or not first:
                if not first:
                    if c == 125:
                        break
                    w.expect(c == 44, kj.WHY_COMMA)
                    w.start += 1
                    c = w.peek()
                w.expect(c == 34, kj.WHY_KEY)
                key = str(w.value())
                w.expect(w.peek() == 58, kj.WHY_COLON)
                w.start += 1
                if key == "traceEvents":
                    w.expect(w.peek() == 91, kj.WHY_VALUE)
                    w.start += 1
                    self.has_events = True
                    self._events()
                else:
                    c = w.peek()
                    self.top[key] = self._elements(self.each[key]) if c == 91 and key in self.each else w.value()
                first = False
            w.start += 1
            self._tail()
        except Broken as broken:
            self._fault(broken.offset, broken.why)

    def _elements(self, use: Callable[[object], None]) -> int:
        """Hand over the elements of a list one by one; return how many."""
        w, count = self.window, 0
        w.start += 1
        while w.peek() != 93:
            if count:
                w.expect(w.peek() == 44, kj.WHY_COMMA)
                w.start += 1
                w.peek()
            use(w.value())
            count += 1
        w.start += 1
        return count

    def _tail(self) -> None:
        """Nothing but white space may follow the end."""
        w = self.window
        try:
            w.expect(w.peek() == -1, kj.WHY_CLOSE)
        except Broken as broken:
            self._fault(broken.offset, broken.why)

    # ---- the records ------------------------------------------------------------------------------------------------------------

    def _events(self) -> None:
        """Read records up to the closing bracket, skipping damage if that was asked for."""
        w = self.window
        s, t = self.s, self.tables
        s[kj.S_STATE] = 0
        while True:
            s[kj.S_POS] = w.start
            status = kj.scan(w.buf, w.end, s, self.r, self.phases, w.out, t.strings, t.columns, t.args, t.flows, t.metas)
            w.start = int(s[kj.S_POS])
            if status == kj.DONE:
                return
            if status == kj.GROW:
                t.grow()
            elif status == kj.FULL:
                w.widen()
            elif status == kj.BAD or not w.fill():
                if status == kj.MORE and self.layout == "array" and w.start >= w.end and not self.source.fault:
                    self.layout = "unclosed array"  # the Chrome format allows it
                    return
                start, offset = w.at(w.start), w.at(s[kj.S_ERR])
                why = self.source.fault or WHY[0 if status == kj.MORE else int(s[kj.S_WHY])]
                self._fault(offset, why)
                self.lost = not self._resync()
                self.damage[-1] = Damage(start, offset, w.at(w.end if self.lost else w.start), why)
                if self.lost:
                    return

    def _fault(self, offset: int, why: str) -> None:
        """Refuse, or remember the damage (everything behind it is lost unless the caller says otherwise)."""
        if self.lost:
            return  # the end of the file was already reported
        if not self.salvage:
            line, column = line_and_column(self.source.path, offset)
            whole = int(self.s[kj.S_EVENTS])
            raise UnreadableInput(
                str(self.source.path),
                f"{why}: byte {offset} (line {line}, column {column}), after {int(self.s[kj.S_RECORDS])} whole records, "
                f"{whole} of them events",
                "write the trace again, or import what is whole with --salvage",
            )
        self.damage.append(Damage(offset, offset, -1, why))

    def _resync(self) -> bool:
        """Move to the next whole record, or to the end of the array, after a damaged one; False at the end of the file."""
        w = self.window
        w.start += int(self.s[kj.S_STATE] != 1)
        if self.s[kj.S_STATE] == 1 and w.start < w.end and w.buf[w.start] == 123 and self._is_record():
            self.s[kj.S_STATE] = 2  # only the comma was missing
            return True
        while True:
            q = kj.resync(w.buf, w.start, w.end)
            if q < 0:
                w.start = -1 - q
                if not w.fill():
                    return False
                continue
            w.start = q
            if self._is_record() if w.buf[q] == 123 else self._closes():
                self.s[kj.S_STATE] = 2 if w.buf[w.start] == 123 else 1
                return True
            w.start += 1

    def _is_record(self) -> bool:
        w = self.window
        t = self.tables
        while True:
            status = kj.is_record(w.buf, w.start, w.end, self.s, self.r, w.out, t.strings, t.args)
            if status == kj.GROW:
                t.grow()
            elif status == kj.FULL:
                w.widen()
            elif status != kj.MORE or not w.fill():
                return bool(status == 1)

    def _closes(self) -> bool:
        """Whether the bracket at the cursor ends the records."""
        w = self.window
        while True:
            status = kj.closes(w.buf, w.start + 1, w.end, self.s, w.out, self.layout == "object", w.eof)
            if status == kj.FULL:
                w.widen()
            elif status != kj.MORE:
                return bool(status == 1)
            else:
                w.fill()

    def _records(self) -> Records:
        s, t = self.s, self.tables
        names = ("empty", "no_dur", "no_time", "not_object", "no_ph", "comma", "overflow", "missing", "records")
        slots = (kj.S_EMPTY, kj.S_NO_DUR, kj.S_NO_TIME, kj.S_NOT_OBJECT, kj.S_NO_PH, kj.S_COMMA, kj.S_OVERFLOW, kj.S_MISSING, kj.S_RECORDS)
        count = int(s[kj.S_STRINGS])
        return Records(
            columns=cut(t.columns, int(s[kj.S_EVENTS])),
            args=cut(t.args, int(s[kj.S_ARGS])),
            flows=cut(t.flows, int(s[kj.S_FLOWS])),
            metas=cut(t.metas, int(s[kj.S_METAS])),
            strings=_decoded(t.strings, count),
            keys=t.strings.key[:count].copy(),
            counters={name: int(s[slot]) for name, slot in zip(names, slots, strict=True)},
            phases={chr(ph): int(self.phases[ph]) for ph in np.flatnonzero(self.phases) if ph},
            top=self.top,
            damage=[d if d.until >= 0 else replace(d, until=self.source.size) for d in self.damage],
            layout=self.layout,
            digest=self.source.digest(),
            size=self.source.size,
            has_events=self.has_events,
        )


def _decoded(strings: kj.Strings, count: int) -> list[str]:
    """Return the interned strings as text; bytes that are no UTF-8 become U+FFFD."""
    heap, cuts = strings.heap[: strings.offset[count]].tobytes(), strings.offset[: count + 1].tolist()
    return [heap[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(cuts)]
