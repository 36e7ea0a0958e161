"""Messages of collectives: read from a table, or asked for by range."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench import units
from workbench.errors import InvalidSpec
from workbench.hardware.check import unknown_key
from workbench.hardware.cluster import ClusterSpec
from workbench.operators.sheet import Sheet, read_sheet
from workbench.operators.table import Kind

COLLECTIVES: Mapping[str, Kind] = {
    kind.name.lower(): kind
    for kind in (
        Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL, Kind.BROADCAST, Kind.SEND_RECV, Kind.BARRIER,
    )
}  # fmt: skip
ALIASES = {
    "collective": ("collective", "op", "operation", "kind", "coll"),
    "cards": ("cards", "group", "group_size", "num_ranks", "ranks", "num_gpus", "gpus", "n", "world_size"),
    "bytes": ("bytes", "size", "message_size", "size_bytes"),
    "stride": ("stride",),
    "time": ("time_us", "time_s", "time_ms", "time_ns", "latency_us", "latency_ms"),
}
"""Names of the columns of a table of messages; the first four are counts, a time has its unit in its name."""


@dataclass(frozen=True)
class Message:
    """One question: a collective of ``cards`` members, ``stride`` apart, of ``bytes``; ``measured_s`` nan where it was not measured."""

    kind: Kind
    cards: int
    bytes: float
    stride: int = 1
    measured_s: float = float("nan")
    line: int | None = None


def read_messages(path: str | os.PathLike[str]) -> list[Message]:
    """Read a table of messages: columns collective, cards, bytes, and if there are stride and a measured time with its unit.

    Parameters
    ----------
    path : str or path
        CSV, Excel, Parquet; names of the columns in `ALIASES`. Sizes are numbers of bytes or texts with a unit.

    Returns
    -------
    list of Message

    Raises
    ------
    InvalidSpec, UnreadableInput
        A missing column, an unknown collective, or a cell that is no count.
    """
    sheet = read_sheet(path, [name for names in ALIASES.values() for name in names], units_row=False)
    lower = [name.strip().lower() for name in sheet.header]
    at = {what: next((lower.index(name) for name in names if name in lower), None) for what, names in ALIASES.items()}
    for what in ("collective", "cards", "bytes"):
        if at[what] is None:
            fix = f"add it, or call it one of {', '.join(ALIASES[what])}"
            raise InvalidSpec(f"{sheet.path}:{sheet.header_line}", f"no column {what!r}", fix)
    return [_message(sheet, row, at, lower) for row in range(len(sheet.rows))]


def _message(sheet: Sheet, row: int, at: Mapping[str, int | None], lower: Sequence[str]) -> Message:
    cells, line = sheet.rows[row], sheet.line[row]

    def cell(what: str) -> str:
        place = at[what]
        return "" if place is None else cells[place].strip()

    kind = collective_named(cell("collective"), sheet.where(row, "collective"))
    stride = _count(cell("stride"), sheet.where(row, "stride")) if cell("stride") else 1
    seconds = float("nan")
    if at["time"] is not None and cell("time"):
        unit = lower[at["time"]].rpartition("_")[2]
        seconds = units.parse(f"{cell('time')} {unit}", "s", sheet.where(row, "time"))
    return Message(
        kind, _count(cell("cards"), sheet.where(row, "cards")), size_of(cell("bytes"), sheet.where(row, "bytes")), stride, seconds, line
    )


def collective_named(name: str, where: str) -> Kind:
    """Return the collective of a name: ``all_reduce``, ``AllReduce``, ``all-reduce``, ``alltoall``.

    Raises
    ------
    InvalidSpec
        An unknown one; the nearest is named.
    """
    plain = {key.replace("_", ""): kind for key, kind in COLLECTIVES.items()}
    found = plain.get("".join(c for c in name.lower() if c.isalpha()))
    if found is None:
        raise unknown_key(name, COLLECTIVES, where, "is no collective")
    return found


def size_of(text: str, where: str) -> float:
    """Return a size [B]: a whole number of bytes, or a text with a unit."""
    return float(text) if text.isdecimal() else units.parse(text, "B", where)


def _count(text: str, where: str) -> int:
    value = float(text) if text.replace(".", "", 1).isdecimal() else 0.0
    if value < 1 or value != int(value) or value > 1e9:
        raise InvalidSpec(where, f"{text!r} is no count", "write a whole number, at least 1")
    return int(value)


def asked_messages(cluster: ClusterSpec, name: str, cards: str | None, sizes: str) -> list[Message]:
    """Return the messages that options ask for, e.g. ``"all_reduce", "8,64", "8 B:8 GB:31"``.

    Raises
    ------
    InvalidSpec
        An unknown collective, a count or a size that is none.
    """
    kind = collective_named(name, "--collective")
    groups = [_count(text.strip(), "--cards") for text in cards.split(",")] if cards else [cluster.cards]
    parts = [part.strip() for part in sizes.split(":")]
    if len(parts) != 3:
        raise InvalidSpec("--sizes", f"{sizes!r} is no range", "write FROM:TO:COUNT, e.g. '8 B:8 GB:31'")
    first, last, count = size_of(parts[0], "--sizes"), size_of(parts[1], "--sizes"), _count(parts[2], "--sizes")
    if not 0 < first <= last or count > 10_000:
        raise InvalidSpec("--sizes", f"{sizes!r} does not rise from a size above 0, in at most 10000 steps", "write e.g. '8 B:8 GB:31'")
    return [Message(kind, n, float(size)) for n in groups for size in np.rint(np.geomspace(first, last, count))]
