"""A sweep as a curve: SI ticks, and a refusal where there is nothing to draw along."""

from __future__ import annotations

import pytest

from workbench.data import data_path
from workbench.errors import Refused
from workbench.hardware.npu import load_npu
from workbench.study.scenario import Scenario
from workbench.study.sweep import sweep
from workbench.trace.open import open_trace
from workbench.view.sweep import sweep_curve


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    """A small sample on the invented card."""
    return Scenario(open_trace([data_path("traces", "synthetic_launch_bound.json.gz")]), npu=load_npu("npu-x"))


def test_ticks_carry_prefix_and_unit(scenario: Scenario) -> None:
    import holoviews as hv

    hv.extension("bokeh")
    space = sweep(scenario, {"npu.memory.hbm.bandwidth": ["1 TB/s", "2 TB/s", "4 TB/s"]}, progress=False)
    figure = hv.render(sweep_curve(space), backend="bokeh")
    assert figure.xaxis[0].formatter.args == {"unit": "B/s"}


def test_an_axis_of_names_is_refused_with_a_remedy(scenario: Scenario) -> None:
    space = sweep(scenario, {"npu": [load_npu("npu-x"), load_npu("h100-sxm")]}, progress=False)
    with pytest.raises(Refused, match="not numbers") as fault:
        sweep_curve(space)
    assert fault.value.fix
