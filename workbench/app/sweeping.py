"""The sweep: step time over any number of the card, computed in the background, with the chosen value marked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from bokeh.models import ColumnDataSource, CustomJSTickFormatter, HoverTool, LinearAxis, Range1d, TapTool
from bokeh.plotting import figure

from workbench.app.editor import is_whole, text_of
from workbench.app.html import Html
from workbench.app.runner import Latest, Outcome
from workbench.app.state import Session
from workbench.app.words import fault_words
from workbench.errors import Refused, WorkbenchError
from workbench.hardware.npu import Field
from workbench.study.axes import linspace, logspace
from workbench.study.scenario import Scenario
from workbench.study.sweep import sweep
from workbench.units import parse
from workbench.view.sweep import Curve, curve
from workbench.view.text import quantity
from workbench.view.ticks import si_ticks

POINTS = 15
MOST = 1000
PATIENCE_S, TELL_S = 0.3, 0.15
"""A sweep that takes longer says how far it is, and how often [s]."""
STEP, SHARE, MARK = "#0072B2", "#E69F00", "#E0457B"


@dataclass(frozen=True)
class Sweep:
    """One sweep asked for: a field of the card between two SI values."""

    scenario: Scenario
    path: str
    low: float
    high: float
    count: int


def compute(question: Sweep, report: Callable[[int, int], None] | None = None) -> Curve:
    """Run the sweep; limits more than thirty times apart are spaced by a constant factor."""
    wide = question.low > 0 and question.high / question.low > 30
    axis = (logspace if wide else linspace)(question.low, question.high, question.count)
    values: Any = axis
    if is_whole(question.path):
        values = sorted({round(value) for value in axis.values("", question.path)})
    return curve(sweep(question.scenario, {f"npu.{question.path}": values}, progress=report or False))


class SweepPlot:
    """Field, limits and points of a sweep, and its curves."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._latest: Latest[Sweep, Curve] = Latest(
            lambda question: compute(question, self._report), self._show, session.executor, session.deliver
        )
        self.curve = ColumnDataSource({key: [] for key in ("x", "step", "low", "high", "share", "value", "words")})
        self.mark = ColumnDataSource({"x": [], "y": [], "words": []})
        small: dict[str, Any] = {"size": "small", "margin": (4, 4, 0, 0)}
        self.field = pmui.Select(label="Field", options={}, sizing_mode="stretch_width", size="small", margin=(0, 0, 0, 14))
        self.low = pmui.TextInput(label="From", sizing_mode="stretch_width", **small)
        self.high = pmui.TextInput(label="To", sizing_mode="stretch_width", **small)
        self.count = pmui.IntInput(label="Points", value=POINTS, start=2, end=MOST, width=112, **small)
        self.words = Html(sizing_mode="stretch_width", min_height=18, margin=(2, 0, 0, 4))
        self.figure = self._figure()
        self._asked = self._told = time.monotonic()
        self._rebuild()
        session.param.watch(lambda _: self._rebuild(), "npu")
        self.field.param.watch(lambda _: self._limits(), "value")
        for widget in (self.low, self.high, self.count):
            widget.param.watch(lambda _: self.refresh(), "value")

    def _figure(self) -> Any:
        plot = figure(
            sizing_mode="stretch_both", min_height=200, tools="tap,reset", toolbar_location=None, min_border_right=6,
            y_axis_label="step time", x_range=Range1d(0, 1), y_range=Range1d(0, 1),
        )  # fmt: skip
        plot.extra_y_ranges = {"share": Range1d(0, 1.02)}
        plot.add_layout(LinearAxis(y_range_name="share", axis_label="time bound by outermost memory"), "right")
        plot.varea("x", "low", "high", source=self.curve, fill_color=STEP, fill_alpha=0.14)
        plot.line("x", "share", source=self.curve, y_range_name="share", line_color=SHARE, line_width=1.6, line_dash=[5, 4])
        plot.line("x", "step", source=self.curve, line_color=STEP, line_width=2.2)
        dots = plot.scatter("x", "step", source=self.curve, size=8, fill_color=STEP, line_color="white", nonselection_fill_alpha=1.0)
        plot.scatter("x", "y", source=self.mark, size=15, marker="diamond", fill_color=MARK, line_color="white", line_width=1.2)
        plot.text(
            "x",
            "y",
            "words",
            source=self.mark,
            text_color=MARK,
            text_font_size="11px",
            y_offset=-12,
            text_align="center",
            text_baseline="bottom",
        )
        plot.add_tools(HoverTool(renderers=[dots], limit=1, tooltips="<div style='font:12px system-ui'>@words</div>"))
        plot.select_one(TapTool).renderers = [dots]
        self.curve.selected.on_change("indices", self._picked)
        for axis in plot.axis:
            axis.formatter = si_ticks("s")
            axis.axis_label_text_font_size = "12px"
            axis.major_label_text_font_size = "11px"
            axis.axis_label_standoff = 4
        plot.xaxis[0].formatter = si_ticks("")
        plot.xaxis[0].ticker.desired_num_ticks = 4
        plot.yaxis[1].formatter = CustomJSTickFormatter(code="return `${Math.round(100 * tick)} %`")
        plot.yaxis[0].axis_label_text_color, plot.yaxis[1].axis_label_text_color = STEP, SHARE
        return plot

    def _chosen(self) -> Field | None:
        return self.session.fields().get(self.field.value)

    def _rebuild(self) -> None:
        """Offer the fields of the card."""
        fields = tuple(self.session.fields().values())
        options = {f"{field.label} ({field.path})": field.path for field in fields}
        outer = [field.path for field in fields if field.path.startswith("memory.") and field.path.endswith(".bandwidth")]
        value = self.field.value if self.field.value in options.values() else (outer[-1] if outer else next(iter(options.values()), None))
        self.field.param.update(options=options, value=value)
        self._limits()

    def _limits(self) -> None:
        """Propose a quarter to four times the card's own value, within the field's sensible limits."""
        field = self._chosen()
        if field is None:
            return
        own = field.value
        low = max(field.low, own / 4) if own > 0 else field.low
        high = min(field.high, own * 4) if own > 0 else field.high
        self.low.value, self.high.value = text_of(float(f"{low:.3g}"), field.unit), text_of(float(f"{high:.3g}"), field.unit)
        self.refresh()

    def refresh(self) -> None:
        """Ask for the curve of what is shown now."""
        field, answer = self._chosen(), self.session.answer
        if field is None or answer is None or answer.prediction.scenario.npu is None:
            self._clear("Choose a card to sweep its numbers." if answer is not None else "")
            return
        try:
            low, high = (_value(widget.value, field) for widget in (self.low, self.high))
            if not low < high:
                raise Refused("sweep", f"{self.low.value} is not below {self.high.value}", "give a lower limit below the upper one")
        except WorkbenchError as fault:
            self._clear(f"{fault.what}: {fault.fix}")
            return
        self._asked = self._told = time.monotonic()
        self._latest.ask(Sweep(answer.prediction.scenario, field.path, low, high, int(self.count.value or POINTS)))

    def _report(self, done: int, whole: int) -> None:
        """Show how far a sweep is that takes longer than a moment; called in the background."""
        now = time.monotonic()
        if now - self._asked > PATIENCE_S and now - self._told > TELL_S:
            self._told = now
            bar = f'<progress value="{done}" max="{whole}" style="width:180px;vertical-align:middle"></progress>'
            self.session.deliver(lambda: self._tell(f"computing the sweep {bar} {done} of {whole}"))

    def _tell(self, words: str) -> None:
        if not self._latest.idle:  # else the curve is there already
            self.words.html = _small(words)

    def _clear(self, words: str) -> None:
        self.words.html = _small(words)
        self.curve.data = {key: [] for key in self.curve.data}
        self.mark.data = {key: [] for key in self.mark.data}

    def _show(self, outcome: Outcome[Sweep, Curve]) -> None:
        if not outcome.newest:
            return
        with pn.io.hold():
            if outcome.answer is None:
                self._clear(fault_words(outcome.error, "the sweep failed"))
                return
            self._draw(outcome.answer)

    def _draw(self, found: Curve) -> None:
        ok, unit = np.isfinite(found.step_s), "" if found.unit == "1" else found.unit
        words = [
            f"{quantity(x, unit)}: step {quantity(step, 's')}<br>memory bound {100 * share:.0f} %<br>click to choose"
            for x, step, share in zip(found.x[ok], found.step_s[ok], found.memory_share[ok], strict=True)
        ]
        columns = (found.x[ok], found.step_s[ok], found.low_s[ok], found.high_s[ok], found.memory_share[ok], found.x[ok], words)
        self.curve.data = dict(zip(("x", "step", "low", "high", "share", "value", "words"), columns, strict=True))
        label = found.path.removeprefix("npu.")
        if self.figure.xaxis[0].axis_label != label:  # a new axis lays the plot out anew
            self.figure.xaxis[0].update(axis_label=label, formatter=si_ticks(unit))
        refused = [reason for reason in found.reason if reason]
        texts = []
        if found.knee >= 0:
            texts.append(f"From {quantity(found.x[found.knee], unit)} on a further step gains less than 1 %.")
        if refused:
            texts.append(f"{len(refused)} of {len(found.x)} values do not hold, e.g. {refused[0]}")
        self.words.html = _small(" ".join(texts))
        self.chosen()

    def chosen(self) -> None:
        """Mark the chosen value at its predicted step time."""
        answer, field = self.session.answer, self._chosen()
        spec = answer.prediction.scenario.npu if answer is not None else None
        if answer is None or spec is None or field is None:
            self.mark.data = {"x": [], "y": [], "words": []}
            return
        step = answer.prediction.step_time_s
        value = float(spec.get(field.path))
        self._fit(value, step)
        self.mark.data = {"x": [value], "y": [step], "words": [quantity(step, "s")]}

    def _fit(self, x: float, step: float) -> None:
        """Make room for the curve, its interval and the chosen point."""
        columns = self.curve.data
        xs, lows, highs = ([*map(float, columns[key]), value] for key, value in (("x", x), ("low", step), ("high", step)))
        for axis, low, high, part in ((self.figure.x_range, min(xs), max(xs), 0.03), (self.figure.y_range, min(lows), max(highs), 0.12)):
            margin = max(part * (high - low), 0.02 * abs(high)) or 1.0
            if not axis.start <= low <= high <= axis.end or high - low < 0.5 * (axis.end - axis.start):  # else the plot stays as it is
                axis.update(start=low - margin, end=high + margin)

    def _picked(self, _name: str, _old: list[int], new: list[int]) -> None:
        if not new:
            return
        value, field = float(self.curve.data["value"][new[-1]]), self._chosen()
        self.curve.selected.indices = []
        if field is None:
            return
        try:
            self.session.set_value(field.path, value)
        except WorkbenchError as fault:
            self.session.complain(fault)

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(
            pn.Row(self.low, self.high, self.count, sizing_mode="stretch_width"),
            pn.pane.Bokeh(self.figure, sizing_mode="stretch_both", margin=0),
            self.words,
            sizing_mode="stretch_both",
        )


def _value(text: str, field: Field) -> float:
    if field.unit:
        return parse(text, field.unit)
    try:
        return float(text)
    except ValueError:
        raise Refused(field.path, f"{text!r} is not a number", "this field has no unit: give a plain number") from None


def _small(words: str) -> str:
    return f'<div style="font:12px/1.3 system-ui,sans-serif;opacity:.75">{words}</div>' if words else ""
