"""Roofline: operators as points sized by time and coloured by bound, under the roofs of the card."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.cost.cost import Bound, Evidence
from workbench.study.prediction import Prediction
from workbench.study.roofs import LEVELS, Roof, dtype_peaks, points, roofs
from workbench.study.shares import row_totals
from workbench.view.backend import plotting
from workbench.view.palette import BOUNDS, EVIDENCE
from workbench.view.text import quantity

SMALLEST, LARGEST = 6.0, 34.0
"""Diameter of a point [px]."""
Columns = dict[str, np.ndarray | list[Any]]


def point_columns(prediction: Prediction, level: str = "outermost", dark: bool = False) -> Columns:
    """Return the points of one level as columns: x [FLOP/B], y [FLOP/s], time and total [s], size [px], colour, words."""
    found = points(prediction, level)
    table, cost = prediction.table, prediction.cost
    totals = row_totals(prediction.graph, len(table), prediction.node_s)[found.row]
    whole = totals.sum() if len(totals) else 0.0
    share = totals / whole if whole > 0 else totals
    order = np.argsort(-totals, kind="stable")  # small points on top
    rows = found.row[order]
    inks = [BOUNDS[Bound(code)] for code in cost.bound[rows, 0]]
    return {
        "row": rows,
        "x": found.intensity[order],
        "y": found.rate[order],
        "measured": found.measured_rate[order],
        "size": SMALLEST + (LARGEST - SMALLEST) * np.sqrt(share[order]),
        "colour": [ink.dark if dark else ink.light for ink in inks],
        "bound": [ink.word for ink in inks],
        "name": [table.name[row] for row in rows],
        "signature": [table.signature[row] for row in rows],
        "evidence": [EVIDENCE[Evidence(code)].word for code in cost.evidence[rows]],
        "time": cost.seconds[rows, 0],
        "total": totals[order],
        "share": share[order],
    }


def extent(prediction: Prediction) -> tuple[float, float]:
    """Return the intensities [FLOP/B] the picture spans: all points of every level and every ridge of the card."""
    values = [points(prediction, level).intensity for level in LEVELS]
    spec = prediction.scenario.npu or prediction.scenario.source
    if spec is not None:
        found = roofs(spec)
        slopes = [roof.value for roof in found if roof.level]
        values.append(np.array([roof.value / slope for roof in found if roof.unit == "matrix" for slope in slopes]))
    flat = np.concatenate([v for v in values if len(v)]) if any(len(v) for v in values) else np.array([0.1, 1000.0])
    return float(flat.min()) / 3, float(flat.max()) * 3


def roof_columns(prediction: Prediction, level: str = "outermost") -> Columns:
    """Return the roof lines as columns ``xs``, ``ys`` (one polyline a roof), ``name`` and the place of its label.

    The slope is that of the level; the flat parts are the matrix peaks of the dtypes that occur.
    """
    spec = prediction.scenario.npu or prediction.scenario.source
    out: Columns = {"xs": [], "ys": [], "name": [], "label_x": [], "label_y": [], "text": [], "offset": []}
    if spec is None:
        return out
    low, high = extent(prediction)
    slope = next((roof for roof in roofs(spec) if roof.level == level), None)
    peaks = dtype_peaks(spec, prediction.table.dtype[points(prediction, level).row])
    top = max((roof.value for roof in peaks), default=0.0)
    if slope is not None and top > 0:
        ridge = top / slope.value
        _line(
            out,
            slope.name,
            [low, ridge],
            [low * slope.value, top],
            f"{slope.name} {quantity(slope.value, 'B/s', 3)}",
            float(np.sqrt(low * ridge)),
        )
    for place, roof in enumerate(sorted(peaks, key=lambda roof: -roof.value)):
        begin = roof.value / slope.value if slope is not None else low
        _line(out, roof.name, [begin, max(high, 2 * begin)], [roof.value, roof.value], _peak_text(roof), high, place)
    return out


def _peak_text(roof: Roof) -> str:
    return f"{roof.name} {quantity(roof.value, 'FLOP/s', 3)}"


def _line(out: Columns, name: str, xs: list[float], ys: list[float], text: str, at: float, place: int = 0) -> None:
    """Add a roof; the label of the highest peak lies above its line, those of lower ones below theirs."""
    at = min(max(at, xs[0]), xs[1])
    y = ys[0] * (at / xs[0]) ** (np.log(ys[1] / ys[0]) / np.log(xs[1] / xs[0])) if xs[1] > xs[0] else ys[0]
    for key, value in zip(out, (xs, ys, name, at, y, text, -2 if place == 0 else 1 + 13 * place), strict=True):
        column = out[key]
        assert isinstance(column, list)
        column.append(value)


def roofline(prediction: Prediction, level: str = "outermost", *, width: int = 640, height: int = 420) -> Any:
    """Return the roofline as a HoloViews overlay.

    Parameters
    ----------
    prediction : Prediction
    level : str
        ``"outermost"`` or ``"shared"``.
    width, height : int
        Size [px].

    Returns
    -------
    holoviews.Overlay
        Roofs, points with hover, labels of the roofs.
    """
    hv = plotting()
    columns = point_columns(prediction, level)
    shown = {key: columns[key] for key in ("x", "y", "size", "colour", "name", "bound")}
    for key, source, unit in (("time", "time", "s"), ("total", "total", "s"), ("rate", "y", "FLOP/s")):
        shown[key] = [quantity(value, unit) for value in columns[source]]
    dots = hv.Points(shown, ["x", "y"], list(shown)[2:]).opts(color="colour", size="size", alpha=0.75, line_color="white", tools=["hover"])
    lines = roof_columns(prediction, level)
    roof = hv.Path([{"x": xs, "y": ys} for xs, ys in zip(lines["xs"], lines["ys"], strict=True)], ["x", "y"]).opts(
        color="#5B6874", line_width=1.5
    )
    words = hv.Labels({"x": lines["label_x"], "y": lines["label_y"], "text": lines["text"]}, ["x", "y"], "text")
    words = words.opts(text_font_size="9px", text_align="right", text_baseline="bottom", text_color="#5B6874")
    axes = {"logx": True, "logy": True, "xlabel": "intensity [FLOP/B]", "ylabel": "rate [FLOP/s]", "padding": 0.1}
    return (roof * dots * words).opts(width=width, height=height, title=f"Roofline, {level} memory", **axes)
