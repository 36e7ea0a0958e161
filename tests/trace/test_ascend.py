"""Ascend profiles: the handed ones against independent facts, made ones by hand."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trace import ascend_files as made
from workbench.errors import Refused, UnreadableInput, WorkbenchError
from workbench.graph.build import build_graph
from workbench.operators.table import Kind
from workbench.trace.comm import comm
from workbench.trace.facts import facts as facts_of
from workbench.trace.open import open_trace
from workbench.trace.trace import Category, Trace


def texts(trace: Trace, key: str) -> dict[int, str]:
    column = trace.args[key]
    rows = zip(column.event.tolist(), column.value.tolist(), column.is_text.tolist(), strict=True)
    return {event: trace.strings[value] if is_text else str(value) for event, value, is_text in rows}


def notes(trace: Trace) -> dict[str, int]:
    return {note.code: note.count for note in trace.notes}


def row(trace: Trace, name: str) -> int:
    return next(i for i in range(len(trace.events)) if trace.name_of(i) == name)


def test_the_handed_timeline_as_counted(shared: Path) -> None:
    path = shared / "traces" / "ascend" / "trace_view.json.gz"
    want = json.loads((shared / "traces" / "facts.json").read_text())["traces"]["ascend/trace_view.json.gz"]
    trace = open_trace(path)
    e, work = trace.events, trace.is_device_work
    found = facts_of(trace)[str(path)]
    assert [found[k] for k in ("gpu_events", "busy_ns", "gpu_span_ns", "total_gpu_dur_ns", "flows")] == [
        want[k] for k in ("npu_rows", "npu_union_ns", "npu_span_ns", "npu_dur_sum_ns", "flows")
    ]
    assert Counter(trace.tracks[t].label for t in e.track[work].tolist()) == want["per_stream"]
    assert Counter(kind for at, kind in texts(trace, "Task Type").items() if work[at]) == want["task_types"]
    assert int((e.category == Category.CPU_OP).sum()) == want["cpu_ops"]
    raw = Counter(trace.strings[i] for i in e.raw_category.tolist())
    assert (raw["enqueue"], raw["dequeue"]) == (want["enqueue"], want["dequeue"])
    assert [[f"ProfilerStep#{n}", int(d)] for n, d in zip(trace.steps.number, trace.steps.dur_ns, strict=True)] == want["steps"]
    for name, (count, total) in want["overlap_rows"].items():
        rows = [i for i in range(len(e)) if trace.name_of(i) == name]
        assert (len(rows), int(e.dur_ns[rows].sum())) == (count, total)
        assert not work[rows].any()
    assert notes(trace)["kernel-table-stranger"] == 1  # the table handed beside it is of another run
    assert notes(trace)["ai-cpu"] == want["task_types"]["AI_CPU"]


def test_every_task_of_the_handed_timeline_has_a_cause(shared: Path) -> None:
    """274 of 276 tasks end a HostToDevice arrow; each is launched by the call the arrow begins in, and belongs to an operator."""
    trace = open_trace(shared / "traces" / "ascend" / "trace_view.json.gz")
    found = next(iter(facts_of(trace).values()))
    assert found["gpu_matched_to_runtime"] == 274
    graph, _ = build_graph(trace)
    assert next(n.count for n in graph.notes if n.code == "orphan-kernel") == 2
    assert (np.diff(graph.edge_ptr)[1:] > 0)[graph.event[1:] >= 0].all()
    assert (trace.events.external_id[trace.is_device_work] >= 0).sum() == 274


def test_the_handed_table_as_counted(shared: Path) -> None:
    path = shared / "traces" / "ascend" / "kernel_details.csv"
    want = json.loads((shared / "traces" / "facts.json").read_text())["traces"]["ascend/kernel_details.csv"]
    trace = open_trace(path)
    e = trace.events
    core = texts(trace, "Accelerator Core")
    assert len(e) == want["rows"]
    assert Counter(core.values()) == want["per_core"]
    assert {kind: sum(int(e.dur_ns[i]) for i, c in core.items() if c == kind) for kind in want["dur_ns"]} == want["dur_ns"]
    streams = Counter(str(s) if s >= 0 else "N/A" for s in (trace.tracks[t].stream for t in e.track.tolist()))
    assert streams == want["streams"]
    assert (int(e.start_ns.min()), int((e.start_ns + e.dur_ns).max())) == (want["first_start_ns"], want["last_end_ns"])
    messages = np.flatnonzero(comm(trace))
    assert len(messages) == want["per_core"]["HCCL"]
    assert [[trace.name_of(i), int(e.dur_ns[i])] for i in messages[: len(want["hccl"])].tolist()] == want["hccl"]
    assert Counter(texts(trace, "Step Id").values()) == want["steps"]
    assert {"host-not-recorded", "ai-cpu"} <= notes(trace).keys()


def test_tasks_of_the_handed_table_have_their_work(shared: Path) -> None:
    """MatMul104 is 4096 x 12288 by (6144 x 12288) transposed: 2 m n k. What is no message has a formula, but fills without shapes."""
    graph, table = build_graph(open_trace(shared / "traces" / "ascend" / "kernel_details.csv"))
    flops = dict(zip(table.signature, table.flops.tolist(), strict=True))
    assert flops["MatMul|fp16|batch=1,m=4096,n=6144,k=12288"] == 2 * 4096 * 6144 * 12288
    total, own = table.measured_s * table.count, ~np.array([name.startswith("hcom_") for name in table.name])
    unknown = (table.kind == Kind.UNKNOWN) & own
    assert all("memset" in name.lower() for name, fill in zip(table.name, unknown, strict=True) if fill)
    assert total[unknown].sum() < 0.005 * total[own].sum()
    assert graph.measured_step_s[0] == pytest.approx(517.4897e-6 * 1e3, rel=2e-3)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    content = {"trace_view.json": json.dumps(made.timeline()), "kernel_details.csv": made.details(), "op_summary_1.csv": made.summary()}
    for name, text in content.items():
        (tmp_path / name.split(".")[0]).mkdir()
        (tmp_path / name.split(".")[0] / name).write_text(text)
    return {name: tmp_path / name.split(".")[0] / name for name in content}


@pytest.mark.parametrize("order", [("trace_view.json", "kernel_details.csv"), ("kernel_details.csv", "trace_view.json")])
def test_a_table_joins_its_timeline(files: dict[str, Path], order: tuple[str, str]) -> None:
    trace = open_trace([files[name] for name in order])
    product, message = row(trace, "aclnnMm_MatMulV2"), row(trace, "hcom_allReduce__5_0")
    assert notes(trace)["kernel-table-joined"] == 2
    assert texts(trace, "Input Dims")[product] == "[[64, 32], [32, 16]]"
    assert texts(trace, "Input type")[product] == '["c10::Half", "c10::Half"]'
    assert texts(trace, "Input Formats")[product] == "FRACTAL_NZ;FORMAT_ND"
    assert texts(trace, "aic_mac_ratio")[product] == "0.875"
    assert texts(trace, "Collective name")[message] == "allReduce"
    assert trace.events.start_ns[product] == (made.BASE + 20) * 1000 + 250
    _, table = build_graph(trace)
    assert 2 * 64 * 32 * 16 in table.flops.tolist()


def test_the_message_lane_is_work_and_its_planes_are_not(files: dict[str, Path]) -> None:
    trace = open_trace(files["trace_view.json"])
    work = {trace.name_of(i) for i in np.flatnonzero(trace.is_device_work).tolist()}
    assert work == {"aclnnMm_MatMulV2", "hcom_allReduce__5_0"}
    assert comm(trace).sum() == 1


def test_a_summary_alone_is_a_trace(files: dict[str, Path]) -> None:
    trace = open_trace(files["op_summary_1.csv"])
    e = trace.events
    index = row(trace, "aclnnIndex_IndexAiCpu")
    assert (int(e.start_ns[index]), int(e.dur_ns[index])) == ((made.BASE + 55) * 1000 + 1, 100_125)
    assert [trace.tracks[t].stream for t in e.track.tolist()] == [2, 2, -1]
    assert notes(trace)["ai-cpu"] == 1
    assert comm(trace).tolist() == [False, False, True]


def test_steps_of_a_table(tmp_path: Path) -> None:
    """Two steps of one product each, 50 us apart: each step is the time of its tasks."""
    header, product, _ = made.details().splitlines()
    later = product.replace("3,", "4,", 1).replace(f"{made.BASE + 20}", f"{made.BASE + 70}")
    (tmp_path / "a.csv").write_text("\n".join((header, product, later)))
    trace = open_trace(tmp_path / "a.csv")
    assert (trace.steps.number.tolist(), trace.steps.dur_ns.tolist()) == ([3, 4], [30_500, 30_500])
    graph, _ = build_graph(trace)
    assert graph.measured_step_s.tolist() == pytest.approx([30.5e-6, 30.5e-6])


def test_a_table_of_another_run_is_refused(files: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(made.details().replace(str(made.BASE)[:8], str(made.BASE + 10**12)[:8]))
    with pytest.raises(Refused, match="belongs to none"):
        open_trace([files["trace_view.json"], other])


def test_a_cut_table_is_refused_with_its_byte_and_salvaged(files: dict[str, Path], tmp_path: Path) -> None:
    whole = made.summary().encode()
    cut = tmp_path / "cut.csv"
    cut.write_bytes(whole[:-30])
    last = whole[:-1].rindex(b"\n") + 1
    with pytest.raises(UnreadableInput, match=rf"line 4 \(byte {last}\), after 2 whole rows"):
        open_trace(cut)
    trace = open_trace(cut, salvage=True)
    assert len(trace.events) == 2
    assert notes(trace)["salvaged"] == 1


def test_damage_of_a_table_is_never_a_traceback(tmp_path: Path) -> None:
    random.seed(4)
    whole = made.details().encode()
    for at in range(150):
        data = bytearray(whole)
        for _ in range(3):
            data[random.randrange(len(data))] = random.choice(b'\0\t",;\n\xff9-e')
        path = tmp_path / f"{at}.csv"
        path.write_bytes(data)
        for salvage in (False, True):
            with contextlib.suppress(WorkbenchError):
                build_graph(open_trace(path, salvage=salvage))


def test_a_folder_of_ranks(tmp_path: Path) -> None:
    for rank in (1, 0):
        made.write_rank(tmp_path, rank)
    trace = open_trace(tmp_path)
    assert [(r.rank, r.world_size, r.stated) for r in trace.ranks] == [(0, 2, True), (1, 2, True)]
    assert len(trace.steps) == 2
    assert [n.count for n in trace.notes if n.code == "kernel-table-joined"] == [2, 2]
    assert [n.count for n in trace.notes if n.code == "communication-joined"] == [1, 1]
    message = row(trace, "hcom_allReduce__5_0")
    assert texts(trace, "Wait Time(ms)")[message] == "0.015"
    assert json.loads(texts(trace, "Communication Bandwidth Info")[message])["HCCS"]["Bandwidth(GB/s)"] == 166.7
    assert "account-differs" not in notes(trace)


@pytest.mark.parametrize("where", ["", "ASCEND_PROFILER_OUTPUT", "ASCEND_PROFILER_OUTPUT/trace_view.json"])
def test_the_folder_of_one_rank(tmp_path: Path, where: str) -> None:
    home = made.write_rank(tmp_path, 1).parent
    trace = open_trace(home / where)
    assert [(r.rank, r.world_size) for r in trace.ranks] == [(1, 2)]
    assert len(trace.events) == len([e for e in made.timeline() if e["ph"] == "X"])


def test_a_folder_of_msprof_without_timeline(tmp_path: Path) -> None:
    home = tmp_path / "PROF_000001_2025_ABC" / "mindstudio_profiler_output"
    home.mkdir(parents=True)
    (home / "op_summary_20250101.csv").write_text(made.summary())
    assert len(open_trace(tmp_path).events) == 3


def test_accounts_that_differ_are_said(tmp_path: Path) -> None:
    """The timeline computes 30.5 us; an account of 40 us is said, one of 31 us (less than 5 % apart) is not."""
    output = made.write_rank(tmp_path, 0)
    (output / "step_trace_time.csv").write_text(made.steps(31.0))
    assert "account-differs" not in notes(open_trace(output))
    (output / "step_trace_time.csv").write_text(made.steps(40.0))
    trace = open_trace(output)
    assert "40.000 us" in next(n.text for n in trace.notes if n.code == "account-differs")
    rows: Any = trace.ranks[0].metadata["step_trace_time.csv"]
    assert (rows[0]["Computing"], rows[0]["Free"], rows[0]["Step"]) == (40_000, 9_250, "3")


@pytest.mark.parametrize("junk", ["", "{", "[1]", '{"a": {"b": 1}}', '{"x": {"Communication Time Info": {"Start Timestamp(us)": "no"}}}'])
def test_companions_that_cannot_be_read_are_said_or_ignored(tmp_path: Path, junk: str) -> None:
    output = made.write_rank(tmp_path, 0)
    for name in ("communication.json", "step_trace_time.csv", "kernel_details.csv"):
        (output / name).write_text(junk)
    (output.parent / "profiler_metadata.json").write_text(junk)
    assert len(open_trace(output).events) == 7
