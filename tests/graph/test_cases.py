"""Small self-made recordings of situations from public bug reports: what is right is said in their README.tsv."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.graph.made import US, Built, built, check_invariants, identity_error
from workbench.errors import WorkbenchError
from workbench.graph.graph import DEVICE_KINDS, EdgeKind, NodeKind
from workbench.replay.account import account
from workbench.trace.open import open_trace

TRACES = [
    "orphan_kernel",
    "kernel_before_launch",
    "half_flow",
    "graph_launch",
    "two_waits",
    "event_sync_records",
    "event_no_sync_records",
    "device_sync_no_records",
    "python_stack",
    "same_ts",
    "unsorted",
    "no_steps",
    "steps_twice",
    "negative_dur",
    "zero_dur",
    "overflow_dur",
    "merged_ranks",
    "legacy_2021",
    "control_char",
]
FIELD = ["03_event_cap", "11_graph_launch", "13_no_step_marks", "14_sync_is_not_work", "04_submicrosecond", "09_comm_names"]


def case(shared: Path, name: str) -> Built:
    folder = "field" if name[0].isdigit() else "traces"
    return built(open_trace([shared / "cases" / folder / f"{name}.json"]))


@pytest.mark.parametrize("name", TRACES + FIELD)
def test_every_case_is_acyclic_and_replays_its_steps(shared: Path, name: str) -> None:
    b = case(shared, name)
    check_invariants(b.graph)
    assert identity_error(b) < 1e-9
    parts = account(b.graph, b.timeline)
    total = parts.compute_s + parts.exposed_communication_s + parts.exposed_copy_s + parts.host_s + parts.waiting_s + parts.idle_s
    np.testing.assert_allclose(total, b.timeline.step_s, rtol=1e-12)


def test_orphan_is_kept_and_reported(shared: Path) -> None:
    b = case(shared, "orphan_kernel")
    assert np.isin(b.graph.kind, DEVICE_KINDS).sum() == 3
    assert b.codes()["orphan-kernel"] == 1
    assert b.timeline.start_s[b.node("launched_before_window")] == pytest.approx(5 * US)  # 995 - 990


def test_kernel_before_launch_has_no_negative_lag(shared: Path) -> None:
    b = case(shared, "kernel_before_launch")
    assert b.codes()["kernel-before-launch"] == 1
    launches = b.graph.edge_kind == EdgeKind.LAUNCH
    assert launches.sum() == 2
    assert (b.graph.edge_lag_s[launches] >= 0).all()
    first, second = b.nodes("ncclDevKernel_SendRecv")
    assert b.timeline.start_s[second] - b.timeline.start_s[first] == pytest.approx(17 * US)  # 1015 - 998


@pytest.mark.parametrize(("name", "linked"), [("half_flow", 2), ("graph_launch", 3), ("merged_ranks", 4)])
def test_every_kernel_hangs_on_its_launch(shared: Path, name: str, linked: int) -> None:
    b = case(shared, name)
    assert (b.graph.edge_kind == EdgeKind.LAUNCH).sum() == linked
    assert "orphan-kernel" not in b.codes()


def test_merged_ranks_share_no_edge(shared: Path) -> None:
    b = case(shared, "merged_ranks")
    rank = np.array([r.split()[1] if r.startswith("rank") else "" for r in b.graph.resources])[b.graph.resource]
    target = np.repeat(np.arange(len(b.graph)), np.diff(b.graph.edge_ptr))
    inner = (b.graph.kind[b.graph.edge_from] != NodeKind.ROOT) & (b.graph.kind[target] != NodeKind.STEP_END)
    assert (rank[b.graph.edge_from] == rank[target])[inner].all()


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("event_sync_records", "p", "q"), ("event_no_sync_records", "bwd_gemm", "ncclDevKernel_AllReduce_Sum_f16_RING_LL")],
)
def test_event_makes_the_other_stream_wait(shared: Path, name: str, source: str, target: str) -> None:
    b = case(shared, name)
    kind = EdgeKind.EVENT if name == "event_sync_records" else EdgeKind.EVENT_INFERRED
    assert b.causes(b.node(target))[b.node(source)] == kind
    later = b.lasting(**{source: 200 * US}).start_s[b.node(target)] - b.timeline.start_s[b.node(target)]
    assert later == pytest.approx(100 * US)  # 100 us more of the source delay the target by 100 us


def test_both_of_two_waits_count(shared: Path) -> None:
    b = case(shared, "two_waits")
    join = b.node("join")
    assert {b.node("a"), b.node("b")} <= set(b.causes(join))
    zero = b.timeline.start_s[b.node("a")] - 1010 * US  # the recording's clock at the root
    assert b.lasting(b=10 * US).start_s[join] - zero == pytest.approx(1111 * US, abs=1 * US)
    assert b.lasting(a=10 * US).start_s[join] == pytest.approx(b.timeline.start_s[join])


def test_device_synchronisation_is_waiting(shared: Path) -> None:
    b = case(shared, "device_sync_no_records")
    saved = b.timeline.step_s[0] - b.lasting(long=450 * US).step_s[0]
    assert saved == pytest.approx(450 * US, abs=5 * US)
    assert b.timeline.critical[b.node("long")]
    assert account(b.graph, b.timeline).compute_s[0] == pytest.approx(900 * US)


def test_python_frames_do_not_matter(shared: Path, tmp_path: Path) -> None:
    path = shared / "cases" / "traces" / "python_stack.json"
    document = json.loads(path.read_text())
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") != "python_function"]
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(document))
    a, b = case(shared, "python_stack"), built(open_trace([bare]))
    assert a.timeline.step_s.tolist() == b.timeline.step_s.tolist()
    np.testing.assert_array_equal(a.graph.kind, b.graph.kind)
    assert np.isin(a.graph.kind, DEVICE_KINDS).sum() == 2


def test_marks_on_the_device_and_on_a_second_thread_are_no_steps(shared: Path) -> None:
    b = case(shared, "steps_twice")
    assert b.graph.step_numbers.tolist() == [5, 6]
    np.testing.assert_allclose(b.timeline.step_s, [300 * US, 50 * US])


def test_without_marks_the_recording_is_one_step(shared: Path) -> None:
    b = case(shared, "13_no_step_marks")
    assert b.graph.step_numbers.tolist() == [-1]
    assert b.timeline.step_s[0] == pytest.approx(1234 * US)  # 10 to 1244
    assert account(b.graph, b.timeline).device_busy_s[0] == pytest.approx(300 * US)
    assert "no-step-marks" in b.codes()


def test_cleaned_durations(shared: Path) -> None:
    negative, overflow = case(shared, "negative_dur"), case(shared, "overflow_dur")
    device = np.isin(negative.graph.kind, DEVICE_KINDS)
    assert negative.graph.measured_s[device].sum() == pytest.approx(76 * US)
    assert overflow.graph.measured_s[overflow.node("fmha_bwd")] == pytest.approx(40 * US)
    assert account(overflow.graph, overflow.timeline).device_busy_s[0] == pytest.approx(88 * US)


def test_a_step_that_lost_its_device_work_is_incomplete(shared: Path) -> None:
    b = case(shared, "03_event_cap")
    assert b.graph.step_complete.tolist() == [True, True, False]
    assert b.codes()["incomplete-step"] == 1
    busy = account(b.graph, b.timeline).device_busy_s[b.graph.step_complete]
    assert busy.mean() == pytest.approx(760 * US)


def test_graph_launch_is_critical_and_its_synchronisation_waits(shared: Path) -> None:
    b = case(shared, "11_graph_launch")
    kernels = [b.node(f"fwd_{i}") for i in range(3)]
    assert b.timeline.critical[kernels].all()
    assert b.graph.measured_s[kernels].sum() == pytest.approx(300 * US)
    parts = account(b.graph, b.timeline)
    # 0-10 and 30-35 and 345-400 unexplained, 10-30 the launch, 40-340 kernels, 35-40 and 340-345 inside the synchronising call
    assert parts.compute_s[0] == pytest.approx(300 * US)
    assert parts.host_s[0] == pytest.approx(20 * US)
    assert parts.waiting_s[0] == pytest.approx(10 * US)
    assert parts.idle_s[0] == pytest.approx(70 * US)


def test_synchronisation_records_are_not_work(shared: Path) -> None:
    b = case(shared, "14_sync_is_not_work")
    parts = account(b.graph, b.timeline)
    found = [v[0] / US for v in (parts.compute_s, parts.communication_s, parts.exposed_communication_s, parts.idle_s)]
    assert found == pytest.approx([100, 300, 300, 0], abs=1e-6)


@pytest.mark.parametrize("name", ["meta_only", "empty_events"])
def test_nothing_to_replay_is_refused(shared: Path, name: str) -> None:
    with pytest.raises(WorkbenchError, match=r"no operators|no events|empty"):
        case(shared, name)


def test_every_file_is_refused_or_replayed(shared: Path) -> None:
    """No input of the cases gives anything but an error with a remedy, or a graph that replays its own steps."""
    replayed = 0
    for path in sorted([*(shared / "cases" / "traces").glob("*json*"), *(shared / "cases" / "field").glob("*.json")]):
        try:
            b = built(open_trace([path]))
        except WorkbenchError:
            continue
        check_invariants(b.graph)
        np.testing.assert_allclose(b.timeline.step_s, b.graph.measured_step_s, rtol=1e-9)
        replayed += 1
    assert replayed > 35
