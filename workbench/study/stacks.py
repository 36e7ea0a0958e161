"""The cycle stacks of a prediction's operators: how their time divides, what bounds them, what a faster part would give."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import xarray as xr

from workbench.cost.cost import Bound, Evidence
from workbench.cost.stack import FASTER, PARTS, stack
from workbench.errors import Refused
from workbench.operators.table import OpTable
from workbench.study.prediction import Prediction
from workbench.study.shares import row_totals


def stacks(prediction: Prediction, most: int = 14) -> xr.Dataset:
    """Return the stacks of the operators that take longest on the candidate card (as recorded: on the card of the recording).

    Parameters
    ----------
    prediction : Prediction
    most : int
        How many operators.

    Returns
    -------
    Dataset
        Dimension ``operator`` (row of the OpTable as coordinate; largest predicted total first) with ``name``, ``signature``,
        ``evidence``, ``total_s`` over the recording [s], ``seconds`` of one execution as predicted and ``model_s`` as the model
        has it [s], ``share`` over ``part`` [1] (of the model's time), ``bound``, ``next_bound``, ``margin`` of the bounding
        resource over the next [1], and ``without_s`` over ``faster``: the model's time with that part infinitely fast [s].
        Rows without a model are left out, and counted in the attribute ``without_model``.

    Raises
    ------
    Refused
        Neither candidate nor recording names a card.
    """
    spec = prediction.scenario.npu or prediction.scenario.source
    if spec is None:
        what = "no card: a stack divides a time by the units of a card"
        raise Refused("stacks", what, "choose a card, or name the recording's with source")
    table, cost = prediction.table, prediction.cost
    totals = row_totals(prediction.graph, len(table), prediction.node_s)
    order = np.argsort(-totals, kind="stable")
    order = order[totals[order] > 0][:most]
    found = stack(taken(table, order), spec)
    kept = np.flatnonzero(np.isfinite(found.share).all(axis=1))
    rows = order[kept]
    data: dict[str, tuple[Any, ...]] = {
        "name": ("operator", np.array([table.name[row] for row in rows], dtype=object)),
        "signature": ("operator", np.array([table.signature[row] for row in rows], dtype=object)),
        "evidence": ("operator", np.array([Evidence(cost.evidence[row]).name.lower() for row in rows], dtype=object)),
        "total_s": ("operator", totals[rows], {"units": "s"}),
        "seconds": ("operator", cost.seconds[rows, 0], {"units": "s"}),
        "model_s": ("operator", found.seconds[kept], {"units": "s"}),
        "share": (("operator", "part"), found.share[kept], {"units": "1"}),
        "bound": ("operator", _words(found.bound[kept])),
        "next_bound": ("operator", _words(found.second[kept])),
        "margin": ("operator", found.margin[kept], {"units": "1"}),
        "without_s": (("operator", "faster"), found.without_s[kept], {"units": "s"}),
    }
    return xr.Dataset(
        data,
        coords={"operator": rows, "part": list(PARTS), "faster": list(FASTER)},
        attrs={"npu": spec.name, "without_model": len(order) - len(kept)},
    )


def taken(table: OpTable, rows: np.ndarray) -> OpTable:
    """Return some rows of a table of operators."""
    columns: dict[str, Any] = {}
    for field in fields(table):
        value = getattr(table, field.name)
        columns[field.name] = value[rows] if isinstance(value, np.ndarray) else tuple(value[row] for row in rows)
    return OpTable(**columns)


def sentence(found: xr.Dataset) -> str:
    """Return in words what bounds one operator (a dataset of one operator, ``stacks(...).sel(operator=row)``) and what would help most."""
    parts = sorted(zip(found.part.values, found.share.values, strict=True), key=lambda item: -item[1])
    said = ", ".join(f"{part} {100 * share:.0f} %" for part, share in parts if share >= 0.05)
    without = dict(zip(found.faster.values, found.without_s.values, strict=True))
    best = min(without, key=lambda name: without[name])
    gain = 1.0 - float(without[best]) / float(found.model_s)
    margin = float(found.margin)
    lead = f" ({margin:.2f} times the next, {found.next_bound.item()})" if np.isfinite(margin) and found.next_bound.item() else ""
    return f"bound by {found.bound.item()}{lead}; {said}; an infinitely fast {best} would save {100 * gain:.0f} % of it"


def _words(codes: np.ndarray) -> np.ndarray:
    return np.array([Bound(code).name.lower() if code else "" for code in codes], dtype=object)
