"""Stacks of a prediction: of the operators that take longest, consistent with the prediction itself."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.data import data_path
from workbench.errors import Refused
from workbench.study.predict import predict
from workbench.study.scenario import Scenario
from workbench.study.stacks import sentence, stacks
from workbench.trace.open import open_trace


def test_the_longest_operators_with_times_that_divide(scenario):
    """Totals are those of the operator table, largest first; shares add up; times of rows the model prices are the prediction's."""
    prediction = predict(scenario.with_({"anchored": False}))
    found = stacks(prediction)
    table = prediction.operators()
    assert found.total_s.values == pytest.approx(table.predicted_total_s.sel(operator=found.operator).values)
    assert (np.diff(found.total_s.values) <= 0).all()
    assert found.share.sum("part").values == pytest.approx(1.0)
    modelled = found.where(found.evidence == "model", drop=True)
    assert modelled.sizes["operator"] > 0
    assert modelled.model_s.values == pytest.approx(modelled.seconds.values.astype(float))


def test_a_part_infinitely_fast_never_takes_longer(prediction):
    found = stacks(prediction)
    assert (found.without_s <= found.model_s * (1 + 1e-9)).all()


def test_the_bound_is_what_pays_off(prediction):
    """An intervention: with twice the bandwidth of the outermost memory, operators bound by it by a wide margin gain most."""
    from workbench.hardware.npu import load_npu

    slow = prediction.scenario.with_({"anchored": False, "npu.memory.hbm.bandwidth": "0.4 TB/s"})
    fast = slow.with_({"npu.memory.hbm.bandwidth": "0.8 TB/s"})
    assert load_npu("npu-x").name == prediction.scenario.npu.name
    before, after = stacks(predict(slow)), predict(fast).op_seconds
    held = before.where((before.bound == "memory") & (before.margin > 4), drop=True)
    assert held.sizes["operator"] > 0
    share = held.share.sel(part="memory").values
    gain = 1 - after[held.operator.values.astype(int)] / held.model_s.values
    assert gain == pytest.approx(share / 2, abs=0.05)


def test_words_name_the_bound_and_the_best_cure(prediction):
    one = stacks(prediction).isel(operator=0)
    text = sentence(one)
    assert text.startswith(f"bound by {one.bound.item()}")
    best = one.faster.values[int(np.argmin(one.without_s.values))]
    assert f"an infinitely fast {best} would save" in text


def test_without_a_card_there_is_nothing_to_divide_by():
    recorded = predict(Scenario(open_trace([data_path("traces", "cpu_resnet_b8.json.gz")])))
    assert recorded.scenario.source is None
    with pytest.raises(Refused, match="no card") as fault:
        stacks(recorded)
    assert fault.value.fix
