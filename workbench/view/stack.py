"""Cycle stacks as bars: one an operator, divided by what its time is spent on."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from workbench.cost.cost import Bound
from workbench.cost.stack import PARTS
from workbench.view.backend import plotting
from workbench.view.palette import BOUNDS, Ink

WORDS: dict[str, Ink] = {
    "matrix": BOUNDS[Bound.MATRIX],
    "vector": BOUNDS[Bound.VECTOR],
    "local": BOUNDS[Bound.LOCAL],
    "shared": BOUNDS[Bound.SHARED],
    "memory": BOUNDS[Bound.MEMORY],
    "link": Ink("host link", BOUNDS[Bound.NETWORK].light, BOUNDS[Bound.NETWORK].dark),
    "handover": BOUNDS[Bound.HANDOVER],
    "conversion": BOUNDS[Bound.CONVERSION],
    "fallback": BOUNDS[Bound.FALLBACK],
    "latency": Ink("waiting for data", "#B9A400", "#E5D95A"),
    "fill": Ink("fill and drain", "#D8CC6A", "#A89F3C"),
    "launch": Ink("launch", "#8C564B", "#B98275"),
    "tail": Ink("cores without a tile", "#C9CDD3", "#4A4F57"),
}
"""Word and colour of every part of a stack."""
OTHER = Ink("other", "#7A7F87", "#9AA0A8")


def ink_of(part: str) -> Ink:
    """Return word and colour of a part."""
    return WORDS.get(part, OTHER)


def bar_columns(found: xr.Dataset) -> dict[str, list[Any]]:
    """Return one bar a part of each operator as columns: y, left and right [s] of the total, colours, words.

    Parameters
    ----------
    found : Dataset
        From `workbench.study.stacks.stacks`.

    Returns
    -------
    dict
        Columns ``row`` (of the OpTable), ``label``, ``left``, ``right`` [s], ``share`` [1], ``part``, ``light``, ``dark``, ``name``,
        ``signature``, ``time`` [s]; operators from the longest to the shortest, parts in the order of ``PARTS``; nothing for an empty part.
    """
    out: dict[str, list[Any]] = {
        key: [] for key in ("row", "label", "left", "right", "share", "part", "light", "dark", "name", "signature", "time")
    }
    labels = label_of(found)
    for at, row in enumerate(found.operator.values.tolist()):
        one = found.isel(operator=at)
        edges = np.concatenate(([0.0], np.cumsum(one.share.values))) * float(one.total_s)
        for part, share, left, right in zip(PARTS, one.share.values, edges[:-1], edges[1:], strict=True):
            if share <= 0:
                continue
            ink = ink_of(part)
            values = (row, labels[at], left, right, share, ink.word, ink.light, ink.dark, one.name.item(), one.signature.item())
            for key, value in zip(out, (*values, float(one.seconds)), strict=True):
                out[key].append(value)
    return out


def label_of(found: xr.Dataset, longest: int = 34) -> list[str]:
    """Return a short label of every operator, each one different."""
    return [
        f"{position + 1} {name if len(name) <= longest else name[: longest - 1] + '…'}"
        for position, name in enumerate(str(value) for value in found.name.values)
    ]


def stack_bars(found: xr.Dataset, width: int = 760) -> Any:
    """Return the stacks as horizontal bars (HoloViews), total time over the recording.

    Parameters
    ----------
    found : Dataset
        From `workbench.study.stacks.stacks`.
    width : int
        Width [px].

    Returns
    -------
    holoviews.Rectangles
    """
    hv = plotting()
    columns = bar_columns(found)
    labels = label_of(found)[::-1]
    y = [labels.index(label) for label in columns["label"]]
    data = {"x0": columns["left"], "y0": [v - 0.4 for v in y], "x1": columns["right"], "y1": [v + 0.4 for v in y]}
    extra = ("name", "part", "share", "time", "signature", "light")
    rows = list(zip(*data.values(), *(columns[key] for key in extra), strict=True))
    bars = hv.Rectangles(rows, ["x0", "y0", "x1", "y1"], list(extra))
    return bars.opts(
        color="light", line_color="white", line_width=0.5, tools=["hover"], width=width, height=80 + 26 * max(len(labels), 1),
        yticks=list(enumerate(labels)), xlabel="total time [s]", ylabel="", title="What operators spend their time on",
    )  # fmt: skip
