"""Coverage of a vendor's table as text for a terminal 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_vendor import LeftOutDocument, VendorDocument
from workbench.study.terminal import percent, seconds
from workbench.study.terminal_table import plain_table


def vendor_text(document: VendorDocument, most: int = 10) -> Iterator[RenderableType]:
    """Yield the coverage for a person: shares by evidence, what is not covered, what incomplete rows may be about."""
    yield Text(f"vendor's table {document.path}: {document.used} of {document.rows} stated times are of operators here", style="bold")
    table = _table("operator time by evidence", "evidence", "operators", "time", "share")
    for row in document.evidence:
        table.add_row(row.evidence, str(row.operators), seconds(row.seconds), percent(row.share))
    yield table
    if document.uncovered:
        shown = document.uncovered[:most]
        table = _table(f"not covered by the vendor ({len(shown)} of {len(document.uncovered)})", "operator", "kind", "time", "share", "by")
        for found in shown:
            table.add_row(f"{found.name[:60]} {found.dtype}", found.kind, seconds(found.seconds), percent(found.share), found.evidence)
        yield table
    if document.incomplete:
        yield from _incomplete(document, most)


def _incomplete(document: VendorDocument, most: int) -> Iterator[RenderableType]:
    shown = sorted(document.incomplete, key=lambda row: -row.touched_s)[:most]
    title = f"rows without a time or a shape ({len(shown)} of {len(document.incomplete)})"
    table = _table(title, "row", "lacks", "may be about", "share", "total could move")
    for row in shown:
        place = row.where.rpartition("/")[2]
        about = f"{units.count(row.touches, 'operator')}, {seconds(row.touched_s)}" if row.touches else "none here"
        table.add_row(
            f"{place} {row.label[:30]}", row.why, about, percent(row.share), _change(row.low_s, row.high_s) if row.touches else "-"
        )
    yield table
    ends = f"operators {seconds(document.low_s)} to {seconds(document.high_s)} (now {seconds(document.total_s)})"
    step = f"; step {seconds(document.step_low_s)} to {seconds(document.step_high_s)}" if document.step_low_s is not None else ""
    yield Text(f"they touch {percent(document.touched_share)} of the operator time; were they whole: {ends}{step}")


def left_out_text(document: LeftOutDocument) -> Text:
    """Return one sentence on the rows of an operator table that give none."""
    none = f"{units.count(document.rows, 'row')} {'gives' if document.rows == 1 else 'give'} no operator"
    parts = [f"{none} ({document.without_shape} without a shape, {document.unnamed} of no known name)"]
    if document.share is not None:
        parts.append(f"their measured time is {seconds(document.measured_s)}, {percent(document.share)} of the table's")
    if document.high_s is not None:
        parts.append(f"they would add {seconds(document.low_s)} to {seconds(document.high_s)}")
    if document.without_time:
        parts.append(f"of {document.without_time} nothing is known of the time")
    return Text("; ".join(parts), style="yellow")


def _change(low: float, high: float) -> str:
    return f"{'-' if low < 0 else ''}{seconds(abs(low))} .. +{seconds(high)}"


def _table(title: str, *columns: str) -> Table:
    table = plain_table(title)
    for at, column in enumerate(columns):
        text = at == 0 or column in ("kind", "lacks", "may be about", "by")
        table.add_column(column, justify="left" if text else "right", overflow="fold")
    return table
