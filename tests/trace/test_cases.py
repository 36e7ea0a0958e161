"""Each handed situation from a public bug report behaves as its README.tsv says (the rows that are about reading a file)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workbench.errors import Refused, UnreadableInput
from workbench.trace.clean import clean
from workbench.trace.facts import facts
from workbench.trace.open import open_trace
from workbench.trace.steps import complete_steps
from workbench.trace.trace import Category, Trace


@pytest.fixture(scope="session")
def traces(shared: Path) -> Path:
    return shared / "cases" / "traces"


@pytest.fixture(scope="session")
def field(shared: Path) -> Path:
    return shared / "cases" / "field"


def count(trace: Trace, category: Category) -> int:
    return int((trace.events.category == category).sum())


def codes(trace: Trace) -> dict[str, int]:
    return {note.code: note.count for note in trace.notes}


def rows(trace: Trace, name: str) -> np.ndarray:
    return np.flatnonzero([trace.strings[i] == name for i in trace.events.name])


@pytest.mark.parametrize(
    ("name", "offset", "whole"),
    [("truncated.json", 2865, 12), ("truncated_gzip.json.gz", 2060, 8), ("unescaped_quotes.json", 1753, 7), ("bad_escape.json", 1749, 7)],
)
def test_damage_is_an_error_with_its_byte(traces: Path, name: str, offset: int, whole: int) -> None:
    with pytest.raises(UnreadableInput) as error:
        open_trace(traces / name)
    text = str(error.value)
    assert name in text
    assert f"byte {offset} (line " in text
    assert f"after {whole} whole records" in text
    assert "--salvage" in error.value.fix
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "events", "kernels"), [("truncated.json", 12, 3), ("unescaped_quotes.json", 7, 2), ("bad_escape.json", 7, 2)]
)
def test_salvage_keeps_what_is_whole_and_counts_the_rest(traces: Path, name: str, events: int, kernels: int) -> None:
    trace = open_trace(traces / name, salvage=True)
    assert len(trace.events) == events
    assert count(trace, Category.KERNEL) == kernels
    note = next(n for n in trace.notes if n.code == "salvaged")
    assert note.count == 1
    assert "at byte" in note.text


def test_truncated_gzip_salvages_what_inflates(traces: Path) -> None:
    trace = open_trace(traces / "truncated_gzip.json.gz", salvage=True)
    assert len(trace.events) == 8
    assert codes(trace)["salvaged"] == 1
    with pytest.raises(UnreadableInput, match="gzip stream is truncated"):
        open_trace(traces / "truncated_gzip.json.gz")


@pytest.mark.parametrize(("name", "offset", "whole", "kept"), [("01_truncated.json", 665, 4, 4), ("01_backslash.json", 383, 2, 4)])
def test_field_01_integrity(field: Path, name: str, offset: int, whole: int, kept: int) -> None:
    with pytest.raises(UnreadableInput, match=rf"byte {offset} \(line \d+, column \d+\), after {whole} whole records"):
        open_trace(field / name)
    trace = open_trace(field / name, salvage=True)
    assert len(trace.events) == kept
    assert codes(trace)["salvaged"] == 1


def test_bare_inf_counts_as_missing(traces: Path) -> None:
    trace = open_trace(traces / "bare_inf.json")
    assert (count(trace, Category.KERNEL), count(trace, Category.MEMCPY)) == (2, 1)
    copy = int(np.flatnonzero(trace.events.category == Category.MEMCPY)[0])
    assert trace.events.dur_ns[copy] == 0
    assert "memory bandwidth (GB/s)" not in trace.args
    assert trace.integer_arg("bytes")[copy] == 200
    assert codes(trace)["missing-value"] == 1


@pytest.mark.parametrize("name", ["meta_only.json", "empty_events.json"])
def test_a_trace_without_events_is_empty_and_says_so(traces: Path, name: str) -> None:
    trace = open_trace(traces / name)
    assert len(trace.events) == 0
    assert codes(trace) == {"no-events": 1}
    found = facts(trace)[str(traces / name)]
    assert found["span_ns"] == found["busy_ns"] == found["gpu_span_ns"] == 0
    assert len(clean(trace).events) == 0


@pytest.mark.parametrize(
    "name", ["bom_crlf.json", "plain_named_gz.json.gz", "gz_named_json.json", "control_char.json", "python_stack.json"]
)
def test_content_decides(traces: Path, name: str) -> None:
    assert count(open_trace(traces / name), Category.KERNEL) == 2


def test_string_times_are_exact(traces: Path) -> None:
    trace = open_trace(traces / "string_ts.json")
    (first,), (second,) = rows(trace, "MatMulV2"), rows(trace, "Add")
    e = trace.events
    assert e.start_ns[second] - e.start_ns[first] - e.dur_ns[first] == 0
    assert e.start_ns[first] == 1704161511420400001
    assert (e.category[[first, second]] == Category.KERNEL).all()
    assert e.track[first] == e.track[second]
    assert trace.tracks[e.track[first]].stream == 3
    assert codes(trace).get("same-stream-overlap") is None


def test_display_unit_is_only_a_hint(traces: Path) -> None:
    path = traces / "display_unit_ns.json"
    found = facts(open_trace(path))[str(path)]
    assert (found["total_kernel_dur_ns"], found["displayTimeUnit"]) == (2 * 38_000, "ns")


def test_base_times_are_added(traces: Path) -> None:
    trace = open_trace([traces / "base_time_rank0.json", traces / "base_time_rank1.json"])
    kernels = np.flatnonzero(trace.events.category == Category.KERNEL)
    rank = np.array([t.rank for t in trace.tracks])[trace.events.track[kernels]]
    absolute = trace.events.start_ns[kernels] + np.array([r.base_time_ns for r in trace.ranks])[rank]
    assert (absolute[rank == 1] - absolute[rank == 0]).tolist() == [3_000_000_000] * 2
    assert absolute[0] == 1700000000000000000 + 1010 * 1000


def test_negative_durations_count_as_zero(traces: Path) -> None:
    path = str(traces / "negative_dur.json")
    trace = open_trace(path)
    assert trace.events.dur_ns.min() == -1000  # raw facts stay raw
    assert codes(trace)["negative-duration"] == 1
    assert facts(clean(trace))[path]["total_kernel_dur_ns"] == 76_000


def test_zero_durations_are_kept(traces: Path) -> None:
    trace = open_trace(traces / "zero_dur.json")
    assert count(trace, Category.KERNEL) == 3
    assert (trace.events.parent != np.arange(len(trace.events))).all()


def test_graph_launch_and_orphan_and_early_kernels_are_kept(traces: Path) -> None:
    graph = open_trace(traces / "graph_launch.json")
    assert count(graph, Category.KERNEL) == 3
    assert sorted(t.stream for t in graph.tracks if t.kind == "device") == [7, 8]
    assert count(open_trace(traces / "orphan_kernel.json"), Category.KERNEL) == 3
    path = str(traces / "kernel_before_launch.json")
    assert facts(open_trace(path))[path]["launch_before_kernel_violations"] == 1


def test_half_flows_give_the_correlation(traces: Path) -> None:
    path = str(traces / "half_flow.json")
    trace = open_trace(path)
    assert facts(trace)[path]["gpu_matched_to_runtime"] == 2
    assert codes(trace)["correlation-from-flow"] == 2


def test_legacy_2021(traces: Path) -> None:
    path = str(traces / "legacy_2021.json")
    trace = open_trace(path)
    assert facts(trace)[path]["per_stream"] == {"0/7": {"kernel": 1, "memcpy": 0, "memset": 1, "dur_ns": 11_000}}
    assert trace.strings[trace.text_arg("Input dims")[0]] == "[[1,3,8,8]]"
    assert trace.events.external_id.tolist() == [1, 1, -1, -1]


def test_merged_ranks_are_told_apart(traces: Path) -> None:
    trace = open_trace(traces / "merged_ranks.json")
    assert count(trace, Category.KERNEL) == 4
    rank = {t.pid: t.rank for t in trace.tracks}
    assert rank == {"100": 0, "0": 0, "1100": 1, "1000": 1}
    assert trace.steps.rank.tolist() == [0, 1]
    assert codes(trace)["merged-ranks"] == 2


def test_overflown_durations_are_raw_until_cleaned(traces: Path) -> None:
    path = str(traces / "overflow_dur.json")
    trace = open_trace(path)
    assert facts(trace)[path]["busy_ns"] == 1_600_000_000
    assert facts(trace)[path]["same_stream_overlaps"] == 2
    assert codes(trace)["overflow-duration"] == 1
    assert facts(clean(trace))[path]["busy_ns"] == 88_000


def test_steps_are_counted_once(traces: Path) -> None:
    trace = open_trace(traces / "steps_twice.json")
    assert list(zip(trace.steps.number.tolist(), trace.steps.dur_ns.tolist(), strict=True)) == [(5, 300_000), (6, 50_000)]
    assert count(trace, Category.KERNEL) == 2


@pytest.mark.parametrize(("folder", "name"), [("traces", "no_steps.json"), ("field", "13_no_step_marks.json")])
def test_no_step_marks_is_said(shared: Path, folder: str, name: str) -> None:
    trace = open_trace(shared / "cases" / folder / name)
    assert len(trace.steps) == 0
    assert codes(trace)["no-step-marks"] == 1


def test_synchronisation_is_neither_kernel_nor_busy(traces: Path, field: Path) -> None:
    path = str(field / "14_sync_is_not_work.json")
    found = facts(open_trace(path))[path]
    got = [found[key] for key in ("compute_ns", "comm_ns", "exposed_comm_ns", "comm_overlap_compute_ns", "idle_ns")]
    assert got == [100_000, 300_000, 300_000, 0, 0]
    assert count(open_trace(traces / "event_sync_records.json"), Category.SYNC) == 1


def test_duplicate_ranks_are_refused_by_name(traces: Path) -> None:
    paths = [traces / "dup_rank_a.json", traces / "dup_rank_b.json"]
    with pytest.raises(Refused, match=r"dup_rank_a\.json.*dup_rank_b\.json.*rank 3.*--ranks"):
        open_trace(paths)
    assert [r.rank for r in open_trace(paths, ranks=[0, 3]).ranks] == [0, 3]


def test_rank_from_the_name(traces: Path, field: Path) -> None:
    trace = open_trace(traces / "worker7-rank12.norank.json")
    assert (trace.ranks[0].rank, trace.ranks[0].stated, codes(trace)["rank-assumed"]) == (12, False, 1)
    paths = [field / "07_no_rank.a.json", field / "07_no_rank.b.json"]
    assert open_trace(paths[0]).ranks[0].rank == 0
    with pytest.raises(Refused, match=r"07_no_rank\.a\.json.*07_no_rank\.b\.json.*--ranks"):
        open_trace(paths)
    assert [r.rank for r in open_trace(paths, ranks=[1, 0]).ranks] == [1, 0]


def test_a_missing_peer_does_not_matter_here(traces: Path) -> None:
    trace = open_trace(traces / "missing_peer_rank0.json")
    assert (trace.ranks[0].rank, trace.ranks[0].world_size) == (0, 4)
    assert count(trace, Category.KERNEL) == 1


def test_jax_like(traces: Path) -> None:
    trace = open_trace(traces / "jax_like.json.gz")
    (kernel,) = np.flatnonzero(trace.events.category == Category.KERNEL)
    (call,) = np.flatnonzero(trace.events.category == Category.RUNTIME)
    assert trace.events.dur_ns[kernel] == 4250
    assert trace.tracks[trace.events.track[kernel]].stream == 3
    assert trace.events.correlation[kernel] == trace.events.correlation[call] == 11
    assert trace.name_of(int(call)) == "cuLaunchKernel"


def test_submicrosecond_kernels(field: Path) -> None:
    path = str(field / "04_submicrosecond.json")
    trace = open_trace(path)
    assert facts(trace)[path]["total_kernel_dur_ns"] == 1000
    assert trace.events.dur_ns.min() >= 0


def test_communication_by_arguments_then_names(field: Path) -> None:
    path = str(field / "09_comm_names.json")
    found = facts(open_trace(path))[path]
    assert (found["comm_kernels_by_args"], found["comm_ns_by_args"], found["compute_ns_by_args"]) == (5, 500_000, 100_000)


def test_steps_that_lost_their_kernels_are_named(field: Path, shared: Path) -> None:
    """The exporter stopped at its cap: of three steps the last has launches without kernels."""
    trace = open_trace(field / "03_event_cap.json")
    assert trace.steps.number.tolist() == [0, 1, 2]
    assert complete_steps(trace).tolist() == [True, True, False]
    note = next(n for n in trace.notes if n.code == "incomplete-step")
    assert (note.count, "step 2 " in note.text) == (1, True)
    assert complete_steps(open_trace(shared / "traces" / "a100_ddp_six_steps.json.gz")).all()


def test_odd_records_are_accepted_and_counted(field: Path) -> None:
    path = str(field / "40_odd_records.json")
    trace = open_trace(path)
    found = facts(trace)[path]
    assert (found["kernels"], found["gpu_matched_to_runtime"], found["x_without_dur"]) == (1, 1, 1)
    assert (codes(trace)["event-without-duration"], codes(trace)["empty-record"]) == (1, 1)


def test_every_other_case_opens(shared: Path) -> None:
    """Whatever the rest is about, the file itself reads without an error."""
    broken = {
        "truncated.json",
        "truncated_gzip.json.gz",
        "unescaped_quotes.json",
        "bad_escape.json",
        "01_truncated.json",
        "01_backslash.json",
    }
    for path in sorted((shared / "cases").glob("*/*.json*")):
        if path.name not in broken:
            open_trace(path)
