"""A scenario takes changes together and refuses what it cannot mean."""

from __future__ import annotations

import pytest

from workbench.errors import InvalidSpec, Refused
from workbench.study.scenario import Scenario


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
