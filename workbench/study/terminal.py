"""Predictions and sweeps as text for a terminal 100 columns wide (rich renderables; printing is the command line's work)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.compare import ACCOUNT
from workbench.study.dataset import reasons
from workbench.study.report import CoverageDocument, EnergyDocument, NoteDocument, PredictionDocument
from workbench.study.steps import overlaps
from workbench.study.terminal_steps import host_words, steps_text
from workbench.study.terminal_table import plain_table

MOST_ROWS = 40
LONGEST = 72
CAUTIONS = ("host-only", "nothing-priced", "model-misses", "low-coverage", "source-unknown", "unvalidated-card", "vendor-unmatched")
"""Notes that say how far the headline can be trusted: shown below it, not with the others."""
KNEE = 0.01
"""A step along an axis that shortens the step time by less than this is not worth taking [1]."""
ROUNDING = 1e-12
"""Differences below this [s] come from adding floats in another order."""


def seconds(value: float | None) -> str:
    """Return a time as text with four digits."""
    if value is None or not np.isfinite(value):
        return "-"
    return units.format(abs(value), "s", 4) if value >= 0 else "-" + units.format(-value, "s", 4)


def percent(value: float | None) -> str:
    """Return a share as text."""
    return "-" if value is None or not np.isfinite(value) else f"{100 * value:.1f} %"


def prediction_text(path: str, document: PredictionDocument, most: int = 10) -> Iterator[RenderableType]:
    """Yield the parts of a prediction for a person, headline first."""
    yield Text(path, style="bold")
    yield _headline(document)
    cautions = [note for note in document.notes if note.code in CAUTIONS]
    yield from (_note(note, "caution: ", "yellow") for note in cautions)
    yield _accounts(document)
    yield from steps_text(document)
    if document.energy.joules is not None:
        yield Text(_energy(document.energy))
    rests = ", ".join(f"{name} {percent(share)}" for name, share in document.evidence_share.items()) or "no device work"
    yield Text(f"operator time rests on: {rests}")
    if "anchored" in document.evidence_share:
        yield Text("anchored: recorded times, scaled by the ratio of the two cards' models where the shapes are known")
    if document.coverage is not None:
        yield Text(_coverage(document.coverage))
        if document.unpriced:
            yield _unpriced(document, most)
    if document.vendor_coverage is not None:
        from workbench.study.terminal_vendor import vendor_text

        yield from vendor_text(document.vendor_coverage, most)
    if document.operators:
        yield _operators(document, most)
        if document.coverage is not None:
            yield _reasons(document, most)
    if document.lags:
        yield Text(f"{percent(document.unexplained_share)} of the predicted critical path rests on lags no record explains")
        yield _lags(document, most)
    yield from notes_text([note for note in document.notes if note.code not in CAUTIONS])


def _headline(document: PredictionDocument) -> Text:
    low, high = document.interval_s
    line = Text(f"measured {seconds(document.measured_step_s)}   predicted ")
    line.append(seconds(document.step_time_s), style="bold green")
    if high > low:
        line.append(f" (80 % interval {seconds(low)} to {seconds(high)})")
    line.append(f"   speed-up {document.speed_up:.4g}x" if document.speed_up is not None else "")
    if overlaps(document.measured_step_s, document.measured_period_s) or overlaps(document.step_time_s, document.period_s):
        ratio = f" ({document.measured_period_s / document.period_s:.4g}x)" if document.period_s > 0 else ""
        line.append(
            f"\nsteps overlap: one every {seconds(document.measured_period_s)} measured, {seconds(document.period_s)} predicted{ratio}"
        )
    card = f"on {document.npu}" if document.npu else "replayed as measured"
    source = f"recorded on {document.source}" if document.source else "recorded on an unknown card"
    extras = [text for text, on in (("vendor times", document.vendor), ("model only", document.npu and not document.anchored)) if on]
    extras += host_words(document)
    extras += [f"{pattern} takes {factor:g}x" for pattern, factor in document.scale]
    counted = sum(step.complete for step in document.steps)
    line.append("\n" + "; ".join([card, source, *extras, f"median of {units.count(counted or len(document.steps), 'step')}"]), style="dim")
    return line


def short(name: str) -> str:
    """Return a name of at most 72 letters: kernel names carry whole template lists (--json keeps them)."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."


def table_of(title: str, *columns: str, wide: str = "") -> Table:
    """Return an empty table; the column ``wide`` takes what room there is."""
    table = plain_table(title, wide)
    for column in columns:
        text = column == wide or column in ("bound", "evidence", "shapes", "where", "bound by")
        table.add_column(column, justify="left" if text else "right", ratio=1 if column == wide else None, overflow="fold")
    return table


def _accounts(document: PredictionDocument) -> Table:
    table = table_of("where a step's time goes (mean; the headline is the median)", "part", "measured", "", "predicted", " ", "change")
    measured, predicted = document.account.measured.model_dump(), document.account.predicted.model_dump()

    def share(parts: dict[str, float], name: str) -> str:
        return percent(parts[name] / parts["step_s"]) if parts["step_s"] > 0 else "-"

    for key in (*ACCOUNT, "step_s"):
        cells = [seconds(measured[key]), share(measured, key), seconds(predicted[key]), share(predicted, key)]
        part = key.removesuffix("_s")
        name = "step (sum of the above)" if part == "step" else part.replace("_", " ")
        table.add_row(name, *cells, _change(predicted[key] - measured[key]), end_section=part == "idle")
    table.columns[0].justify = "left"
    return table


def _energy(found: EnergyDocument) -> str:
    """Return energy, mean power and performance per watt of a step in one line."""
    joules, watts, rate = (
        units.format(value or 0.0, unit, 4) for value, unit in ((found.joules, "J"), (found.watts, "W"), (found.flops_per_joule, "FLOP"))
    )
    unknown = f"; {percent(found.assumed)} of the device time assumed to draw as much as the rest" if found.assumed >= KNEE else ""
    return f"energy {joules} a step, mean power {watts}, {rate} a joule{' (estimated)' if found.why else ''}{unknown}"


def _change(value: float) -> str:
    return "0" if abs(value) < ROUNDING else f"{'+' if value > 0 else ''}{seconds(value)}"


def _coverage(found: CoverageDocument) -> str:
    shaped = found.shaped_s / found.total_s if found.total_s > 0 else None
    if found.priced_share is None:
        return f"no shapes are recorded: none of {seconds(found.total_s)} device time can be priced by the model"
    return (
        f"prices {percent(found.priced_share)} of the device time whose shapes are recorded by a vendor time or the model "
        f"({seconds(found.priced_s)} of {seconds(found.shaped_s)}; {percent(shaped)} of the device time has shapes)"
    )


def _unpriced(document: PredictionDocument, most: int) -> Table:
    table = table_of(
        "not priced by vendor or model (scaled from the recording)", "operator", "measured", "share", "shapes", wide="operator"
    )
    total = document.coverage.total_s if document.coverage else 0.0
    for row in document.unpriced[:most]:
        share = row.measured_s / total if total > 0 else None
        table.add_row(Text(short(row.name)), seconds(row.measured_s), percent(share), "yes" if row.has_shapes else "no")
    rest = document.unpriced[most:]
    if rest:
        left = sum(row.measured_s for row in rest)
        table.add_row(f"... {len(rest)} more (--json lists all)", seconds(left), percent(left / total if total > 0 else None), "")
    return table


def _operators(document: PredictionDocument, most: int) -> Table:
    shown = document.operators[:most]
    bound = ("bound",) if document.npu else ()  # as recorded nothing says what bounds an operator
    columns = ("", "operator", "count", "measured", "predicted", "share", *bound, "evidence")
    table = table_of(f"largest operators ({len(shown)} of {len(document.operators)}; totals over the recording)", *columns, wide="operator")
    for at, row in enumerate(shown, 1):
        name = Text(f"{short(row.name)} {row.dtype}" if row.dtype != "unknown" else short(row.name))
        shapes = row.signature.removeprefix(row.name).removeprefix(f"|{row.dtype}|").strip("| ")
        name.append(f"\n{shapes}" if shapes else "", style="dim")
        cells = [str(row.count), seconds(row.measured_total_s), seconds(row.predicted_total_s), percent(row.share)]
        told = (row.bound if row.bound != "unknown" else "-",) if bound else ()
        table.add_row(str(at), name, *cells, *told, row.evidence)
    return table


def _reasons(document: PredictionDocument, most: int) -> Table:
    """Return why each of the largest operators takes as long as it does."""
    table = table_of("why: times of one execution", "", "why", wide="why")
    table.show_header = False
    for at, row in enumerate(document.operators[:most], 1):
        table.add_row(str(at), Text(f"{short(row.name)}: {row.why}"))
    return table


def _lags(document: PredictionDocument, most: int) -> Table:
    table = table_of("largest unexplained lags", "lag", "between and cause", "critical", wide="between and cause")
    for lag in document.lags[:most]:
        text = Text(f"{short(lag.before)} -> {short(lag.after)}")
        text.append(f"\n{lag.where}: {lag.cause}", style="dim")
        table.add_row(seconds(lag.seconds), text, "yes" if lag.critical else "")
    return table


def notes_text(notes: Sequence[NoteDocument]) -> Iterator[RenderableType]:
    """Yield the notes, one line each."""
    if notes:
        yield Text("notes", style="bold")
    yield from (_note(note, "- ") for note in notes)


def _note(note: NoteDocument, lead: str, style: str = "") -> Text:
    line = Text(f"{lead}{note.text}", style=style)
    line.append(f" [{note.code}, {note.where}, {note.count}x]", style="dim")
    line.append(f": {note.fix}" if note.fix else "", style="italic")
    return line


def sweep_text(dataset: xr.Dataset) -> Iterator[RenderableType]:
    """Yield a sweep for a person: every cell of a short line, else the ten best cells; then what is invalid and why."""
    dims = dataset["step_time"].dims
    size = int(dataset["step_time"].size)
    valid = int(dataset["valid"].sum())
    axes = " x ".join(f"{dim} ({dataset.sizes[dim]})" for dim in dims)
    yield Text(f"{units.count(size, 'cell')}: {axes}; {valid} valid; base step {seconds(float(dataset.attrs['base_step_time_s']))}")
    flat = dataset.stack(cell=dims, create_index=False)
    order = np.arange(size)
    line = len(dims) == 1 and size <= MOST_ROWS
    if not line:
        order = np.argsort(np.where(flat["valid"].values, flat["step_time"].values, np.inf), kind="stable")[: min(10, max(valid, 1))]
    yield _cells(flat, order, "every cell" if line else f"the {units.count(len(order), 'fastest cell')}", line)
    yield from [Text(text) for text in [_knee(flat)] if line and text]
    for reason, count in reasons(dataset).items():
        yield Text(f"- {count} invalid: {reason}", style="yellow")
    notes = [note for note in str(dataset.attrs["notes"]).split("\n") if note]
    yield from [Text("notes", style="bold")] if notes else []
    yield from (Text(f"- {note}") for note in notes)


def _knee(line: xr.Dataset) -> str:
    """Say from which value of an axis on a further step no longer pays ("": it always or never does, or it also costs)."""
    steps, axis = line["step_time"].values, next(c for c in line.coords.values() if "axis_class" in c.attrs)
    if not (steps > 0).all():
        return ""
    gain = 1 - steps[1:] / steps[:-1]
    pays = np.flatnonzero(gain >= KNEE)
    if not len(pays) or pays[-1] + 1 == len(gain) or (gain < -KNEE / 10).any():
        return ""
    return f"from {_value(axis.values[pays[-1] + 1], str(axis.attrs['units']))} on a further step gains less than {100 * KNEE:g} %"


def _cells(flat: xr.Dataset, order: np.ndarray, title: str, line: bool) -> Table:
    paths = [name for name, c in flat.coords.items() if "axis_class" in c.attrs]
    names = [str(path).removeprefix("npu.").replace(".", ".\n") for path in paths]
    table = table_of(title, *names, "step", "low", "high", "speed-up", *(["gain", "memory\nbound"] if line else []), "bound by")
    previous = np.nan
    for cell in order:
        row = flat.isel(cell=int(cell))
        step = float(row["step_time"])
        cells = [_value(row[path].item(), str(row[path].attrs["units"])) for path in paths]
        if not bool(row["valid"]):
            table.add_row(*cells, "invalid")
            continue
        interval = seconds(float(row["step_time_low"])), seconds(float(row["step_time_high"]))
        gain = [percent(1 - step / previous if previous else None), percent(float(row["bound_share"].sel(bound="memory")))] if line else []
        table.add_row(*cells, seconds(step), *interval, f"{float(row['speed_up']):.3f}x", *gain, _bounds(row))
        previous = step
    return table


def _bounds(row: xr.Dataset) -> str:
    share = row["bound_share"]
    most = int(np.argmax(share.values))
    return f"{share['bound'].values[most]} {100 * share.values[most]:.0f} %" if share.values[most] > 0 else ""


def _value(value: object, unit: str) -> str:
    if isinstance(value, float) and unit not in ("", "1") and np.isfinite(value):
        return units.format(value, unit, 4)
    return f"{value:g}" if isinstance(value, float) else str(value)
