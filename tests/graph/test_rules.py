"""Single rules of graph building, each on a recording made for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.graph.made import US, Built, built, check_invariants, event, identity_error, kernel, launch, write
from workbench.graph.calls import Call, call_of
from workbench.graph.graph import ROW_HOST, EdgeKind, NodeKind
from workbench.graph.lags import ledger, unexplained_share
from workbench.replay.account import account
from workbench.trace.facts import facts


def op(name: str, start: float, length: float, tid: object = 11) -> dict:
    return event("cpu_op", name, start, length, tid)


def step(number: int, start: float, length: float) -> dict:
    return event("user_annotation", f"ProfilerStep#{number}", start, length)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("cudaLaunchKernel", Call.LAUNCH),
        ("cudaLaunchKernelExC", Call.LAUNCH),
        ("cuLaunchKernel", Call.LAUNCH),
        ("cuLaunchKernelEx", Call.LAUNCH),
        ("hipExtModuleLaunchKernel", Call.LAUNCH),
        ("cudaGraphLaunch", Call.LAUNCH),
        ("cudaLaunchCooperativeKernel", Call.LAUNCH),
        ("cudaMemcpyAsync", Call.COPY),
        ("cudaMemsetAsync", Call.COPY),
        ("cudaMemcpy", Call.COPY_SYNC),
        ("hipMemcpyWithStream", Call.COPY_SYNC),
        ("cudaDeviceSynchronize", Call.DEVICE_SYNC),
        ("cuCtxSynchronize", Call.DEVICE_SYNC),
        ("hipStreamSynchronize", Call.STREAM_SYNC),
        ("aclrtSynchronizeStream", Call.STREAM_SYNC),
        ("cudaEventSynchronize", Call.EVENT_SYNC),
        ("cudaEventRecord", Call.RECORD),
        ("cudaEventRecordWithFlags", Call.RECORD),
        ("cudaStreamWaitEvent", Call.WAIT),
        ("cudaFree", Call.FREE),
        ("cudaHostAlloc", Call.PLAIN),
        ("cudaStreamIsCapturing", Call.PLAIN),
        ("cudaEventQuery", Call.PLAIN),
        ("cudaFuncSetAttribute", Call.PLAIN),
    ],
)
def test_role_of_a_call(name: str, call: Call) -> None:
    assert call_of(name) == call


def test_launch_is_split_where_its_kernel_starts(tmp_path: Path) -> None:
    """A call of 10 us whose kernel starts after 6: 6 us issue, 4 us return; the operator around it has 5 + 5 us of its own."""
    b = built(write(tmp_path, [step(1, 0, 40), op("aten::mm", 5, 20), launch(1, 10, 10), kernel(1, "gemm", 16, 30)]))
    issue, back = b.nodes("cudaLaunchKernel")
    assert (b.graph.kind[issue], b.graph.kind[back]) == (NodeKind.LAUNCH, NodeKind.LAUNCH_RETURN)
    np.testing.assert_allclose(b.graph.measured_s[[issue, back]], [6 * US, 4 * US])
    np.testing.assert_allclose(b.graph.measured_s[b.nodes("aten::mm")], [5 * US, 5 * US])
    assert (b.graph.kind == NodeKind.GAP).sum() == 2  # 0-5 and 25-40
    assert b.timeline.step_s[0] == pytest.approx(46 * US)  # the kernel outlasts the mark
    np.testing.assert_allclose(b.lasting(gemm=10 * US).step_s, [40 * US])


def test_a_call_inside_a_call_counts_once(tmp_path: Path) -> None:
    """A runtime call around its driver call: 2 + 6 + 2 us, and the kernel hangs on the call that has its correlation."""
    inner = event("cuda_driver", "cuLaunchKernel", 12, 6, correlation=1)
    b = built(write(tmp_path, [event("cuda_runtime", "cudaLaunchKernel", 10, 10, correlation=2), inner, kernel(1, "gemm", 25, 5)]))
    np.testing.assert_allclose(b.graph.measured_s[b.nodes("cudaLaunchKernel")], [2 * US, 2 * US])
    assert b.causes(b.node("gemm")) == {b.node("cuLaunchKernel"): EdgeKind.LAUNCH}


def test_nested_duplicates_do_not_make_a_step_incomplete(tmp_path: Path) -> None:
    inner = event("cuda_driver", "cuLaunchKernel", 12, 6, correlation=1)
    outer = event("cuda_runtime", "cudaLaunchKernel", 10, 10, correlation=2)
    b = built(write(tmp_path, [step(1, 0, 40), outer, inner, kernel(1, "gemm", 25, 5)]))
    assert b.graph.step_complete.tolist() == [True]


def two_threads() -> list[dict]:
    """Main works 0-100, waits for the autograd thread (110-400, all of it after main fell idle), goes on at 410."""
    return [
        step(1, 0, 500),
        op("aten::forward", 0, 100, 11),
        op("MulBackward", 110, 200, 22),
        op("AddBackward", 320, 80, 22),
        op("aten::optimizer", 410, 90, 11),
    ]


def test_threads_that_take_turns_hand_over(tmp_path: Path) -> None:
    filler = [launch(1, 50, 5), kernel(1, "k", 60, 5)]
    b = built(write(tmp_path, [*two_threads(), *filler]))
    assert (b.graph.edge_kind == EdgeKind.HANDOVER).sum() == 2
    node_s = b.graph.measured_s.copy()
    node_s[b.node("MulBackward")] -= 150 * US
    from workbench.replay.replay import replay

    assert replay(b.graph, node_s).step_s[0] == pytest.approx(350 * US), "main waits for its backward pass, it does not work"
    # 100-110 and 310-320 and 400-410 are gaps: host time no record explains
    gaps = b.graph.kind == NodeKind.GAP
    assert b.graph.measured_s[gaps].sum() == pytest.approx(30 * US)


def test_a_watchdog_is_not_waited_for(tmp_path: Path) -> None:
    """A thread that only queries events now and then gives nothing to a thread that is idle around its calls."""
    pings = [event("cuda_runtime", "cudaEventQuery", t, 2, 33, correlation=100 + t) for t in (150, 250)]
    work = [step(1, 0, 400), op("aten::a", 0, 100), op("aten::b", 300, 100), launch(1, 50, 5), kernel(1, "k", 60, 5), *pings]
    b = built(write(tmp_path, work))
    assert not (b.graph.edge_kind == EdgeKind.HANDOVER).any()
    gap = next(v for v in range(len(b.graph)) if b.graph.kind[v] == NodeKind.GAP and b.graph.measured_s[v] > 150 * US)
    assert b.graph.measured_s[gap] == pytest.approx(200 * US)


def blocking_launches() -> list[dict]:
    events = [step(1, 0, 4000)]
    start = 10.0
    for i in range(12):
        length = 20.0 + 37 * (i * 5 % 12)
        events += [launch(i + 1, start, 15 + length), kernel(i + 1, f"k{i}", start + 10, length)]
        start += 15 + length + 5
    return events


def test_launches_that_end_with_their_kernels_block(tmp_path: Path) -> None:
    """CUDA_LAUNCH_BLOCKING=1 and simulators: halving a kernel shortens the host too."""
    b = built(write(tmp_path, blocking_launches()))
    check_invariants(b.graph)
    assert (b.graph.kind == NodeKind.SYNC).sum() == 12
    first, last = b.node("k3"), b.node("k11")
    half = b.graph.measured_s[first] / 2
    assert b.timeline.start_s[last] - b.lasting(k3=half).start_s[last] == pytest.approx(half)


def test_kernels_that_outlast_their_blocking_call_by_clock_noise(tmp_path: Path) -> None:
    events = [{**e, "dur": e["dur"] + 8} if e["cat"] == "kernel" and i % 4 == 0 else e for i, e in enumerate(blocking_launches())]
    b = built(write(tmp_path, events))
    check_invariants(b.graph)
    assert identity_error(b) < 1e-9
    assert b.codes()["clock-noise"] > 0
    half = b.graph.measured_s[b.node("k3")] / 2
    assert b.timeline.start_s[b.node("k11")] - b.lasting(k3=half).start_s[b.node("k11")] == pytest.approx(half)


def test_a_blocking_copy_behind_a_kernel_waits_and_does_not_issue(tmp_path: Path) -> None:
    """The call lasts 500 us since its copy queues behind a kernel of 480 us: a kernel twice as fast ends the step 240 us earlier."""
    copy = kernel(2, "Memcpy DtoH (Device -> Pageable)", 490, 5, category="gpu_memcpy")
    call = event("cuda_runtime", "cudaMemcpyAsync", 10, 500, correlation=2)
    b = built(write(tmp_path, [step(1, 0, 520), launch(1, 0, 5), kernel(1, "long", 7, 480), call, copy]))
    assert b.timeline.step_s[0] - b.lasting(long=240 * US).step_s[0] == pytest.approx(240 * US)


def test_overlapping_kernels_of_one_stream_keep_their_length(tmp_path: Path) -> None:
    """Programmatic dependent launch lets a kernel start before its predecessor ends: nothing is clipped, order stays."""
    b = built(write(tmp_path, [step(1, 0, 400), launch(1, 0), launch(2, 6), kernel(1, "a", 20, 100), kernel(2, "b", 117, 50)]))
    check_invariants(b.graph)
    assert b.graph.measured_s[b.node("a")] == pytest.approx(100 * US)
    assert b.lasting(a=40 * US).start_s[b.node("b")] == pytest.approx(57 * US)


def test_waits_for_events_that_were_not_traced(tmp_path: Path) -> None:
    wait = event("cuda_runtime", "cudaStreamWaitEvent", 20, 1, correlation=9)
    events = [step(1, 0, 400), launch(1, 0), kernel(1, "gemm", 10, 200), wait, launch(2, 25), kernel(2, "after", 212, 50, stream=20)]
    b = built(write(tmp_path, events))
    assert b.causes(b.node("after"))[b.node("gemm")] == EdgeKind.EVENT_INFERRED
    assert b.codes()["event-unrecorded"] == 1


def cpu_only() -> list[dict]:
    return [step(1, 0, 300), op("aten::linear", 10, 200), op("aten::addmm", 20, 150), op("aten::copy_", 30, 20), op("aten::relu", 220, 50)]


def test_without_device_work_operators_are_priced_by_self_time(tmp_path: Path) -> None:
    b = built(write(tmp_path, cpu_only()))
    work = b.graph.kind == NodeKind.HOST_WORK
    assert b.graph.measured_s[work].sum() == pytest.approx(250 * US)
    assert b.timeline.step_s[0] == pytest.approx(300 * US)
    priced = work & (b.graph.op != ROW_HOST)
    for unit in np.unique(b.graph.unit[priced]):
        assert b.graph.share[priced & (b.graph.unit == unit)].sum() == pytest.approx(1.0)


def lagging(tmp_path: Path) -> Built:
    """Ten kernels that follow their launch by 3 us, one that takes 500 us, and a Python gap of 300 us."""
    events = [step(1, 0, 3000)]
    for i in range(11):
        late = 500 if i == 6 else 3
        start = 100 * i + (300 if i > 3 else 0) + (700 if i > 6 else 0)
        events += [op(f"aten::op{i}", start, 90), launch(i + 1, start + 10, 5), kernel(i + 1, f"k{i}", start + 15 + late, 20)]
    events.append(event("python_function", "loader.py(10): next_batch", 391, 308))
    return built(write(tmp_path, events))


def test_ledger_names_the_largest_lags(tmp_path: Path) -> None:
    b = lagging(tmp_path)
    lags = ledger(b.graph, b.timeline, b.trace, 30)
    launch_lag = next(lag for lag in lags if lag.edge_kind == "LAUNCH")
    assert launch_lag.seconds == pytest.approx(497 * US)
    assert (launch_lag.before, launch_lag.after) == ("cudaLaunchKernel", "k6")
    assert "launch latency" in launch_lag.cause
    gap = next(lag for lag in lags if lag.after == "aten::op4")
    assert gap.seconds == pytest.approx(310 * US)
    assert gap.cause == "Python: loader.py(10): next_batch"
    assert [lag.seconds for lag in lags if lag.critical] == sorted((lag.seconds for lag in lags if lag.critical), reverse=True)
    assert not any(lag.seconds < 1e-12 for lag in lags)


def test_share_of_the_critical_path_without_explanation(tmp_path: Path) -> None:
    """The host is critical: 990 us of 3000 are in operators, the rest are gaps."""
    b = lagging(tmp_path)
    assert unexplained_share(b.graph, b.timeline)[0] == pytest.approx(1 - 990 / 3000)
    parts = account(b.graph, b.timeline)
    assert parts.host_s[0] + parts.compute_s[0] <= 990 * US + 20 * US + 1e-12


def test_account_goes_by_what_ran_not_by_what_it_was_for(tmp_path: Path) -> None:
    """A kernel that changes a layout (aten::copy_) computes; a driver's copy under a product is a copy: as the raw facts count them."""
    shapes = {"Input Dims": [[64, 64], [64, 64], []], "Input type": ["float", "float", "bool"]}
    events = [
        event("cpu_op", "aten::copy_", 0, 20, **shapes),
        launch(1, 5),
        kernel(1, "elementwise_kernel<copy>", 30, 40),
        event("cpu_op", "aten::mm", 100, 40, **{"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}),
        launch(2, 105, name="cudaMemcpyAsync"),
        kernel(2, "Memcpy DtoD (Device -> Device)", 120, 10, category="gpu_memcpy"),
        launch(3, 115),
        kernel(3, "sgemm", 140, 25),
    ]
    b = built(write(tmp_path, events))
    raw = next(iter(facts(b.trace).values()))
    parts = account(b.graph, b.timeline)
    assert parts.compute_s.sum() == pytest.approx(65 * US) == pytest.approx(raw["compute_ns"] / 1e9)
    assert parts.exposed_copy_s.sum() == pytest.approx(10 * US) == pytest.approx(raw["mem_ns"] / 1e9)


@pytest.mark.parametrize(("begin", "noted"), [(0, 0), (1000, 1)])
def test_device_work_no_step_holds_is_said(tmp_path: Path, begin: float, noted: int) -> None:
    """A mark beside the work makes a step of idle time: without a word the work would be lost."""
    events = [op("aten::mm", 0, 10), launch(1, 3), kernel(1, "gemm", 10, 5), step(0, begin, 50)]
    b = built(write(tmp_path, events))
    assert {n.code: n.count for n in b.graph.notes}.get("outside-steps", 0) == noted
    assert identity_error(b) < 1e-9
