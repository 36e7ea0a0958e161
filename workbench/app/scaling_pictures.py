"""Pictures of many cards: efficiency over cards, what is waited for by tier, the pipeline in time, memory by stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn
import xarray as xr
from bokeh.models import ColumnDataSource, FactorRange, FixedTicker, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from workbench.scale.memory import PARTS
from workbench.study.plan_result import PlanStep
from workbench.view.efficiency import BANDS, LINE, bands
from workbench.view.pipeline import boxes
from workbench.view.text import quantity

PLAIN: dict[str, Any] = {"toolbar_location": None, "min_border_right": 8, "sizing_mode": "stretch_width", "height": 250}
MEMORY = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#F0E442", "#999999")


class Pictures:
    """Four figures that are patched, not made anew."""

    def __init__(self) -> None:
        self.curve = ColumnDataSource({key: [] for key in ("cards", "percent", "words")})
        self.waits = ColumnDataSource({"cards": []})
        self.order = ColumnDataSource({key: [] for key in ("stage", "start", "end", "what", "microbatch", "chunk", "colour")})
        self.memory = ColumnDataSource({"stage": [], **{part: [] for part in PARTS}})
        self.efficiency, self.waiting = self._efficiency(), pn.pane.Bokeh(sizing_mode="stretch_width", height=260)
        self.pipeline, self.stages = self._pipeline(), self._memory()
        self.of_plan = pn.Row(self.pipeline, self.stages, sizing_mode="stretch_width", visible=False)

    def _efficiency(self) -> Any:
        plot = figure(
            x_axis_type="log", x_axis_label="cards", y_axis_label="scaling efficiency [%]", y_range=Range1d(0, 105), tools="", **PLAIN
        )
        plot.xaxis[0].formatter = NumeralTickFormatter(format="0,0")
        plot.line("cards", "percent", source=self.curve, line_color=LINE, line_width=2.2)
        dots = plot.scatter("cards", "percent", source=self.curve, size=9, fill_color=LINE, line_color="white")
        plot.add_tools(HoverTool(renderers=[dots], tooltips="<div style='font:12px system-ui'>@words</div>"))
        return plot

    def _pipeline(self) -> Any:
        plot = figure(
            x_axis_label="time [ms]",
            y_axis_label="stage",
            title="pipeline: forward, backward, weights",
            tools="xwheel_zoom,xpan,reset",
            **PLAIN,
        )
        drawn = plot.hbar(
            y="stage", left="start", right="end", height=0.8, source=self.order, fill_color="colour", line_color="white", line_width=0.3
        )
        plot.add_tools(HoverTool(renderers=[drawn], tooltips=[("stage", "@stage"), ("", "@what of microbatch @microbatch, chunk @chunk")]))
        plot.y_range.flipped = True
        return plot

    def _memory(self) -> Any:
        plot = figure(y_axis_label="stage", x_axis_label="memory of the heaviest card [GB]", title="memory by stage", tools="hover",
                      tooltips="$name: @$name{0.0} GB", **PLAIN)  # fmt: skip
        plot.hbar_stack(list(PARTS), y="stage", height=0.8, source=self.memory, color=MEMORY, legend_label=list(PARTS))
        plot.y_range.flipped = True
        plot.legend.label_text_font_size, plot.legend.spacing, plot.legend.padding = "10px", 0, 2
        plot.add_layout(plot.legend[0], "right")
        return plot

    def show(self, curve: xr.Dataset, step: PlanStep | None) -> None:
        """Show an answer.

        Parameters
        ----------
        curve : Dataset
            Over cards, see `workbench.view.efficiency.efficiency_curve`.
        step : PlanStep or None
            Of a plan; None: of a recording, without pipeline and stages.
        """
        cards, percent = curve.cards.values, 100.0 * curve.efficiency.values
        words = [f"{n:,} cards: {e:.1f} %, {quantity(float(s), 's')} a step; limits: {t or 'nothing'}"
                 for n, e, s, t in zip(cards, percent, curve.step_s.values, curve.limiting_tier.values, strict=True)]  # fmt: skip
        self.curve.data = {"cards": cards, "percent": percent, "words": words}
        self.efficiency.xaxis[0].ticker = FixedTicker(ticks=cards.tolist())
        self.waiting.object = _stacked(cards, bands(curve, "tier"))
        self.of_plan.visible = step is not None
        if step is not None:
            self.order.data = boxes(step.order, step.run)
            parts = step.memory.parts / 1e9
            self.memory.data = {"stage": np.arange(len(parts)), **{part: parts[:, k] for k, part in enumerate(PARTS)}}

    def __panel__(self) -> Any:
        return pn.Column(pn.Row(self.efficiency, self.waiting, sizing_mode="stretch_width"), self.of_plan, sizing_mode="stretch_width")


def _stacked(cards: np.ndarray, shares: dict[str, np.ndarray]) -> Any:
    """Return bars of what is waited for, stacked by tier."""
    names = [f"{n:,}" for n in cards]
    plot = figure(x_range=FactorRange(*names), x_axis_label="cards", y_axis_label="waited for, of the step [%]", tools="hover",
                  tooltips="$name: @$name{0.0} %", **PLAIN)  # fmt: skip
    if shares:
        data = {"cards": names, **{tier: 100.0 * share for tier, share in shares.items()}}
        colours = [BANDS[k % len(BANDS)] for k in range(len(shares))]
        plot.vbar_stack(list(shares), x="cards", width=0.7, source=ColumnDataSource(data), color=colours, legend_label=list(shares))
        plot.legend.label_text_font_size = "10px"
        plot.add_layout(plot.legend[0], "right")
    return plot
