"""What a prediction rests on: shares of time by evidence and by bound, and what stayed unpriced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.cost.cost import Bound, Evidence, OpCost
from workbench.graph.graph import Graph
from workbench.operators.table import OpTable

PRICED = (Evidence.VENDOR, Evidence.INTERPOLATED, Evidence.MODEL, Evidence.ANCHORED)


def row_totals(graph: Graph, size: int, node_s: np.ndarray) -> np.ndarray:
    """Return the total time of each operator row over the recording, float64 [U] [s]."""
    rows = graph.op >= 0
    return np.bincount(graph.op[rows], weights=node_s[rows], minlength=size)


def evidence_shares(graph: Graph, cost: OpCost, node_s: np.ndarray) -> dict[str, float]:
    """Return the share of predicted operator time by evidence, largest first (sums to 1; empty without operators)."""
    totals = np.bincount(cost.evidence, weights=row_totals(graph, len(cost.evidence), node_s), minlength=len(Evidence))
    whole = totals.sum()
    named = {evidence.name.lower(): float(totals[evidence] / whole) for evidence in Evidence if whole > 0 and totals[evidence] > 0}
    return dict(sorted(named.items(), key=lambda item: -item[1]))


def bound_shares(cost: OpCost, totals: np.ndarray, cell: int = 0) -> np.ndarray:
    """Return the share of predicted operator time by bound, float64 [len(Bound)] (zeros without operators)."""
    by_bound = np.bincount(cost.bound[:, cell], weights=totals, minlength=len(Bound))
    return by_bound / by_bound.sum() if by_bound.sum() > 0 else by_bound


@dataclass(frozen=True)
class Coverage:
    """How much of the recorded operator time is priced by a vendor time or the model.

    ``shaped_s`` is recorded time [s] of operators whose shapes were recorded, ``priced_s`` the part of it priced by
    vendor or model, ``total_s`` all operator time. ``unpriced`` lists (name, recorded seconds, has shapes), longest first.
    """

    total_s: float
    shaped_s: float
    priced_s: float
    unpriced: tuple[tuple[str, float, bool], ...]

    @property
    def priced_share(self) -> float:
        """Share of the shaped time that is priced by vendor or model (nan when no shape was recorded)."""
        return self.priced_s / self.shaped_s if self.shaped_s > 0 else float("nan")


def coverage(graph: Graph, table: OpTable, cost: OpCost) -> Coverage:
    """Return the coverage of a recording by vendor times and model."""
    totals = row_totals(graph, len(table), graph.measured_s)
    priced = np.isin(cost.evidence, PRICED)
    by_name: dict[tuple[str, bool], float] = {}
    for row in np.flatnonzero(~priced):
        key = (table.name[row], bool(table.has_shapes[row]))
        by_name[key] = by_name.get(key, 0.0) + float(totals[row])
    unpriced = tuple((name, seconds, shaped) for (name, shaped), seconds in sorted(by_name.items(), key=lambda item: -item[1]))
    shaped = table.has_shapes
    return Coverage(float(totals.sum()), float(totals[shaped].sum()), float(totals[shaped & priced].sum()), unpriced)
