"""A writer of XLA profiles for tests: protobuf wire format by hand, from the published field numbers of xplane.proto."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

Event = tuple[str, int, int, Mapping[str, object]]
"""Name, start and length [ps], statistics."""


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while True:
        byte, value = value & 127, value >> 7
        out.append(byte | (128 if value else 0))
        if not value:
            return bytes(out)


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def block(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def text(number: int, value: str) -> bytes:
    return block(number, value.encode())


def plane(name: str, lines: Mapping[str, Sequence[Event]], base_ns: int = 0) -> bytes:
    """Return one plane; every distinct name becomes event metadata, every key statistic metadata, texts are stored in place."""
    kinds: dict[str, int] = {}
    keys: dict[str, int] = {}
    body = text(2, name)
    for number, (lane, events) in enumerate(lines.items(), 1):
        line = integer(1, number) + text(2, lane) + integer(3, base_ns)
        for what, start, length, stats in events:
            event = integer(1, kinds.setdefault(what, len(kinds) + 1)) + integer(2, start) + integer(3, length)
            for key, value in stats.items():
                at = integer(1, keys.setdefault(key, len(keys) + 1))
                at += integer(4, value) if isinstance(value, int) else text(5, str(value))
                event += block(4, at)
            line += block(4, event)
        body += block(3, line)
    for what, number in kinds.items():
        body += block(4, integer(1, number) + block(2, integer(1, number) + text(2, what)))
    for key, number in keys.items():
        body += block(5, integer(1, number) + block(2, integer(1, number) + text(2, key)))
    return block(1, body)


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)
