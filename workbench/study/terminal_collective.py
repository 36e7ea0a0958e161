"""Collectives of a cluster as text for a terminal 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_collective import CollectiveDocument, CollectivesDocument, CompressionDocument, FabricFitDocument
from workbench.study.terminal import notes_text, percent, seconds, table_of


def collective_text(document: CollectivesDocument, most: int = 40) -> Iterator[RenderableType]:
    """Yield for a person the answer, which algorithm serves which sizes, then the messages."""
    yield Text(_answer(document.rows), style="bold")
    cards, messages = units.count(document.cards, "card"), units.count(len(document.rows), "message")
    yield Text(f"{document.cluster}: {cards}, library {document.library}; {messages}")
    errors = sorted(abs(row.error) for row in document.rows if row.error is not None)
    if errors:
        middle, mean = errors[len(errors) // 2], sum(errors) / len(errors)
        yield Text(
            f"against the measured times: median error {percent(middle)}, mean {percent(mean)} of {units.count(len(errors), 'message')}"
        )
    if document.fit is not None:
        yield Text(_fit(document.fit))
    yield _ranges(document)
    for found in document.compression:
        yield Text(f"compressing an all-reduce of {units.count(found.cards, 'card')} {_pays(found)}", style="cyan")
    yield _rows(_shown(document.rows, most), len(document.rows))
    yield from notes_text(document.notes)


def _fit(found: FabricFitDocument) -> str:
    scalars = ", ".join(f"{name} {value:.3g}" for name, value in found.fitted.items())
    errors = f"{percent(found.median)} (mean {percent(found.mean)}, bias {percent(found.bias)}); {percent(found.before)} without the fit"
    return f"fitted to {units.count(found.rows, 'message')}: {scalars}; median error of messages left out {errors}"


def _pays(found: CompressionDocument) -> str:
    if found.from_bytes is None:
        return "never takes less time"
    return f"takes less time from {_size(found.from_bytes)} on" + (f", up to {_size(found.to_bytes)}" if found.to_bytes else "")


def _way(algorithm: str, protocol: str) -> str:
    """Return the algorithm, with the protocol where the library has several."""
    return algorithm if protocol in ("plain", "switches", "none") else f"{algorithm}, {protocol}"


def _size(bytes: float) -> str:
    return units.format(bytes, "B", 3)


def _answer(rows: list[CollectiveDocument]) -> str:
    """Say of every collective's largest group what its smallest and its largest message take."""
    said = []
    for name in dict.fromkeys(row.collective for row in rows):
        cards = max(row.cards for row in rows if row.collective == name)
        mine = sorted((row for row in rows if row.collective == name and row.cards == cards), key=lambda row: row.bytes)
        ends = mine[:1] + mine[1:][-1:]
        times = ", ".join(f"{seconds(row.seconds)} for {_size(row.bytes)}" for row in ends)
        said.append(f"{name} of {units.count(cards, 'card')}: {times}")
    return "; ".join(said)


def _shown(rows: list[CollectiveDocument], most: int) -> list[CollectiveDocument]:
    """Return at most so many rows, as many of every group, evenly over its sizes."""
    groups: dict[tuple[str, int], list[CollectiveDocument]] = {}
    for row in rows:
        groups.setdefault((row.collective, row.cards), []).append(row)
    each = most // max(len(groups), 1)
    if len(rows) <= most or each < 2:
        return rows[:most]
    kept = []
    for mine in groups.values():
        at = sorted({round(i * (len(mine) - 1) / (each - 1)) for i in range(each)}) if len(mine) > each else range(len(mine))
        kept += [mine[i] for i in at]
    return kept


def _ranges(document: CollectivesDocument) -> Table:
    largest = max((row.bytes for row in document.rows), default=0.0)
    table = table_of("fastest by size", "collective", "cards", "from", "algorithm, protocol", wide="algorithm, protocol")
    for found in (one for one in document.ranges if one.from_bytes <= largest):
        table.add_row(found.collective, str(found.cards), _size(found.from_bytes), _way(found.algorithm, found.protocol))
    return table


def _rows(rows: list[CollectiveDocument], total: int) -> Table:
    title = f"messages ({len(rows)} of {total})"
    measured = any(row.measured_s is not None for row in rows)
    compressed = any(row.compressed_s is not None for row in rows)
    extra = [name for name, there in (("compressed", compressed), ("measured", measured)) if there]
    columns = ("collective", "cards", "size", "time", *extra, "bus bandwidth", "busiest link", "by")
    table = table_of(title, *columns, wide="by")
    for row in rows:
        error = "" if row.error is None else f" ({100 * row.error:+.0f} %)"
        table.add_row(
            row.collective, str(row.cards), _size(row.bytes), seconds(row.seconds),
            *((seconds(row.compressed_s),) if compressed else ()),
            *((f"{seconds(row.measured_s)}{error}",) if measured else ()),
            units.format(row.bus_bandwidth, "B/s", 3), f"{row.busiest} {percent(row.link_load[row.busiest])}",
            _way(row.algorithm, row.protocol),
        )  # fmt: skip
    return table
