"""Notes of a prediction say what is true of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workbench.cost.cost import Evidence
from workbench.cost.vendor import read_vendor
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


@pytest.mark.parametrize("row", ["gemm,bf16,7,7,7,5", "gemm,bf16,7,7,7,N/A"])
def test_a_vendor_table_that_prices_nothing_is_said(scenario: Scenario, tmp_path: Path, row: str) -> None:
    """Neither a table of other operators nor one without a single time may pass for vendor times."""
    path = tmp_path / "times.csv"
    path.write_text(f"kind,dtype,m,n,k,latency_us\n{row}\n")
    table = read_vendor(path)
    found = predict(scenario.with_({"vendor": table}))
    codes = {note.code: note.count for note in found.notes}
    assert codes["vendor-unmatched"] == len(table)
    assert codes["vendor-contract-open"] == 6
    assert ("vendor-rows-left-out" in codes) is (len(table) == 0)
    assert found.scenario.digest != predict(scenario).scenario.digest


def test_a_recording_of_the_host_alone_says_so() -> None:
    trace = open_trace(data_path("traces", "cpu_transformer_b4.json.gz"))
    prediction = predict(Scenario(trace, npu=load_npu("npu-x")))
    assert "host-only" in {note.code for note in prediction.notes}
    assert "host-only" not in {note.code for note in predict(Scenario(trace)).notes}, "nothing is put on a card"


def test_operators_of_the_host_priced_on_a_card_are_its_compute() -> None:
    """No two operators of the recording run at once: what the card computes in a step is the sum of their times on it."""
    found = predict(Scenario(open_trace(data_path("traces", "cpu_transformer_b4.json.gz")), npu=load_npu("npu-x")))
    graph = found.graph
    priced = (graph.op >= 0) & (graph.step >= 0)
    expected = np.bincount(graph.step[priced], weights=found.node_s[priced], minlength=len(graph.step_numbers))
    assert found.account.compute_s == pytest.approx(expected, rel=1e-9)
    assert (found.account.compute_s > 0).all()
    assert (found.measured_account.compute_s == 0).all(), "as recorded they ran on the host"
    assert found.account.host_s == pytest.approx(found.measured_account.host_s - _recorded(found), rel=1e-6), "the rest of the host stays"


def _recorded(found: Prediction) -> np.ndarray:
    """What the operators took on the host, by step [s]."""
    graph = found.graph
    priced = (graph.op >= 0) & (graph.step >= 0)
    return np.bincount(graph.step[priced], weights=graph.measured_s[priced], minlength=len(graph.step_numbers))


def test_a_prediction_that_prices_nothing_says_so(shared: Path) -> None:
    """An Ascend timeline without its kernel table carries no shapes: the card named cannot price a thing."""
    trace = open_trace(str(shared / "traces" / "ascend" / "trace_view.json.gz"))
    for npu, said in ((None, False), (load_npu("ascend-910b2"), True)):
        codes = {note.code for note in prediction_notes(predict(Scenario(trace, npu=npu)))}
        assert ("nothing-priced" in codes) is said
    with_shapes = predict(Scenario(open_trace(data_path("traces", "synthetic_ddp.json.gz")), npu=load_npu("h100-sxm")))
    assert "nothing-priced" not in {note.code for note in prediction_notes(with_shapes)}
