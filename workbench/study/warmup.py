"""Compile every kernel on the way from a trace to a sweep, once; numba keeps the result on disk."""

from __future__ import annotations

import time

from workbench.data import data_path
from workbench.errors import UnreadableInput
from workbench.hardware.npu import load_npu
from workbench.study.predict import predict
from workbench.study.report import prediction_document
from workbench.study.scenario import Scenario
from workbench.study.sweep import sweep
from workbench.study.workload import Workload
from workbench.trace.open import open_trace


def warmup() -> float:
    """Predict and sweep the smallest sample trace of every kind; return the seconds it took."""
    begin = time.perf_counter()
    samples = sorted(data_path("traces").glob("*.json.gz"), key=lambda path: path.stat().st_size)
    if not samples:
        raise UnreadableInput(str(data_path("traces")), "no sample traces in this installation", "reinstall npu-workbench")
    families = {path.name.partition("_")[0]: path for path in reversed(samples)}
    for path in families.values():
        scenario = Scenario(Workload(open_trace([path])), npu=load_npu("npu-x"))
        prediction_document(predict(scenario))
        sweep(scenario, {"npu.cores": [8, 16], "host_factor": [1.0, 0.5]}, progress=False)
    return time.perf_counter() - begin
