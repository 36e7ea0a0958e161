"""Every handed trace case through ``workbench inspect``: what its README says is in the answer, or the refusal says why."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from workbench.cli import cli
from workbench.errors import WorkbenchError

TWO = {"kernels": 2, "busy_ns": 76_000, "gpu_matched_to_runtime": 2}
# file (several with a space) -> facts and notes the README asks for, or the words of the refusal
TRACES: dict[str, dict[str, Any] | str] = {
    "truncated.json": "byte 2865.*after 12 whole records.*--salvage",
    "truncated_gzip.json.gz": "truncated.*--salvage",
    "bare_inf.json": {"kernels": 2, "memcpy": 1, "notes": {"missing-value"}},
    "unescaped_quotes.json": r"byte \d+ \(line \d+, column \d+\).*--salvage",
    "bad_escape.json": r"escape.*byte \d+ \(line \d+, column \d+\).*--salvage",
    "meta_only.json": {"kernels": 0, "notes": {"no-events"}},
    "empty_events.json": {"kernels": 0, "notes": {"no-events"}},
    "bom_crlf.json": TWO,
    "plain_named_gz.json.gz": TWO,
    "gz_named_json.json": TWO,
    "string_ts.json": {"kernels": 2, "same_stream_overlaps": 0, "busy_ns": 6120},
    "display_unit_ns.json": {"total_kernel_dur_ns": 76_000},
    "base_time_rank0.json base_time_rank1.json": {"kernels": 2, "base_time_ns": 1700000000000000000},
    "negative_dur.json": {"neg_dur": 1, "notes": {"negative-duration"}},
    "zero_dur.json": {"kernels": 3, "notes": set()},
    "graph_launch.json": {"kernels": 3, "gpu_matched_to_runtime": 3, "streams": ["0/7", "0/8"]},
    "orphan_kernel.json": {"kernels": 3, "notes": {"orphan-kernel"}},
    "kernel_before_launch.json": {"kernels": 2, "launch_before_kernel_violations": 1, "notes": {"kernel-before-launch"}},
    "half_flow.json": {"gpu_matched_to_runtime": 2},
    "legacy_2021.json": {"kernels": 1, "memset": 1, "streams": ["0/7"]},
    "merged_ranks.json": {"kernels": 4, "gpu_matched_to_runtime": 4, "notes": {"merged-ranks"}},
    "overflow_dur.json": {"busy_ns": 1_600_000_000, "notes": {"overflow-duration"}},
    "same_ts.json": {"kernels": 1, "events": 5},
    "unsorted.json": {"kernels": 4, "profiler_steps": [[5, 500_000]]},
    "python_stack.json": TWO,
    "steps_twice.json": {"kernels": 2, "profiler_steps": [[5, 300_000], [6, 50_000]]},
    "no_steps.json": {"kernels": 3, "gpu_span_ns": 118_000, "notes": {"no-step-marks"}},
    "event_no_sync_records.json": {"kernels": 3, "notes": {"event-inferred"}},
    "event_sync_records.json": {"kernels": 2, "busy_ns": 150_000},
    "two_waits.json": {"kernels": 3},
    "device_sync_no_records.json": {"busy_ns": 900_000, "idle_ns": 0, "notes": {"sync-inferred"}},
    "clock_skew_rank0.json clock_skew_rank1.json": {"kernels": 4, "notes": {"clocks-aligned"}},
    "missing_peer_rank0.json": {"comm_ns": 120_000, "notes": {"missing-peers"}},
    "dup_rank_a.json dup_rank_b.json": "dup_rank_a.*dup_rank_b.*rank 3.*--ranks",
    "worker7-rank12.norank.json": {"kernels": 2, "notes": {"rank-assumed"}},
    "jax_like.json.gz": {"kernels": 1, "busy_ns": 4250, "gpu_matched_to_runtime": 1},
    "control_char.json": TWO,
}
FIELD: dict[str, dict[str, Any] | str] = {
    "01_truncated.json": "byte 665.*after 4 whole records",
    "01_backslash.json": "byte 383",
    "03_event_cap.json": {"notes": {"incomplete-step"}},
    "04_submicrosecond.json": {"total_kernel_dur_ns": 1000, "neg_dur": 0},
    "06_clock_offset.rank0.json 06_clock_offset.rank1.json": {"notes": {"clocks-aligned"}},
    "07_no_rank.a.json": {"notes": {"rank-assumed"}},
    "07_no_rank.a.json 07_no_rank.b.json": r"07_no_rank\.a.*07_no_rank\.b.*--ranks",
    "09_comm_names.json": {"comm_kernels_by_args": 5, "comm_ns_by_args": 500_000, "compute_ns_by_args": 100_000},
    "11_graph_launch.json": {"kernels": 3, "gpu_matched_to_runtime": 3},
    "13_no_step_marks.json": {"busy_ns": 300_000, "notes": {"no-step-marks"}},
    "14_sync_is_not_work.json": {
        "compute_ns": 100_000,
        "comm_ns": 300_000,
        "exposed_comm_ns": 300_000,
        "comm_overlap_compute_ns": 0,
        "idle_ns": 0,
    },
    "16_peer_wait.rank0.json 16_peer_wait.rank1.json": {"kernels": 2, "notes": {"clocks-aligned"}},
    "40_odd_records.json": {"kernels": 1, "x_without_dur": 1, "notes": {"event-without-duration", "empty-record"}},
}
CASES = [("traces", *case) for case in TRACES.items()] + [("field", *case) for case in FIELD.items()]


@pytest.mark.parametrize(("folder", "files", "want"), CASES, ids=[files for _, files, _ in CASES])
def test_case(shared: Path, folder: str, files: str, want: dict[str, Any] | str) -> None:
    paths = [str(shared / "cases" / folder / name) for name in files.split()]
    result = CliRunner().invoke(cli, ["inspect", *paths, "--json"])
    if isinstance(want, str):
        assert isinstance(result.exception, WorkbenchError), result.exception
        assert not result.stdout
        assert re.search(f"(?s){want}", str(result.exception)), result.exception
        return
    assert result.exception is None, result.exception
    document = json.loads(result.stdout)
    found = document["traces"][paths[0]]
    found["streams"] = sorted(found["per_stream"])
    codes = {note["code"] for note in document["notes"]}
    assert {key: found[key] for key in want if key != "notes"} == {key: value for key, value in want.items() if key != "notes"}
    assert want.get("notes", set()) <= codes, codes


@pytest.mark.parametrize(
    ("name", "events", "kernels"),
    [
        ("traces/truncated.json", 12, 3),
        ("traces/truncated_gzip.json.gz", 8, 2),
        ("traces/unescaped_quotes.json", 7, 2),
        ("traces/bad_escape.json", 7, 2),
        ("field/01_truncated.json", 4, None),
        ("field/01_backslash.json", 4, None),
    ],
)
def test_damage_is_salvaged_when_asked(shared: Path, name: str, events: int, kernels: int | None) -> None:
    result = CliRunner().invoke(cli, ["inspect", str(shared / "cases" / name), "--salvage", "--json"], catch_exceptions=False)
    document = json.loads(result.stdout)
    (found,) = document["traces"].values()
    assert (found["complete_events"], kernels or found["kernels"]) == (events, found["kernels"])
    assert [note["count"] for note in document["notes"] if note["code"] == "salvaged"] == [1]


def test_every_trace_case_is_in_the_tables(shared: Path) -> None:
    """A case that is handed anew must be answered here."""
    for folder, table in (("traces", TRACES), ("field", FIELD)):
        with (shared / "cases" / folder / "README.tsv").open() as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        asked = {name for row in rows for name in (row.get("file") or row.get("files") or "").split() if ".json" in name}
        assert asked == {name for files in table for name in files.split()}, folder
