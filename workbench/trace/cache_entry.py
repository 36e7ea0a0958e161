"""What was read of a file as one block of bytes, and back: a checksum, a header in JSON, the texts, the arrays.

Profiles and execution traces are kept; whatever is not whole is refused by a ValueError.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.errors import Note
from workbench.trace.digest import digest
from workbench.trace.execution_trace import Execution
from workbench.trace.part import Part, frozen
from workbench.trace.trace import ArgColumn, Events, Flows, Track

MAGIC = b"workbench columns 2\n\0\0\0\0"
CHECKED = len(MAGIC) + 32
"""Where the bytes begin that the checksum covers: the length of the header (8 bytes) and all behind it."""
HEAD = CHECKED + 8
ALIGN = 64
PLAIN = ("digest", "rank", "world_size", "base_time_ns", "metadata", "counts", "inner_ranks")
Kept = Part | Execution


@dataclass
class _Columns:
    """A document of plain values, arrays, and texts."""

    plain: dict[str, Any]
    arrays: list[np.ndarray]
    strings: list[str]


def packed(found: Kept) -> np.ndarray | None:
    """Return what was read as bytes (uint8); None where its plain values would not come back the same."""
    columns = _of_part(found) if isinstance(found, Part) else _of_execution(found)
    if json.loads(json.dumps(columns.plain)) != columns.plain:
        return None
    texts = np.frombuffer("".join(columns.strings).encode("utf-8", "surrogatepass"), np.uint8)
    arrays = [np.ascontiguousarray(a) for a in (texts, np.array([len(text) for text in columns.strings], np.int64), *columns.arrays)]
    at = 0
    places: list[tuple[str, int, int]] = []
    for array in arrays:
        places.append((array.dtype.str, len(array), at))
        at += -(-array.nbytes // ALIGN) * ALIGN
    header = json.dumps({"plain": columns.plain, "arrays": places}).encode()
    header += b" " * (-(HEAD + len(header)) % ALIGN)
    first = HEAD + len(header)
    body = np.zeros(first + at, np.uint8)
    body[CHECKED:first] = np.frombuffer(len(header).to_bytes(8, "little") + header, np.uint8)
    for array, (_, _, begin) in zip(arrays, places, strict=True):
        body[first + begin : first + begin + array.nbytes] = array.view(np.uint8)
    body[:CHECKED] = np.frombuffer(MAGIC + digest(body[CHECKED:]), np.uint8)
    return body


def unpacked(body: np.ndarray, path: str) -> Kept:
    """Return what an entry holds, under a path of now. Raises ValueError where it is damaged or of another form."""
    if body[: len(MAGIC)].tobytes() != MAGIC:
        raise ValueError("is of another form")
    if len(body) < HEAD or body[len(MAGIC) : CHECKED].tobytes() != digest(body[CHECKED:]):
        raise ValueError("is damaged")
    first = HEAD + int.from_bytes(body[CHECKED:HEAD].tobytes(), "little")
    header = json.loads(body[HEAD:first].tobytes())
    data = frozen(body)[first:]
    arrays = iter([data[at : at + size * np.dtype(kind).itemsize].view(kind) for kind, size, at in header["arrays"]])
    heap, ends = next(arrays).tobytes().decode("utf-8", "surrogatepass"), [0, *np.cumsum(next(arrays)).tolist()]
    strings = [heap[low:high] for low, high in pairwise(ends)]
    plain = header["plain"]
    return _to_part(plain, arrays, strings, path) if plain["kind"] == "part" else _to_execution(plain, arrays, strings, path)


def _of_part(part: Part) -> _Columns:
    plain = {name: getattr(part, name) for name in PLAIN} | {"kind": "part"}
    plain["counts"], plain["metadata"], plain["devices"] = dict(part.counts), dict(part.metadata), list(part.devices)
    plain["notes"] = [[note.code, note.where if note.where != part.path else None, *astuple(note)[2:]] for note in part.notes]
    plain["tracks"] = [list(astuple(track)) for track in part.tracks]
    plain["keys"] = list(part.args)
    events = [getattr(part.events, field.name) for field in fields(Events)]
    flows = [getattr(part.flows, field.name) for field in fields(Flows)]
    args = [array for column in part.args.values() for array in (column.event, column.value, column.is_text)]
    return _Columns(plain, [*events, *flows, *args], part.strings)


def _to_part(plain: dict[str, Any], arrays: Iterator[np.ndarray], strings: list[str], path: str) -> Part:
    events = Events(*(next(arrays) for _ in fields(Events)))
    flows = Flows(*(next(arrays) for _ in fields(Flows)))
    args = {key: ArgColumn(next(arrays), next(arrays), next(arrays)) for key in plain["keys"]}
    notes = [Note(code, path if where is None else where, *rest) for code, where, *rest in plain["notes"]]
    tracks = [Track(*track) for track in plain["tracks"]]
    said = {name: plain[name] for name in PLAIN}
    return Part(path, events, flows, args, strings, tracks, devices=tuple(plain["devices"]), notes=notes, **said)


def _of_execution(execution: Execution) -> _Columns:
    plain = {"kind": "execution", "keys": list(execution.args)}
    plain |= {name: getattr(execution, name) for name in ("digest", "pid", "unread")}
    return _Columns(plain, [execution.rf_id, execution.name, *execution.args.values()], list(execution.strings))


def _to_execution(plain: dict[str, Any], arrays: Iterator[np.ndarray], strings: list[str], path: str) -> Execution:
    rf_id, name = next(arrays), next(arrays)
    args = {key: next(arrays) for key in plain["keys"]}
    return Execution(path, plain["digest"], plain["pid"], strings, rf_id, name, args, plain["unread"])
