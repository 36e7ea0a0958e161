"""Why an operator takes as long as predicted, in one sentence a person can check."""

from __future__ import annotations

import numpy as np

from workbench import units
from workbench.cost.cost import Bound, Evidence
from workbench.study.prediction import Prediction

RESOURCE = {
    Bound.MATRIX: "matrix unit",
    Bound.VECTOR: "vector unit",
    Bound.LOCAL: "core-local memory",
    Bound.SHARED: "shared on-chip level",
    Bound.MEMORY: "outermost memory",
    Bound.LAUNCH: "launch and fill",
    Bound.LATENCY: "waiting for data in flight",
    Bound.NETWORK: "network",
    Bound.HANDOVER: "hand-over between matrix and vector cores",
    Bound.CONVERSION: "layout conversion",
    Bound.FALLBACK: "control processors",
}


def explain(prediction: Prediction, row: int) -> str:
    """Return what sets the predicted time of operator ``row``: evidence, binding resource, margin to the next one."""
    cost, measured = prediction.cost, float(prediction.table.measured_s[row])
    evidence = Evidence(cost.evidence[row])
    seconds = float(cost.seconds[row, 0])
    reason = cost.reasons[cost.note_code[row]] if cost.note_code[row] else ""
    tail = f"; {reason}" if reason else ""
    if evidence == Evidence.MEASURED:
        return "as recorded" + tail
    if evidence in (Evidence.VENDOR, Evidence.INTERPOLATED):
        whose = "the vendor's time" if evidence == Evidence.VENDOR else "between the vendor's times"
        return f"{whose}, {_against(seconds, measured)}{tail}"
    if evidence == Evidence.ANCHORED:
        bound = RESOURCE.get(Bound(cost.bound[row, 0]), "nothing known")
        return f"recorded time x model(card) / model(recorded card), {_against(seconds, measured)}; bound by {bound}{tail}"
    if evidence == Evidence.SCALED:
        return f"recorded time scaled to the card, {_against(seconds, measured)}{tail}"
    return f"{_resources(cost.resource_s[row, 0], Bound(cost.bound[row, 0]))}; {_against(seconds, measured)}{tail}"


def _resources(busy: np.ndarray, bound: Bound) -> str:
    order = [Bound(r) for r in np.argsort(-busy) if busy[r] > 0 and Bound(r) != bound]
    first = f"bound by {RESOURCE.get(bound, 'nothing known')}"
    if busy[bound] > 0:
        first += f" ({_time(busy[bound])})"
    if not order:
        return first
    return first + f", next {RESOURCE.get(order[0], 'unknown')} ({_time(busy[order[0]])})"


def _against(seconds: float, measured: float) -> str:
    if not (measured > 0 and np.isfinite(seconds)):
        return _time(seconds) if np.isfinite(seconds) else "no time"
    return f"{_time(seconds)} against {_time(measured)} recorded ({seconds / measured:.2f}x)"


def _time(seconds: float) -> str:
    return units.format(float(seconds), "s", 3)
