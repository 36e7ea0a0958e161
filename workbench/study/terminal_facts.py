"""Facts of traces, and what ranks have to do with each other, as text for a terminal 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_inspect import Facts
from workbench.study.documents_ranks import LinkDocument, RanksDocument
from workbench.study.terminal import percent, seconds, table_of


def file_facts(path: str, facts: Facts) -> Iterator[RenderableType]:
    """Yield the counts and sums of one file as recorded."""
    yield Text(path, style="bold")
    table = table_of("", "fact", "value", wide="value")
    table.show_header = False
    for name, value in facts.model_dump().items():
        if name != "per_stream" and value is not None:
            table.add_row(name, Text(_fact(name, value)))
    table.columns[0].justify = "left"
    yield table
    if facts.per_stream:
        yield _streams(facts.per_stream)


def _fact(name: str, value: object) -> str:
    if name.endswith("_ns") and isinstance(value, int) and name != "base_time_ns":
        return f"{value} ns ({seconds(value / 1e9)})"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_fact('', count)}" for key, count in value.items())
    if name == "profiler_steps" and isinstance(value, list):
        return ", ".join(f"{number}: {seconds(duration / 1e9)}" for number, duration in value) or "none"
    return str(value)


def _streams(streams: dict[str, dict[str, int]]) -> Table:
    table = table_of("device work by device/stream", "stream", "kernels", "copies", "sets", "time")
    for name, row in streams.items():
        counts = [str(row.get(key, 0)) for key in ("kernel", "memcpy", "memset")]
        table.add_row(name, *counts, seconds(row.get("dur_ns", 0) / 1e9))
    return table


def ranks_text(document: RanksDocument, most: int) -> Iterator[RenderableType]:
    """Yield the stragglers, the slowest links, and how the clocks were laid on one."""
    columns = ("rank", "messages", "matched", "recorded", "waiting", "transfer", "others wait for it", "share", "clock", "give or take")
    table = table_of("ranks: who waits for whom (most waited for first)", *columns)
    for row in sorted(document.ranks, key=lambda r: (-r.caused_s, r.rank)):
        counts = str(row.rank), str(row.messages), str(row.matched)
        times = (seconds(value) for value in (row.recorded_s, row.waiting_s, row.transfer_s, row.caused_s))
        clock = ("-", "-") if row.clock_uncertainty_s is None else (seconds(row.clock_offset_s), seconds(row.clock_uncertainty_s))
        table.add_row(*counts, *times, percent(row.caused_share), *clock)
    yield table
    if document.links:
        shown = document.links[:most]
        names = ("link", "message", "count", "size", "transfer", "algorithm", "bus", "slowest")
        table = table_of(f"links, the slowest first ({len(shown)} of {len(document.links)})", *names, wide="link")
        for link in shown:
            rates = (_rate(value) for value in (link.algorithm_bandwidth, link.bus_bandwidth))
            size = units.format(link.bytes / link.messages, "B", 3)
            table.add_row(link.name, link.kind, str(link.messages), size, seconds(link.transfer_s), *rates, _slowest(link))
        yield table


def _rate(value: float | None) -> str:
    return "-" if value is None else units.format(value, "B/s", 3)


def _slowest(link: LinkDocument) -> str:
    number = f"#{link.slowest_number} " if link.slowest_number >= 0 else ""
    return f"{number}{_rate(link.slowest_bandwidth)}"
