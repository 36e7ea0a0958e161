"""One small synthetic recording and one card for the tests of this room."""

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
def workload() -> Workload:
    """A synthetic data-parallel training recording with several streams and steps."""
    return Workload(open_trace([data_path("traces", "synthetic_ddp.json.gz")]))


@pytest.fixture(scope="session")
def scenario(workload: Workload) -> Scenario:
    """The recording on the invented card."""
    return Scenario(workload, npu=load_npu("npu-x"))


@pytest.fixture(scope="session")
def prediction(scenario: Scenario) -> Prediction:
    """Its prediction."""
    return predict(scenario)
