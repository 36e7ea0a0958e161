"""Kernel tables of the Ascend profiler (``kernel_details.csv`` of torch_npu, ``op_summary*.csv`` of msprof): one device task a row.

Source: CANN profiling guide, kernel_details and op_summary. ``op_summary`` is unverified: no sample was at hand, its column names are
those of the guide. Times are decimal microseconds and are read exactly; cells may carry tabs and spaces (added so that spreadsheets do
not round them).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache

from workbench.errors import UnreadableInput
from workbench.trace.scanner import Damage

START = ("start time(us)", "task start time(us)", "task start time", "start_time(us)")
DURATION = ("duration(us)", "task duration(us)", "duration_time(us)")
NAME = ("name", "op name", "op_name")
CORE = ("accelerator core", "task type")
TYPE = ("type", "op type", "op_type")
MISSING = ("", "n/a", "nan", "none", "null", "undefined")
MOST_NS = 2**61
DTYPES = {
    "float": "float", "float32": "float", "float16": "c10::Half", "bf16": "c10::BFloat16", "bfloat16": "c10::BFloat16", "double": "double",
    "int8": "signed char", "uint8": "unsigned char", "int16": "short int", "int32": "int", "int64": "long int", "bool": "bool",
    "uint16": "short int", "uint32": "int", "uint64": "long int",
    "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2", "hifloat8": "Float8_e4m3fn", "complex64": "complex<float>",
}  # fmt: skip
"""Element types as the table writes them (small letters, without ``DT_``), and as the PyTorch profiler does."""
_WHOLE = re.compile(r"-?\d{1,18}\Z")
_MICROSECONDS = re.compile(r"\s*([0-9]{1,15})(?:\.([0-9]{0,3}))?\s*\Z")
_HEADER = 1 << 14


@dataclass(frozen=True, slots=True)
class Task:
    """One row: what ran, where, when [ns], and every other cell under its column's name."""

    name: str
    kind: str
    core: str
    device: int
    stream: int | None
    start_ns: int
    dur_ns: int
    cells: dict[str, object]


@dataclass
class KernelTable:
    """A kernel table of one process."""

    path: str
    digest: str
    tasks: list[Task]
    damage: list[Damage] = field(default_factory=list)
    timeless: int = 0
    size: int = 0


def is_kernel_table(head: bytes) -> bool:
    """Whether text begins with the header of a kernel table."""
    line = head[:_HEADER].removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    if b"," not in line or b"\0" in line:
        return False
    names = [name.strip().lower() for name in line.decode("utf-8", "replace").split(",")]
    return all(any(name in names for name in names_of) for names_of in (START, DURATION, NAME))


def read_kernel_table(data: bytes, path: str, digest: str, salvage: bool, fault: str = "") -> KernelTable:
    """Read a kernel table.

    Parameters
    ----------
    data : bytes
        The whole text.
    path, digest : str
    salvage : bool
        Leave rows out that cannot be read; else they are refused.
    fault : str
        Why the text ended early (empty: it did not).

    Raises
    ------
    UnreadableInput
        A row is cut short or its time is no number; line and byte are named. Or there is no row.
    """
    lines = _lines(data)
    header = _Header([name.strip() for name in next(lines)[2]])
    table = KernelTable(path, digest, [], size=len(data))
    for number, (offset, after, cells) in enumerate(lines, 2):
        try:
            task = _task(header, cells)
        except ValueError as why:
            _lose(table, salvage, number, Damage(offset, offset, after, str(why)))
            continue
        if task is None:
            table.timeless += 1
        else:
            table.tasks.append(task)
    if fault:
        _lose(table, salvage, 0, Damage(len(data), len(data), len(data), fault))
    if not table.tasks:
        raise UnreadableInput(path, "is a kernel table without rows", "write the profile again")
    return table


def _lose(table: KernelTable, salvage: bool, line: int, damage: Damage) -> None:
    if not salvage:
        place = f"line {line} (byte {damage.offset})" if line else f"byte {damage.offset}"
        what = f"{damage.why}: {place}, after {len(table.tasks)} whole rows"
        raise UnreadableInput(table.path, what, "write the table again, or import what is whole with --salvage")
    table.damage.append(damage)


def _lines(data: bytes) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (first byte, byte after, cells) of each line that is not empty."""
    at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    while at < len(data):
        found = data.find(b"\n", at)
        after = found + 1 if found >= 0 else len(data)
        text = data[at:after].decode("utf-8", "replace").strip("\r\n").replace("\0", "\ufffd")
        if text.strip():
            try:
                yield at, after, next(csv.reader([text]), [])
            except csv.Error:
                yield at, after, []
        at = after


def nanoseconds(text: str) -> int:
    """Return decimal microseconds as whole nanoseconds, half up. Raises ValueError."""
    plain_time = _MICROSECONDS.match(text)
    if plain_time:
        return 1000 * int(plain_time[1]) + int((plain_time[2] or "").ljust(3, "0"))
    try:
        value = Decimal(text.strip().replace(" ", "")) * 1000
    except InvalidOperation:
        raise ValueError(f"{text.strip()[:40]!r} is no time") from None
    if not value.is_finite() or abs(value) > MOST_NS:
        raise ValueError(f"{text.strip()[:40]!r} is no time")
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


class _Header:
    """Names of the columns of a table, and where the ones every row is asked for lie."""

    def __init__(self, names: Sequence[str]) -> None:
        self.width = len(names)
        place = {name.lower(): at for at, name in enumerate(names)}
        self.first = {key: next((place[name] for name in known if name in place), -1) for key, known in _PLACES.items()}
        self.numbers = [place.get(name, -1) for name in ("device_id", "stream id")]
        self.rest = [(at, name) for at, name in enumerate(names) if name.lower() not in _USED]
        self.sides = [(at, name) for name, at in place.items() if name in _SIDES]


def _task(header: _Header, cells: Sequence[str]) -> Task | None:
    """Return the task of a row; None where it has no time. Raises ValueError."""
    if len(cells) != header.width:
        raise ValueError(f"the row has {len(cells)} cells, the header {header.width}")
    first = {key: cells[at].strip() if at >= 0 else "" for key, at in header.first.items()}
    if absent(first["start"]) or absent(first["dur"]):
        return None
    rest = {name: value for at, name in header.rest if (value := _value(cells[at])) is not None}
    small = {name: cells[at].strip() for at, name in header.sides}
    rest |= described(small, "input", "Input Dims", "Input type")
    rest |= described(small, "output", "Output Dims", "Output type")
    device, stream = (_value(cells[at]) if at >= 0 else None for at in header.numbers)
    return Task(
        first["name"], "" if absent(first["type"]) else first["type"], "" if absent(first["core"]) else first["core"],
        device if isinstance(device, int) and device >= 0 else 0, stream if isinstance(stream, int) else None,
        nanoseconds(first["start"]), nanoseconds(first["dur"]), rest,
    )  # fmt: skip


_PLACES = {"start": START, "dur": DURATION, "name": NAME, "core": CORE, "type": TYPE}
_USED = frozenset((*START, *DURATION, *NAME))
_SIDES = frozenset(f"{side} {what}" for side in ("input", "output") for what in ("shapes", "data types"))


@lru_cache(1 << 15)
def _value(cell: str) -> object:
    """Return what a cell holds: a whole number, text, or None."""
    return None if absent(cell) else plain(cell.strip())


def absent(cell: str) -> bool:
    """Whether a cell holds nothing."""
    return cell.strip().lower() in MISSING


def plain(cell: str) -> object:
    """Return a whole number as one, anything else as it is."""
    return int(cell) if _WHOLE.match(cell) else cell


def described(row: dict[str, str], side: str, dims: str, kinds: str) -> dict[str, object]:
    """Return the shapes and types of a row's inputs or outputs as the PyTorch profiler writes them; {} where they are not known."""
    shapes, types = row.get(f"{side} shapes", ""), row.get(f"{side} data types", "")
    if absent(shapes) or absent(types) or types.upper().startswith("UNDEFINED"):
        return {}
    found = _shapes(shapes)
    return {dims: found, kinds: _types(types)} if found else {}


@lru_cache(4096)
def _shapes(text: str) -> str:
    parts = [[n for n in part.split(",") if n.strip()] for part in text.strip('"').split(";")]
    if not all(n.strip().isascii() and n.strip().isdigit() and len(n.strip()) < 16 for part in parts for n in part):
        return ""
    return json.dumps([[int(n) for n in part] for part in parts])


@lru_cache(4096)
def _types(text: str) -> str:
    return json.dumps([DTYPES.get(kind.strip().lower().removeprefix("dt_"), "") for kind in text.strip('"').split(";")])
