"""Scaling efficiency over the number of cards, and below it what communication is waited for, by tier or axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from workbench.errors import Refused
from workbench.view.backend import plotting

LINE = "#0072B2"
BANDS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#F0E442")
"""Okabe and Ito's colours, told apart by most people."""


def bands(found: xr.Dataset, by: str) -> dict[str, np.ndarray]:
    """Return the share of the step that is waited for, by tier or axis, float64 [N] each; parts that are never waited for left out."""
    if by not in ("tier", "axis") or f"exposed_{by}_s" not in found:
        raise Refused("efficiency", f"nothing is known by {by!r}", "use tier, or axis for a plan")
    share = found[f"exposed_{by}_s"].values / found["step_s"].values[:, None]
    return {str(name): share[:, k] for k, name in enumerate(found[by].values) if share[:, k].max() > 0}


def efficiency_curve(found: xr.Dataset, *, by: str = "tier", width: int = 640, height: int = 300) -> Any:
    """Return efficiency and exposed communication as a HoloViews layout.

    Parameters
    ----------
    found : Dataset
        From `workbench.study.scale_out.scale_out` or `workbench.study.plan_scaling.plan_scaling`.
    by : {"tier", "axis"}
        What waiting is divided by.
    width, height : int
        Size of each picture [px].

    Returns
    -------
    holoviews.Layout
        Efficiency [%] over cards (logarithmic) with hover, and stacked shares of the step [%].
    """
    hv = plotting()
    cards, percent = found["cards"].values, 100.0 * found["efficiency"].values
    title = str(found.attrs["efficiency"])
    tier = [str(name) or "none" for name in found["limiting_tier"].values]
    table = {"cards": cards, "efficiency [%]": percent, "step [ms]": 1e3 * found["step_s"].values, "limits": tier}
    dots = hv.Scatter(table, "cards", ["efficiency [%]", "step [ms]", "limits"]).opts(color=LINE, size=8, tools=["hover"])
    line = hv.Curve((cards, percent), "cards", "efficiency [%]").opts(color=LINE, line_width=2)
    top = (line * dots).opts(width=width, height=height, logx=True, title=title, ylim=(0, max(105.0, float(percent.max()) * 1.05)))
    low = np.zeros(len(cards))
    areas = []
    for k, (name, share) in enumerate(bands(found, by).items()):
        high = low + 100.0 * share
        areas.append(hv.Area((cards, low, high), "cards", ["from", "to"], label=name).opts(color=BANDS[k % len(BANDS)], alpha=0.8))
        low = high
    if not areas:
        return hv.Layout([top]).cols(1)
    below = hv.Overlay(areas).opts(
        width=width, height=height, logx=True, ylabel=f"waited for, of the step [%], by {by}", legend_position="top_left",
        ylim=(0, max(5.0, float(low.max()) * 1.15)), title="communication that is waited for",
    )  # fmt: skip
    return hv.Layout([top, below]).cols(1)
