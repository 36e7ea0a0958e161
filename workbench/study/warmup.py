"""Compile every kernel on the way from a trace to a sweep, once; numba keeps the result on disk."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.data import data_path
from workbench.errors import UnreadableInput
from workbench.hardware.npu import load_npu
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.report import prediction_document
from workbench.study.scenario import Scenario
from workbench.study.sweep import sweep
from workbench.study.workload import Workload
from workbench.trace.open import open_trace


def warmup() -> Iterator[Prediction]:
    """Predict and sweep the smallest sample trace of every kind, and yield the predictions for the views to compile theirs.

    Raises
    ------
    UnreadableInput
        When this installation has no sample traces.
    """
    samples = sorted(data_path("traces").glob("*.json.gz"), key=lambda path: path.stat().st_size, reverse=True)
    if not samples:
        raise UnreadableInput(str(data_path("traces")), "no sample traces in this installation", "reinstall npu-workbench")
    smallest = {path.name.partition("_")[0]: path for path in samples}
    for path in smallest.values():
        scenario = Scenario(Workload(open_trace([path])), npu=load_npu("npu-x"))
        prediction = predict(scenario)
        prediction_document(prediction)
        sweep(scenario, {"npu.cores": [8, 16], "host_factor": [1.0, 0.5]}, progress=False)
        yield prediction
