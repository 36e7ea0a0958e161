"""Text and tables that do not break a line between a number and its unit, and columns of numbers that keep their numbers whole."""

from __future__ import annotations

import re
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.containers import Lines
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

APART = re.compile(r"(?<=\d) (?=(?:%|[kKMGTPEunpmµ]?i?(?:s|B|b|J|W|Hz|FLOP|OP)(?:/\w+)?)(?!\w))|(?<=[a-z]) (?=\d+ %(?:[,;\n]|\Z))")
"""Spaces inside ``5.4 ms``, ``84 %``, ``1.6 TB/s``, and before a share: ``launch 2 %``."""
JOINT = "\ue000"
"""Stands for such a space while lines are broken: a private character, one column wide."""
LEAST_TEXT = 24
"""Columns below which a column of text is not worth reading: numbers move closer together then."""


class Phrases(Text):
    """Text whose lines break between phrases only."""

    @classmethod
    def of(cls, text: Text | str) -> Self:
        """Return a text, or a string, as phrases."""
        given = Text(text) if isinstance(text, str) else text
        out = cls(given.plain, given.style, justify=given.justify, overflow=given.overflow, no_wrap=given.no_wrap, end=given.end)
        out.spans = list(given.spans)
        return out

    def _joined(self) -> Text:
        text = self.copy()
        text.plain = APART.sub(JOINT, self.plain)
        return text

    def wrap(self, console: Console, width: int, **more: Any) -> Lines:
        """Break into lines of at most ``width`` columns, see `rich.text.Text.wrap`."""
        lines = self._joined().wrap(console, width, **more)
        for line in lines:
            line.plain = line.plain.replace(JOINT, " ")
        return lines

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the widths of the longest phrase and of the longest line."""
        return self._joined().__rich_measure__(console, options)


class PhraseTable(Table):
    """A table of phrases; where it does not fit, columns of numbers shrink to their longest phrase and no further."""

    def add_row(self, *cells: RenderableType | None, **more: Any) -> None:
        """Append a row, see `rich.table.Table.add_row`."""
        super().add_row(*(Phrases.of(cell) if isinstance(cell, str | Text) else cell for cell in cells), **more)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is drawn."""
        pads, room = 3 * len(self.columns), options.max_width
        found = [(LEAST_TEXT, LEAST_TEXT) if column.flexible else self._widths(console, options, column) for column in self.columns]
        if sum(most for _, most in found) + pads > room:
            for column, (least, _) in zip(self.columns, found, strict=True):
                if column.justify == "right" and not column.flexible and not column.no_wrap:
                    column.width = least
            if sum(least for least, _ in found) + pads > room:
                self.padding = (0, 0)
        yield from super().__rich_console__(console, options)

    def _widths(self, console: Console, options: ConsoleOptions, column: Column) -> tuple[int, int]:
        """Return the columns that the longest phrase and the longest line of a column take, its head included."""
        shown = [column.header, *column.cells] if self.show_header else list(column.cells)
        found = [Measurement.get(console, options, Phrases.of(cell) if isinstance(cell, str) else cell) for cell in shown]
        return max((one.minimum for one in found), default=1), max((one.maximum for one in found), default=1)


def plain_table(title: str, wide: str = "") -> PhraseTable:
    """Return an empty table in the style of all answers; ``wide``: it takes the whole line."""
    return PhraseTable(title=title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, expand=bool(wide))
