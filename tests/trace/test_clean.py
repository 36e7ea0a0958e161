"""What is clipped and set aside before graph building."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench.trace.clean import clean, faults
from workbench.trace.open import open_trace
from workbench.trace.trace import Category, Trace


def kernel(start: float, dur: float, correlation: int, stream: int = 7, name: str = "k") -> dict[str, Any]:
    args = {"device": 0, "stream": stream, "correlation": correlation}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start, "dur": dur, "args": args}


def opened(folder: Path, *records: dict[str, Any]) -> Trace:
    path = folder / "t.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": list(records)}))
    return open_trace(path)


def test_work_that_covers_a_later_launch_is_clipped_to_it(tmp_path: Path) -> None:
    trace = opened(tmp_path, kernel(0, 1000, 1), kernel(40, 10, 2), kernel(60, 10, 3))
    assert clean(trace).events.dur_ns.tolist() == [40_000, 10_000, 10_000]
    assert trace.events.dur_ns.tolist() == [1_000_000, 10_000, 10_000]


def test_partial_overlap_is_kept_and_noted(tmp_path: Path) -> None:
    """Seen on real cards: the next launch starts up to some microseconds before its predecessor ends."""
    trace = opened(tmp_path, kernel(0, 12, 1), kernel(10, 10, 2))
    assert clean(trace).events.dur_ns.tolist() == [12_000, 10_000]
    assert [(n.code, n.count) for n in trace.notes if n.code == "same-stream-overlap"] == [("same-stream-overlap", 1)]


def test_work_of_one_graph_launch_may_run_side_by_side(tmp_path: Path) -> None:
    trace = opened(tmp_path, kernel(0, 100, 5, name="a"), kernel(10, 20, 5, name="b"))
    assert clean(trace).events.dur_ns.tolist() == [100_000, 20_000]


def test_other_streams_and_markers_clip_nothing(tmp_path: Path) -> None:
    trace = opened(tmp_path, kernel(0, 100, 1), kernel(10, 20, 2, stream=8), kernel(50, 0, 3))
    assert len(faults(trace).overflow) == 0


def test_rows_recorded_twice_are_used_once(tmp_path: Path) -> None:
    trace = opened(tmp_path, kernel(0, 10, 1), kernel(20, 10, 2), kernel(0, 10, 1))
    cleaned = clean(trace)
    assert (cleaned.events.category == Category.KERNEL).tolist() == [True, True, False]
    assert [n.count for n in cleaned.notes if n.code == "duplicate-event"] == [1]


def test_cleaning_twice_changes_nothing(tmp_path: Path) -> None:
    once = clean(opened(tmp_path, kernel(0, 1000, 1), kernel(40, -3, 2), kernel(60, 10, 3), kernel(60, 10, 3)))
    twice = clean(once)
    assert twice.events.dur_ns.tolist() == once.events.dur_ns.tolist()
    assert twice.notes == once.notes


def test_a_clean_trace_is_not_copied(shared: Path) -> None:
    trace = open_trace(shared / "traces" / "a100_alexnet.json.gz")
    assert clean(trace).events is trace.events


def test_real_overlaps_are_kept(shared: Path) -> None:
    """3 453 overlaps of up to 42 256 ns of this accelerator are how it works: nothing is clipped."""
    trace = open_trace(shared / "traces" / "size_mtia_456k_events.json.gz")
    found = faults(trace)
    assert (len(found.overflow), found.overlaps, found.longest_overlap_ns) == (0, 3453, 42256)
