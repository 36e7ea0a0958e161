"""A vendor's operator times: a table read strictly, looked up exactly (`workbench.cost.interpolate` for what lies between)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.errors import InvalidSpec, Note
from workbench.operators.columns import LABELS, MISSING, SILENT, Columns, columns_of, dims_of, dtype_of, names_of, time_of
from workbench.operators.described import MATRIX_KINDS
from workbench.operators.sheet import Sheet, read_sheet
from workbench.operators.table import DIMS, Dtype, Kind, OpTable
from workbench.operators.words import Word, word

CONTRACT = {
    "launch": "is the launch included (yes/no)",
    "caches": "were caches cold or warm",
    "clock": "at which clock, e.g. 1.41 GHz",
    "layout": "is layout conversion included",
    "fusion": "what is fused into one row",
    "simulator": "which simulator or library version",
}
"""Questions a vendor table should answer in ``# key: value`` lines above its header (design.md, section 7)."""
BY_KIND = (*MATRIX_KINDS, Kind.SOFTMAX, Kind.NORM)
"""Kinds whose dimensions say all: a row named as a framework names it prices every operator of the kind and shape."""

Key = tuple[str, str, tuple[int, ...]]


@dataclass(frozen=True)
class VendorTimes:
    """A vendor's times. ``exact`` maps (kind or operator name, dtype, dims) and ``signed`` maps signatures to seconds."""

    path: str
    exact: Mapping[Key, float] = field(repr=False)
    signed: Mapping[str, float] = field(repr=False)
    digest: str
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.exact) + len(self.signed)

    def lookup(self, table: OpTable) -> np.ndarray:
        """Return the stated seconds of every row, float64 [U] [s]; nan where the table has none."""
        out = np.full(len(table), math.nan)
        for row, (kind, dtype) in enumerate(zip(table.kind.tolist(), table.dtype.tolist(), strict=True)):
            found = self.signed.get(table.signature[row])
            if found is None and self.exact:
                dims = tuple(table.dims[row, : len(DIMS[Kind(kind)])].tolist())
                name = Dtype(dtype).name.lower()
                for label in (Kind(kind).name.lower(), table.name[row].lower()):  # the operator's own row goes before its kind's
                    found = self.exact.get((label, name, dims), found)
            if found is not None:
                out[row] = found
        return out


def read_vendor(path: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> VendorTimes:
    """Read a vendor's operator times.

    Columns: ``kind`` (or ``op``, ``operator``, ``type``, ``name``), ``dtype``, the dims of the kind by name (``m``, ``n``, ``k``,
    ``batch`` ..., see `workbench.operators.columns.ALIASES`) or ``signature``, and a time with its unit in the header
    (``latency_us``, ``time_ms``). Lines ``# key: value`` above the header answer the questions of `CONTRACT`; those left open
    are noted.

    Parameters
    ----------
    path : str or path
        CSV (UTF-8), Excel or Parquet file.
    columns : mapping of str to str, optional
        Name in the file to the name it means, e.g. ``{"dauer": "time_us"}``.

    Returns
    -------
    VendorTimes
        Rows without shape or with N/A are left out and counted in a note.

    Raises
    ------
    InvalidSpec
        Misspelt column, no unit, a time that is not a positive number; file, line and column are named.
    UnreadableInput
        The file cannot be read.
    """
    sheet = read_sheet(path).renamed(columns or {})
    meaning = columns_of(sheet, needs_time=True)
    where = f"{sheet.path}:{sheet.header_line}"
    if meaning.label is None and "signature" not in meaning.at:
        raise InvalidSpec(where, "no column says which operator a row is", "add kind, name or signature")
    if "signature" not in meaning.at and "dtype" not in meaning.at:
        raise InvalidSpec(where, "no dtype column", "add dtype (fp16, bf16, fp32 ...)")
    exact: dict[Key, float] = {}
    signed: dict[str, float] = {}
    left_out = sum(not _read_row(sheet, meaning, row, exact, signed) for row in range(len(sheet.rows)))
    notes = _notes(sheet.path, sheet.comments, left_out)
    if meaning.unused:
        text = f"no meaning is known of: {', '.join(meaning.unused)}"
        notes += (Note("vendor-columns-not-used", sheet.path, len(meaning.unused), text, "rename them if they matter"),)
    return VendorTimes(sheet.path, exact, signed, sheet.digest, notes)


def _read_row(sheet: Sheet, columns: Columns, row: int, exact: dict[Key, float], signed: dict[str, float]) -> bool:
    """Add one row; False when it has no time or no shape."""
    cells = sheet.rows[row]

    def cell(name: str | None) -> str:
        text = cells[columns.at[name]] if name is not None and name in columns.at else ""
        return "" if text.lower() in MISSING else text

    seconds = time_of(sheet, columns, row)
    if math.isnan(seconds):
        return False
    if text := cell("signature"):
        _put(signed, text, seconds, sheet.where(row))
        return True
    label = cell(columns.label).lower()
    if not label:
        return False
    dtype = dtype_of(sheet, columns, row)[0].name.lower()
    found = word(label)
    named = label.upper() in Kind.__members__ or (found is not None and found.kind in BY_KIND)
    given = {name for name in columns.at if cell(name) and name not in SILENT and name not in LABELS and name != columns.time}
    kinds = [found.kind] if found is not None else [kind for kind, names in DIMS.items() if names and given <= names_of(kind)]
    added = False
    for kind in kinds:
        dims = dims_of(sheet, columns, row, found if found is not None else Word(kind))
        if not isinstance(dims, str):
            _put(exact, (kind.name.lower() if named else label, dtype, dims), seconds, sheet.where(row))
            added = True
    return added


def _put(target: dict[Any, float], key: object, seconds: float, where: str) -> None:
    if target.get(key, seconds) != seconds:
        raise InvalidSpec(where, f"a second, different time for {key}", "keep one row an operator")
    target[key] = seconds


def _notes(name: str, comments: Sequence[str], left_out: int) -> tuple[Note, ...]:
    answered = {}
    for line in comments:
        key, colon, value = line.lstrip("# ").partition(":")
        if colon and value.strip():
            answered[key.strip().lower()] = value.strip()
    open_questions = [question for key, question in CONTRACT.items() if key not in answered]
    notes = []
    if left_out:
        notes.append(
            Note("vendor-rows-left-out", name, left_out, "rows without a time or without a complete shape are not used", "complete them")
        )
    if open_questions:
        fix = "add lines such as '# caches: warm' above the header"
        notes.append(Note("vendor-contract-open", name, len(open_questions), f"not stated: {'; '.join(open_questions)}", fix))
    return tuple(notes)
