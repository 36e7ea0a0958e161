"""Nsight Systems databases, written by hand after NVIDIA's schema reference: what is read is what was written."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.trace import nsight_files as made
from workbench.errors import UnreadableInput
from workbench.graph.build import build_graph
from workbench.operators.table import Kind
from workbench.replay.replay import replay
from workbench.trace.facts import facts
from workbench.trace.open import open_trace
from workbench.trace.trace import Category, Trace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return made.write(tmp_path / "report.sqlite", made.job())


def names(trace: Trace, category: Category) -> list[str]:
    return [trace.name_of(int(i)) for i in np.flatnonzero(trace.events.category == category)]


def codes(trace: Trace) -> dict[str, int]:
    return {note.code: note.count for note in trace.notes}


def test_counts_and_sums_by_hand(path: Path) -> None:
    trace = open_trace(path)
    found = facts(trace)[str(path)]
    assert (found["kernels"], found["memcpy"], found["comm_kernels"]) == (4, 2, 2)
    assert (found["compute_ns"], found["comm_ns"], found["mem_ns"], found["busy_ns"]) == (600, 400, 100, 1100)
    assert (found["gpu_matched_to_runtime"], found["launch_before_kernel_violations"]) == (6, 0)
    assert list(found["per_stream"]) == ["0/7", "0/20"]
    assert found["base_time_ns"] == made.SESSION
    assert trace.ranks[0].devices == ("NVIDIA H100 80GB HBM3",)
    assert codes(trace)["reader-unverified"] == 1


def test_calls_copies_and_ranges_are_named_as_the_profiler_names_them(path: Path) -> None:
    trace = open_trace(path)
    assert names(trace, Category.RUNTIME)[:4] == ["cudaLaunchKernel", "cudaEventRecord", "cudaStreamWaitEvent", "cudaMemcpyAsync"]
    assert names(trace, Category.DRIVER) == ["cuLaunchKernel"] * 2
    assert names(trace, Category.MEMCPY) == ["Memcpy DtoH (Device -> Pageable)"] * 2
    assert sorted(set(names(trace, Category.SYNC))) == ["Context Sync", "Stream Wait Event"]
    assert names(trace, Category.ANNOTATION) == ["main", "ProfilerStep#0", "ProfilerStep#1"]
    assert next(t.label for t in trace.tracks if t.kind == "host") == "main"
    kernel = int(np.flatnonzero(trace.events.category == Category.KERNEL)[0])
    assert trace.strings[trace.text_arg("grid")[kernel]] == "[4, 2, 1]"
    wait = [i for i in np.flatnonzero(trace.events.category == Category.SYNC) if trace.name_of(int(i)) == "Stream Wait Event"][1]
    assert [trace.integer_arg(k)[wait] for k in ("stream", "wait_on_stream", "wait_on_cuda_event_record_corr_id")] == [20, 7, 12]


def test_steps_and_operators_from_ranges(path: Path) -> None:
    """Unnumbered steps count from 0; the operator of emit_nvtx launched the product: 2 x 8 x 16 x 16 FLOP."""
    trace = open_trace(path)
    assert list(zip(trace.steps.number.tolist(), trace.steps.start_ns.tolist(), trace.steps.dur_ns.tolist(), strict=True)) == [
        (0, 1000, 990),
        (1, 2000, 990),
    ]
    assert codes(trace)["steps-from-nvtx"] == 2
    assert names(trace, Category.CPU_OP) == ["aten::mm"] * 2
    operator = int(np.flatnonzero(trace.events.category == Category.CPU_OP)[0])
    assert json.loads(trace.strings[trace.text_arg("Input Dims")[operator]]) == [[8, 16], [16, 16]]
    assert trace.integer_arg("Sequence number")[operator] == 7
    _, table = build_graph(trace)
    assert Kind.GEMM in table.kind.tolist()
    assert 2.0 * 8 * 16 * 16 in table.flops.tolist()


def test_the_message_waits_for_the_product(path: Path) -> None:
    """Stream 20 waits for an event recorded on stream 7: the message begins 20 ns after the product; 300 ns more delay it by 280 or 300."""
    trace = open_trace(path)
    graph, _ = build_graph(trace)
    product, message = (int(np.flatnonzero(graph.event == row)[0]) for row in np.flatnonzero(trace.events.category == Category.KERNEL)[:2])
    before = replay(graph, graph.measured_s)
    assert before.step_s == pytest.approx(graph.measured_step_s, rel=1e-3)
    longer = graph.measured_s.copy()
    longer[product] += 300e-9
    after = replay(graph, longer)
    assert 279e-9 < after.start_s[message] - before.start_s[message] < 301e-9
    assert after.finish_s[product] <= after.start_s[message]


@pytest.mark.parametrize(
    ("texts", "want"),
    [
        (["step 7", "step 8"], [7, 8]),
        (["Iteration_3", "iteration_4"], [3, 4]),
        (["train_step", "train_step"], [0, 1]),
        (["ProfilerStep#5", "step 1"], [5]),  # the profiler's own marks are preferred
        (["stepwise", "my step", "optimizer.step"], []),
    ],
)
def test_which_ranges_are_steps(tmp_path: Path, texts: list[str], want: list[int]) -> None:
    tables = {**made.job(), "NVTX_EVENTS": [made.nvtx(text, 100 * at, 90, inline=True) for at, text in enumerate(texts)]}
    assert open_trace(made.write(tmp_path / "x.sqlite", tables)).steps.number.tolist() == want


def test_kernels_of_a_graph_launch_share_it_and_whole_graphs_are_said(tmp_path: Path) -> None:
    tables = made.job()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(made.call("cudaGraphLaunch_v10000", 3000, 20, 50))
    for at in range(3):
        tables["CUPTI_ACTIVITY_KIND_KERNEL"].append(made.kernel("relu", 3100 + 20 * at, 10, 7, 50, graphNodeId=900 + at))
    trace = open_trace(made.write(tmp_path / "node.sqlite", tables))
    assert facts(trace)[str(tmp_path / "node.sqlite")]["max_gpu_events_per_correlation"] == 3
    assert trace.integer_arg("graph node id")[trace.integer_arg("graph node id") > 0].tolist() == [900, 901, 902]
    tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [made.work(3200, 400, 7, 50, graphId=4)]
    trace = open_trace(made.write(tmp_path / "graph.sqlite", tables))
    assert codes(trace)["graph-opaque"] == 1
    assert facts(trace)[str(tmp_path / "graph.sqlite")]["compute_ns"] == 600 + 30 + 400


def test_several_processes_are_ranks(tmp_path: Path) -> None:
    """Two processes with the same correlation ids: work hangs on the launches of its own process."""
    tables = made.job()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] += [made.call("cudaLaunchKernel_v7000", 1500, 30, c, tid=77, pid=2000) for c in (1, 4, 11, 14)]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] += [made.kernel("relu", 1600 + 10 * c, 10, 7, c, pid=2000, device=1) for c in (1, 4, 11, 14)]
    trace = open_trace(made.write(tmp_path / "two.sqlite", tables))
    assert len(trace.ranks) == 2
    assert {(t.pid.split()[0], t.rank) for t in trace.tracks} == {("1234", 0), ("2000", 1)}
    assert facts(trace)[str(tmp_path / "two.sqlite")]["gpu_matched_to_runtime"] == 10
    assert codes(trace)["merged-ranks"] == 2


def test_an_old_schema_lacks_columns(tmp_path: Path) -> None:
    """What a version does not export is not known; a row without times is set aside and counted."""
    rows = [{"start": 10, "end": 20, "deviceId": 0, "streamId": 7, "correlationId": 1, "shortName": made.text("gemm")}]
    rows.append({**rows[0], "start": None})
    rows.append({**rows[0], "start": "soon"})
    trace = open_trace(made.write(tmp_path / "old.sqlite", {"CUPTI_ACTIVITY_KIND_KERNEL": rows}))
    assert names(trace, Category.KERNEL) == ["gemm"]
    assert codes(trace)["event-without-time"] == 2


@pytest.mark.parametrize(
    ("tables", "what", "fix"),
    [
        ({"NVTX_EVENTS": []}, "without CUDA activity", "--trace=cuda"),
        ({"rocpd_kernel_dispatch_1": []}, "rocprofv3", "torch.profiler"),
        ({"people": []}, "none of Nsight Systems.*people", "nsys export"),
    ],
)
def test_databases_of_others_are_refused_by_name(tmp_path: Path, tables: made.Rows, what: str, fix: str) -> None:
    with pytest.raises(UnreadableInput, match=what) as error:
        open_trace(made.write(tmp_path / "x.db", tables))
    assert fix in error.value.fix


def test_reports_and_archives_name_their_remedy(tmp_path: Path, path: Path) -> None:
    for name, content, fix in (
        ("a.nsys-rep", b"\x00\x01binary\xff" * 50, "nsys export --type sqlite"),
        ("a.pftrace", b"\x0a\x10\x00\x01" * 50, "traceconv json"),
        ("a.zip", b"PK\x03\x04" + b"\0" * 60, "unpack"),
        ("a.json", '{"traceEvents": []}'.encode("utf-16"), "UTF-8"),
        ("a.sqlite.gz", gzip.compress(path.read_bytes()), "gunzip"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnreadableInput) as error:
            open_trace(tmp_path / name)
        assert fix in error.value.fix, name


def test_a_damaged_database_is_refused_or_salvaged(path: Path) -> None:
    """Its last page overwritten, or the file cut: refused with the table; --salvage keeps what can be read and says what not."""
    raw = path.read_bytes()
    connection = sqlite3.connect(path)
    page = int(connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_MEMCPY'").fetchone()[0]) - 1
    size = int(connection.execute("PRAGMA page_size").fetchone()[0])
    connection.close()
    path.write_bytes(raw[: page * size] + b"\xff" * size + raw[(page + 1) * size :])
    with pytest.raises(UnreadableInput, match="MEMCPY breaks off") as error:
        open_trace(path)
    assert "--salvage" in error.value.fix
    trace = open_trace(path, salvage=True)
    assert (len(names(trace, Category.KERNEL)), len(names(trace, Category.MEMCPY))) == (4, 0)
    assert codes(trace)["salvaged"] == 1
    assert "MEMCPY" in next(note.text for note in trace.notes if note.code == "salvaged")
