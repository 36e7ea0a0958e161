"""The tab that says what bounds each operator: cycle stacks, and what a faster part would give. A click selects the operator."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import panel as pn
import xarray as xr
from bokeh.models import ColumnDataSource, CustomJSHover, FactorRange, HoverTool
from bokeh.plotting import figure

from workbench.app.html import Html, asset
from workbench.app.runner import Latest, Outcome
from workbench.app.state import Session
from workbench.app.words import fault_words
from workbench.study.prediction import Prediction
from workbench.study.stacks import sentence, stacks
from workbench.view.stack import bar_columns, ink_of, label_of
from workbench.view.text import percent, quantity
from workbench.view.ticks import si_ticks

ROWS = 14
_TIP = """<div style="max-width:340px;overflow-wrap:anywhere;font:12px/1.4 system-ui,sans-serif"><b>@name</b><br>@signature<br>
@part: @share{0.0 %} of @time{custom}</div>"""
_COLUMNS = ("row", "label", "left", "right", "share", "part", "colour", "name", "signature", "time")


class Bounds:
    """Stacks of the operators that take longest, and the selected one in words."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._latest: Latest[Prediction, xr.Dataset] = Latest(
            lambda prediction: stacks(prediction, ROWS), self._show, session.executor, session.deliver
        )
        self.bars = ColumnDataSource({key: [] for key in _COLUMNS})
        self.found: xr.Dataset | None = None
        self.words = Html(stylesheets=[asset("list.css")], width=400, margin=(4, 0, 0, 12))
        self.legend = Html(sizing_mode="stretch_width", margin=(2, 0, 2, 2))
        self.figure = self._figure()
        session.param.watch(lambda _: self._select(), "selected")
        session.param.watch(lambda _: self._paint(), "dark")

    def _figure(self) -> Any:
        plot = figure(
            y_range=FactorRange(), sizing_mode="stretch_width", height=90 + 27 * ROWS, tools="tap", toolbar_location=None,
            x_axis_label="total time over the recording", min_border_right=12, output_backend="canvas",
        )  # fmt: skip
        bars = plot.hbar(
            y="label", left="left", right="right", height=0.78, color="colour", line_color="white", line_width=0.6, source=self.bars,
            nonselection_fill_alpha=0.45, selection_line_color="#C2185B",
        )  # fmt: skip
        formatters = {"@time": CustomJSHover(code=asset("si_hover.js"), args={"unit": "s"})}
        plot.add_tools(HoverTool(renderers=[bars], tooltips=_TIP, formatters=formatters, limit=1))
        self.bars.selected.on_change("indices", self._picked)
        plot.xaxis[0].formatter = si_ticks("s")
        plot.x_range.start = 0.0
        plot.ygrid.grid_line_color = None
        for axis in plot.axis:
            axis.axis_label_text_font_size = "12px"
            axis.major_label_text_font_size = "11px"
        return plot

    def update(self) -> None:
        """Ask for the stacks of the newest answer."""
        if self.session.answer is not None:
            self._latest.ask(self.session.answer.prediction)

    def _show(self, outcome: Outcome[Prediction, xr.Dataset]) -> None:
        if not outcome.newest:
            return
        if outcome.answer is None:
            self.found = None
            self.bars.data = {key: [] for key in _COLUMNS}
            self.words.html = escape(fault_words(outcome.error, "no stacks"))
            return
        self.found = outcome.answer
        with pn.io.hold():
            self._paint()
            self._select()

    def _paint(self) -> None:
        if self.found is None:
            return
        columns = bar_columns(self.found)
        tone = "dark" if self.session.dark else "light"
        self.figure.y_range.factors = label_of(self.found)[::-1]
        self.bars.data = {key: columns[tone if key == "colour" else key] for key in _COLUMNS}
        inks = [ink_of(part) for part in self.found.part.values if float(self.found.share.sel(part=part).sum()) > 0]
        chips = "".join(
            f'<span style="margin-right:12px;white-space:nowrap"><i style="display:inline-block;width:10px;height:10px;'
            f'border-radius:2px;margin-right:4px;background:{ink.dark if self.session.dark else ink.light}"></i>{escape(ink.word)}</span>'
            for ink in inks
        )
        self.legend.html = f'<div style="font:12px/1.6 Inter,Roboto,system-ui,sans-serif">{chips}</div>'

    def _picked(self, _name: str, _old: list[int], new: list[int]) -> None:
        if new and new[-1] < len(self.bars.data["row"]):
            self.session.selected = int(self.bars.data["row"][new[-1]])

    def _select(self) -> None:
        """Outline the selected operator's bar and say what bounds it (without a selection, the longest operator's)."""
        if self.found is None:
            return
        rows = np.asarray(self.bars.data["row"])
        found = np.flatnonzero(rows == self.session.selected).tolist() if len(rows) else []
        if sorted(found) != sorted(self.bars.selected.indices):
            self.bars.selected.indices = found
        chosen = self.session.selected if found else (int(self.found.operator[0]) if self.found.sizes["operator"] else -1)
        self.words.html = explained(self.found, chosen)

    def __panel__(self) -> pn.viewable.Viewable:
        left = pn.Column(self.legend, pn.pane.Bokeh(self.figure, sizing_mode="stretch_width", margin=0), sizing_mode="stretch_width")
        return pn.Row(left, self.words, sizing_mode="stretch_width")


def explained(found: xr.Dataset, row: int) -> str:
    """Return one operator's stack in words and numbers as HTML."""
    if row < 0:
        return "No operator of this recording has a model to explain."
    one = found.sel(operator=row)
    model, stated = float(one.model_s), float(one.seconds)
    head = f"<b>{escape(one.name.item())}</b><div class='where'>{escape(one.signature.item())}</div>"
    rests = f"{quantity(stated, 's')} each ({escape(one.evidence.item())})"
    if abs(stated / model - 1.0) > 0.001:
        rests += f"; the model, which these shares explain, has {quantity(model, 's')}"
    rows = "".join(
        f"<tr><td>{escape(str(part))}</td><td class='n'>{quantity(time, 's')}</td><td class='n'>{percent(1 - time / model)}</td></tr>"
        for part, time in zip(one.faster.values, one.without_s.values.tolist(), strict=True)
    )
    table = f"<table><tr><th>infinitely fast</th><th class='n'>time</th><th class='n'>saves</th></tr>{rows}</table>"
    left = int(found.attrs["without_model"])
    note = f"<div class='note'>{left} of the longest operators have no model and are not shown.</div>" if left else ""
    return f"{head}<div>{rests}</div><p>{escape(sentence(one)).capitalize()}.</p>{table}{note}"
