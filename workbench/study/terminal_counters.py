"""Hardware counters beside the model as text for a terminal 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_counters import Busy, CounterDocument, CountersDocument
from workbench.study.terminal import notes_text, percent, seconds
from workbench.study.terminal_table import plain_table


def counters_text(document: CountersDocument, most: int = 20) -> Iterator[RenderableType]:
    """Yield counters and model for a person: by kind, where they disagree most, the longest kernels."""
    total = sum(row.measured_s or 0.0 for row in document.rows)
    kernels = units.count(len(document.rows), "kernel")
    yield Text(f"{document.file} on {document.npu}: {kernels}, {seconds(total)}; counted: {', '.join(document.units)}")
    if document.agree_share is not None:
        agree, judged = percent(document.agree_share), percent(document.judged_share)
        yield Text(f"counters and model name the same bound in {agree} of the time that can be judged ({judged} of all)")
    yield _kinds(document)
    if document.disagreements:
        shown = [document.rows[at] for at in document.disagreements[:most]]
        yield _rows(f"they disagree most ({len(shown)} of {len(document.disagreements)})", shown)
    order = sorted(document.rows, key=lambda row: -(row.measured_s or 0.0))[:most]
    yield _rows(f"longest kernels ({len(order)} of {len(document.rows)})", order)
    yield from notes_text(document.notes)


def _kinds(document: CountersDocument) -> Table:
    table = _table(
        "by kind, weighted by time: busy counted / model", "kind", "rows", "measured", "share", "model", "busy", "judged", "same bound"
    )
    table.columns[5].justify = "left"
    for found in document.kinds:
        cells = [str(found.rows), seconds(found.measured_s), percent(found.share), seconds(found.model_s)]
        table.add_row(found.kind, *cells, _pairs(found.counters, found.model), percent(found.judged_share), percent(found.agree_share))
    return table


def _pairs(counted: Busy, model: Busy) -> str:
    """Return ``matrix 0.87/0.76, vector 0.02/-``."""
    return ", ".join(
        f"{unit} {value:.2f}/{_number(model.get(unit))}" for unit, value in counted.items() if value is not None and value >= 0.005
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _rows(title: str, rows: list[CounterDocument]) -> Table:
    table = _table(title, "line", "kernel", "measured", "model", "achieved")
    table.columns[1].ratio, table.expand = 1, True
    for row in rows:
        name = Text(f"{row.name[:72]} {row.dtype or ''}")
        shapes = (row.signature or "").rpartition("|")[2]
        name.append(f"\n{shapes}" if shapes else "", style="dim")
        name.append(f"\n{row.sentence}", style="yellow" if row.agree is False else "cyan")
        error = f"\n{100 * row.error:+.0f} %" if row.error is not None else ""
        table.add_row(str(row.line), name, seconds(row.measured_s), seconds(row.model_s) + error, _achieved(row))
    return table


def _achieved(row: CounterDocument) -> str:
    lines = [units.format(row.flops_rate, "FLOP/s", 3)] if row.flops_rate else []
    memory = row.rate.get("memory")
    return "\n".join([*lines, *([units.format(memory, "B/s", 3)] if memory else [])]) or "-"


def _table(title: str, *columns: str) -> Table:
    table = plain_table(title)
    for at, column in enumerate(columns):
        table.add_column(column, justify="left" if at == 0 or column in ("kernel", "kind") else "right", overflow="fold")
    return table
