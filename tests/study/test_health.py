"""Health checks: each finding planted by hand in a small recording, its cost computed by hand, and gone where the fault is gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.graph.jobs import group, job, message
from tests.graph.made import event, kernel, launch, write
from tests.study.findings_of import found, step
from workbench.hardware.npu import load_npu
from workbench.study.health import findings
from workbench.study.inspect import inspect
from workbench.study.seen import Seen, card_of, intersection
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

A100 = "a100-sxm4-40gb"
MS = 1e-3
US = 1e-6


def operator(name: str, start: float, length: float, dims: list[list[int]], dtype: str, took: float, correlation: int = 1) -> list[Any]:
    """An operator on the host with its shapes, the launch in it, and its kernel of a time [us]."""
    shapes = {"Input Dims": dims, "Input type": [dtype] * len(dims), "Concrete Inputs": [""] * len(dims)}
    return [
        event("cpu_op", name, start, length, **shapes),
        launch(correlation, start + 1, 2),
        kernel(correlation, f"{name} kernel", start + length + 10, took),
    ]


@pytest.mark.parametrize(("took", "code"), [(3400.1, "faster-than-compute-roof"), (3700.1, None)])
def test_a_product_cannot_beat_the_peak(tmp_path: Path, took: float, code: str | None) -> None:
    """2 * 8192**3 operations in fp16 at 312 TFLOP/s (A100 data sheet) take 3524 us."""
    got = found(tmp_path, operator("aten::mm", 0, 10, [[8192, 8192], [8192, 8192]], "c10::Half", took), A100)
    assert ("faster-than-compute-roof" in got) == (code is not None)
    if code:
        assert "up to 1.04x" in got[code].what
        assert got[code].certainty == "likely"


@pytest.mark.parametrize(
    ("elements", "took", "code"),
    [
        (1 << 20, 5.1, "warm-shared-level"),  # 12 MB at 1.555 TB/s take 8.1 us, but 40 MB of L2 may hold them
        (1 << 28, 1500.1, "faster-than-memory-roof"),  # 3.2 GB take 2072 us, of which L2 holds 40 MB: 2045 us at least
        (1 << 28, 2200.1, None),
    ],
)
def test_memory_cannot_be_outrun_but_may_be_warm(tmp_path: Path, elements: int, took: float, code: str | None) -> None:
    """A100-SXM4-40GB: 1.555 TB/s, 40 MB of L2 (data sheet)."""
    got = found(tmp_path, operator("aten::add", 0, 10, [[elements], [elements]], "float", took), A100)
    assert {"warm-shared-level", "faster-than-memory-roof"} & got.keys() == ({code} if code else set())


def test_without_a_card_nothing_is_impossible(tmp_path: Path) -> None:
    assert not found(tmp_path, operator("aten::mm", 0, 10, [[8192, 8192], [8192, 8192]], "c10::Half", 1.5))


def copy(correlation: int, start: float, name: str = "Memcpy DtoH (Device -> Pinned)", stream: int = 8) -> list[dict[str, Any]]:
    call = launch(correlation, 20, 2, name="cudaMemcpyAsync")
    return [call, kernel(correlation, name, start, 40, stream, "gpu_memcpy")]


@pytest.mark.parametrize(
    ("more", "suspect"),
    [
        (copy(2, 150), True),  # reads while the kernel launched just before still writes, on another stream
        (copy(2, 210), False),  # after it
        (copy(2, 150, "Memcpy HtoD (Pinned -> Device)"), False),  # reads the host's memory
        ([*copy(2, 150), event("cuda_runtime", "cudaStreamWaitEvent", 16, 1, correlation=3)], False),  # something orders them
    ],
)
def test_a_copy_that_starts_before_its_producer_ends(tmp_path: Path, more: list[dict[str, Any]], suspect: bool) -> None:
    got = found(tmp_path, [launch(1, 10, 2), kernel(1, "producer", 100, 100), *more])
    assert ("unordered-streams" in got) == suspect
    if suspect:
        assert "Memcpy DtoH before the end of producer" in got["unordered-streams"].where
        assert got["unordered-streams"].certainty == "possible"


@pytest.mark.parametrize(("start", "stream", "racing"), [(150, 8, True), (210, 8, False), (205, 7, False)])
def test_a_read_while_its_operand_is_written(tmp_path: Path, start: float, stream: int, racing: bool) -> None:
    """mm writes tensor 3 from 100 to 200 us on stream 7; relu reads it: from 150 us on another stream that is too early."""
    gpu = "cuda:0"
    operators = [
        ("aten::mm", [[1, 101, 0, 8, 4, gpu]], [[3, 103, 0, 8, 4, gpu]]),
        ("aten::relu", [[3, 103, 0, 8, 4, gpu]], [[4, 104, 0, 8, 4, gpu]]),
    ]
    events, nodes = [], []
    for i, (name, inputs, outputs) in enumerate(operators):
        events.append(event("cpu_op", name, 20 * i, 10, **{"External id": i + 1}))
        events.append(launch(i + 1, 20 * i + 2, 2))
        types = {"input_shapes": [[8]], "input_types": ["Tensor(float)"], "output_shapes": [[8]], "output_types": ["Tensor(float)"]}
        nodes.append({"name": name, "id": i + 3, "rf_id": i + 1, "inputs": inputs, "outputs": outputs, **types})
    events += [kernel(1, "gemm", 100, 100), kernel(2, "relu", start, 30, stream)]
    (tmp_path / "p.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}))
    (tmp_path / "e.json").write_text(json.dumps({"schema": "1.0.1", "pid": 100, "nodes": nodes}))
    got = {one.code: one for one in inspect(open_trace([tmp_path / "p.json", tmp_path / "e.json"])).findings}
    assert ("read-while-written" in got) == racing
    if racing:
        assert got["read-while-written"].where == "aten::relu before the end of aten::mm"


def test_two_kernels_at_once_on_a_stream(tmp_path: Path) -> None:
    """100 to 200 and 160 to 260: 40 us together, which is 40 of the 255 us from the first launch on."""
    got = found(tmp_path, [launch(1, 5), launch(2, 15), kernel(1, "a", 100, 100), kernel(2, "b", 160, 100)])["stream-overlap"]
    assert (got.count, got.certainty) == (1, "certain")
    assert got.cost_s == pytest.approx(40 * US)
    assert got.share == pytest.approx(40 / 255)


def test_waiting_for_memory_costs_what_the_device_idles(tmp_path: Path) -> None:
    """A cudaMalloc of 100 us: the device works for the first 30 of them, so 70 are lost."""
    events = [
        launch(1, 0, 5),
        kernel(1, "a", 10, 50),
        event("cuda_runtime", "cudaMalloc", 30, 100),
        launch(2, 140, 5),
        kernel(2, "b", 150, 50),
    ]
    got = found(tmp_path, events)["allocator-calls"]
    assert got.cost_s == pytest.approx(70 * US)
    assert got.where == "cudaMalloc"


@pytest.mark.parametrize(("name", "code"), [
    ("cudaDeviceSynchronize", "device-synchronise"), ("hipStreamSynchronize", "stream-synchronise"),
    ("cudaModuleLoadData", "code-loading"), ("cudaFree", "allocator-calls"), ("aclrtMallocHost", "allocator-calls"),
    ("cudaHostAlloc", "allocator-calls"), ("cuMemAlloc_v2", "allocator-calls"), ("cudaMallocAsync", "allocator-calls"),
])  # fmt: skip
def test_what_blocks_the_host_by_name(tmp_path: Path, name: str, code: str) -> None:
    op = event("cpu_op", "aten::item", 100, 30)
    got = found(tmp_path, [launch(1, 0, 5), kernel(1, "a", 10, 50), op, event("cuda_runtime", name, 105, 20)])
    assert f"{name} in aten::item" in got[code].where


def steps_of(lengths: list[float]) -> list[dict[str, Any]]:
    """Steps whose only operator fills them, 10 us apart."""
    out, at = [], 0.0
    for number, length in enumerate(lengths):
        out += [step(number, at, length), event("cpu_op", "aten::add", at, length)]
        at += length + 10
    return out


@pytest.mark.parametrize(("lengths", "codes"), [
    ([1500, 1000, 1000, 1010, 990], {"warm-up-step"}),
    ([1000, 1000, 1300, 1010, 990], {"outlier-step"}),
    ([1000, 1010, 1020, 1030, 1040], {"drifting-steps"}),  # +4 % and every pair agrees
    ([1000, 1005, 995, 1010, 990], set()),
    ([1000, 2000], set()),  # which one is odd cannot be said
])  # fmt: skip
def test_odd_steps(tmp_path: Path, lengths: list[float], codes: set[str]) -> None:
    assert {code for code in found(tmp_path, steps_of(lengths)) if "step" in code} == codes


def test_an_outlier_costs_what_it_is_longer(tmp_path: Path) -> None:
    """300 us over the median of 1000, spread over five steps; the step is named."""
    got = found(tmp_path, steps_of([1000, 1000, 1300, 1010, 990]))["outlier-step"]
    assert got.where == "step 2: +30%"
    assert got.cost_s == pytest.approx(300 * US / 5)


def test_a_long_gap_says_what_the_host_did(tmp_path: Path) -> None:
    """The device is idle from 60 to 1010 us, in whose middle the launching thread sits in an operator named loader."""
    events = [launch(1, 0, 5), kernel(1, "a", 10, 50), event("cpu_op", "loader", 100, 800), launch(2, 1000, 5), kernel(2, "b", 1010, 50)]
    got = found(tmp_path, events)
    assert got["long-idle"].where == "loader"
    assert got["long-idle"].cost_s == pytest.approx(950 * US)
    assert "silence" not in got
    events[2] = event("cpu_op", "loader", 100, 10)
    assert found(tmp_path, events)["silence"].cost_s == pytest.approx(890 * US)  # from 110 to 1000 us


def test_pageable_and_repeated_copies(tmp_path: Path) -> None:
    """Three steps, each with an upload of 4096 bytes of its own 20 us; nothing else runs meanwhile."""
    events = []
    for i in range(3):
        at = 200.0 * i
        events += [step(i, at, 150), launch(i + 1, at + 5, 5, name="cudaMemcpyAsync")]
        events += [kernel(i + 1, "Memcpy HtoD (Pageable -> Device)", at + 20, 20, 7, "gpu_memcpy") | {"args": {
            "device": 0, "stream": 7, "correlation": i + 1, "bytes": 4096}}]  # fmt: skip
    got = found(tmp_path, events)
    assert got["pageable-copy"].cost_s == pytest.approx(20 * US)
    assert got["repeated-upload"].where == "4096 bytes (3x)"


def test_ranks_with_more_work_and_those_waited_for(tmp_path: Path) -> None:
    """Two ranks and one all-reduce: rank 1 arrives 60 us late, so rank 0 waits for it."""
    ranks = {0: [message(100, 100, **group((0, 1), 1))], 1: [message(160, 40, **group((0, 1), 1))]}
    trace = job(tmp_path, ranks)
    got = {one.code: one for one in inspect(trace).findings}
    assert got["straggler"].where == "rank 1 (100% of all waiting)"
    assert got["straggler"].cost_s == pytest.approx(60 * US / 2)  # of two steps, one a rank


def test_unequal_work(tmp_path: Path) -> None:
    """Kernels of 100, 100 and 150 us beside one matched message a rank, so that they share a clock."""
    ranks = {r: [message(1000, 100, **group((0, 1, 2), 1))] for r in range(3)}
    job(tmp_path, ranks)
    paths = [tmp_path / f"job_{r}.json" for r in range(3)]
    for r, path in enumerate(paths):
        document = json.loads(path.read_text())
        document["traceEvents"] += [launch(9, 100, 5), kernel(9, "gemm", 200, 150 if r == 2 else 100)]
        path.write_text(json.dumps(document))
    got = {one.code: one for one in inspect(open_trace(paths)).findings}["unequal-work"]
    assert got.where == "rank 2: +50.0%"
    assert "same number" in got.what


def test_clocks_that_differ(tmp_path: Path) -> None:
    """A kernel 30 us before its launch: the clocks of host and device differ."""
    got = found(tmp_path, [launch(1, 100, 5), kernel(1, "early", 70, 50)])
    assert got["clock-skew"].count == 1
    assert "30.0 us" in got["clock-skew"].what


def test_what_may_be_wrong_stands_before_what_costs_time(tmp_path: Path) -> None:
    events = operator("aten::mm", 0, 10, [[8192, 8192], [8192, 8192]], "c10::Half", 1000.1)
    events += [event("cuda_runtime", "cudaMalloc", 5000, 3000), launch(2, 9000, 5), kernel(2, "b", 9010, 5)]
    seen = Seen(Workload(write(tmp_path, events)), load_npu(A100))
    assert next(one.code for one in findings(seen)) == "faster-than-compute-roof"


def test_intersections() -> None:
    """Against a mask of every nanosecond."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = (np.sort(rng.choice(60, 12, replace=False)).reshape(-1, 2) for _ in range(2))
        low, high = intersection((a[:, 0], a[:, 1]), (b[:, 0], b[:, 1]))
        masks = [np.zeros(60, bool), np.zeros(60, bool), np.zeros(60, bool)]
        for mask, rows in zip(masks, (a, b, np.stack([low, high], 1)), strict=True):
            for start, stop in rows:
                mask[start:stop] = True
        assert np.array_equal(masks[0] & masks[1], masks[2])


def test_cases_of_damaged_times(shared: Path) -> None:
    """README of the cases: fmha_bwd overflows (1.6 s for 40 us); one duration is negative; a kernel starts 2 us before its launch."""
    for name, code, count in (
        ("overflow_dur", "overflow-duration", 1),
        ("negative_dur", "negative-duration", 1),
        ("kernel_before_launch", "clock-skew", 1),
    ):
        trace = open_trace(shared / "cases" / "traces" / f"{name}.json")
        got = {one.code: one.count for one in findings(Seen(Workload(trace)))}
        assert got[code] == count


def test_a_healthy_recording_raises_no_alarm(shared: Path) -> None:
    """Real recordings on known cards: nothing is faster than its roof, no stream reads what another writes."""
    for name in ("pairs/bert_small_h100", "pairs/bert_small_mi300x", "megatron_a100_tp8/kineto_rank0", "mi300x_compiled_triton"):
        trace = open_trace(shared / "traces" / f"{name}.json.gz")
        seen = Seen(Workload(trace), card_of(trace))
        assert seen.card is not None
        alarms = {one.code for one in findings(seen)} & {"faster-than-compute-roof", "faster-than-memory-roof", "unordered-streams"}
        assert not alarms, name


def test_idle_time_outside_a_step_is_not_the_step_s(tmp_path: Path) -> None:
    """A kernel 2**61 ns before the steps: what the device idles in between belongs to none of them."""
    work = [part for k in range(4) for part in (step(k, 100 * k, 90), launch(k + 1, 100 * k + 1, 2), kernel(k + 1, "k", 100 * k + 50, 10))]
    got = found(tmp_path, [kernel(99, "stray", -(2**61) / 1000, 5), *work])
    assert all(one.share <= 1 for one in got.values()), got
