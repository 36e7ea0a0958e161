"""The checked-in accuracy report of steps, and the arithmetic behind it."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import numpy as np
import pytest

from tests.anchors.pairs import Recorded, cases, load, skill, times_of
from tests.anchors.pairs_report import digests, markdown
from workbench.cost.host_fit import fit_hosts
from workbench.data import data_path
from workbench.hardware.host import load_host
from workbench.study.predict import predict
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

REPORT = Path(__file__).resolve().parents[2] / "data" / "reports" / "step_accuracy.md"


@pytest.mark.accuracy
def test_write_the_report_of_steps(shared, capsys):
    """Writes the report; asks of it the issue's goals: vendor times <= 3 % on device busy and, on average, <= 6 % on the step."""
    folder = shared / "traces" / "pairs"
    recorded = load(folder)
    found = list(cases(recorded))
    handed = digests(folder)[0] in REPORT.read_text(encoding="utf-8")
    REPORT.write_text(markdown(found, recorded, datetime.date.today().isoformat(), *digests(folder)), encoding="utf-8")
    with capsys.disabled():
        print(REPORT.read_text(encoding="utf-8"))
    assert max(case.recorded.identity for case in found) <= 1e-3
    assert max(abs(case.kept["vendor times"].busy) for case in found) <= 0.03
    steps = [case.left_out["vendor times"].step for case in found]
    assert np.abs(steps).mean() <= 0.06
    assert skill(steps, [case.no_change for case in found]) > 0
    assert np.mean([guess.inside for case in found for guess in case.left_out.values()]) >= 0.8
    if not handed:
        return  # other recordings than those the shipped hosts were measured on
    hosts = fit_hosts([(cards["h100"].host, cards["mi300x"].host) for cards in recorded.values()], ("epyc-9654-h100", "xeon-8480c-mi300x"))
    for fitted in hosts:
        shipped = load_host(fitted.name)
        for part, other in ((fitted.takes, shipped.takes), (fitted.calls, shipped.calls), (fitted.spread, shipped.spread)):
            stated = {kind: value for kind, value in part.items() if kind in other}
            assert set(part) - set(stated) <= {"compute"}, "left out by hand: a property of one set-up (see data/host)"
            assert dict(other) == pytest.approx(stated, rel=0.02), "data/host is not what these recordings say: write it anew"


def test_the_report_of_steps_says_when_and_on_what():
    text = REPORT.read_text(encoding="utf-8")
    assert re.search(r"on \d{4}-\d\d-\d\d; digest of the recordings [0-9a-f]{16}; digest of the model\s.* [0-9a-f]{16}\.", text)
    for title in ("Over all pairs", "Step, by pair", "Device busy time, by pair", "Host time by kind"):
        assert f"## {title}" in text


def test_a_program_predicted_from_itself_is_right():
    """Its own times as a vendor's table, its own card and its own host: the step and the device's time are those recorded."""
    path = data_path("traces", "synthetic_ddp.json.gz")
    one = Recorded.of(path)
    asked = predict(Scenario(Workload(open_trace([path])), vendor=times_of(one.workload)))
    assert asked.step_time_s == pytest.approx(one.step_s, rel=1e-3)
    assert one.identity <= 1e-3


def test_skill_by_hand():
    """Errors of 1 and 3 % against 4 and 4 %: half."""
    assert skill([0.01, -0.03], [0.04, -0.04]) == pytest.approx(0.5)
