"""A file of operators -> an operator table: what could be read, and which rows could not and why."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench import units
from workbench.errors import InvalidSpec, Note, Refused
from workbench.operators.columns import LeftOut, columns_of, listed
from workbench.operators.listed import Listed, operator_list
from workbench.operators.profiles import from_profile
from workbench.operators.sheet import Sheet, read_sheet
from workbench.operators.table import Dtype, OpTable
from workbench.operators.words import element_type
from workbench.study.bulk import in_bulk


@dataclass(frozen=True)
class Operators:
    """Operators of a file. ``row`` [U] is the sheet's row of each operator, ``left_out`` the rows that give none."""

    sheet: Sheet
    table: OpTable
    row: np.ndarray
    left_out: tuple[LeftOut, ...]
    notes: tuple[Note, ...]


@in_bulk()
def read_operators(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
    dtype: str | None = None,
    needs_time: bool = False,
) -> Operators:
    """Read a table of operators (CSV, Excel, Parquet).

    Columns: ``op`` (or ``kind``, ``operator``, ``type``, ``name``), ``dtype``, the dimensions of the kind (``B``, ``M``, ``N``,
    ``K``; ``rows``, ``cols``; see `workbench.operators.columns.ALIASES`) and optionally a measured time with its unit
    (``latency_us``). Kernel tables of the Ascend profiler (``kernel_details.csv``, ``op_summary*.csv``) are understood as they are.

    Parameters
    ----------
    path : str or path
        File.
    columns : mapping of str to str, optional
        Name in the file to the name it means.
    where : mapping of str to str, optional
        Only rows whose cells begin with this text, by column.
    dtype : str, optional
        Element type of rows that do not say.
    needs_time : bool
        Refuse a table without a time.

    Returns
    -------
    Operators
        Rows without shape or with N/A in it, and names no rule knows, are in ``left_out`` and counted in the notes.

    Raises
    ------
    InvalidSpec
        A cell, column or header that is wrong; file, line and column are named.
    UnreadableInput
        The file cannot be read.
    Refused
        No row gives an operator, or the default dtype is unknown.
    """
    sheet = from_profile(read_sheet(path, tuple(columns or ())).where_equal(where or {}).renamed(columns or {}))
    return operators_of(sheet, dtype, needs_time)


def list_operators(rows: Sequence[Mapping[str, object]], dtype: str | None = None) -> Operators:
    """Make operators from rows of a program: ``list_operators([{"op": "gemm", "dtype": "bf16", "M": 4096, "N": 4096, "K": 4096}])``.

    Parameters
    ----------
    rows : sequence of mapping
        Keys as the columns of `read_operators`; what a row does not need may be missing.
    dtype : str, optional
        Element type of rows that do not say.

    Returns
    -------
    Operators

    Raises
    ------
    InvalidSpec, Refused
        As `read_operators`; the line is the row's number.
    """
    header = tuple(dict.fromkeys(name for row in rows for name in row))
    cells = tuple(tuple("" if row.get(name) is None else str(row[name]) for name in header) for row in rows)
    digest = hashlib.sha256(repr((header, cells)).encode()).hexdigest()[:16]
    return operators_of(Sheet("rows", header, 0, cells, tuple(range(1, len(rows) + 1)), (), digest), dtype)


def operators_of(sheet: Sheet, dtype: str | None = None, needs_time: bool = False) -> Operators:
    """Make operators from the rows of a sheet; parameters and errors as `read_operators`."""
    default = element_type(dtype) if dtype else (Dtype.UNKNOWN, "")
    if default is None:
        raise InvalidSpec(f"dtype {dtype!r}", "unknown dtype", "use fp32, fp16, bf16 ...")
    meaning = columns_of(sheet, needs_time)
    rows: list[Listed] = []
    places: list[int] = []
    left: list[LeftOut] = []
    losses: Counter[str] = Counter()
    known: dict[tuple[str, ...], tuple[Listed, str]] = {}  # rows of a model repeat
    for at, cells in enumerate(sheet.rows):
        found = known.get(cells) or listed(sheet, meaning, at, default[0])
        if isinstance(found, LeftOut):
            left.append(found)
            continue
        known[cells] = found
        rows.append(found[0])
        places.append(at)
        losses[found[1]] += 1
    if not rows:
        why = f": {left[0].why}" if left else ""
        raise Refused(
            sheet.path,
            f"none of {units.count(len(sheet.rows), 'row')} gives an operator{why}",
            "name the columns op, dtype and the dimensions",
        )
    notes = _notes(sheet, meaning.unused, rows, left, losses)
    return Operators(sheet, operator_list(rows), np.array(places, dtype=np.int64), tuple(left), notes)


def _notes(sheet: Sheet, unused: tuple[str, ...], rows: list[Listed], left: list[LeftOut], losses: Counter[str]) -> tuple[Note, ...]:
    notes = list(sheet.notes)
    for why, count in Counter(row.why for row in left).most_common(8):
        lines = ", ".join(str(sheet.line[row.row]) for row in left if row.why == why)
        short = lines if len(lines) < 60 else f"{lines[:56].rpartition(',')[0]} ..."
        notes.append(Note("rows-left-out", f"{sheet.path}:{short}", count, why, "complete the row, or map its columns"))
    for text, count in losses.items():
        if text:
            notes.append(Note("dtype-translated", sheet.path, count, text))
    untyped = sum(row.dtype == Dtype.UNKNOWN for row in rows)
    if untyped:
        notes.append(Note("no-dtype", sheet.path, untyped, "no dtype is given: priced as fp32", "add a column dtype, or give --dtype"))
    if unused:
        notes.append(
            Note("columns-not-used", sheet.path, len(unused), f"no meaning is known of: {', '.join(unused)}", "map them with --columns")
        )
    return tuple(notes)
