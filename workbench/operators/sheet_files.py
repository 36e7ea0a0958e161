"""Files of tables -> pages of text cells: CSV and TSV in the encodings vendors send, Excel workbooks sheet by sheet, Parquet."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from xml.etree import ElementTree

from workbench.errors import InvalidSpec, Note, UnreadableInput

MOST_BYTES = 1 << 30  # of an unpacked workbook
MOST_COLUMNS = 16384  # of an Excel sheet
SAMPLE = 200  # lines that decide which mark separates cells
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_LINKS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_HIGH = re.compile(rb"[\x80-\xff]+")
Rows = list[tuple[int, list[str]]]


@dataclass(frozen=True)
class Page:
    """Rows of one sheet with their line numbers, comment lines, and what was tolerated to read it."""

    name: str
    rows: Rows
    comments: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    loose: bool = False  # rows end at their last cell with content


def read_pages(raw: bytes, name: str) -> list[Page]:
    """Read the pages of a file: every visible sheet of a workbook, or the one table of anything else.

    Raises
    ------
    UnreadableInput
        Damaged, in no known encoding, or of a format that needs what is not installed.
    InvalidSpec
        Quoting that makes no table.
    """
    suffix = PurePath(name).suffix.lower()
    if raw.startswith(b"\xd0\xcf\x11\xe0"):
        raise UnreadableInput(name, "is an Excel file of the old binary format", "save it as .xlsx or as CSV")
    if suffix in (".xlsx", ".xlsm") or raw.startswith(b"PK\x03\x04"):
        return _workbook(raw, name)
    if suffix == ".parquet" or raw.startswith(b"PAR1"):
        return [Page(name, _parquet(raw, name))]
    text, notes = _decoded(raw, name)
    rows, comments = _text(text, name)
    return [Page(name, rows, comments, notes)]


def _decoded(raw: bytes, name: str) -> tuple[str, tuple[Note, ...]]:
    """Decode a text file: by its mark, as UTF-8, else by how bytes above 127 stand: alone (Windows-1252) or in runs (GB 18030)."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        order = ["utf-16"]
    elif len(raw) > 3 and raw[1::2].count(0) > 0.4 * len(raw[1::2]):
        order = ["utf-16-le"]
    else:
        lonely = all(len(run) == 1 for run in _HIGH.findall(raw))
        order = ["utf-8-sig", *(("cp1252", "latin-1") if lonely else ("gb18030", "cp1252"))]
    reason = "its encoding is not known"
    for encoding in order:
        try:
            text = raw.decode(encoding)
        except UnicodeError as error:
            reason = getattr(error, "reason", reason)
            continue
        if "\0" in text:
            break
        if encoding == "utf-8-sig":
            return text, ()
        return text, (Note("table-encoding", name, 1, f"is not UTF-8: read as {encoding.upper()}", "save it as UTF-8"),)
    raise UnreadableInput(name, f"cannot be read as text: {reason}", "give a CSV file in UTF-8")


def _text(text: str, name: str) -> tuple[Rows, tuple[str, ...]]:
    lines = text.splitlines()
    marks = ",;\t|"
    if lines and (stated := re.fullmatch(r"sep=(.)", lines[0].strip())):
        marks, lines[0] = stated.group(1), ""
    comments = tuple(line for line in lines if _is_comment(line))
    kept = ["" if _is_comment(line) else line for line in lines]
    reader = csv.reader(io.StringIO("\n".join(kept)), delimiter=_separator(kept, marks), skipinitialspace=True)
    rows: Rows = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise InvalidSpec(f"{name}:{reader.line_num}", f"not a table: {error}", "mend the quoting") from None
    return rows, comments


def _is_comment(line: str) -> bool:
    """A line that begins with ``#`` is a comment, one that begins with a column called ``#`` is not; ``==PROF==`` is a profiler's log."""
    return bool(re.match(r"\s*(#(?!\s*[,;\t|])|==(PROF|WARNING|ERROR|LOG)==)", line))


def _separator(lines: list[str], marks: str) -> str:
    """Return the mark that divides most lines into one and the same number of cells."""
    sample = [line for line in lines if line.strip()][:SAMPLE]
    best, score = marks[0], (0.0, 0)
    for mark in marks:
        try:
            widths = Counter(len(cells) for cells in csv.reader(sample, delimiter=mark, skipinitialspace=True) if len(cells) > 1)
        except csv.Error:
            continue
        if widths:
            width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
            found = (round(count / len(sample), 2), width)
            best, score = (mark, found) if found > score else (best, score)
    return best


def _workbook(raw: bytes, name: str) -> list[Page]:
    """Read the visible sheets of a workbook: cell texts as stored (formulas by their last value)."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as book:
            if sum(entry.file_size for entry in book.infolist()) > MOST_BYTES:
                raise UnreadableInput(name, "unpacks to more than 1 GiB", "give a table of operators")
            texts = []
            if "xl/sharedStrings.xml" in book.namelist():
                root = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
                texts = ["".join(part.text or "" for part in item.iter(f"{_MAIN}t")) for item in root.iter(f"{_MAIN}si")]
            sheets = _sheets(book)
            pages = []
            for title, entry in sheets:
                root = ElementTree.fromstring(book.read(entry))
                rows = _filled([_row(row, texts, at) for at, row in enumerate(root.iter(f"{_MAIN}row"), 1)], root)
                rows = [(line, cells) for line, cells in rows if any(cell.strip() for cell in cells)]
                pages.append(Page(f"{name}[{title}]" if len(sheets) > 1 else name, rows, loose=True))
    except (zipfile.BadZipFile, ElementTree.ParseError, IndexError, KeyError, ValueError, NotImplementedError, OSError, RuntimeError,
            zipfile.LargeZipFile, EOFError) as error:  # fmt: skip
        raise UnreadableInput(name, f"not an Excel workbook: {error}", "save it as .xlsx or as CSV") from None
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise UnreadableInput(name, f"not an Excel workbook: {error}", "save it as .xlsx or as CSV") from None
        raise
    if not pages:
        raise UnreadableInput(name, "a workbook without a visible sheet", "save the table as .xlsx or as CSV")
    return pages


def _sheets(book: zipfile.ZipFile) -> list[tuple[str, str]]:
    """Return title and entry of every visible sheet, in the order of the tabs; by entry names where the workbook does not say."""
    names = book.namelist()
    entries = sorted((entry for entry in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", entry)), key=lambda s: (len(s), s))
    plain = [(entry.rpartition("/")[2].removesuffix(".xml"), entry) for entry in entries]
    if not {"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} <= set(names):
        return plain
    links = {link.get("Id", ""): link.get("Target", "") for link in ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))}
    found = []
    for sheet in ElementTree.fromstring(book.read("xl/workbook.xml")).iter(f"{_MAIN}sheet"):
        target = links.get(sheet.get(f"{_LINKS}id", ""), "").lstrip("/")
        entry = target if target.startswith("xl/") else f"xl/{target}"
        if entry in names and "worksheets/" in entry and sheet.get("state", "visible") == "visible":
            found.append((sheet.get("name", entry), entry))
    return found or plain


def _row(row: ElementTree.Element, texts: list[str], at_least: int) -> tuple[int, list[str]]:
    cells: list[str] = []
    for cell in row.iter(f"{_MAIN}c"):
        place = _CELL.fullmatch(cell.get("r", ""))
        at = _column(place.group(1)) if place else len(cells)
        if at >= MOST_COLUMNS:
            raise ValueError(f"a cell at {cell.get('r')}")
        cells += [""] * (at + 1 - len(cells))
        value = cell.find(f"{_MAIN}v")
        text = "" if value is None else value.text or ""
        if cell.get("t") == "s":
            text = texts[int(text)]
        elif cell.get("t") == "inlineStr":
            text = "".join(part.text or "" for part in cell.iter(f"{_MAIN}t"))
        cells[at] = text
    number = row.get("r", "")
    return int(number) if number.isdecimal() and len(number) < 9 else at_least, cells


def _column(letters: str) -> int:
    at = 0
    for letter in letters:
        at = at * 26 + ord(letter) - 64
    return at - 1


def _filled(rows: Rows, root: ElementTree.Element) -> Rows:
    """Repeat what stands in cells merged downwards (one name over several rows) in each of their rows."""
    by_line = dict(rows)
    for merged in root.iter(f"{_MAIN}mergeCell"):
        first, _, last = merged.get("ref", "").partition(":")
        a, b = _CELL.fullmatch(first), _CELL.fullmatch(last)
        if not a or not b or a.group(1) != b.group(1):
            continue
        at, top = _column(a.group(1)), int(a.group(2))
        head = by_line.get(top, [])
        if at < len(head) and head[at].strip():
            for line in (line for line in by_line if top < line <= int(b.group(2))):
                cells = by_line[line]
                if any(cell.strip() for cell in cells):
                    cells += [""] * (at + 1 - len(cells))
                    cells[at] = cells[at] or head[at]
    return rows


def _parquet(raw: bytes, name: str) -> Rows:
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
