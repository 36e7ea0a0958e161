"""Predictions and sweeps as the documents of ``--json`` (their models: `workbench.study.documents`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from workbench.cost.cost import Bound
from workbench.replay.timeline import Account
from workbench.study.dataset import reasons
from workbench.study.document import note_documents
from workbench.study.documents import (
    AccountDocument,
    AccountsDocument,
    AxisDocument,
    CheckDocument,
    CoverageDocument,
    Document,
    EnergyDocument,
    Facts,
    InspectDocument,
    LagDocument,
    NoteDocument,
    OperatorDocument,
    PredictDocument,
    PredictionDocument,
    StepDocument,
    SweepDocument,
    UnpricedDocument,
    finite,
    schema,
    to_json,
)
from workbench.study.energy import StepEnergy
from workbench.study.inspect import inspect as inspect_document
from workbench.study.prediction import Prediction
from workbench.study.report_steps import distribution_document, launch_bound_document
from workbench.study.shares import Coverage, bound_shares, coverage, row_totals
from workbench.study.steps import kept_steps
from workbench.study.vendor_coverage import predicted_coverage

__all__ = [
    "AccountDocument",
    "AccountsDocument",
    "AxisDocument",
    "CheckDocument",
    "CoverageDocument",
    "Document",
    "EnergyDocument",
    "Facts",
    "InspectDocument",
    "LagDocument",
    "NoteDocument",
    "OperatorDocument",
    "PredictDocument",
    "PredictionDocument",
    "StepDocument",
    "SweepDocument",
    "UnpricedDocument",
    "inspect_document",
    "note_documents",
    "predict_document",
    "prediction_document",
    "schema",
    "sweep_document",
    "to_json",
]


def predict_document(predictions: Mapping[str, Prediction]) -> PredictDocument:
    """Return the predictions of several traces; notes that several share are also listed on top."""
    found = {path: prediction_document(prediction) for path, prediction in predictions.items()}
    times = Counter(note for prediction in predictions.values() for note in set(prediction.notes))
    return PredictDocument(traces=found, notes=note_documents([note for note, count in times.items() if count > 1]))


def prediction_document(prediction: Prediction) -> PredictionDocument:
    """Return one prediction with all its operators and its ten largest lags."""
    scenario, graph = prediction.scenario, prediction.graph
    rows = zip(graph.step_numbers, graph.measured_step_s, prediction.timeline.step_s, graph.step_complete, strict=True)
    steps = [StepDocument(number=int(n), measured_s=float(m), predicted_s=float(p), complete=bool(c)) for n, m, p, c in rows]
    totals = row_totals(graph, len(prediction.table), prediction.node_s)
    kept = kept_steps(graph.step_complete)
    shares = bound_shares(prediction.cost, totals)
    found = coverage(graph, prediction.table, prediction.cost)
    step = prediction.step_time_s
    as_measured = scenario.npu is None and scenario.vendor is None
    return PredictionDocument(
        step_time_s=step,
        measured_step_s=prediction.measured_step_s,
        interval_s=prediction.interval_s,
        speed_up=prediction.measured_step_s / step if step > 0 else None,
        period_s=prediction.period_s,
        measured_period_s=prediction.measured_period_s,
        npu=scenario.npu.name if scenario.npu else None,
        source=scenario.source.name if scenario.source else None,
        vendor=scenario.vendor is not None,
        host=scenario.host.name if scenario.host else None,
        source_host=scenario.source_host.name if scenario.source_host else None,
        host_factor=scenario.host_factor,
        unprofiled_step_s=scenario.unprofiled_step_s,
        profiler_event_s=scenario.workload.event_s,
        anchored=bool(scenario.anchored),
        scale=list(scenario.scale),
        rewrites=[edit.text for edit in prediction.scenario.rewrites],
        digest=prediction.digest,
        steps=steps,
        distribution=distribution_document(prediction),
        launch_bound=launch_bound_document(prediction),
        account=AccountsDocument(measured=_account(prediction.measured_account, kept), predicted=_account(prediction.account, kept)),
        energy=_energy(prediction.energy),
        evidence_share=prediction.evidence_share,
        bound_share={bound.name.lower(): float(shares[bound]) for bound in Bound if shares[bound] > 0},
        coverage=None if as_measured else _coverage(found),
        unpriced=[] if as_measured else [UnpricedDocument(name=n, measured_s=s, has_shapes=shaped) for n, s, shaped in found.unpriced],
        vendor_coverage=predicted_coverage(prediction),
        operators=[OperatorDocument(**row) for row in _rows(prediction.operators(), "operator", OperatorDocument)],
        unexplained_share=prediction.unexplained_share,
        lags=[LagDocument(**row) for row in _rows(prediction.lags(), "lag", LagDocument)],
        notes=note_documents(prediction.notes),
    )


def sweep_document(dataset: xr.Dataset, out: str | None = None) -> SweepDocument:
    """Return a sweep as a document."""
    dims = [str(dim) for dim in dataset["step_time"].dims]

    def flat(name: str) -> list[Any]:
        values: list[Any] = dataset[name].values.ravel().tolist()
        return values

    axes = {
        str(name): AxisDocument(
            dim=[str(d) for d in c.dims], units=str(c.attrs.get("units", "")), values=[finite(v) for v in c.values.ravel().tolist()]
        )
        for name, c in dataset.coords.items()
        if "axis_class" in c.attrs or "tied" in c.attrs
    }
    return SweepDocument(
        dims=dims,
        shape=[dataset.sizes[dim] for dim in dims],
        axes=axes,
        base_step_time_s=float(dataset.attrs["base_step_time_s"]),
        step_time_s=flat("step_time"),
        step_time_low_s=flat("step_time_low"),
        step_time_high_s=flat("step_time_high"),
        speed_up=flat("speed_up"),
        energy_j=flat("energy"),
        flops_per_joule=flat("flops_per_joule"),
        valid=flat("valid"),
        invalid=dict(reasons(dataset)),
        out=out,
        notes=[line for line in str(dataset.attrs["notes"]).split("\n") if line],
    )


def _coverage(found: Coverage) -> CoverageDocument:
    return CoverageDocument(total_s=found.total_s, shaped_s=found.shaped_s, priced_s=found.priced_s, priced_share=found.priced_share)


def _energy(found: StepEnergy) -> EnergyDocument:
    joules, watts, rate, assumed = (float(a[0]) for a in (found.joules, found.watts, found.flops_per_joule, found.assumed))
    return EnergyDocument(joules=joules, watts=watts, flops_per_joule=rate, assumed=assumed, why=found.why[0])


def _account(parts: Account, kept: np.ndarray) -> AccountDocument:
    return AccountDocument(**parts.mean(kept))


def _rows(dataset: xr.Dataset, dim: str, model: type[Document]) -> list[dict[str, Any]]:
    columns = {name: dataset[name].values.tolist() for name in model.model_fields}
    return [{name: values[i] for name, values in columns.items()} for i in range(dataset.sizes[dim])]
