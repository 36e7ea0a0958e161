"""The host of a prediction: detected, asked for, in the interval, in the answer; executed on a slower host for the truth."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.naive.actions import Program, Work
from tests.naive.executor import execute
from tests.naive.kineto import document
from tests.naive.programs import launch_bound
from workbench.data import data_path
from workbench.errors import Refused
from workbench.hardware.host import HostSpec, load_host, read_host
from workbench.hardware.npu import load_npu
from workbench.study.measured_hosts import description, measured_hosts
from workbench.study.predict import predict
from workbench.study.recorded_on import detect_host_of
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

ONE = HostSpec("one", dict.fromkeys(("interpreter", "operators", "library", "compute"), 1.0), {"launch": 4e-6}, {})


def _recorded(program: Program, folder: Path, cpu: str = "") -> Workload:
    path = folder / "made.json"
    made = document(execute(program), world_size=1)
    path.write_text(json.dumps(made | {"metadata": {"system": {"cpu_info": ["Architecture: x86_64", f"Model name:   {cpu}"]}}}))
    return Workload(open_trace([path]))


def test_slower_launch_calls_are_predicted(tmp_path: Path) -> None:
    """Intervention: launch calls take 6 us instead of 4, all else stays; the host's description says so of launches alone."""
    base = launch_bound(steps=3, layers=4)
    slower = replace(ONE, name="two", calls={"launch": 6e-6})
    asked = Scenario(_recorded(base, tmp_path), source_host=ONE, host=slower)
    truth = _recorded(replace(base, issue_ns=6_000), tmp_path)
    before = float(np.median(asked.workload.graph.measured_step_s))
    after = float(np.median(truth.graph.measured_step_s))
    assert predict(asked).step_time_s - before == pytest.approx(after - before, rel=0.05)


def test_slower_operators_are_predicted(tmp_path: Path) -> None:
    """Intervention: everything the program's thread computes takes 1.5 times as long; calls stay."""
    base = launch_bound(steps=3, layers=4)
    kinds = dict.fromkeys(("interpreter", "operators", "library", "compute"), 1.5)
    asked = Scenario(_recorded(base, tmp_path), source_host=ONE, host=replace(ONE, name="two", takes=kinds))

    def longer(action: object) -> object:
        return Work(action.ns * 3 // 2) if isinstance(action, Work) else action

    slower = replace(base, threads={name: tuple(map(longer, actions)) for name, actions in base.threads.items()})
    before = float(np.median(asked.workload.graph.measured_step_s))
    after = float(np.median(_recorded(slower, tmp_path).graph.measured_step_s))
    assert predict(asked).step_time_s - before == pytest.approx(after - before, rel=0.1)


def test_the_host_of_a_recording_is_detected(tmp_path: Path) -> None:
    base = launch_bound(steps=2, layers=2)
    known = detect_host_of(_recorded(base, tmp_path, "AMD EPYC 9654 96-Core Processor").trace)
    assert known is not None and known.name == "epyc-9654-h100"
    assert detect_host_of(_recorded(base, tmp_path, "Some processor").trace) is None


def test_an_unknown_host_widens_the_interval_and_a_known_one_narrows_it(tmp_path: Path) -> None:
    workload = _recorded(launch_bound(steps=2, layers=4), tmp_path, "AMD EPYC 9654 96-Core Processor")
    asked = Scenario(workload, npu=load_npu("mi300x"))
    spread = {}
    for name, host in (
        ("unknown", None),
        ("same", load_host("epyc-9654-h100")),
        ("recorded", load_host("recorded")),
        ("other", load_host("xeon-8480c-mi300x")),
    ):
        found = predict(replace(asked, host=host))
        low, high = found.interval_s
        spread[name] = (high - low) / found.step_time_s
        assert found.scenario.source_host is not None and found.scenario.source_host.name == "epyc-9654-h100"
        told = [note.code for note in found.notes].count("host-kept")
        assert told == (name == "unknown"), "a step that launches set, on a host nobody named"
    assert spread["same"] == spread["recorded"] < spread["other"] < spread["unknown"]


def test_anchored_is_the_default_where_the_card_is_known(tmp_path: Path) -> None:
    workload = _recorded(launch_bound(steps=2, layers=2), tmp_path)
    card = load_npu("h100-sxm")
    default = predict(Scenario(workload, npu=card))
    assert default.scenario.anchored is True
    assert set(default.evidence_share) >= {"anchored"}
    alone = predict(Scenario(workload, npu=card, anchored=False))
    assert "anchored" not in alone.evidence_share and "model" in alone.evidence_share
    unknown = predict(Scenario(open_trace([data_path("traces", "cpu_resnet_b8.json.gz")]), npu=card))
    assert unknown.scenario.source is None and unknown.scenario.anchored is False
    with pytest.raises(Refused, match="anchored"):
        predict(replace(unknown.scenario, anchored=True))


@pytest.mark.parametrize(
    ("field", "value"), [("host", "epyc"), ("source_host", 2.0), ("unprofiled_step_s", -1.0), ("unprofiled_step_s", True)]
)
def test_what_is_no_host_is_refused(tmp_path: Path, field: str, value: object) -> None:
    asked = Scenario(open_trace([data_path("traces", "synthetic_launch_bound.json.gz")]))
    with pytest.raises(Refused, match=field):
        asked.with_({field: value})


def test_machines_are_measured_on_programs_recorded_on_both(tmp_path: Path) -> None:
    """Launches of 4 and of 6 us, all else alike: that is what comes out, drawn towards equal as one program's word must be.

    Weight by hand (see tests/cost/test_host.py): prior ln(1.5) / 1.2816 = 0.3164, scatter 0.0744: 0.9476; 1.5 ** 0.9476 = 1.4685.
    """
    base = launch_bound(steps=3, layers=4)
    traces = [_recorded(replace(base, issue_ns=ns), tmp_path).trace for ns in (4_000, 6_000)]
    one, two, document = measured_hosts([(traces[0], traces[1])], ("one", "two"))
    assert two.calls["launch"] / one.calls["launch"] == pytest.approx(1.4685, rel=0.01)
    assert two.takes["operators"] == pytest.approx(1.0, abs=0.01)
    assert document.programs[0].alike == 1.0
    assert document.programs[0].ratio["launch"] == pytest.approx(1.5, rel=0.01)
    again = read_host(description(two))
    assert (again.name, dict(again.takes)) == (two.name, pytest.approx(dict(two.takes), rel=1e-3))
    assert dict(again.calls) == pytest.approx(dict(two.calls), rel=1e-3)


def test_recordings_of_different_programs_measure_nothing(tmp_path: Path) -> None:
    first = _recorded(launch_bound(steps=2, layers=2), tmp_path).trace
    second = open_trace([data_path("traces", "cpu_resnet_b8.json.gz")])
    with pytest.raises(Refused, match="not recordings of one program"):
        measured_hosts([(first, second)], ("one", "two"))
    for names in (("one", "one"), ("one", "")):
        with pytest.raises(Refused, match="tell two machines apart"):
            measured_hosts([(first, first)], names)
    with pytest.raises(Refused, match="no recordings"):
        measured_hosts([], ("one", "two"))
