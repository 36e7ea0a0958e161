"""Estimates and calibrations of operators as text for a terminal 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_operators import CalibrationDocument, EstimateDocument, FitDocument
from workbench.study.terminal import notes_text, percent, seconds
from workbench.study.terminal_table import plain_table
from workbench.study.terminal_vendor import left_out_text, vendor_text

LEAST_SHARE = 0.01


def estimate_text(document: EstimateDocument, most: int = 20) -> Iterator[RenderableType]:
    """Yield an estimate for a person: the longest operators, errors where measured, what was left out."""
    rests = ", ".join(f"{name} {percent(share)}" for name, share in document.evidence_share.items()) or "nothing"
    rows = units.count(len(document.operators), "row") if document.below is None else "all rows"  # listed are then only some
    yield Text(f"{document.file} on {document.npu}: {seconds(document.total_s)} in {rows}; rests on {rests}")
    if document.energy_j is not None:
        yield _energy(document.energy_j, document.power_w or 0.0, document.flops_per_joule or 0.0)
    if document.buffers:
        table = _table(f"tile {document.tile}", "dtype", "buffer", "holds", "used", "of", "full", "copies")
        for held in document.buffers:
            sizes = [units.format(value, "B", 4) for value in (held.used_bytes, held.size_bytes)]
            table.add_row(held.dtype, held.level, held.holds, *sizes, percent(held.occupancy), str(held.copies))
        yield table
        moved = [row for row in document.operators if row.bytes and row.kind in ("gemm", "batched_gemm")][:most]
        shown = list(dict.fromkeys(level for row in moved for level, moved_bytes in (row.bytes or {}).items() if moved_bytes > 0))
        table = _table("bytes by level", "line", "cycles", *shown)
        for row in moved:
            cells = [units.format((row.bytes or {}).get(level, 0.0), "B", 4) for level in shown]
            table.add_row(str(row.line), f"{row.cycles or 0.0:,.0f}", *cells)
        yield table
    yield from _longest(document, most)
    if document.left_out is not None:
        yield left_out_text(document.left_out)
    if document.vendor_coverage is not None:
        yield from vendor_text(document.vendor_coverage, most)
    if document.accuracy:
        names = ("kind", "dtype", "rows", "MAPE", "median", "P90", "bias", "by time", "in 80 %", "naive roof", "fitted roof")
        table = _table("against the measured times", *names)
        for found in document.accuracy:
            figures = (found.mape, found.median, found.p90, found.bias, found.time_weighted, found.inside)
            rooflines = (percent(found.naive_roofline), "-" if found.calibrated_roofline is None else percent(found.calibrated_roofline))
            table.add_row(found.kind, found.dtype, str(found.rows), *map(percent, figures), *rooflines)
        yield table
        yield Text("roof: MAPE of rooflines; the fitted one has three scalars from these very rows, five-fold by shape", style="dim")
    yield from notes_text(document.notes)


def _longest(document: EstimateDocument, most: int) -> Iterator[RenderableType]:
    """Yield the longest operators, and which of them are listed."""
    if document.below is not None:
        few = document.below
        products = f"{few.rows} of {units.count(few.products, 'product')}, {percent(few.time_share)} of the time"
        yield Text(f"below {percent(few.limit)} of the peak: {products}; only these are listed", style="bold")
    order = sorted(document.operators, key=lambda row: -(row.seconds or 0.0))[:most]
    table = _table(
        f"longest operators ({len(order)} of {len(document.operators)})", "line", "operator", "time", "80 %", "HBM", "used", "bound", "x"
    )
    table.columns[1].ratio, table.expand = 1, True
    for row in order:
        name = Text(f"{row.name} {row.dtype or ''}")
        shapes = (row.signature or "").rpartition("|")[2]
        name.append(f"\n{shapes}" if shapes else "", style="dim")
        name.append(f"\n{stack_text(row.stack)}" if row.stack else "", style="cyan")
        name.append(f"\nruns as {row.algorithm}" if row.algorithm else "", style="dim")
        name.append(f"\ntile {row.tile}" if row.tile and not document.buffers else "", style="dim")
        name.append(f"\n{row.note}" if row.note else "", style="italic")
        interval = f"{seconds(row.low_s)}\n{seconds(row.high_s)}" if row.seconds is not None else ""
        outer = units.format(row.bytes["memory"], "B", 3) if row.bytes else "-"
        outer += f"\n{percent(row.bandwidth_share)}" if row.bandwidth_share is not None else ""
        used = percent(row.utilisation) if row.utilisation is not None else "-"
        error = f"\n{100 * row.error:+.1f} %" if row.error is not None else ""
        bound = f"{row.bound}\n> {row.next_bound}" if row.next_bound else row.bound or row.evidence or "-"
        table.add_row(
            str(row.line), name, seconds(row.seconds) + error, interval, outer, used, bound, f"{row.margin:.2f}" if row.margin else "-"
        )
    yield table
    yield Text("x: time of the bounding resource over that of the next; % below a time: against the measurement", style="dim")
    yield Text("used: share of its unit's dense peak; % below the bytes: share of the bandwidth", style="dim")


def _energy(joules: float, watts: float, rate: float) -> Text:
    energy, mean, work = (units.format(value, unit, 3) for value, unit in ((joules, "J"), (watts, "W"), (rate, "FLOP")))
    return Text(f"energy {energy}, mean power {mean}, {work} a joule")


def calibration_text(document: CalibrationDocument) -> Iterator[RenderableType]:
    """Yield a calibration for a person: scalars, then the model beside both rooflines on rows left out of the fit."""
    yield Text(f"{document.file} on {document.npu}")
    table = _table("three scalars a dtype", "dtype", "rows", "fitted on", "compute", "memory", "launch", "error")
    for fit in document.fits:
        scalars = (f"{fit.compute:.3f}", f"{fit.memory:.3f}", seconds(fit.launch_s))
        table.add_row(fit.dtype, str(fit.rows), str(fit.sampled), *scalars, percent(fit.error))
    yield table
    table = _table(
        "MAPE by kind, on rows left out of the fit",
        "dtype",
        "kind",
        "rows",
        "model",
        "alone",
        "roofline",
        "naive",
        "80 % of measured",
        "in",
    )
    for fit in document.fits:
        for kind in fit.kinds:
            ways = (kind.model, kind.alone, kind.calibrated_roofline, kind.naive_roofline)
            interval = "-" if kind.low is None or kind.high is None else f"{100 * kind.low:+.0f} .. {100 * kind.high:+.0f} %"
            share = "-" if kind.inside is None else percent(kind.inside)
            table.add_row(fit.dtype, kind.kind, str(kind.rows), *(percent(found.mape) for found in ways), interval, share)
    yield table
    yield Text("alone: three scalars for this kind only; in: rows inside the interval that the other folds give", style="dim")
    table = _table("on rows left out of the fit", "dtype", "predicted by", "MAPE", "median", "P90", "bias", "by time")
    for fit in document.fits:
        for name, figures in _ways(fit).items():
            table.add_row(fit.dtype, name, *map(percent, figures))
    yield table
    for fit in document.fits:
        low, middle, high = fit.skill
        yield Text(f"{fit.dtype}: skill over the calibrated roofline {middle:.2f} (90 % bootstrap {low:.2f} to {high:.2f})")
    yield from notes_text(document.notes)


def _ways(fit: FitDocument) -> Mapping[str, list[float]]:
    ways = {"model": fit.model, "calibrated roofline": fit.calibrated_roofline, "naive roofline": fit.naive_roofline}
    return {name: list(found.model_dump().values()) for name, found in ways.items()}


def stack_text(shares: Mapping[str, float]) -> str:
    """Return the parts of a stack that count, largest first: ``memory 62 %, latency 20 %``."""
    most = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in most[:5] if share >= LEAST_SHARE)


def _table(title: str, *columns: str) -> Table:
    table = plain_table(title)
    for at, column in enumerate(columns):
        text = at == 0 or column in ("operator", "predicted by", "buffer", "holds", "kind", "dtype", "bound")
        table.add_column(column, justify="left" if text else "right", overflow="fold")
    return table
