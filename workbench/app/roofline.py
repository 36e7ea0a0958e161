"""The roofline: hover with units, click selects the operator in the table and the timeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from bokeh.events import Tap
from bokeh.models import ColumnDataSource, CustomJSHover, HoverTool, Range1d
from bokeh.plotting import figure

from workbench.app.html import asset
from workbench.app.state import Session
from workbench.study.roofs import roofs
from workbench.view.roofline import extent, point_columns, roof_columns

_TIP = """<div style="max-width:340px;overflow-wrap:anywhere;font:12px/1.4 system-ui,sans-serif"><b>@name</b><br>@signature<br>
@time{custom} each, @total{custom} in all (@share{0.0 %})<br>@y{custom} at @x{0.00} FLOP/B<br>bound by @bound · rests on @evidence</div>"""

_COLUMNS = ("row", "x", "y", "size", "colour", "bound", "name", "signature", "evidence", "time", "total", "share")
_UNITS = {"time": "s", "total": "s", "y": "FLOP/s"}


class Roofline:
    """Operators under the roofs of the card, at one level of memory."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.points = ColumnDataSource({key: [] for key in _COLUMNS})
        self.roofs = ColumnDataSource({"xs": [], "ys": [], "name": []})
        self.words = ColumnDataSource({"label_x": [], "label_y": [], "text": [], "offset": []})
        self.level = pmui.RadioButtonGroup(options={"Outermost": "outermost", "L2": "shared"}, value="outermost", size="small", margin=0)
        self.level.param.watch(lambda _: self.update(), "value")
        self.figure = self._figure()
        self._extent: tuple[float, float] | None = None
        self._scale: tuple[float, float] | None = None
        session.param.watch(lambda _: self._select(), "selected")
        session.param.watch(lambda _: self.update(), "dark")

    def _figure(self) -> Any:
        plot = figure(
            x_axis_type="log", y_axis_type="log", sizing_mode="stretch_both", min_height=240, tools="pan,wheel_zoom,box_zoom,reset,tap",
            active_scroll=None, x_axis_label="intensity [FLOP/B]", y_axis_label="rate [FLOP/s]", toolbar_location="right",
            min_border_right=6, x_range=Range1d(0.1, 1e4), y_range=Range1d(1e9, 1e15), output_backend="canvas",
        )  # fmt: skip
        plot.multi_line("xs", "ys", source=self.roofs, line_color="#7A7F87", line_width=1.6)
        plot.text(
            "label_x",
            "label_y",
            "text",
            source=self.words,
            text_font_size="11px",
            text_color="#7A7F87",
            text_align="right",
            text_baseline="bottom",
            y_offset="offset",
        )
        dots = plot.scatter(
            "x", "y", size="size", color="colour", line_color="white", line_width=0.8, fill_alpha=0.78, source=self.points,
            nonselection_fill_alpha=0.25, nonselection_line_alpha=0.4, selection_line_color="#C2185B",
            selection_line_width=2.5, selection_fill_alpha=0.95,
        )  # fmt: skip
        formatters = {f"@{key}": CustomJSHover(code=asset("si_hover.js"), args={"unit": unit}) for key, unit in _UNITS.items()}
        plot.add_tools(HoverTool(renderers=[dots], tooltips=_TIP, formatters=formatters, limit=2))
        plot.toolbar.logo = None
        plot.toolbar.autohide = True
        self.points.selected.on_change("indices", self._picked)
        plot.on_event(Tap, lambda _: None)
        for axis in (plot.xaxis, plot.yaxis):
            axis.axis_label_text_font_size = "12px"
            axis.major_label_text_font_size = "11px"
            axis.axis_label_standoff = 4
        return plot

    def _picked(self, _name: str, _old: list[int], new: list[int]) -> None:
        rows = self.points.data["row"]
        self.session.selected = int(rows[new[-1]]) if new and new[-1] < len(rows) else -1

    def _select(self) -> None:
        rows = np.asarray(self.points.data["row"])
        found = np.flatnonzero(rows == self.session.selected).tolist() if len(rows) else []
        if found != list(self.points.selected.indices):
            self.points.selected.indices = found

    def update(self) -> None:
        """Show the newest answer; the axes keep their place while a slider moves."""
        if self.session.answer is None:
            return
        prediction, level = self.session.answer.prediction, self.level.value
        columns = point_columns(prediction, level, self.session.dark)
        lines = roof_columns(prediction, level)
        self.points.data = {key: columns[key] for key in self.points.data}
        for source in (self.roofs, self.words):
            wanted = {key: lines[key] for key in source.data}
            if wanted != source.data:  # most moves leave the roofs where they are
                source.data = wanted
        self._fit(extent(prediction), np.asarray(columns["y"], dtype=float), [y for ys in lines["ys"] for y in ys])
        self._name_levels()
        self._select()

    def _fit(self, wide: tuple[float, float], rates: np.ndarray, tops: list[float]) -> None:
        """Take new limits only when something would lie outside of the present ones."""
        if not len(rates):
            return
        tall = float(rates.min()) / 3, max([float(rates.max()), *tops]) * 3
        if self._extent is None or self._scale is None or not _inside(wide, self._extent) or not _inside(tall, self._scale):
            self._extent, self._scale = (wide[0] / 1.5, wide[1] * 1.5), (tall[0] / 1.5, tall[1] * 1.5)
            self.figure.x_range.update(start=self._extent[0], end=self._extent[1], reset_start=self._extent[0], reset_end=self._extent[1])
            self.figure.y_range.update(start=self._scale[0], end=self._scale[1], reset_start=self._scale[0], reset_end=self._scale[1])

    def _name_levels(self) -> None:
        """Offer the levels this card has, by its own names."""
        spec = self.session.answer.prediction.scenario.npu or self.session.answer.prediction.scenario.source
        options = {roof.name: roof.level for roof in roofs(spec) if roof.level} if spec is not None else {"Outermost": "outermost"}
        if options != self.level.options:
            keep = self.level.value if self.level.value in options.values() else "outermost"
            self.level.param.update(options=options, value=keep)
            self.level.param.trigger("value")  # the browser marks the button by its label

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.pane.Bokeh(self.figure, sizing_mode="stretch_both", margin=0)


def _inside(inner: tuple[float, float], outer: tuple[float, float]) -> bool:
    """Whether the range lies in the other, and fills at least a part of it worth looking at."""
    fills = np.log(inner[1] / inner[0]) > 0.5 * np.log(outer[1] / outer[0])
    return bool(outer[0] <= inner[0] and inner[1] <= outer[1] and fills)
