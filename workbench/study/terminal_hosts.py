"""Two measured hosts as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from workbench import units
from workbench.study.documents_hosts import HostsDocument
from workbench.study.terminal import table_of


def hosts_text(document: HostsDocument) -> Iterator[RenderableType]:
    """Yield the figures of two hosts, and of each program what they rest on."""
    table = table_of(f"{document.second} against {document.first}", "kind", document.first, document.second, "ratio", "80 % spread")
    for row in document.figures:
        cells = [units.format(value, "s", 4) if row.seconds else f"{value:.3g}" for value in (row.first, row.second)]
        table.add_row(row.kind, *cells, f"{row.ratio:.3f}", f"{100 * row.spread:.0f} %")
    yield table
    for program in document.programs:
        ratios = ", ".join(f"{kind} {value:.2f}" for kind, value in program.ratio.items())
        yield Text(f"{program.first} -> {program.second}: {100 * program.alike:.0f} % of operators in common; {ratios}")
    for path in document.out:
        yield Text(f"written to {path}")
