"""Files that are no trace, ranks, joining, and what the tables of categories, lanes and names say."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.errors import Refused, UnreadableInput
from workbench.graph.build import build_graph
from workbench.trace.comm import comm, is_comm_name, suspects
from workbench.trace.open import open_trace
from workbench.trace.trace import Category, Trace


def record(name: str, cat: str | None, pid: Any, tid: Any, start: Any = 0, dur: Any = 1, **args: Any) -> dict[str, Any]:
    body = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur, "args": args}
    return body if cat is None else body | {"cat": cat}


def opened(folder: Path, *records: Any, name: str = "t.json", **top: Any) -> Trace:
    path = folder / name
    path.write_text(json.dumps({"distributedInfo": {"rank": 0}, **top, "traceEvents": list(records)}))
    return open_trace(path)


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"", "empty"),
        (b" \n\n ", "empty"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG"),
        (b"a,b,c\n1,2,3\n", "no JSON"),
        (b"\0\0\0\0\0\0", "binary"),
        ("{}".encode("utf-16"), "UTF-16"),
        (b"{}", "without traceEvents"),
        (b'{"schema": "1.0.2", "nodes": []}', "execution trace"),
        (b'{"traceEvents": 5}', "no JSON value"),
        (b"[1, 2, 3]", "no trace events"),
        (b'[{"a": 1}]', "no trace events"),
        (b'"text"', "no JSON"),
        (gzip.compress(b""), "empty"),
        (gzip.compress(b"<html>"), "HTML"),
        (b"\x1f\x8b", "truncated"),
        (b"\x1f\x8bgarbage garbage garbage", "damaged"),
        (b'{"traceEvents": []}{', "after the end"),
        (b'{"traceEvents": [' + b"[" * 5000, "nesting deeper"),
    ],
)
@pytest.mark.parametrize("salvage", [False, True])
def test_files_that_are_no_trace(tmp_path: Path, raw: bytes, what: str, salvage: bool) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(raw)
    if salvage and what in ("after the end", "nesting deeper"):
        assert len(open_trace(path, salvage=True).events) == 0
        return
    with pytest.raises(UnreadableInput, match=what) as error:
        open_trace(path, salvage=salvage)
    assert str(path) in error.value.where


def test_missing_directory_and_forbidden(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="does not exist"):
        open_trace(tmp_path / "none.json")
    with pytest.raises(UnreadableInput, match="directory"):
        open_trace(tmp_path)
    with pytest.raises(UnreadableInput, match="no file"):
        open_trace([])
    with pytest.raises(UnreadableInput, match=r"does not exist|not a path"):
        open_trace("a\0b")
    secret = tmp_path / "secret.json"
    secret.write_text("[]")
    secret.chmod(0)
    if not os.access(secret, os.R_OK):
        with pytest.raises(UnreadableInput, match="permission"):
            open_trace(secret)


def test_several_gzip_members_and_padding_are_one_file(tmp_path: Path) -> None:
    text = json.dumps([record("a", "cpu_op", 1, 1)]).encode()
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(text[:9]) + gzip.compress(text[9:]) + b"\0" * 512)
    assert len(open_trace(path).events) == 1


def test_an_unclosed_array_is_a_trace_with_a_note(tmp_path: Path) -> None:
    """The Chrome format allows the closing bracket to be missing, but a cut record is damage."""
    path = tmp_path / "x.json"
    path.write_text(json.dumps([record("a", "cpu_op", 1, 1)])[:-1] + ",\n")
    assert [n.code for n in open_trace(path).notes if n.code == "unclosed-array"] == ["unclosed-array"]
    path.write_text(path.read_text() + '{"ph": "X"')
    with pytest.raises(UnreadableInput):
        open_trace(path)


def test_salvage_goes_on_behind_the_damage_and_keeps_the_metadata(tmp_path: Path) -> None:
    good = [json.dumps(record(f"e{i}", "cpu_op", 1, 1, i, x=[{"k": i}])) for i in range(5)]
    good[2] = good[2].replace('"e2"', '"e"2"')
    path = tmp_path / "x.json"
    path.write_text('{"traceEvents": [' + ", ".join(good[:4]) + " " + good[4] + '], "distributedInfo": {"rank": 4, "world_size": 8}}')
    trace = open_trace(path, salvage=True)
    assert [trace.name_of(i) for i in range(len(trace.events))] == ["e0", "e1", "e3", "e4"]
    assert [(n.code, n.count) for n in trace.notes if n.code == "salvaged"] == [("salvaged", 2)]
    assert (trace.ranks[0].rank, trace.ranks[0].world_size) == (4, 8)


def test_bad_times_are_set_aside_and_said(tmp_path: Path) -> None:
    bad = [record("a", "cpu_op", 1, 1, start=s, dur=d) for s, d in ((None, 1), ("x", 1), ("1e300", 1), (1, None), (True, 1), ([1], 1))]
    trace = opened(tmp_path, *bad, record("fine", "cpu_op", 1, 1, "5.5", "1"))
    assert [trace.name_of(i) for i in range(len(trace.events))] == ["fine"]
    counts = {n.code: n.count for n in trace.notes}
    assert (counts["event-without-time"], counts["event-without-duration"], counts["time-out-of-range"]) == (4, 1, 1)


def test_ranks_given_must_fit(tmp_path: Path) -> None:
    opened(tmp_path, record("a", "cpu_op", 1, 1))
    path = tmp_path / "t.json"
    for ranks in ([0, 1], [-1]):
        with pytest.raises(Refused, match="ranks"):
            open_trace([path], ranks=ranks)
    with pytest.raises(Refused, match="both files are rank 2"):
        open_trace([path, path], ranks=[2, 2])
    assert open_trace(path, ranks=[5]).ranks[0].rank == 5


def test_the_rank_changes_the_digest_of_a_joined_trace(tmp_path: Path) -> None:
    opened(tmp_path, record("a", "cpu_op", 1, 1))
    path = tmp_path / "t.json"
    one, two = open_trace([path, path], ranks=[0, 1]), open_trace([path, path], ranks=[1, 0])
    three = open_trace([path, path], ranks=[0, 2])
    assert len({one.digest, two.digest, three.digest, open_trace(path).digest}) == 4
    assert open_trace([path, path], ranks=[0, 1]).digest == one.digest


def test_joined_files_keep_every_column(tmp_path: Path) -> None:
    """Joining is concatenation with renumbered text, tracks, rows and parents."""
    a = opened(tmp_path, record("op", "cpu_op", 1, 1, 0, 9, text="x"), record("in", "cpu_op", 1, 1, 2, 3, other="y"), name="a.json")
    b = opened(tmp_path, record("in", "cpu_op", 1, 5, 0, 9, text="y"), record("op", "cpu_op", 1, 5, 1, 2, text="z"), name="b.json")
    both = open_trace([tmp_path / "a.json", tmp_path / "b.json"], ranks=[0, 1])
    assert [both.name_of(i) for i in range(4)] == ["op", "in", "in", "op"]
    assert both.events.parent.tolist() == [-1, 0, -1, 2]
    assert [both.tracks[t].tid for t in both.events.track] == ["1", "1", "5", "5"]
    assert [both.tracks[t].rank for t in both.events.track] == [0, 0, 1, 1]
    text = both.text_arg("text")
    assert [both.strings[i] if i >= 0 else None for i in text] == ["x", None, "y", "z"]
    assert len(a.events) + len(b.events) == len(both.events)


def test_a_base_missing_in_one_file_is_said(tmp_path: Path) -> None:
    opened(tmp_path, record("a", "cpu_op", 1, 1), name="a.json", baseTimeNanoseconds=10)
    opened(tmp_path, record("a", "cpu_op", 1, 1), name="b.json")
    trace = open_trace([tmp_path / "a.json", tmp_path / "b.json"], ranks=[0, 1])
    assert [n.where for n in trace.notes if n.code == "base-time-missing"] == [str(tmp_path / "b.json")]


def test_device_lanes_without_arguments(tmp_path: Path) -> None:
    """Device and stream come from the arguments, else from the lane's numbers and names."""
    names = [
        {"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "MTIA 4"}},
        {"ph": "M", "name": "thread_name", "pid": 9, "tid": 88, "args": {"name": "stream 6 compute"}},
    ]
    trace = opened(
        tmp_path,
        *names,
        record("a", "kernel", 2, "stream 7"),
        record("b", "mtia_ccp_events", 9, 88),
        record("c", "kernel", 0, 3, device=1, stream=20),
        record("d", "kernel", 0, 3, device=1, stream=21),
    )
    lane = {trace.name_of(i): (trace.tracks[t].device, trace.tracks[t].stream) for i, t in enumerate(trace.events.track)}
    assert lane == {"a": (2, 7), "b": (4, 6), "c": (1, 20), "d": (1, 21)}
    assert {t.kind for t in trace.tracks} == {"device"}


def test_unknown_categories_are_kept_and_named(tmp_path: Path) -> None:
    trace = opened(tmp_path, record("a", "brand_new", 1, 1))
    assert trace.events.category.tolist() == [Category.OTHER]
    assert "brand_new" in next(n.text for n in trace.notes if n.code == "unknown-category")


def test_the_last_of_a_repeated_argument_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"ph":"X","name":"a","ts":1,"dur":2,"args":{"k":1,"k":2,"big":123456789012345678901234,"h":null}}]')
    trace = open_trace(path)
    assert trace.integer_arg("k").tolist() == [2]
    assert trace.strings[trace.text_arg("big")[0]] == "123456789012345678901234"
    assert trace.strings[trace.text_arg("h")[0]] == "null"


def test_arrays_are_read_only(tmp_path: Path) -> None:
    trace = opened(tmp_path, record("a", "kernel", 0, 7, correlation=1))
    for array in (
        *(getattr(trace.events, n) for n in trace.events.__slots__),
        trace.args["correlation"].value,
        trace.steps.number,
        trace.flows.id,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", True),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t", True),
        ("void rcclGenericKernel<1, false>(ncclDevComm*)", True),
        ("hcom_allReduce__445_2", True),
        ("void vllm::cross_device_reduce_1stage<float, 8>", True),
        ("gemm_without_ncclComm_dependency_bf16", False),
        ("void at::native::reduce_kernel<512, 1>", False),
        ("void (anonymous namespace)::elementwise_kernel_with_index", False),
    ],
)
def test_communication_names(name: str, expected: bool) -> None:
    assert is_comm_name(name) is expected


def test_unknown_communication_is_listed_not_guessed(tmp_path: Path) -> None:
    kernels = [
        record("acme_AllReduce_x", "kernel", 0, 7, 0, 5),
        record("acme_ring", "kernel", 0, 7, 9, 5, **{"Collective name": "allreduce"}),
    ]
    trace = opened(tmp_path, *kernels)
    assert comm(trace).tolist() == [False, True]
    assert suspects(trace, comm(trace)) == {"acme_AllReduce_x": 5000}
    note = next(n for n in build_graph(trace)[0].notes if n.code == "unknown-communication")
    assert (note.count, "acme_AllReduce_x" in note.text) == (1, True)


def test_steps_recorded_as_operators(tmp_path: Path) -> None:
    """2021 recordings mark steps by operators; a mark on a device lane never counts."""
    trace = opened(
        tmp_path, record("ProfilerStep#7", "Operator", 1, 1, 0, 50), record("ProfilerStep#7", "gpu_user_annotation", 0, 7, 9, 50)
    )
    assert (trace.steps.number.tolist(), trace.steps.dur_ns.tolist()) == ([7], [50_000])
    assert np.array_equal(trace.steps.event, [0])


def test_merged_ranks_by_what_they_launched(tmp_path: Path) -> None:
    """Device process 0 runs six launches, which only host process 20 made; device process 1 is then host process 10's."""
    records = []
    for host, device, count in ((10, 1, 4), (20, 0, 6)):
        for i in range(count):
            records.append(record("cudaLaunchKernel", "cuda_runtime", host, 1, 10 * i, 2, correlation=i))
            records.append(record("k", "kernel", device, 7, 10 * i + 5, 2, correlation=i, device=0, stream=7))
    trace = opened(tmp_path, *records, distributedInfo={})
    assert {t.pid: t.rank for t in trace.tracks} == {"10": 0, "1": 0, "20": 1, "0": 1}
    assert [(r.rank, r.stated) for r in trace.ranks] == [(0, False), (1, False)]


def test_processes_of_one_rank_stay_one_rank(tmp_path: Path) -> None:
    """Two processes with ids of their own are no merged ranks."""
    records = [record("cudaLaunchKernel", "cuda_runtime", pid, 1, i, 1, correlation=1000 * pid + i) for pid in (1, 2) for i in range(5)]
    assert {t.rank for t in opened(tmp_path, *records).tracks} == {0}
