"""Every count and sum of the public traces equals the one an independent script computed (traces/facts.json)."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.trace.reference import read, same_argument, shown
from workbench.trace.facts import facts as facts_of
from workbench.trace.open import open_trace

SHARED = Path(os.environ.get("WORKBENCH_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
DOCUMENT = SHARED / "traces" / "facts.json"
KINETO = (
    [k for k in json.loads(DOCUMENT.read_text())["traces"] if "/" not in k or k.startswith(("mega", "pairs"))]
    if DOCUMENT.is_file()
    else [""]
)


@pytest.mark.parametrize("name", KINETO)
def test_facts_are_reproduced_exactly(name: str, shared: Path, facts: dict[str, Any]) -> None:
    path = str(shared / "traces" / name)
    want = {key: value for key, value in facts["traces"][name].items() if key != "reference_tool"}
    got = facts_of(open_trace(path))[path]
    assert {key: got.get(key) for key in want} == want


def test_eight_ranks_open_as_one_trace(shared: Path, facts: dict[str, Any]) -> None:
    """Joined, each file keeps its own facts; the step marks of the eight ranks are those of `across_ranks`."""
    folder = shared / "traces" / "megatron_a100_tp8"
    paths = [folder / f"kineto_rank{rank}.json.gz" for rank in (3, 0, 1, 2, 7, 6, 5, 4)]
    trace = open_trace(paths)
    assert [r.rank for r in trace.ranks] == [3, 0, 1, 2, 7, 6, 5, 4]
    found = facts_of(trace)
    for path in paths:
        want = {k: v for k, v in facts["traces"][f"megatron_a100_tp8/{path.name}"].items() if k != "reference_tool"}
        assert {key: found[str(path)].get(key) for key in want} == want
    steps = facts["across_ranks"]["megatron_a100_tp8"]["profiler_step_ns"]
    assert {path.name: found[str(path)]["profiler_steps"] for path in paths} == steps


def test_communication_of_the_traces_is_the_same_by_name_and_by_arguments(shared: Path) -> None:
    """None of these recordings carries collective arguments: both rules must then agree."""
    path = str(shared / "traces" / "a100_ddp_six_steps.json.gz")
    found = facts_of(open_trace(path))[path]
    assert found["comm_kernels_by_args"] == found["comm_kernels"] == 60
    assert found["exposed_comm_ns_by_args"] == found["exposed_comm_ns"]


WHOLE_MICROSECONDS = (
    *(f"megatron_a100_tp8/kineto_rank{rank}.json.gz" for rank in range(8)),
    "a100_ddp_six_steps.json.gz",
    "v100_resnet50_2021.json.gz",
    "size_v100_216k_events.json.gz",
)
"""Recordings in whole microseconds: HTA drops what is below one, and differs elsewhere by up to 20 % on kernels of a microsecond."""


@pytest.mark.parametrize("name", WHOLE_MICROSECONDS)
def test_hta_finds_the_same_breakdown(name: str, shared: Path, facts: dict[str, Any]) -> None:
    """Holistic Trace Analysis 0.6.1, `get_temporal_breakdown` and `get_comm_comp_overlap`, as traces/facts.json holds its answers."""
    hta = facts["traces"][name]["reference_tool"]
    got: Any = facts_of(open_trace(str(shared / "traces" / name)))[str(shared / "traces" / name)]
    assert got["gpu_span_ns"] == 1000 * hta["span_us"]
    assert got["idle_ns"] == 1000 * hta["idle_us"]
    assert got["compute_ns"] == 1000 * hta["compute_us"]
    assert got["busy_ns"] - got["compute_ns"] == 1000 * hta["non_compute_us"]
    if hta["overlap_pct"] is not None:
        assert 100 * got["comm_overlap_compute_ns"] / got["comm_ns"] == pytest.approx(hta["overlap_pct"], abs=0.005)


@pytest.mark.parametrize(
    "name", ["cpu_only.json.gz", "a100_alexnet.json.gz", "mi300x_compiled_triton.json.gz", "ascend/trace_view.json.gz"]
)
def test_columns_and_arguments_are_what_python_reads(name: str, shared: Path) -> None:
    """Every event, every argument, against Python's json and decimal."""
    path = shared / "traces" / name
    got, want = shown(open_trace(path)), read(gzip.decompress(path.read_bytes()).decode())
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert {k: v for k, v in a.items() if k != "args"} == {k: v for k, v in b.items() if k != "args"}
        assert a["args"].keys() == b["args"].keys()
        assert all(same_argument(a["args"][key], b["args"][key]) for key in b["args"])


@pytest.mark.parametrize("name", ["xla/gpu_worker.trace.json.gz", "xla/jax_conv_mi300x.trace.json.gz"])
def test_device_rows_of_other_producers_are_found_by_their_lanes(name: str, shared: Path, facts: dict[str, Any]) -> None:
    """Rows without categories: the streams of each device are work, their summaries ("XLA Ops", "Steps") are not."""
    trace = open_trace(shared / "traces" / name)
    work = trace.is_device_work
    got: dict[str, dict[str, int]] = {}
    for i, track in enumerate(trace.tracks):
        mine = work & (trace.events.track == i)
        if mine.any():
            got[f"GPU:{track.device}|{track.label}"] = {"n": int(mine.sum()), "dur_ns": int(trace.events.dur_ns[mine].sum())}
    assert got == {key: row for key, row in facts["traces"][name]["rows"].items() if "|Stream" in key}


def test_rows_of_an_ascend_stream(shared: Path, facts: dict[str, Any]) -> None:
    path = str(shared / "traces" / "ascend" / "trace_view.json.gz")
    found, want = facts_of(open_trace(path))[path], facts["traces"]["ascend/trace_view.json.gz"]
    got = [found[key] for key in ("gpu_events", "busy_ns", "gpu_span_ns", "total_gpu_dur_ns", "flows")]
    assert got == [want[key] for key in ("npu_rows", "npu_union_ns", "npu_span_ns", "npu_dur_sum_ns", "flows")]
