"""A sweep over one field as curves: step time with its interval, and the share of time bound by memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from workbench.errors import Refused
from workbench.view.backend import plotting
from workbench.view.ticks import si_ticks


@dataclass(frozen=True)
class Curve:
    """Columns of a one-dimensional sweep; invalid cells hold nan and their reason. Arrays of length C."""

    path: str
    unit: str
    x: np.ndarray  # SI value of the field
    step_s: np.ndarray  # [s]
    low_s: np.ndarray  # [s]
    high_s: np.ndarray  # [s]
    memory_share: np.ndarray  # [1], of operator time
    reason: tuple[str, ...]  # empty where valid

    @property
    def knee(self) -> int:
        """Index of the first point after which a further step gains less than 1 % (-1: every step does, or none is valid)."""
        gain = 1 - self.step_s[1:] / self.step_s[:-1]
        small = np.flatnonzero(gain < 0.01)
        return int(small[0]) if len(small) else -1


def curve(dataset: xr.Dataset) -> Curve:
    """Return the columns of a sweep over one axis.

    Parameters
    ----------
    dataset : Dataset
        From `workbench.study.sweep.sweep`.

    Raises
    ------
    Refused
        When it has more than one axis, or one of names.
    """
    dims = dataset["step_time"].dims
    if len(dims) != 1:
        raise Refused(
            "sweep curve",
            f"the sweep has {len(dims)} axes ({', '.join(map(str, dims))})",
            "select one point of the others: dataset.isel(...)",
        )
    axis = dataset[str(dims[0])]
    if axis.dtype.kind not in "iuf":
        raise Refused("sweep curve", f"the values of {dims[0]} are not numbers", "plot the sweep of a number, or read dataset.step_time")
    texts = dataset["reason_text"].values
    reason = tuple("" if ok else str(texts[code]) for ok, code in zip(dataset["valid"].values, dataset["reason"].values, strict=True))
    step, low, high = (dataset[name].values for name in ("step_time", "step_time_low", "step_time_high"))
    share = dataset["bound_share"].sel(bound="memory").values
    return Curve(
        str(axis.attrs.get("path", dims[0])),
        str(axis.attrs.get("units", "1")),
        np.asarray(axis.values, dtype=float),
        step,
        low,
        high,
        share,
        reason,
    )


def sweep_curve(dataset: xr.Dataset, *, width: int = 640, height: int = 320) -> Any:
    """Return a one-dimensional sweep as a HoloViews overlay: step time [ms] and its 80 % interval.

    Parameters
    ----------
    dataset : Dataset
        From `workbench.study.sweep.sweep`, one axis.
    width, height : int
        Size [px].

    Returns
    -------
    holoviews.Overlay
        Interval, curve and points with hover.
    """
    hv = plotting()
    found = curve(dataset)
    ok = np.isfinite(found.step_s)
    x, step = found.x[ok], found.step_s[ok] * 1e3
    band = hv.Area((x, found.low_s[ok] * 1e3, found.high_s[ok] * 1e3), found.path, ["low", "high"]).opts(alpha=0.2, color="#0072B2")
    line = hv.Curve((x, step), found.path, "step time [ms]").opts(color="#0072B2", line_width=2)
    dots = hv.Scatter(
        {found.path: x, "step time [ms]": step, "memory bound": found.memory_share[ok]}, found.path, ["step time [ms]", "memory bound"]
    )
    unit = "" if found.unit == "1" else found.unit
    return (band * line * dots.opts(color="#0072B2", size=6, tools=["hover"])).opts(
        width=width, height=height, xlabel=found.path, xformatter=si_ticks(unit), ylabel="step time [ms]"
    )
