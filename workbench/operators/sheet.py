"""A table of operators as a file: CSV or TSV, Excel, Parquet -> header and rows of text, each with its place."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from workbench.data import read_small
from workbench.errors import InvalidSpec, UnreadableInput

MOST_BYTES = 1 << 30  # of an unpacked workbook
MOST_COLUMNS = 16384  # of an Excel sheet
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_CELL = re.compile(r"([A-Z]+)(\d+)")


@dataclass(frozen=True)
class Sheet:
    """Header, rows and comments (``# ...`` lines of a CSV) of a table; ``line`` numbers rows as a person finds them in the file."""

    path: str
    header: tuple[str, ...]
    header_line: int
    rows: tuple[tuple[str, ...], ...]
    line: tuple[int, ...]
    comments: tuple[str, ...]
    digest: str

    def where(self, row: int, column: str = "") -> str:
        """Return the place of a row and column for an error."""
        return f"{self.path}:{self.line[row]}" + (f": column {column!r}" if column else "")

    def _no_column(self, name: str) -> InvalidSpec:
        where = f"{self.path}:{self.header_line}: column {name!r}"
        return InvalidSpec(where, "no such column", f"there are {', '.join(self.header)}")

    def renamed(self, columns: Mapping[str, str]) -> Sheet:
        """Return the sheet with columns renamed.

        Parameters
        ----------
        columns : mapping of str to str
            Name in the file to the name it means (``{"time": "latency_us"}``); names compare without regard to case.

        Raises
        ------
        InvalidSpec
            A column that is not there, or two columns of one name afterwards.
        """
        wanted = {old.strip().lower(): new.strip() for old, new in columns.items()}
        missing = sorted(set(wanted) - {name.lower() for name in self.header})
        if missing:
            raise InvalidSpec(
                f"{self.path}:{self.header_line}: column {missing[0]!r}", "no such column", f"there are {', '.join(self.header)}"
            )
        header = tuple(wanted.get(name.lower(), name) for name in self.header)
        lower = [name.lower() for name in header if name.lower() in {new.lower() for new in wanted.values()}]
        twice = next((name for name in lower if lower.count(name) > 1), None)
        if twice:
            raise InvalidSpec(f"{self.path}:{self.header_line}: column {twice!r}", "two columns of this name", "map another column")
        return replace(self, header=header)

    def where_equal(self, conditions: Mapping[str, str]) -> Sheet:
        """Return the rows whose cells begin with the given text, e.g. ``{"device": "A100", "source": "NeuSight"}``.

        Raises
        ------
        InvalidSpec
            A column that is not there, or no row left.
        """
        lower = [name.lower() for name in self.header]
        keep = list(range(len(self.rows)))
        for name, value in conditions.items():
            if name.lower() not in lower:
                raise InvalidSpec(
                    f"{self.path}:{self.header_line}: column {name!r}", "no such column", f"there are {', '.join(self.header)}"
                )
            at = lower.index(name.lower())
            left = [row for row in keep if self.rows[row][at].lower().startswith(value.lower())]
            if not left:
                some = ", ".join(sorted({self.rows[row][at] for row in keep})[:12])
                raise InvalidSpec(f"{self.path}: column {name!r}", f"no row begins with {value!r}", f"there are {some}")
            keep = left
        return replace(self, rows=tuple(self.rows[row] for row in keep), line=tuple(self.line[row] for row in keep))


def read_sheet(path: str | os.PathLike[str]) -> Sheet:
    """Read a table: Excel and Parquet by their names, anything else as CSV (comma, semicolon or tab).

    Parameters
    ----------
    path : str or path
        File.

    Returns
    -------
    Sheet

    Raises
    ------
    UnreadableInput
        The file cannot be read, or needs a package that is not installed.
    InvalidSpec
        An empty table, or a row with more or fewer cells than the header.
    """
    name = str(path)
    raw = read_small(path, "give a CSV, Excel or Parquet file")
    suffix = Path(path).suffix.lower()
    comments: tuple[str, ...] = ()
    if suffix in (".xlsx", ".xlsm") or raw.startswith(b"PK\x03\x04"):
        rows = _excel(raw, name)
    elif suffix == ".parquet" or raw.startswith(b"PAR1"):
        rows = _parquet(raw, name)
    else:
        rows, comments = _text(raw, name)
    if not rows:
        raise InvalidSpec(f"{name}:1", "an empty table", "add a header such as op,dtype,M,N,K and rows")
    (first, head), *rest = rows
    header = tuple(cell.strip() for cell in head)
    for line, cells in rest:
        if len(cells) != len(header):
            raise InvalidSpec(f"{name}:{line}", f"{len(cells)} cells, but {len(header)} columns", "give one cell a column")
    stripped = tuple(tuple(cell.strip() for cell in cells) for _, cells in rest)
    return Sheet(name, header, first, stripped, tuple(line for line, _ in rest), comments, hashlib.sha256(raw).hexdigest()[:16])


_Rows = list[tuple[int, list[str]]]


def _text(raw: bytes, name: str) -> tuple[_Rows, tuple[str, ...]]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableInput(name, f"cannot be read: {error.reason}", "give a CSV file in UTF-8") from None
    lines = text.splitlines()
    comments = tuple(line for line in lines if line.lstrip().startswith("#"))
    kept = ["" if line.lstrip().startswith("#") else line for line in lines]
    first = next((line for line in kept if line.strip()), "")
    mark = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO("\n".join(kept)), delimiter=mark)
    rows: _Rows = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise InvalidSpec(f"{name}:{reader.line_num}", f"not a table: {error}", "mend the quoting") from None
    return rows, comments


def _excel(raw: bytes, name: str) -> _Rows:
    """Read the first sheet of a workbook: cell texts as stored (formulas by their last value)."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as book:
            if sum(entry.file_size for entry in book.infolist()) > MOST_BYTES:
                raise UnreadableInput(name, "unpacks to more than 1 GiB", "give a table of operators")
            names = book.namelist()
            texts = []
            if "xl/sharedStrings.xml" in names:
                root = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
                texts = ["".join(part.text or "" for part in item.iter(f"{_MAIN}t")) for item in root.iter(f"{_MAIN}si")]
            sheets = sorted((entry for entry in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", entry)), key=lambda s: (len(s), s))
            root = ElementTree.fromstring(book.read(sheets[0]))
            found = [_excel_row(row, texts) for row in root.iter(f"{_MAIN}row")]
    except (zipfile.BadZipFile, ElementTree.ParseError, IndexError, KeyError, ValueError) as error:
        raise UnreadableInput(name, f"not an Excel workbook: {error}", "save it as .xlsx or as CSV") from None
    found = [(line, cells) for line, cells in found if any(cell.strip() for cell in cells)]
    width = len(found[0][1]) if found else 0
    return [(line, (cells + [""] * width)[: max(width, len(cells))]) for line, cells in found]


def _excel_row(row: ElementTree.Element, texts: list[str]) -> tuple[int, list[str]]:
    cells: list[str] = []
    for cell in row.iter(f"{_MAIN}c"):
        place = _CELL.match(cell.get("r", ""))
        at = len(cells)
        if place:
            at = 0
            for letter in place.group(1):
                at = at * 26 + ord(letter) - 64
            at -= 1
            if at >= MOST_COLUMNS:
                raise ValueError(f"a cell at {place.group()}")
        cells += [""] * (at + 1 - len(cells))
        value = cell.find(f"{_MAIN}v")
        text = "" if value is None else value.text or ""
        if cell.get("t") == "s":
            text = texts[int(text)]
        elif cell.get("t") == "inlineStr":
            text = "".join(part.text or "" for part in cell.iter(f"{_MAIN}t"))
        cells[at] = text
    return int(row.get("r", "0")), cells


def _parquet(raw: bytes, name: str) -> _Rows:
    try:
        from pyarrow import BufferReader, lib, parquet
    except ImportError:
        raise UnreadableInput(
            name,
            "Parquet needs the package pyarrow, which is not installed",
            "pip install 'npu-workbench[tables]', or save the table as CSV",
        ) from None
    try:
        table = parquet.read_table(BufferReader(raw))
    except (lib.ArrowException, OSError) as error:
        raise UnreadableInput(name, f"not a Parquet file: {error}", "write it again, or save the table as CSV") from None
    columns = [["" if value is None else str(value) for value in column.to_pylist()] for column in table.columns]
    return [(1, list(table.column_names)), *((at, list(cells)) for at, cells in enumerate(zip(*columns, strict=True), 2))]
