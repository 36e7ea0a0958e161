"""A table of operators as a file -> header and rows of text, each with its place.

What vendors put around a table is understood: title lines above the header, a row of units below it, notes and totals below the rows.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from workbench.data import read_small
from workbench.errors import InvalidSpec, Note
from workbench.operators import headings
from workbench.operators.cells import UNITS, missing
from workbench.operators.sheet_files import Page, Rows, read_pages

MOST_ABOVE = 60  # rows among which the header is looked for
_TOTAL = re.compile(
    r"(grand |sub)?(sum|total|totals|average|avg|mean|geo ?mean|geometric mean|max|min|\u5408\u8ba1|\u603b\u8ba1|\u5e73\u5747|\u5c0f\u8ba1)"
    r"(\s+(time|latency|duration|ops?|operators?|rows?))?\s*[:.]?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Sheet:
    """Header, rows and comments (``# ...`` lines, titles) of a table; ``line`` numbers rows as a person finds them in the file."""

    path: str
    header: tuple[str, ...]
    header_line: int
    rows: tuple[tuple[str, ...], ...]
    line: tuple[int, ...]
    comments: tuple[str, ...]
    digest: str
    notes: tuple[Note, ...] = ()

    def where(self, row: int, column: str = "") -> str:
        """Return the place of a row and column for an error."""
        return f"{self.path}:{self.line[row]}" + (f": column {column!r}" if column else "")

    def _no_column(self, name: str) -> InvalidSpec:
        where = f"{self.path}:{self.header_line}: column {name!r}"
        return InvalidSpec(where, "no such column", f"there are {', '.join(self.header)}"[:500])

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
        absent = sorted(set(wanted) - {name.lower() for name in self.header})
        if absent:
            raise self._no_column(absent[0])
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
                raise self._no_column(name)
            at = lower.index(name.lower())
            left = [row for row in keep if self.rows[row][at].lower().startswith(value.lower())]
            if not left:
                some = ", ".join(sorted({self.rows[row][at] for row in keep})[:12])
                raise InvalidSpec(f"{self.path}: column {name!r}", f"no row begins with {value!r}", f"there are {some}")
            keep = left
        return self.kept(keep)

    def kept(self, rows: Collection[int]) -> Sheet:
        """Return the sheet with some of its rows."""
        return replace(self, rows=tuple(self.rows[row] for row in rows), line=tuple(self.line[row] for row in rows))


def read_sheet(path: str | os.PathLike[str], expected: Collection[str] = (), units_row: bool = True) -> Sheet:
    """Read a table; of a workbook the first sheet that looks like one.

    Parameters
    ----------
    path : str or path
        CSV or TSV, Excel, Parquet.
    expected : collection of str
        Names that a header may have beside those the project knows (what a column map names).
    units_row : bool
        Whether a row of units below the header belongs to it.

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
    found = read_sheets(path, expected, units_row)
    best = max(found, key=lambda sheet: _score(sheet.header, expected) >= 2)
    others = [sheet.path for sheet in found if sheet is not best]
    if not others:
        return best
    text = f"other sheets are not read: {', '.join(others)}"
    note = Note("sheets-not-read", best.path, len(others), text, "save them as files of their own")
    return replace(best, notes=(*best.notes, note))


def read_sheets(path: str | os.PathLike[str], expected: Collection[str] = (), units_row: bool = True) -> list[Sheet]:
    """Read every table of a file, see `read_sheet`; sheets of a workbook without rows are left out.

    Parameters
    ----------
    path : str or path
        CSV or TSV, Excel, Parquet.
    expected : collection of str
        Further names that a header may have.
    units_row : bool
        As in `read_sheet`.

    Raises
    ------
    UnreadableInput, InvalidSpec
        As `read_sheet`.
    """
    name = str(path)
    raw = read_small(path, "give a CSV, Excel or Parquet file")
    pages = [page for page in read_pages(raw, name) if page.rows]
    if not pages:
        raise InvalidSpec(f"{name}:1", "an empty table", "add a header such as op,dtype,M,N,K and rows")
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return [_sheet(page, expected, digest, units_row) for page in pages]


def _score(cells: Collection[str], expected: Collection[str]) -> int:
    wanted = {name.strip().lower() for name in expected}
    return sum(headings.known(cell) or cell.strip().lower() in wanted for cell in cells if cell.strip())


def _sheet(page: Page, expected: Collection[str], digest: str, units_row: bool) -> Sheet:
    rows = page.rows
    scores = [_score(cells, expected) for _, cells in rows[:MOST_ABOVE]]
    at = scores.index(max(scores)) if max(scores) >= 2 else _widest(rows)
    line, head = rows[at]
    header = tuple(cell.strip()[: headings.LONGEST] for cell in head)
    while header and not header[-1] and len(header) > 1:
        header = header[:-1]
    titles = tuple(": ".join(dict.fromkeys(cell.strip() for cell in cells if cell.strip())) for _, cells in rows[:at])
    body = rows[at + 1 :]
    if units_row and body and _is_units(body[0][1], header):
        units = [cell.strip().strip("[]()\uff08\uff09") for cell in body[0][1]]
        header = tuple(
            f"{name} [{unit}]" if unit.lower() in UNITS and not headings.time_unit(name) else name
            for name, unit in zip(header, units + [""] * len(header), strict=False)
        )
        body = body[1:]
    kept, remarks = _body(page, header, [cell.strip().lower() for cell in head], body)
    notes = page.notes
    if remarks:
        places = ", ".join(map(str, remarks[:8])) + (" ..." if len(remarks) > 8 else "")
        text = "rows that are totals, section titles or remarks are not read"
        notes += (Note("table-remarks", f"{page.name}:{places}", len(remarks), text),)
    cells = tuple(tuple(cell.strip() for cell in cells) for _, cells in kept)
    return Sheet(page.name, header, line, cells, tuple(line for line, _ in kept), page.comments + titles, digest, notes)


def _widest(rows: Rows) -> int:
    """Return the first row as wide as most are: what stands above it are titles."""
    widths = Counter(len(cells) for _, cells in rows)
    most = max(widths, key=lambda width: (widths[width], width))
    return next(at for at, (_, cells) in enumerate(rows) if len(cells) == most)


def _is_units(cells: list[str], header: tuple[str, ...]) -> bool:
    """Whether a row gives the units of a header: some cell is a unit of time below a name, and none is anything else."""
    if len(cells) > len(header) and any(cell.strip() for cell in cells[len(header) :]):
        return False
    plain = [cell.strip().strip("[]()\uff08\uff09").lower() for cell in cells]
    return all(map(headings.is_unit, cells)) and any(cell in UNITS or cell in ("cycles", "clk") for cell in plain)


def _body(page: Page, header: tuple[str, ...], again: list[str], rows: Rows) -> tuple[Rows, list[int]]:
    """Return rows of exactly the header's width, and the lines of totals, repeated headers (``again``) and remarks."""
    kept: Rows = []
    remarks = []
    for line, cells in rows:
        full = [cell.strip() for cell in cells if cell.strip()]
        if [cell.strip().lower() for cell in cells] == again or _is_remark(cells, full, header):
            remarks.append(line)
            continue
        wide = len(header)
        given = [*cells, *[""] * (wide - len(cells) if page.loose else 0)]
        while len(given) > wide and not given[-1].strip():
            given.pop()
        if len(given) != wide:
            raise InvalidSpec(f"{page.name}:{line}", f"{len(given)} cells, but {wide} columns", "give one cell a column")
        kept.append((line, given))
    return kept, remarks


def _is_remark(cells: list[str], full: list[str], header: tuple[str, ...]) -> bool:
    """A short row of one text is a section title or a remark; a total names itself and leaves most cells empty."""
    if len(header) < 3 or not full:
        return False
    if len(full) == 1 and len(cells) < len(header):
        return not missing(full[0]) and not full[0].replace(".", "").isdecimal()
    return bool(_TOTAL.fullmatch(full[0])) and len(full) <= max(2, len(header) // 2)
