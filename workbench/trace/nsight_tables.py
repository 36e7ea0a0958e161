"""Tables of an SQLite database as columns: whole numbers and texts, whatever the version of the schema leaves out.

SQLite keeps any type in any column; what is no whole number, or missing, becomes `MISSING`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from workbench.errors import UnreadableInput

MAGIC = b"SQLite format 3\0"
MISSING = -(2**63)
_ROWS = 1 << 16


@dataclass
class Database:
    """A database that is only read.

    Parameters
    ----------
    path : Path
    salvage : bool
        Keep the rows before a damage; else it is refused.

    Attributes
    ----------
    damage : list of str
        What could not be read.

    Raises
    ------
    UnreadableInput
        It cannot be opened, or not even its list of tables can be read.
    """

    path: Path
    salvage: bool = False
    damage: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self._connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
            self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            self._connection.execute("PRAGMA trusted_schema=OFF")
            found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
            self.tables = {str(name) for (name,) in found}
        except (sqlite3.Error, ValueError, OSError) as fault:
            self._refuse(str(fault))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def numbers(self, table: str, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return columns of whole numbers, int64 of one length; a column or table that is not there holds `MISSING`, or no row."""
        known = self._columns(table)
        asked = [
            f"CASE typeof({_quoted(n)}) WHEN 'integer' THEN {_quoted(n)} ELSE {MISSING} END" if n in known else str(MISSING) for n in names
        ]
        pieces = [np.array(rows, np.int64) for rows in self._rows(table, asked)]
        whole = np.concatenate(pieces) if pieces else np.empty((0, len(names)), np.int64)
        return dict(zip(names, whole.T.copy(), strict=True))

    def texts(self, table: str, key: str, name: str) -> list[tuple[int, str]]:
        """Return (number, text) of the rows of a table that have both."""
        if not {key, name} <= self._columns(table):
            return []
        asked = [f"CASE typeof({_quoted(key)}) WHEN 'integer' THEN {_quoted(key)} END", f"CAST({_quoted(name)} AS TEXT)"]
        return [(k, text) for rows in self._rows(table, asked) for k, text in rows if k is not None and text is not None]

    def _columns(self, table: str) -> set[str]:
        if table not in self.tables:
            return set()
        try:
            return {"rowid", *(str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})"))}
        except sqlite3.Error as fault:
            self._lose(table, 0, fault)
            return set()

    def _rows(self, table: str, columns: Sequence[str]) -> list[list[tuple[int, str]]]:
        if table not in self.tables:
            return []
        out: list[list[tuple[int, str]]] = []
        try:
            cursor = self._connection.execute(f"SELECT {', '.join(columns)} FROM {_quoted(table)}")
            while rows := cursor.fetchmany(_ROWS):
                out.append(rows)
        except (sqlite3.Error, OverflowError) as fault:
            self._lose(table, sum(map(len, out)), fault)
        return out

    def _lose(self, table: str, rows: int, fault: Exception) -> None:
        what = f"table {table} breaks off after {rows} rows ({fault})"
        if not self.salvage:
            self._refuse(what)
        self.damage.append(what)

    def _refuse(self, why: str) -> None:
        fix = "export it again" if self.salvage else "export it again, or import what is whole with --salvage"
        raise UnreadableInput(str(self.path), f"is an SQLite database that cannot be read: {why}", fix) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
