"""What a vendor's table covers of the operators, what its incomplete rows may be about, and how far the answer could move.

An incomplete row may be about every operator without a stated time that agrees with what the row does say (name or kind, dtype,
dimensions). A row with a time but no shape puts its time in place of the prediction of at most one of them; a row without a time leaves
one of them within its 80 % interval. Rows choose different operators, each the one that moves the total most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.cost.contract import CONTRACT
from workbench.cost.cost import Evidence, OpCost
from workbench.cost.interpolate import unmatched
from workbench.cost.vendor import Incomplete, VendorTimes
from workbench.cost.vendor_rows import BY_KIND
from workbench.operators.table import COLLECTIVES, DIMS, Dtype, Kind, OpTable
from workbench.operators.words import bare
from workbench.replay.replay import step_times
from workbench.study.documents_vendor import EvidenceDocument, IncompleteDocument, UncoveredDocument, VendorDocument
from workbench.study.prediction import Prediction
from workbench.study.price import price, price_recorded
from workbench.study.shares import row_totals
from workbench.study.steps import kept_steps

STATED = (Evidence.VENDOR, Evidence.INTERPOLATED)
MOST_NAMES = 200


@dataclass(frozen=True)
class Moves:
    """Operators an incomplete table may be about: seconds of one execution at the ends, float64 [U] [s] (nominal where untouched)."""

    low: np.ndarray
    high: np.ndarray
    touched: np.ndarray  # bool [U]


def vendor_document(vendor: VendorTimes, table: OpTable, cost: OpCost, totals: np.ndarray) -> tuple[VendorDocument, Moves]:
    """Describe how a table of times covers operators.

    Parameters
    ----------
    vendor : VendorTimes
        Table.
    table : OpTable
        U operators.
    cost : OpCost
        Their predicted times on one card, with the table.
    totals : ndarray, shape (U,)
        Total predicted time of each [s]; nan and negative count as 0.

    Returns
    -------
    VendorDocument, Moves
    """
    totals = np.nan_to_num(np.maximum(totals, 0.0))
    whole = float(totals.sum())
    rows, moves = _incomplete(vendor, table, cost, totals)
    nominal = np.nan_to_num(cost.seconds[:, 0])
    per_second = np.divide(totals, nominal, out=np.zeros_like(totals), where=nominal > 0)
    document = VendorDocument(
        path=vendor.path,
        rows=len(vendor),
        used=len(vendor) - len(unmatched(vendor, table)),
        contract=dict(vendor.contract.answers),
        not_stated=[CONTRACT[key] for key in vendor.contract.open],
        total_s=whole,
        evidence=_evidence(cost, totals),
        uncovered=_uncovered(table, cost, totals),
        incomplete=rows,
        touched_s=float(totals[moves.touched].sum()),
        touched_share=float(totals[moves.touched].sum()) / whole if whole > 0 else 0.0,
        low_s=max(whole + float(((moves.low - nominal) * per_second).sum()), 0.0),
        high_s=whole + float(((moves.high - nominal) * per_second).sum()),
        step_low_s=None,
        step_high_s=None,
    )
    return document, moves


def predicted_coverage(prediction: Prediction) -> VendorDocument | None:
    """Return the coverage of a prediction's vendor table with the step at both ends; None without a table."""
    scenario = prediction.scenario
    if scenario.vendor is None:
        return None
    totals = row_totals(prediction.graph, len(prediction.table), prediction.node_s)
    document, moves = vendor_document(scenario.vendor, prediction.table, prediction.cost, totals)
    if not moves.touched.any():
        return document.model_copy(update={"step_low_s": prediction.step_time_s, "step_high_s": prediction.step_time_s})
    pricing = price_recorded(scenario) if scenario.npu is None else price(scenario, [scenario.npu])
    nominal = np.nan_to_num(prediction.cost.seconds[:, 0])
    value = np.repeat(pricing.value[:, :1], 2, axis=1)
    for column, ends in enumerate((moves.low, moves.high)):
        factor = np.divide(ends, nominal, out=np.ones_like(nominal), where=nominal > 0)
        value[: len(factor), column] *= factor
    steps = step_times(prediction.graph, pricing.weight, value, pricing.row)
    kept = kept_steps(prediction.graph.step_complete)
    low, high = (float(np.median(step[kept])) for step in steps)
    return document.model_copy(update={"step_low_s": low, "step_high_s": high})


def _evidence(cost: OpCost, totals: np.ndarray) -> list[EvidenceDocument]:
    whole = totals.sum()
    return [
        EvidenceDocument(
            evidence=evidence.name.lower(),
            operators=int((cost.evidence == evidence).sum()),
            seconds=float(totals[cost.evidence == evidence].sum()),
            share=float(totals[cost.evidence == evidence].sum() / whole) if whole > 0 else 0.0,
        )
        for evidence in Evidence
        if (cost.evidence == evidence).any()
    ]


def _uncovered(table: OpTable, cost: OpCost, totals: np.ndarray) -> list[UncoveredDocument]:
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for row in np.flatnonzero(~np.isin(cost.evidence, STATED)).tolist():
        names = (Kind(table.kind[row]).name.lower(), Dtype(table.dtype[row]).name.lower(), Evidence(cost.evidence[row]).name.lower())
        found.setdefault((table.name[row], *names), []).append(row)
    whole = totals.sum()
    out = [
        UncoveredDocument(
            name=name, kind=kind, dtype=dtype, operators=len(rows), seconds=float(totals[rows].sum()),
            share=float(totals[rows].sum() / whole) if whole > 0 else 0.0, evidence=evidence,
        )
        for (name, kind, dtype, evidence), rows in found.items()
    ]  # fmt: skip
    return sorted(out, key=lambda row: -row.seconds)[:MOST_NAMES]


def _incomplete(vendor: VendorTimes, table: OpTable, cost: OpCost, totals: np.ndarray) -> tuple[list[IncompleteDocument], Moves]:
    nominal = np.nan_to_num(cost.seconds[:, 0])
    ends = [np.nan_to_num(array[:, 0]) for array in (cost.low_s, cost.high_s)]
    runs = np.divide(totals, nominal, out=np.zeros_like(totals), where=nominal > 0)
    moved = [nominal.copy(), nominal.copy()]
    used: tuple[set[int], set[int]] = (set(), set())
    touched = np.zeros(len(table), dtype=bool)
    whole, out = totals.sum(), []
    open_rows = (cost.evidence != Evidence.VENDOR) & ~np.isin(table.kind, COLLECTIVES)
    names = [bare(name) for name in table.name]
    for row in vendor.incomplete:
        rows = _candidates(row, table, names, open_rows)
        touched[rows] = True
        change = [0.0, 0.0]
        for side, sign in enumerate((-1.0, 1.0)):
            target = ends[side] if math.isnan(row.seconds) else np.full(len(table), row.seconds)
            for u in sorted(rows, key=lambda u: -sign * (target[u] - nominal[u]) * runs[u]):
                gain = float((target[u] - nominal[u]) * runs[u])
                if u not in used[side] and sign * gain > 0:
                    used[side].add(u)
                    moved[side][u], change[side] = target[u], gain
                    break
        seconds = float(totals[rows].sum())
        out.append(
            IncompleteDocument(
                where=row.where, label=row.label, dtype=row.dtype.name.lower(), dims=dict(row.dims), seconds=row.seconds, why=row.why,
                touches=len(rows), touched_s=seconds, share=float(seconds / whole) if whole > 0 else 0.0, low_s=change[0], high_s=change[1],
            )
        )  # fmt: skip
    return out, Moves(moved[0], moved[1], touched)


def _candidates(row: Incomplete, table: OpTable, names: list[str], open_rows: np.ndarray) -> list[int]:
    """Return the operators without a stated time that an incomplete row may be about."""
    label = bare(row.label)
    by_kind = row.kind in BY_KIND or row.label.upper() in Kind.__members__
    fits = open_rows & ((table.kind == row.kind) if by_kind and row.kind != Kind.UNKNOWN else np.zeros(len(table), dtype=bool))
    fits |= open_rows & np.array([name == label or signature == row.label for name, signature in zip(names, table.signature, strict=True)])
    if row.dtype != Dtype.UNKNOWN:
        fits &= table.dtype == row.dtype
    return [u for u in np.flatnonzero(fits).tolist() if _agrees(row.dims, table, u)]


def _agrees(dims: Mapping[str, int], table: OpTable, u: int) -> bool:
    names = DIMS[Kind(table.kind[u])]
    return all(name not in names or int(table.dims[u, names.index(name)]) == extent for name, extent in dims.items())
