"""Energy of a step: by hand on a small table, and as a sum over the operators of a recording; a power limit as an axis of a sweep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cost.tables import table
from workbench.cost.estimate import estimate
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind
from workbench.study.energy import step_energy
from workbench.study.predict import predict
from workbench.study.report import prediction_document, sweep_document
from workbench.study.steps import kept_steps
from workbench.study.sweep import sweep

MADE = table([(Kind.GEMM, Dtype.BF16, (1, 512, 4096, 4096)), (Kind.ELEMENTWISE, Dtype.BF16, (1 << 24,)), (Kind.UNKNOWN, Dtype.FP32, ())])
FREE = np.array([np.inf])


def test_idle_power_over_the_step_and_the_work_above_it():
    """Twice the product, once the stream, half of the step idle: 75 W over 1 ms, and each operator's energy less idle power."""
    cost = estimate(MADE, [load_npu("npu-x")])
    busy = np.array([2.0, 1.0, 0.0])[:, None] * np.nan_to_num(cost.seconds)
    found = step_energy(MADE, cost, busy, np.array([1e-3]), FREE)
    above = cost.energy_j[:2, 0] - 75.0 * cost.seconds[:2, 0]
    assert found.joules[0] == pytest.approx(75.0 * 1e-3 + 2 * above[0] + above[1], rel=1e-12)
    assert found.watts[0] == pytest.approx(found.joules[0] / 1e-3)
    assert found.flops_per_joule[0] == pytest.approx((2 * MADE.flops[0] + MADE.flops[1]) / found.joules[0])
    assert found.assumed[0] == 0.0


def test_operators_of_unknown_activity_draw_as_much_as_the_rest_and_are_counted():
    cost = estimate(replace(MADE, measured_s=np.array([np.nan, np.nan, 1e-4])), [load_npu("npu-x")])
    busy = np.array([[0.0], [1e-4], [1e-4]])
    found = step_energy(MADE, cost, busy, np.array([2e-4]), FREE)
    power = cost.energy_j[1, 0] / cost.seconds[1, 0]
    assert found.joules[0] == pytest.approx(power * 2e-4)
    assert found.assumed[0] == pytest.approx(0.5)


def test_overlapping_operators_keep_to_the_limit():
    cost = estimate(MADE, [load_npu("npu-x")])
    found = step_energy(MADE, cost, np.full((3, 1), 1e-3) * [[1], [1], [0]], np.array([1e-3]), np.array([300.0]))
    assert found.watts[0] == pytest.approx(300.0)


def test_a_predicted_step_adds_up_over_its_operators(prediction):
    """Independent of the vectorised path: node by node, each with its operator's power above idle."""
    graph, cost = prediction.graph, prediction.cost
    kept = np.flatnonzero(kept_steps(graph.step_complete))
    dynamic, known, whole = 0.0, 0.0, 0.0
    for node in np.flatnonzero((graph.op >= 0) & np.isin(graph.step, kept)):
        row, seconds = graph.op[node], prediction.node_s[node]
        whole += seconds
        if np.isfinite(cost.energy_j[row, 0]) and seconds > 0:
            known += seconds
            dynamic += (cost.energy_j[row, 0] / cost.seconds[row, 0] - 75.0) * seconds
    joules = 75.0 * prediction.step_time_s + dynamic * whole / known / len(kept)
    assert prediction.energy.joules[0] == pytest.approx(min(joules, 500.0 * prediction.step_time_s), rel=1e-9)
    assert prediction.energy.assumed[0] == pytest.approx(1.0 - known / whole)
    assert prediction.energy.why == ("",)
    found = prediction_document(prediction).energy
    assert found.joules == prediction.energy.joules[0]
    assert found.why == ""


def test_without_a_card_no_energy_is_known(scenario):
    found = predict(replace(scenario, npu=None)).energy
    assert np.isnan(found.joules).all()
    assert found.why == ("no card is chosen",)


def test_a_sweep_over_the_limit(scenario):
    """Less power is never a shorter step; a cell equals its prediction; the mean power keeps to the limit."""
    limits = ["120 W", "200 W", "500 W"]
    found = sweep(scenario, {"npu.power.tdp": limits}, progress=False)
    assert (np.diff(found["step_time"].values) <= 1e-15).all()
    for at, tdp in enumerate(limits):
        alone = predict(scenario.with_({"npu.power.tdp": tdp}))
        assert float(found["energy"][at]) == pytest.approx(alone.energy.joules[0], rel=1e-12)
        assert float(found["flops_per_joule"][at]) == pytest.approx(alone.energy.flops_per_joule[0], rel=1e-12)
        assert alone.energy.watts[0] <= float(tdp.split()[0]) * (1 + 1e-9)
    assert sweep_document(found).energy_j == found["energy"].values.tolist()
    assert found["energy"].attrs["units"] == "J"
