"""Streams a JSON trace through the byte-level scanner: a window over the file, tables that grow, damage that is skipped."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field

import numpy as np

from workbench.errors import UnreadableInput
from workbench.trace import kernels_json as kj
from workbench.trace.source import UTF8_BOM, Source, describe, kind_of, line_and_column
from workbench.trace.tables import Tables, cut

CHUNK = 8 << 20  # bytes of plain text in the window

WHY = {
    0: "the file ends before the JSON does",
    kj.WHY_VALUE: "no JSON value",
    kj.WHY_ESCAPE: "an invalid escape in a string",
    kj.WHY_COMMA: "a comma or a closing bracket is missing",
    kj.WHY_COLON: "a colon is missing",
    kj.WHY_KEY: "a key in double quotes is missing",
    kj.WHY_DEPTH: f"nesting deeper than {kj.MAX_DEPTH}",
    kj.WHY_CLOSE: "text after the end of the JSON",
}


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
    """

    def __init__(self, source: Source, *, salvage: bool = False, chunk: int = CHUNK) -> None:
        self.source, self.salvage, self.chunk = source, salvage, chunk
        self.buf = np.empty(chunk + 64, np.uint8)
        self.start = self.end = self.base = 0  # window [start, end) of buf; base: file offset of buf[0]
        self.s = np.zeros(kj.S_SIZE, np.int64)
        self.r = np.zeros(kj.R_SIZE, np.int64)
        self.phases = np.zeros(256, np.int64)
        self.out = np.empty(4096, np.uint8)
        self.tables = Tables(self.s)
        self.damage: list[Damage] = []
        self.top: dict[str, object] = {}
        self.layout, self.has_events, self.eof = "object", False, False
        self.lost = False  # nothing whole was found behind a damage

    def run(self) -> Records:
        """Read the whole source. Raises `UnreadableInput` (damage without salvage, or no JSON at all)."""
        self._fill()
        head = bytes(self.buf[: min(self.end, 4096)])
        while not kind_of(head) and not head.removeprefix(UTF8_BOM).strip(b" \t\r\n") and self._fill():
            head = bytes(self.buf[self.start : min(self.end, self.start + 4096)])
        kind = kind_of(head)
        if not kind:
            what = self.source.fault or f"is {describe(head)}"
            raise UnreadableInput(str(self.source.path), f"{what}: no trace", "give a trace in JSON, plain or gzip")
        self.start += len(UTF8_BOM) if head.startswith(UTF8_BOM) else 0
        self._peek()
        self.start += 1
        if kind == "array":
            self.layout, self.has_events = "array", True
            self._events()
            self._tail()
        else:
            self._members()
        if self.source.fault:
            self._fault(self._at(self.end), self.source.fault)
        return self._records()

    # ---- the window -------------------------------------------------------------------------------------------------------------

    def _at(self, position: int) -> int:
        return self.base + int(position)

    def _fill(self) -> bool:
        """Drop what was read, append the next chunk (more, if a value does not fit); False at the end of the file."""
        if self.eof:
            return False
        keep = self.end - self.start
        room = keep + max(self.chunk, keep)
        new = self.buf if room <= len(self.buf) else np.empty(room, np.uint8)
        new[:keep] = self.buf[self.start : self.end]
        self.buf, self.base = new, self.base + self.start
        self.s[kj.S_ERR] -= self.start
        self.start, self.end = 0, keep
        count = self.source.readinto(memoryview(self.buf)[keep:room])
        self.end += count
        self.eof = count == 0
        return count > 0

    def _peek(self) -> int:
        """Skip white space; return the next byte, or -1 at the end of the file."""
        while True:
            self.start = kj.skip_space(self.buf, self.start, self.end)
            if self.start < self.end:
                return int(self.buf[self.start])
            if not self._fill():
                return -1

    def _value(self) -> object:
        """Read one value at the cursor as a Python object; a text where Python refuses (an integer of 5 000 digits)."""
        s = self.s
        while True:
            s[kj.S_SCRATCH] = 0
            end = kj.read_value(self.buf, self.start, self.end, s, self.out)
            if end == kj.FULL:
                self._widen()
            elif end >= 0:
                break
            elif end != kj.MORE or not self._fill():
                raise _Broken(self._at(s[kj.S_ERR]), WHY[0] if end == kj.MORE else WHY[int(s[kj.S_WHY])])
        self.start = end
        text = bytes((self.out if s[kj.S_SCRATCH] else self.buf)[s[kj.S_A] : s[kj.S_B]]).decode("utf-8", "replace")
        if s[kj.S_KIND] in (kj.STRING, kj.MISSING):
            return text if s[kj.S_KIND] == kj.STRING else None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text

    # ---- the top level ----------------------------------------------------------------------------------------------------------

    def _members(self) -> None:
        first = True
        try:
            while (c := self._peek()) != 125 or not first:
                if not first:
                    if c == 125:
                        break
                    self._expect(c == 44, kj.WHY_COMMA)
                    self.start += 1
                    c = self._peek()
                self._expect(c == 34, kj.WHY_KEY)
                key = str(self._value())
                self._expect(self._peek() == 58, kj.WHY_COLON)
                self.start += 1
                if key == "traceEvents":
                    self._expect(self._peek() == 91, kj.WHY_VALUE)
                    self.start += 1
                    self.has_events = True
                    self._events()
                else:
                    self._peek()
                    self.top[key] = self._value()
                first = False
            self.start += 1
            self._tail()
        except _Broken as broken:
            self._fault(broken.offset, broken.why)

    def _tail(self) -> None:
        """Nothing but white space may follow the end."""
        try:
            self._expect(self._peek() == -1, kj.WHY_CLOSE)
        except _Broken as broken:
            self._fault(broken.offset, broken.why)

    def _expect(self, fine: bool, why: int) -> None:
        if not fine:
            at_end = self.start >= self.end and self.eof
            raise _Broken(self._at(self.start), WHY[0] if at_end else WHY[why])

    # ---- the records ------------------------------------------------------------------------------------------------------------

    def _events(self) -> None:
        """Read records up to the closing bracket, skipping damage if that was asked for."""
        s, t = self.s, self.tables
        s[kj.S_STATE] = 0
        while True:
            s[kj.S_POS] = self.start
            status = kj.scan(self.buf, self.end, s, self.r, self.phases, self.out, t.strings, t.columns, t.args, t.flows, t.metas)
            self.start = int(s[kj.S_POS])
            if status == kj.DONE:
                return
            if status == kj.GROW:
                t.grow()
            elif status == kj.FULL:
                self._widen()
            elif status == kj.BAD or not self._fill():
                if status == kj.MORE and self.layout == "array" and self.start >= self.end and not self.source.fault:
                    self.layout = "unclosed array"  # the Chrome format allows it
                    return
                start, offset = self._at(self.start), self._at(s[kj.S_ERR])
                why = self.source.fault or WHY[0 if status == kj.MORE else int(s[kj.S_WHY])]
                self._fault(offset, why)
                self.lost = not self._resync()
                self.damage[-1] = Damage(start, offset, self._at(self.end if self.lost else self.start), why)
                if self.lost:
                    return

    def _widen(self) -> None:
        self.out = np.empty(2 * len(self.out), np.uint8)

    def _fault(self, offset: int, why: str) -> None:
        """Refuse, or remember the damage."""
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
        self.damage.append(Damage(offset, offset, self._at(self.end), why))

    def _resync(self) -> bool:
        """Move to the next whole record, or to the end of the array, after a damaged one; False at the end of the file."""
        self.start += int(self.s[kj.S_STATE] != 1)
        if self.s[kj.S_STATE] == 1 and self.start < self.end and self.buf[self.start] == 123 and self._is_record():
            self.s[kj.S_STATE] = 2  # only the comma was missing
            return True
        while True:
            q = kj.resync(self.buf, self.start, self.end)
            if q < 0:
                self.start = -1 - q
                if not self._fill():
                    return False
                continue
            self.start = q
            if self._is_record() if self.buf[q] == 123 else self._closes():
                self.s[kj.S_STATE] = 2 if self.buf[self.start] == 123 else 1
                return True
            self.start += 1

    def _is_record(self) -> bool:
        t = self.tables
        while True:
            status = kj.is_record(self.buf, self.start, self.end, self.s, self.r, self.out, t.strings, t.args)
            if status == kj.GROW:
                t.grow()
            elif status == kj.FULL:
                self._widen()
            elif status != kj.MORE or not self._fill():
                return bool(status == 1)

    def _closes(self) -> bool:
        """Whether the bracket at the cursor ends the records."""
        while True:
            status = kj.closes(self.buf, self.start + 1, self.end, self.s, self.out, self.layout == "object", self.eof)
            if status == kj.FULL:
                self._widen()
            elif status != kj.MORE:
                return bool(status == 1)
            else:
                self._fill()

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
            damage=self.damage,
            layout=self.layout,
            digest=self.source.digest(),
            size=self.source.size,
            has_events=self.has_events,
        )


class _Broken(Exception):
    """The JSON is broken outside the records."""

    def __init__(self, offset: int, why: str) -> None:
        self.offset, self.why = offset, why
        super().__init__(why)


def _decoded(strings: kj.Strings, count: int) -> list[str]:
    """Return the interned strings as text; bytes that are no UTF-8 become U+FFFD."""
    heap, cuts = strings.heap[: strings.offset[count]].tobytes(), strings.offset[: count + 1].tolist()
    return [heap[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(cuts)]
