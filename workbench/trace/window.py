"""A window over the plain bytes of a file, and single values read through it."""

from __future__ import annotations

import json

import numpy as np

from workbench.trace import kernels_json as kj
from workbench.trace.ahead import Ahead
from workbench.trace.source import Source

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


class Broken(Exception):
    """The JSON is broken outside the records."""

    def __init__(self, offset: int, why: str) -> None:
        self.offset, self.why = offset, why
        super().__init__(why)


class Window:
    """Bytes [start, end) of ``buf``; ``base`` is the place of ``buf[0]`` in the file.

    Parameters
    ----------
    source : Source or Ahead
        Where the bytes come from.
    chunk : int
        Bytes added at once [B].
    s : ndarray, int64
        The scanner's state.
    """

    def __init__(self, source: Source | Ahead, chunk: int, s: np.ndarray) -> None:
        self.source, self.chunk, self.s = source, chunk, s
        self.buf = np.empty(chunk + 64, np.uint8)
        self.out = np.empty(4096, np.uint8)  # scratch of the kernels
        self.start = self.end = self.base = 0
        self.eof = False

    def at(self, position: int) -> int:
        """Return the place in the file of a position in the window."""
        return self.base + int(position)

    def widen(self) -> None:
        """Enlarge the scratch buffer."""
        self.out = np.empty(2 * len(self.out), np.uint8)

    def fill(self) -> bool:
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
        count = self.source.readinto(self.buf[keep:room].data)
        self.end += count
        self.eof = count == 0
        return count > 0

    def peek(self) -> int:
        """Skip white space; return the next byte, or -1 at the end of the file."""
        while True:
            self.start = kj.skip_space(self.buf, self.start, self.end)
            if self.start < self.end:
                return int(self.buf[self.start])
            if not self.fill():
                return -1

    def value(self) -> object:
        """Read one value at the cursor as a Python object; a text where Python refuses (an integer of 5 000 digits)."""
        s = self.s
        while True:
            s[kj.S_SCRATCH] = 0
            end = kj.read_value(self.buf, self.start, self.end, s, self.out)
            if end == kj.FULL:
                self.widen()
            elif end >= 0:
                break
            elif end != kj.MORE or not self.fill():
                raise Broken(self.at(s[kj.S_ERR]), WHY[0] if end == kj.MORE else WHY[int(s[kj.S_WHY])])
        self.start = end
        text = bytes((self.out if s[kj.S_SCRATCH] else self.buf)[s[kj.S_A] : s[kj.S_B]]).decode("utf-8", "replace")
        if s[kj.S_KIND] in (kj.STRING, kj.MISSING):
            return text if s[kj.S_KIND] == kj.STRING else None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text

    def expect(self, fine: bool, why: int) -> None:
        """Raise `Broken` at the cursor unless it is fine."""
        if not fine:
            at_end = self.start >= self.end and self.eof
            raise Broken(self.at(self.start), WHY[0] if at_end else WHY[why])
