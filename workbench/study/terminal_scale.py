"""Scale-out as text for a terminal (rich renderables)."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_scale import ScaleDocument
from workbench.study.terminal import percent, seconds


def scale_text(document: ScaleDocument) -> Iterator[RenderableType]:
    """Yield the parts of a scale-out, headline first."""
    yield Text(f"{document.trace} on {document.cluster}", style="bold")
    yield Text(
        f"{document.efficiency}; a step of {seconds(document.base_step_s)}, {units.format(document.gradient_bytes, 'B', 3)} of gradients "
        f"in {units.count(document.messages, 'message')}"
    )
    table = Table(box=SIMPLE_HEAD)
    for name in ("cards", "step", "efficiency", "overhead", "slowest card", "messages", "waited for", "tier that limits"):
        table.add_column(name, justify="left" if name.startswith("tier") else "right")
    for row in document.rows:
        table.add_row(
            f"{row.cards:,}", seconds(row.step_s), percent(row.efficiency), percent(row.overhead), f"x {row.slowest:.3f}",
            seconds(row.messages_s), seconds(row.exposed_s), row.limiting_tier or "-",
        )  # fmt: skip
    yield table
    yield Text(
        f"algorithm: {document.algorithm}; jitter {document.jitter:g}, straggler x {document.straggler:g}; the batch of a card stays"
    )
    yield from (Text(f"note: {note}") for note in document.notes)
