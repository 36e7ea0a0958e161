"""Without the profiler: a program is executed with a cost an event and without; the correction recovers the latter from the former."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.naive.actions import Action, Begin, End, Launch, Program, Work
from tests.naive.executor import execute
from tests.naive.kineto import document
from tests.naive.programs import data_parallel, launch_bound, queue_full
from workbench.data import data_path
from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS
from workbench.graph.recorded_events import recorded_events
from workbench.replay.replay import replay
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

COST_NS = 1_000


def profiled(program: Program, cost_ns: int = COST_NS) -> Program:
    """Return a program as it runs under a profiler: half the cost inside every operator's begin and end, all of it inside a launch."""

    def with_cost(action: Action) -> tuple[Action, ...]:
        if isinstance(action, Begin):
            return action, Work(cost_ns // 2)
        if isinstance(action, End):
            return Work(cost_ns // 2), action
        return (action,)

    threads = {name: tuple(one for action in actions for one in with_cost(action)) for name, actions in program.threads.items()}
    return replace(program, threads=threads, issue_ns=program.issue_ns + cost_ns)


def recorded(program: Program, folder: Path) -> Workload:
    path = folder / "made.json"
    path.write_text(json.dumps(document(execute(program), world_size=1)))
    return Workload(open_trace([path]))


def step_s(workload: Workload) -> float:
    return float(np.median(workload.graph.measured_step_s))


def corrected(workload: Workload, step: float, **asked: object) -> Prediction:
    return predict(Scenario(workload, unprofiled_step_s=step, **asked))  # type: ignore[arg-type]


@pytest.mark.parametrize("program", [launch_bound, queue_full, lambda: data_parallel(steps=3)], ids=["launch", "queue", "train"])
def test_the_unprofiled_step_is_recovered(tmp_path: Path, program) -> None:
    """All steps of the unprofiled run, of which the correction is told the median alone; device work keeps its time."""
    before, truth = recorded(profiled(program()), tmp_path), recorded(program(), tmp_path)
    found = corrected(before, step_s(truth))
    assert found.timeline.step_s == pytest.approx(truth.graph.measured_step_s, rel=0.02)
    assert found.step_time_s == pytest.approx(step_s(truth), rel=1e-3)
    assert found.measured_step_s == pytest.approx(step_s(truth), rel=1e-3)
    device = np.isin(before.graph.kind, DEVICE_KINDS)
    assert (found.node_s[device] == before.graph.measured_s[device]).all()


def test_a_change_is_predicted_of_the_unprofiled_job(tmp_path: Path) -> None:
    """Kernels twice as long: executed without a profiler for the truth, predicted from the profiled recording of the short ones.

    The profiled recording alone keeps the profiler's cost in the answer.
    """
    before, unprofiled = recorded(profiled(launch_bound()), tmp_path), recorded(launch_bound(), tmp_path)
    truth = step_s(recorded(_kernels(launch_bound(), 2.0), tmp_path))
    asked = {"scale": (("*", 2.0),)}
    naive = predict(Scenario(before, **asked)).step_time_s  # type: ignore[arg-type]
    assert corrected(before, step_s(unprofiled), **asked).step_time_s == pytest.approx(truth, rel=0.03)
    assert naive > 1.05 * truth


def _kernels(program: Program, factor: float) -> Program:
    def shorter(action: Action) -> Action:
        return replace(action, ns=round(action.ns * factor)) if isinstance(action, Launch) else action

    return replace(program, threads={name: tuple(map(shorter, actions)) for name, actions in program.threads.items()})


def test_the_cost_of_an_event_is_found_where_the_host_decides(tmp_path: Path) -> None:
    """Launch-bound: the step is host work alone, so the cost put in comes out."""
    workload = recorded(profiled(launch_bound()), tmp_path)
    found = corrected(workload, step_s(recorded(launch_bound(), tmp_path)))
    assert found.scenario.workload.event_s == pytest.approx(COST_NS * 1e-9, rel=0.05)
    assert [note.code for note in found.notes].count("profiler-cost") == 1


def test_every_recorded_event_counts_once(tmp_path: Path) -> None:
    """Operators, calls and step marks of the recording, each begin and each end half."""
    workload = recorded(launch_bound(steps=2, layers=2), tmp_path)
    e = workload.trace.events
    device = workload.trace.is_device_work
    marks = {"user_annotation", "cpu_op", "cuda_runtime"}
    told = json.loads((tmp_path / "made.json").read_text())["traceEvents"]
    expected = sum(event.get("cat") in marks for event in told)
    counted = recorded_events(workload.graph, workload.trace)
    assert counted.sum() == pytest.approx(expected, rel=0.03)
    assert counted[np.isin(workload.graph.kind, DEVICE_KINDS)].sum() == 0
    assert device.sum() < len(e)


@pytest.mark.parametrize(("factor", "words"), [(1.05, "longer than the profiled step"), (0.2, "not even")])
def test_an_implausible_step_is_refused(tmp_path: Path, factor: float, words: str) -> None:
    """Longer than profiled; or so short that the device alone takes longer."""
    workload = recorded(queue_full(), tmp_path)
    with pytest.raises(Refused, match=words) as fault:
        corrected(workload, factor * step_s(workload))
    assert fault.value.fix


def test_a_step_the_host_does_not_set_says_nothing_of_the_profiler(tmp_path: Path) -> None:
    """Device-bound with and without a profiler: the same step, so no cost can be told, and the answer says so."""
    program = _kernels(launch_bound(), 20.0)
    before, truth = recorded(profiled(program), tmp_path), recorded(program, tmp_path)
    assert step_s(before) == pytest.approx(step_s(truth), rel=0.03)
    notes = {note.code: note.text for note in corrected(before, min(step_s(truth), step_s(before))).notes}
    assert "device" in notes["profiler-cost"]


def test_the_same_step_changes_nothing(tmp_path: Path) -> None:
    workload = recorded(launch_bound(steps=2, layers=2), tmp_path)
    found = corrected(workload, step_s(workload))
    assert found.scenario.workload.event_s == pytest.approx(0.0, abs=1e-12)
    assert found.node_s == pytest.approx(workload.graph.measured_s)


def test_settled_twice_is_settled_once(tmp_path: Path) -> None:
    """A scenario taken from a prediction is asked again (a sweep, a rewrite): the cost is not taken off a second time."""
    workload = recorded(profiled(launch_bound(steps=2, layers=2)), tmp_path)
    first = corrected(workload, 0.9 * step_s(workload))
    again = predict(first.scenario)
    assert again.scenario.workload is first.scenario.workload
    assert again.step_time_s == first.step_time_s


@pytest.mark.parametrize("kind", ["resnet_b8", "transformer_b4"])
def test_a_real_recording_with_its_unprofiled_step(kind: str) -> None:
    """The sample recordings state the step timed without the profiler: where it is shorter, the correction meets it at a sane cost."""
    name = f"cpu_{kind}.json.gz"
    stated = yaml.safe_load(data_path("traces", "recorded.yaml").read_text(encoding="utf-8"))[name]["unprofiled_step_s"]
    workload = Workload(open_trace([data_path("traces", name)]))
    profiled_s = float(np.median(replay(workload.graph, workload.graph.measured_s).step_s))
    if stated >= profiled_s:
        pytest.skip(f"recorded {profiled_s:.4f} s with the profiler, {stated:.4f} s without")
    found = corrected(workload, stated)
    assert found.step_time_s == pytest.approx(stated, rel=1e-3)
    assert 0 < found.scenario.workload.event_s < 20e-6
