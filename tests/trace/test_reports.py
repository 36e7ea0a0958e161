"""Situations beside the handed ones, as users of trace viewers and profilers meet them; each small, made here, with the right behaviour."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import Refused, UnreadableInput
from workbench.trace.facts import facts
from workbench.trace.open import open_trace
from workbench.trace.trace import Category, Trace


def row(ph: str, name: str | None, ts: Any, pid: Any = 0, tid: Any = 7, **more: Any) -> dict[str, Any]:
    named = {} if name is None else {"name": name}
    return {"ph": ph, **named, "ts": ts, "pid": pid, "tid": tid, **more}


def kernel(name: str, ts: Any, dur: Any, pid: Any = 0, tid: Any = 7, **more: Any) -> dict[str, Any]:
    return row("X", name, ts, pid, tid, dur=dur, **{"cat": "kernel", **more})


def opened(folder: Path, document: Any, **options: Any) -> Trace:
    (folder / "x.json").write_text(json.dumps(document))
    return open_trace(folder / "x.json", **options)


def codes(trace: Trace) -> dict[str, int]:
    return {note.code: note.count for note in trace.notes}


def spans(trace: Trace) -> list[tuple[str, int, int]]:
    e = trace.events
    return [(trace.name_of(i), int(e.start_ns[i]), int(e.dur_ns[i])) for i in range(len(e))]


def test_begins_and_ends_are_events(tmp_path: Path) -> None:
    """Horovod, NPKit and simulators write B and E. Lanes do not mix, nesting holds, an end without a name closes the innermost."""
    rows = [
        row("B", "outer", 0, cat="kernel", args={"device": 0, "stream": 7, "a": 1}), row("B", "inner", 2, cat="kernel"),
        row("B", "other", 3, tid=8, cat="kernel"), row("E", None, 5, args={"b": 2}), row("E", "outer", 9, args={"b": 3, "a": 4}),
        row("E", "other", 30, tid=8),
    ]  # fmt: skip
    trace = opened(tmp_path, rows)
    assert spans(trace) == [("outer", 0, 9000), ("inner", 2000, 3000), ("other", 3000, 27000)]
    assert trace.integer_arg("b").tolist() == [3, 2, -1], "arguments of both records are the event's"
    assert trace.integer_arg("a").tolist() == [4, -1, -1]
    assert trace.events.parent.tolist() == [-1, 0, -1]
    assert "unpaired-event" not in codes(trace)


def test_begins_in_any_order_of_the_file(tmp_path: Path) -> None:
    """The format does not ask for an order; at one moment the order of the file decides."""
    rows = [row("E", None, 9), row("B", "b", 9, cat="kernel"), row("E", None, 12), row("B", "a", 1, cat="kernel")]
    assert sorted(spans(opened(tmp_path, rows))) == [("a", 1000, 8000), ("b", 9000, 3000)]


def test_begins_without_an_end_are_counted(tmp_path: Path) -> None:
    """A profiler killed in the middle: what has no partner is no event of any length."""
    rows = [row("B", "lost", 0, cat="kernel"), row("B", "a", 1, cat="kernel"), row("E", "a", 3), row("E", "never begun", 4)]
    trace = opened(tmp_path, rows)
    assert spans(trace) == [("a", 1000, 2000)]
    assert codes(trace)["unpaired-event"] == 2


def test_an_array_that_ends_in_a_comma(tmp_path: Path) -> None:
    """Written record by record, never closed: Chrome reads it."""
    (tmp_path / "x.json").write_text("[\n" + "".join(json.dumps(kernel("k", 10 * i, 3)) + ",\n" for i in range(3)))
    trace = open_trace(tmp_path / "x.json")
    assert len(trace.events) == 3
    assert codes(trace)["unclosed-array"] == 1


@pytest.mark.parametrize("more", [{"cat": "compute"}, {"cat": ""}])
def test_lanes_named_by_their_numbers_alone(tmp_path: Path, more: dict[str, Any]) -> None:
    """A simulator writes pid "NPU 1", tid "stream 2" and categories of its own: that is device work, and it is said why."""
    rows = [kernel("k", 10 * i, 3, "NPU 1", "stream 2", **more) for i in range(3)] + [row("X", "loop", 0, "host", "main", dur=40, **more)]
    trace = opened(tmp_path, {"traceEvents": rows})
    found = facts(trace)[str(tmp_path / "x.json")]
    assert (found["kernels"], found["busy_ns"]) == (3, 9000)
    assert [(t.kind, t.device, t.stream) for t in trace.tracks if t.kind == "device"] == [("device", 1, 2)]
    assert codes(trace).get("category-by-lane", 0) == (3 if more["cat"] else 0)


def test_unknown_categories_beside_known_work_are_no_work(tmp_path: Path) -> None:
    """A new label of the profiler on a stream must not count twice."""
    names = [{"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}}]
    names.append({"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}})
    trace = opened(tmp_path, [*names, kernel("k", 0, 3, args={"device": 0, "stream": 7}), kernel("label", 0, 9, cat="gpu_new_label")])
    assert facts(trace)[str(tmp_path / "x.json")]["busy_ns"] == 3000
    assert codes(trace)["unknown-category"] == 1


def test_lists_of_categories(tmp_path: Path) -> None:
    """Chrome's categories are lists with commas."""
    trace = opened(tmp_path, [kernel("k", 0, 3, cat="gpu,kernel"), row("X", "op", 0, 1, 1, dur=5, cat="cpu_op,x")])
    assert trace.events.category.tolist() == [Category.KERNEL, Category.CPU_OP]
    assert "unknown-category" not in codes(trace)


def test_a_gzip_without_its_trailer(tmp_path: Path) -> None:
    """The JSON is whole, its checksum is not there: refused, salvaged whole."""
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(json.dumps([kernel("k", 1, 3)]).encode())[:-8])
    with pytest.raises(UnreadableInput, match="gzip stream is truncated"):
        open_trace(path)
    trace = open_trace(path, salvage=True)
    assert (len(trace.events), codes(trace)["salvaged"]) == (1, 1)


@pytest.mark.parametrize(("said", "rank", "stated"), [("3", 3, True), (-1, 0, False), (None, 0, False), ("x", 0, False), (True, 0, False)])
def test_ranks_of_odd_types(tmp_path: Path, said: object, rank: int, stated: bool) -> None:
    """Launchers write -1 or nothing where no group was made; then the rank is assumed, and said to be."""
    trace = opened(tmp_path, {"distributedInfo": {"rank": said}, "traceEvents": [kernel("k", 1, 3)]})
    assert (trace.ranks[0].rank, trace.ranks[0].stated) == (rank, stated)
    assert ("rank-assumed" in codes(trace)) is not stated


def test_a_rank_beside_its_compressed_copy(tmp_path: Path) -> None:
    document = json.dumps({"distributedInfo": {"rank": 2}, "traceEvents": [kernel("k", 1, 3)]}).encode()
    (tmp_path / "rank2.json").write_bytes(document)
    (tmp_path / "rank2.json.gz").write_bytes(gzip.compress(document))
    with pytest.raises(Refused, match=r"rank2\.json, .*rank2\.json\.gz: both files are rank 2"):
        open_trace(tmp_path)


def test_steps_whose_numbers_begin_anew(tmp_path: Path) -> None:
    """A schedule that repeats: both windows are steps, in time order."""
    marks = [row("X", f"ProfilerStep#{n}", ts, 1, 1, dur=50, cat="user_annotation") for n, ts in ((5, 0), (6, 50), (5, 200), (6, 250))]
    steps = opened(tmp_path, [*marks, kernel("k", 3, 3)]).steps
    assert (steps.number.tolist(), steps.start_ns.tolist()) == ([5, 6, 5, 6], [0, 50_000, 200_000, 250_000])


def test_ids_that_mean_none(tmp_path: Path) -> None:
    """2**64 - 1 and 2**32 - 1 are how profilers write "none": nothing hangs on them."""
    none = {"correlation": 2**64 - 1, "External id": 2**64 - 1}
    rows = [kernel("k", 10 * i, 3, args={**none, "device": 0, "stream": 7}) for i in range(2)]
    rows += [row("X", "cudaLaunchKernel", 10 * i, 1, 1, dur=3, cat="cuda_runtime", args=none) for i in range(2)]
    trace = opened(tmp_path, rows)
    assert facts(trace)[str(tmp_path / "x.json")]["gpu_with_correlation"] == 0
    assert trace.events.external_id.tolist() == [-1] * 4


def test_times_in_exponents_are_exact(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1.704161511420400001e15,"dur":25E-1}]')
    assert spans(open_trace(tmp_path / "x.json")) == [("a", 1704161511420400001, 2500)]


@pytest.mark.parametrize(
    ("name", "text", "what", "fix"),
    [
        ("communication.json", '{"step3": {"p2p": {}, "collective": {}}}', "account of messages of an Ascend", "trace_view.json"),
        ("step_trace_time.csv", "Step,Computing,Communication(Not Overlapped)\n3,1,2\n", "account of steps", "trace_view.json"),
        ("results.json", '{"rocprofiler-sdk-tool": [{}]}', "rocprofv3", "export_chrome_trace"),
        ("memory.json", '{"segments": [], "device_traces": []}', "memory snapshot", "torch.profiler"),
        ("stats.csv", "Time (%),Total Time (ns),Instances\n1,2,3\n", "statistic of Nsight", "nsys export"),
    ],
)  # fmt: skip
def test_what_lies_beside_a_trace_is_named(tmp_path: Path, name: str, text: str, what: str, fix: str) -> None:
    """Someone gives the summary instead of the recording: the message says which file to give."""
    (tmp_path / name).write_text(text)
    with pytest.raises(UnreadableInput, match=what) as error:
        open_trace(tmp_path / name)
    assert fix in error.value.fix
