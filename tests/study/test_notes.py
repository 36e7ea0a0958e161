"""Notes of a prediction say what is true of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench.cost.cost import Evidence
from workbench.data import data_path
from workbench.hardware.npu import load_npu
from workbench.study.notes import prediction_notes
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.scenario import Scenario
from workbench.trace.open import open_trace


@pytest.mark.parametrize(("error", "miss", "noted"), [(2.25, 1.0, False), (1.4, 3.0, True), (1.4, 1 / 3.0, True)])
def test_a_wide_interval_is_no_miss(prediction: Prediction, error: float, miss: float, noted: bool) -> None:
    """An interval is [t / e, t e], stretched to hold the scaled recording: only the stretch says that the model misses."""
    cost = prediction.cost
    seconds = np.ones_like(cost.seconds)
    low, high = np.minimum(seconds / error, miss), np.maximum(seconds * error, miss)
    made = replace(
        prediction,
        scenario=replace(prediction.scenario, source=load_npu("a100-sxm4-40gb")),
        cost=replace(cost, seconds=seconds, low_s=low, high_s=high, evidence=np.full_like(cost.evidence, Evidence.MODEL)),
    )
    assert ("model-misses" in {note.code for note in prediction_notes(made)}) is noted


def test_a_recording_of_the_host_alone_says_so() -> None:
    prediction = predict(Scenario(open_trace(data_path("traces", "cpu_transformer_b4.json.gz")), npu=load_npu("npu-x")))
    assert "host-only" in {note.code for note in prediction.notes}
