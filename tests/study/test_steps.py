"""Steps that overlap cost their period, not their length."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.study.compare import compare
from workbench.study.predict import predict
from workbench.study.report import prediction_document
from workbench.study.scenario import Scenario
from workbench.study.steps import kept_steps
from workbench.trace.open import open_trace


def test_incomplete_steps_do_not_count() -> None:
    assert kept_steps(np.array([True, False, True])).tolist() == [True, False, True]
    assert kept_steps(np.array([False, False])).tolist() == [True, True]


def test_a_device_bound_job_pays_the_period(shared) -> None:
    """The host runs ahead: marks are 95.6 ms long (facts.json), the work launched in one ends 185 ms after it began."""
    prediction = predict(Scenario(open_trace(shared / "traces" / "v100_nanoseconds.json.gz")))
    assert prediction.measured_step_s == pytest.approx(185e-3, rel=0.01)
    assert prediction.measured_period_s == pytest.approx(95.6e-3, rel=0.02)
    assert prediction.period_s == pytest.approx(prediction.measured_period_s)


def test_one_step_is_its_own_period(shared) -> None:
    prediction = predict(Scenario(open_trace(shared / "traces" / "pairs" / "bert_small_h100.json.gz")))
    assert prediction.period_s == prediction.step_time_s


def test_the_account_leaves_out_the_steps_the_headline_leaves_out(shared) -> None:
    """Of three steps the last lost its kernels: it counts neither for the median nor for where the time goes."""
    prediction = predict(Scenario(open_trace(shared / "cases" / "field" / "03_event_cap.json")))
    compute = prediction.measured_account.compute_s
    assert compute[2] == 0 < compute[:2].min()
    document = prediction_document(prediction)
    assert document.account.measured.compute_s == pytest.approx(compute[:2].mean())
    assert float(compare(prediction, prediction).base_part_s.sel(part="compute")) == pytest.approx(compute[:2].mean())
    assert [note.code for note in prediction.notes].count("incomplete-step") == 1


def test_how_much_of_the_critical_path_no_record_explains_is_part_of_the_prediction(prediction) -> None:
    assert 0.0 <= prediction_document(prediction).unexplained_share == prediction.unexplained_share <= 1.0
