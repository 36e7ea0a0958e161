"""A scenario takes changes together and refuses what it cannot mean."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from workbench.cost.vendor import read_vendor
from workbench.data import data_path
from workbench.errors import InvalidSpec, Refused, WorkbenchError
from workbench.hardware.npu import load_npu
from workbench.study.axes import tied
from workbench.study.predict import predict
from workbench.study.scenario import Scenario
from workbench.study.shares import row_totals
from workbench.study.sweep import sweep
from workbench.study.workload import Workload
from workbench.trace.open import open_trace


def test_changes_of_a_card_are_applied_together(scenario: Scenario) -> None:
    """Twice the rows with half the columns keep the dense peak."""
    card = scenario.npu
    assert card is not None
    rows, cols = int(card.get("matrix.rows")), int(card.get("matrix.cols"))
    changed = scenario.with_({"npu.matrix.rows": rows * 2, "npu.matrix.cols": cols // 2, "host_factor": 2.0})
    assert changed.npu is not None
    assert changed.npu.peak_flops("bf16") == pytest.approx(card.peak_flops("bf16"))
    assert changed.host_factor == 2.0
    assert changed.digest != scenario.digest


@pytest.mark.parametrize("path", ["memory.l1.size", "npus.cores", "npu", "workload.cores", ""])
def test_unknown_fields_are_refused_by_name(scenario: Scenario, path: str) -> None:
    with pytest.raises((Refused, InvalidSpec)) as fault:
        scenario.with_({path: "512 KiB"})
    assert fault.value.fix


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf"), "2"])
def test_factors_are_finite_and_not_negative(scenario: Scenario, factor: float) -> None:
    with pytest.raises(Refused):
        scenario.with_({"host_factor": factor})
    with pytest.raises(Refused):
        scenario.with_({"scale": (("*", factor),)})


def test_wrong_types_are_named(scenario: Scenario) -> None:
    with pytest.raises(Refused, match="not a card"):
        Scenario(scenario.workload, npu="h100")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="not a recording"):
        Scenario("step.json.gz")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"host_factor": -1}, "host_factor"),
        ({"host_factor": math.nan}, "host_factor"),
        ({"host_factor": 1e308}, "host_factor"),  # times any duration: not a finite number
        ({"host_factor": True}, "host_factor"),
        ({"host_factor": "2"}, "host_factor"),
        ({"anchored": "yes"}, "anchored"),
        ({"anchored": 1}, "anchored"),
        ({"scale": (("*", 1e308),)}, "scale *"),
        ({"scale": 3}, "scale"),
        ({"scale": (("*",),)}, "scale"),
        ({"scale": ((3, 1.0),)}, "scale"),
        ({"npu": "h100"}, "npu"),
        ({"vendor": "times.csv"}, "vendor"),
        ({"nonsense": 1}, "nonsense"),
        ({"npu.nonsense": 1}, "nonsense"),
        ({"source.cores": 1}, "source.cores"),
    ],
)
def test_values_of_another_type_are_refused_by_name(scenario: Scenario, changes: dict[str, object], where: str) -> None:
    with pytest.raises(WorkbenchError, match=re.escape(where)):
        scenario.with_(changes)


@pytest.mark.parametrize("card", [None, "npu-x"])
def test_a_scaled_operator_shows_its_scaled_time(workload: Workload, card: str | None) -> None:
    """What-if factors reach the operator's own time and interval, so that time x count is still its total."""
    base = Scenario(workload, npu=load_npu(card) if card else None)
    before, after = predict(base), predict(replace(base, scale=(("aten::mm", 0.5),)))
    rows = np.array([name == "aten::mm" for name in after.table.name])
    assert rows.any()
    assert after.op_seconds[rows] == pytest.approx(0.5 * before.op_seconds[rows])
    assert after.cost.high_s[rows] == pytest.approx(0.5 * before.cost.high_s[rows])
    assert after.op_seconds[~rows] == pytest.approx(before.op_seconds[~rows])
    totals = row_totals(after.graph, len(after.table), after.node_s)
    assert totals == pytest.approx(after.op_seconds * after.table.count)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda s: predict(None),
        lambda s: predict(s.workload.trace),
        lambda s: sweep(None, {"npu.cores": [8]}),
        lambda s: sweep(s, None),
        lambda s: sweep(s, ["npu.cores"]),
        lambda s: sweep(s, {3: [8]}),
        lambda s: sweep(s, {"npu.cores": [8]}, budget=None),
        lambda s: sweep(s, {"npu.cores": [8]}, budget=math.nan),
        lambda s: s.with_(None),
        lambda s: s.with_({3: 1}),
        lambda s: tied(None),
        lambda s: tied({"npu.cores": 8}),
        lambda s: tied({"npu.cores": "8"}),
        lambda s: open_trace(None),
        lambda s: open_trace(3),
        lambda s: open_trace([None]),
        lambda s: open_trace("x.json", ranks=0),
        lambda s: open_trace("x.json", ranks="0"),
        lambda s: open_trace("x.json", ranks=[None]),
        lambda s: open_trace("x.json", ranks=[0.5]),
        lambda s: open_trace("x.json", ranks=[2**40]),
        lambda s: read_vendor(None),
        lambda s: load_npu(None),
    ],
)
def test_wrong_arguments_are_named_errors(scenario: Scenario, misuse: Callable[[Scenario], object]) -> None:
    """Never an AttributeError from deep inside."""
    with pytest.raises(WorkbenchError) as fault:
        misuse(scenario)
    assert fault.value.fix


def test_another_card_comes_with_another_host(scenario: Scenario) -> None:
    """Host time is kept as recorded: on another card the interval of a launch-bound step says that this is not certain."""
    launch_bound = Scenario(open_trace([data_path("traces", "synthetic_launch_bound.json.gz")]), npu=load_npu("npu-x"))
    other = predict(launch_bound)
    low, high = other.interval_s
    assert low < other.step_time_s / 1.05
    assert high > other.step_time_s * 1.05
    home = predict(launch_bound.with_({"npu": other.scenario.source}))
    assert home.interval_s[1] / home.step_time_s < high / other.step_time_s
