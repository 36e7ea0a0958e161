"""A prediction as labelled tables: operators with their explanation, and the ledger of lags."""

from __future__ import annotations

import numpy as np
import xarray as xr

from workbench.cost.cost import Bound, Evidence
from workbench.graph.lags import ledger
from workbench.operators.table import Dtype, Kind
from workbench.study.explain import explain
from workbench.study.prediction import Prediction
from workbench.study.segments import stage_names
from workbench.study.shares import row_totals


def operator_table(prediction: Prediction) -> xr.Dataset:
    """Return one row a unique operator, largest predicted total first.

    Parameters
    ----------
    prediction : Prediction

    Returns
    -------
    Dataset
        Dimension ``operator`` (row of the OpTable as coordinate) with name, signature, kind, dtype, count, has_shapes,
        ``stage`` (the phase that takes most of its time, ``unknown`` where nothing proves one),
        measured_s and predicted_s of one execution [s], low_s and high_s [s], measured_total_s and predicted_total_s
        over the recording [s], share of the predicted total [1], flops [FLOP], bytes [B] with the outermost memory,
        intensity [FLOP/B], energy_j of one execution [J], bound, evidence and ``why`` (one sentence).
    """
    table, cost = prediction.table, prediction.cost
    measured = row_totals(prediction.graph, len(table), prediction.graph.measured_s)
    predicted = row_totals(prediction.graph, len(table), prediction.node_s)
    moved = np.where(cost.level_bytes[:, 0, 2] > 0, cost.level_bytes[:, 0, 2], table.bytes_read + table.bytes_written)
    columns: dict[str, tuple[object, str]] = {
        "name": (np.array(table.name, dtype=object), ""),
        "signature": (np.array(table.signature, dtype=object), ""),
        "kind": (_names(Kind, table.kind), ""),
        "dtype": (_names(Dtype, table.dtype), ""),
        "count": (table.count, "1"),
        "stage": (np.array(_stages(prediction), dtype=object), ""),
        "has_shapes": (table.has_shapes, ""),
        "measured_s": (table.measured_s, "s"),
        "predicted_s": (cost.seconds[:, 0], "s"),
        "low_s": (cost.low_s[:, 0], "s"),
        "high_s": (cost.high_s[:, 0], "s"),
        "measured_total_s": (measured, "s"),
        "predicted_total_s": (predicted, "s"),
        "share": (predicted / predicted.sum() if predicted.sum() > 0 else predicted, "1"),
        "flops": (table.flops, "FLOP"),
        "bytes": (moved, "B"),
        "intensity": (np.divide(table.flops, moved, out=np.zeros_like(moved), where=moved > 0), "FLOP/B"),
        "energy_j": (cost.energy_j[:, 0], "J"),
        "bound": (_names(Bound, cost.bound[:, 0]), ""),
        "evidence": (_names(Evidence, cost.evidence), ""),
        "why": (np.array([explain(prediction, row) for row in range(len(table))], dtype=object), ""),
    }
    data = {name: ("operator", values, {"units": unit} if unit else {}) for name, (values, unit) in columns.items()}
    dataset = xr.Dataset(data, coords={"operator": np.arange(len(table))})
    return dataset.isel(operator=np.argsort(-predicted, kind="stable"))


def lag_table(prediction: Prediction, most: int = 10) -> xr.Dataset:
    """Return the largest unexplained lags of the predicted timeline, largest first.

    Parameters
    ----------
    prediction : Prediction
    most : int
        How many.

    Returns
    -------
    Dataset
        Dimension ``lag`` with ``seconds`` [s], ``where``, ``before`` and ``after`` (the nodes it lies between),
        ``kind``, ``critical`` (on the critical path) and ``cause`` in words.
    """
    lags = ledger(prediction.graph, prediction.timeline, prediction.scenario.workload.trace, most)
    text = {
        name: np.array([getattr(lag, name) for lag in lags], dtype=object) for name in ("where", "before", "after", "edge_kind", "cause")
    }
    text["kind"] = np.array([name.lower() for name in text.pop("edge_kind")], dtype=object)
    seconds = np.array([lag.seconds for lag in lags], dtype=np.float64)
    critical = np.array([lag.critical for lag in lags], dtype=bool)
    data: dict[str, tuple[str, np.ndarray, dict[str, str]]] = {name: ("lag", values, {}) for name, values in text.items()}
    data |= {"seconds": ("lag", seconds, {"units": "s"}), "critical": ("lag", critical, {})}
    return xr.Dataset(data, coords={"lag": np.arange(len(lags))})


def _stages(prediction: Prediction) -> list[str]:
    graph, workload = prediction.graph, prediction.scenario.workload
    nodes = np.flatnonzero((graph.op >= 0) & (graph.event >= 0))
    return stage_names(workload.stages, graph.op[nodes], graph.event[nodes], graph.measured_s[nodes], len(prediction.table))


def _names(enum: type[Kind] | type[Dtype] | type[Bound] | type[Evidence], codes: np.ndarray) -> np.ndarray:
    return np.array([enum(code).name.lower() for code in codes], dtype=object)
