"""Messages in protobuf wire format, without their schema compiled: fields by number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.trace import kernels_proto as kp


class BrokenMessage(Exception):
    """The bytes are no message from the named offset on."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"no protobuf field begins at byte {offset}")
        self.offset = offset


class Field(NamedTuple):
    """One field; ``low`` is the value of a varint, else the payload lies at low:high."""

    number: int
    wire: int
    low: int
    high: int


@dataclass(frozen=True)
class Message:
    """The bytes ``data[start:stop]`` of a message."""

    data: np.ndarray  # uint8
    start: int
    stop: int

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return number, wire type, low and high of all fields, int64. Raises `BrokenMessage`."""
        room = 64
        while True:
            out = np.empty((4, room), np.int64)
            count = kp.scan(self.data, self.start, self.stop, *out)
            if count < 0:
                raise BrokenMessage(-1 - count)
            if count <= room:
                return out[0, :count], out[1, :count], out[2, :count], out[3, :count]
            room = count

    def __iter__(self) -> Iterator[Field]:
        return (Field(*row) for row in zip(*(column.tolist() for column in self.columns()), strict=True))

    def part(self, field: Field) -> Message:
        """Return the message inside a field."""
        return Message(self.data, field.low, field.high)

    def text(self, field: Field) -> str:
        """Return a field's bytes as text."""
        return self.data[field.low : field.high].tobytes().decode("utf-8", "replace")

    def texts(self, number: int) -> list[str]:
        """Return the text fields of a number."""
        return [self.text(f) for f in self if f.number == number and f.wire == kp.BYTES]

    def value(self, number: int, default: int = 0) -> int:
        """Return the last varint field of a number."""
        found = [f.low for f in self if f.number == number and f.wire == kp.VARINT]
        return found[-1] if found else default
