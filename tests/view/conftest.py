"""One prediction of a sample trace for all tests of the room."""

from __future__ import annotations

import pytest

from workbench.data import data_path
from workbench.hardware.npu import load_npu
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.open import open_trace


@pytest.fixture(scope="session")
def sample() -> Workload:
    """The synthetic data-parallel training trace."""
    return Workload(open_trace([data_path("traces", "synthetic_ddp.json.gz")]))


@pytest.fixture(scope="session")
def prediction(sample: Workload) -> Prediction:
    """Its prediction on the invented card."""
    return predict(Scenario(sample, npu=load_npu("npu-x")))
