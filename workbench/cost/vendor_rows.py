"""Rows of a vendor's sheets -> stated times, rows that state none and why, and notes on what was tolerated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from workbench.cost.contract import Contract, read_contract
from workbench.errors import InvalidSpec, Note
from workbench.operators.cells import missing
from workbench.operators.columns import Columns, columns_of, dims_of, dtype_of, names_of, time_of
from workbench.operators.described import MATRIX_KINDS
from workbench.operators.headings import LABELS, SHAPES, SILENT, canonical
from workbench.operators.profiles import from_profile
from workbench.operators.sheet import Sheet, read_sheets
from workbench.operators.table import DIMS, Dtype, Kind
from workbench.operators.words import Word, bare, word

BY_KIND = (*MATRIX_KINDS, Kind.SOFTMAX, Kind.NORM)
"""Kinds whose dimensions say all: a row named as a framework names it prices every operator of the kind and shape."""
SPREAD = 1.2
"""Times of one operator that differ by more than this factor are said to."""
Key = tuple[str, str, tuple[int, ...]]


@dataclass(frozen=True)
class Incomplete:
    """A row that prices nothing: what it says, what it lacks. ``seconds`` is nan without a time, ``dims`` what is given by name."""

    where: str
    label: str
    kind: Kind
    dtype: Dtype
    dims: Mapping[str, int]
    seconds: float
    why: str


@dataclass
class _Found:
    """What is collected row by row."""

    path: str
    exact: dict[Key, float] = field(default_factory=dict)
    signed: dict[str, float] = field(default_factory=dict)
    same: dict[Key, Key] = field(default_factory=dict)
    times: dict[Key | str, list[tuple[float, str]]] = field(default_factory=dict)
    incomplete: tuple[Incomplete, ...] = ()
    left: list[Incomplete] = field(default_factory=list)
    filled: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    unnamed: dict[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    contract: Contract = field(default_factory=Contract)
    digest: str = ""


def gather(path: str, columns: Mapping[str, str], contract: Mapping[str, str]) -> _Found:
    """Read all sheets of a vendor's file; arguments and errors as `workbench.cost.vendor.read_vendor`."""
    sheets = [_mapped(sheet, columns) for sheet in read_sheets(path, columns)]
    found = _Found(path)
    found.contract = read_contract(path, [line for sheet in sheets for line in sheet.comments], contract)
    useful = [sheet for sheet in sheets if len(sheets) == 1 or _has_time(sheet)]
    if not useful:
        raise InvalidSpec(path, f"none of {len(sheets)} sheets has a column with a time", "give one its unit, e.g. latency_us")
    notes: list[Note] = [note for sheet in sheets for note in sheet.notes]
    if len(useful) < len(sheets):
        rest = [sheet.path for sheet in sheets if sheet not in useful]
        notes.append(Note("vendor-sheets-not-read", path, len(rest), f"sheets without a time are not read: {', '.join(rest)}"))
    for sheet in useful:
        notes += _read_sheet(sheet, found)
    _settle(found, notes)
    if not found.exact and not found.signed:
        notes.append(Note("vendor-no-times", path, len(found.left), "no row states the time of an operator", "complete the rows"))
    found.notes = (*notes, *_left_notes(found), *found.contract.notes(path))
    parts = (*(sheet.digest for sheet in sheets), repr(sorted(columns.items())), repr(sorted(found.contract.answers.items())))
    found.digest = hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
    found.incomplete = tuple(found.left)
    return found


def _mapped(sheet: Sheet, columns: Mapping[str, str]) -> Sheet:
    """Rename the columns a map names; in a workbook each sheet has only some of them."""
    present = {name.lower() for name in sheet.header}
    own = {old: new for old, new in columns.items() if old.strip().lower() in present}
    return from_profile(sheet.renamed(own if own and "[" in sheet.path else columns))


def _has_time(sheet: Sheet) -> bool:
    try:
        return columns_of(sheet, needs_time=True, clock=1.0).time is not None
    except InvalidSpec as error:
        if "no column with a time" in error.what:
            return False
        raise


def _read_sheet(sheet: Sheet, found: _Found) -> Iterable[Note]:
    clock = _column_clock(sheet) or found.contract.clock
    columns = columns_of(sheet, needs_time=True, clock=clock)
    where = f"{sheet.path}:{sheet.header_line}"
    if columns.label is None and "signature" not in columns.at:
        raise InvalidSpec(where, "no column says which operator a row is", "add kind, name or signature")
    if "signature" not in columns.at and "dtype" not in columns.at:
        raise InvalidSpec(where, "no dtype column", "add dtype (fp16, bf16, fp32 ...)")
    _one_device(sheet, columns)
    label = ""
    for row in range(len(sheet.rows)):
        label = _read_row(sheet, columns, row, found, label)
    if columns.unused:
        text = f"no meaning is known of: {', '.join(columns.unused)}"
        yield Note("vendor-columns-not-used", sheet.path, len(columns.unused), text, "rename them if they matter")


def _column_clock(sheet: Sheet) -> float | None:
    """Return the clock a column states [Hz], where it has its unit and says the same in every row."""
    for at, name in enumerate(sheet.header):
        scale = next((value for unit, value in (("ghz", 1e9), ("mhz", 1e6), ("khz", 1e3), ("hz", 1.0)) if unit in name.lower()), 0.0)
        cells = {row[at] for row in sheet.rows if not missing(row[at])}
        if scale and canonical(name) == "clock" and len(cells) == 1 and (cell := cells.pop()).replace(".", "", 1).isdecimal():
            return float(cell) * scale or None
    return None


def _one_device(sheet: Sheet, columns: Columns) -> None:
    if "device" in columns.at:
        devices = sorted({row[columns.at["device"]] for row in sheet.rows if not missing(row[columns.at["device"]])})
        if len(devices) > 1:
            what = f"rows of {len(devices)} devices: {', '.join(devices[:8])}"
            raise InvalidSpec(f"{sheet.path}: column 'device'", what, "keep the rows of one device, or rename the column")


def _read_row(sheet: Sheet, columns: Columns, row: int, found: _Found, before: str) -> str:
    """Add one row; return its label, or the one that a merged cell above it gives."""
    cells, where = sheet.rows[row], sheet.where(row)

    def cell(name: str | None) -> str:
        text = cells[columns.at[name]] if name is not None and name in columns.at else ""
        return "" if missing(text) else text

    seconds, why = _seconds(sheet, columns, row)
    if text := cell("signature"):
        if math.isnan(seconds):
            found.left.append(Incomplete(where, text, Kind.UNKNOWN, Dtype.UNKNOWN, {}, seconds, why))
        else:
            found.times.setdefault(text, []).append((seconds, where))
        return before
    label = cell(columns.label)
    if not label and before and (not math.isnan(seconds) or any(cell(name) for name in (*SHAPES, *"mnk"))):
        label, found.filled = before, found.filled + 1
    known = word(label) if label else None
    kind = known.kind if known else Kind.UNKNOWN
    if not label:
        found.left.append(Incomplete(where, "", kind, Dtype.UNKNOWN, {}, seconds, why or "nothing says which operator it is"))
        return before
    dtype, lost = dtype_of(sheet, columns, row)
    if lost:
        found.lost[lost] = found.lost.get(lost, 0) + 1
    keys, lacks = _keys(sheet, columns, row, label, dtype)
    if math.isnan(seconds) or not keys:
        given = _given(sheet, columns, row, known)
        found.left.append(Incomplete(where, label, kind, dtype, given, seconds, why or lacks))
        return label
    if known is None and len(keys) and label.upper() not in Kind.__members__:
        found.unnamed[label] = found.unnamed.get(label, 0) + 1
    for key in keys:
        found.times.setdefault(key, []).append((seconds, where))
        if key != keys[0]:
            found.same[key] = keys[0]
    return label


def _seconds(sheet: Sheet, columns: Columns, row: int) -> tuple[float, str]:
    """Return the time of a row, or nan and why it has none; a time of zero or less is none."""
    try:
        seconds = time_of(sheet, columns, row)
    except InvalidSpec as error:
        if "not a positive time" not in error.what:
            raise
        return math.nan, "its time is not positive, or longer than any operator takes"
    return seconds, "N/A for a time" if math.isnan(seconds) else ""


def _keys(sheet: Sheet, columns: Columns, row: int, label: str, dtype: Dtype) -> tuple[list[Key], str]:
    """Return what a row may be looked up by, or what it lacks."""
    known = word(label)
    cells = sheet.rows[row]
    named = label.upper() in Kind.__members__ or (known is not None and known.kind in BY_KIND)
    if dtype == Dtype.UNKNOWN:
        return [], "no dtype"
    given = {name for name, at in columns.at.items() if not missing(cells[at])} - set(SILENT) - set(LABELS) - {columns.time, "line"}
    kinds = [known.kind] if known is not None else [kind for kind, names in DIMS.items() if names and given and given <= names_of(kind)]
    keys, lacks = [], "no shape" if known is not None else f"no rule knows the operator {label!r}, and it has no shape"
    for kind in kinds:
        dims = dims_of(sheet, columns, row, known if known is not None else Word(kind))
        if isinstance(dims, str):
            lacks = dims
        elif known is None or any(dims):
            keys.append((kind.name.lower() if named else bare(label), dtype.name.lower(), dims))
    return keys, lacks


def _given(sheet: Sheet, columns: Columns, row: int, known: Word | None) -> dict[str, int]:
    """Return the dimensions an incomplete row does state, by name; only those a single column of its kind names."""
    if known is None:
        return {}
    out = {}
    for dim in DIMS[known.kind]:
        text = sheet.rows[row][columns.at[dim]] if dim in columns.at else ""
        if text.isdecimal() and len(text) < 10:
            out[dim] = int(text)
    return out


def _settle(found: _Found, notes: list[Note]) -> None:
    """Take the median where a table states one operator several times."""
    repeated = differing = 0
    worst = 1.0
    for key, entries in found.times.items():
        seconds = [value for value, _ in entries]
        if len(seconds) > 1 and key not in found.same:
            repeated += 1
            differing += max(seconds) > min(seconds)
            worst = max(worst, max(seconds) / min(seconds))
        target = found.signed if isinstance(key, str) else found.exact
        target[key] = median(seconds)  # type: ignore[index]
    if differing:
        text = f"of {differing} operators several different times are stated (up to {worst:.3g}x apart): the median is taken"
        fix = "say what tells the rows apart (layout, algorithm, clock)" if worst > SPREAD else "keep one row an operator"
        notes.append(Note("vendor-duplicates", found.path, repeated, text, fix))


def _left_notes(found: _Found) -> list[Note]:
    notes = []
    if found.left:
        reasons: dict[str, list[str]] = {}
        for row in found.left:
            reasons.setdefault(row.why, []).append(row.where.rpartition(":")[2])
        most = sorted(reasons.items(), key=lambda item: -len(item[1]))[:4]
        text = "rows without a time or without a complete shape are not used: " + "; ".join(
            f"{why} (line {', '.join(lines[:6])}{' ...' if len(lines) > 6 else ''})" for why, lines in most
        )
        notes.append(Note("vendor-rows-left-out", found.path, len(found.left), text, "complete them"))
    if found.filled:
        notes.append(Note("vendor-names-filled", found.path, found.filled, "rows without a name are taken as of the operator above them"))
    if found.unnamed:
        names = ", ".join(list(found.unnamed)[:8])
        text = f"no rule knows these names: they price operators of exactly these names only: {names}"
        notes.append(Note("vendor-names-unknown", found.path, sum(found.unnamed.values()), text))
    return [*notes, *(Note("dtype-translated", found.path, count, text) for text, count in found.lost.items())]
