"""Chakra execution traces (``*.et``) in protobuf: messages with their length before them, first the metadata, then the nodes.

Field numbers after et_def.proto (github.com/mlcommons/chakra, schema/protobuf): Node id = 1, name = 2, type = 3, ctrl_deps = 4,
data_deps = 5, start_time_micros = 6, duration_micros = 7, inputs = 8, outputs = 9, attr = 10; IOInfo values = 1, shapes = 2, types = 3;
AttributeProto name = 1, then one value: double 3, float 5, int32 7, int64 9, uint32 11, uint64 13, sint32 15, sint64 17, fixed32 19,
fixed64 21, sfixed32 23, sfixed64 25, bool 27, string 29, bytes 31 (lists have the even numbers after these).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from workbench.trace import kernels_proto as kp
from workbench.trace.protobuf import BrokenMessage
from workbench.trace.scanner import Damage

METADATA, MEM_LOAD, MEM_STORE, COMP, COMM_SEND, COMM_RECV, COMM_COLL = range(1, 8)
COLLECTIVES = (
    "all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all", "reduce_scatter", "reduce_scatter", "barrier",
)  # fmt: skip
"""Names of CollectiveCommType, by number."""
_WIRES = {1: (0,), 2: (2,), 3: (0,), 4: (0, 2), 5: (0, 2), 6: (0,), 7: (0,), 8: (2,), 9: (2,), 10: (2,)}
_FIXED = {3: "<d", 5: "<f", 19: "<I", 21: "<Q", 23: "<i", 25: "<q"}
_ZIGZAG, _BOOL, _TEXTS, _LAST = (15, 17), 27, (29, 31), 32
MOST_US = 2**51


@dataclass(slots=True)
class ChakraNode:
    """One node; times in whole microseconds, -1: no start is stated."""

    id: int = 0
    name: str = ""
    kind: int = 0
    controls: list[int] = field(default_factory=list)
    data: list[int] = field(default_factory=list)
    start_us: int = -1
    dur_us: int = 0
    inputs: tuple[str, str, str] = ("", "", "")
    outputs: tuple[str, str, str] = ("", "", "")
    attributes: dict[str, object] = field(default_factory=dict)


@dataclass
class Nodes:
    """A whole file."""

    top: dict[str, object]
    nodes: list[ChakraNode]
    damage: list[Damage]


def is_chakra(data: np.ndarray) -> bool:
    """Whether bytes (at least the first few thousand of a file) begin a Chakra trace: metadata, then a node with a name."""
    size, low = kp.varint(data, 0, len(data))
    if low < 0 or size < 0 or size > len(data) - low or len(data) < 8:
        return False
    try:
        if any(number not in (1, 2) or wire != kp.BYTES for number, wire, _, _ in _Wire(data).fields(int(low), int(low + size))):
            return False
    except BrokenMessage:
        return False
    length, at = kp.varint(data, low + size, len(data))
    if at < 0 or length <= 2:
        return False
    stop, named = min(at + length, len(data)), False
    while at < stop:
        number, wire, first, last, at = kp.step(data, at, stop)
        if at < 0:
            return named and stop == len(data)
        if wire not in _WIRES.get(int(number), ()):
            return False
        named |= bool(number == 2 and last > first)
    return named


def read_nodes(data: np.ndarray, salvage: bool) -> Nodes:
    """Read the nodes of a file.

    Parameters
    ----------
    data : ndarray of uint8
        The whole file.
    salvage : bool
        Leave broken nodes out; else they are raised.

    Raises
    ------
    BrokenMessage
        The bytes are damaged or cut (with ``salvage``: nothing whole is left).
    """
    found, at, first, wire_of = Nodes({}, [], []), 0, True, _Wire(data)
    while at < len(data):
        size, low = kp.varint(data, at, len(data))
        after = int(low + size) if low >= 0 and 0 <= size <= len(data) - low else -1
        try:
            if after < 0:
                raise BrokenMessage(at)
            if first:
                found.top = {
                    key: value
                    for number, _, a, b in wire_of.fields(int(low), after)
                    if number == 2
                    for key, value in [_attribute(wire_of, a, b)]
                }
            else:
                found.nodes.append(_node(wire_of, int(low), after))
        except BrokenMessage as fault:
            if not salvage or (after < 0 and not found.nodes):
                raise
            found.damage.append(Damage(at, fault.offset, after if after >= 0 else len(data), str(fault)))
        at, first = after if after >= 0 else len(data), False
    return found


class _Wire:
    """Reads messages out of one array of bytes; rooms for what compiled code finds are made once."""

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.raw = data, data.tobytes()
        self._fields = np.empty((4, 64), np.int64)
        self._rows = tuple(self._fields)
        self._numbers = np.empty(1024, np.int64)

    def fields(self, low: int, high: int) -> list[tuple[int, int, int, int]]:
        """Return number, wire type, low and high of the fields of a message. Raises `BrokenMessage`."""
        count = kp.scan(self.data, low, high, *self._rows)
        if count < 0:
            raise BrokenMessage(-1 - count)
        if count > len(self._rows[0]):
            self._fields = np.empty((4, count), np.int64)
            self._rows = tuple(self._fields)
            return self.fields(low, high)
        return list(zip(*self._fields[:, :count].tolist(), strict=True))

    def text(self, low: int, high: int) -> str:
        """Return bytes as text."""
        return self.raw[low:high].decode("utf-8", "replace")

    def packed(self, low: int, high: int) -> list[int]:
        """Return the numbers of a packed list. Raises `BrokenMessage`."""
        count = kp.packed(self.data, low, high, self._numbers)
        if count < 0:
            raise BrokenMessage(-1 - count)
        if count > len(self._numbers):
            self._numbers = np.empty(count, np.int64)
            return self.packed(low, high)
        return self._numbers[:count].tolist()


def _node(wire_of: _Wire, low: int, high: int) -> ChakraNode:
    node = ChakraNode()
    for number, wire, a, b in wire_of.fields(low, high):
        if wire not in _WIRES.get(number, (wire,)):
            raise BrokenMessage(low)
        if number == 1:
            node.id = a
        elif number == 2:
            node.name = wire_of.text(a, b)
        elif number == 3:
            node.kind = a
        elif number in (4, 5):
            (node.controls if number == 4 else node.data).extend([a] if wire == kp.VARINT else wire_of.packed(a, b))
        elif number in (6, 7):
            if not 0 <= a < MOST_US:
                raise BrokenMessage(low)
            node.start_us, node.dur_us = (a, node.dur_us) if number == 6 else (node.start_us, a)
        elif number in (8, 9):
            texts = {n: wire_of.text(x, y) for n, w, x, y in wire_of.fields(a, b) if w == kp.BYTES}
            ends = (texts.get(1, ""), texts.get(2, ""), texts.get(3, ""))
            node.inputs, node.outputs = (ends, node.outputs) if number == 8 else (node.inputs, ends)
        elif number == 10:
            key, value = _attribute(wire_of, a, b)
            node.attributes[key] = value
    return node


def _attribute(wire_of: _Wire, low: int, high: int) -> tuple[str, object]:
    """Return name and value of an attribute; a list is its values where they are whole numbers or truth values, else absent."""
    name = ""
    value: object = None
    for number, wire, a, b in wire_of.fields(low, high):
        if number == 1 and wire == kp.BYTES:
            name = wire_of.text(a, b)
        elif number in _TEXTS and wire == kp.BYTES:
            value = wire_of.text(a, b)
        elif number in _FIXED and wire in (kp.EIGHT, kp.FOUR) and struct.calcsize(_FIXED[number]) == b - a:
            value = struct.unpack(_FIXED[number], wire_of.raw[a:b])[0]
        elif wire == kp.VARINT and 7 <= number <= _BOOL:
            value = bool(a) if number == _BOOL else (a >> 1) ^ -(a & 1) if number in _ZIGZAG else a
        elif wire == kp.BYTES and number in (8, 10, 12, 14, 28):
            value = [x for n, w, p, q in wire_of.fields(a, b) if n == 1 for x in ([p] if w == kp.VARINT else wire_of.packed(p, q))]
    return name, value
