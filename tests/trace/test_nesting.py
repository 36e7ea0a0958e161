"""Parents: the innermost enclosing event, whatever the order of the file, and whatever Python frames do."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.trace.open import open_trace
from workbench.trace.trace import Trace


def event(name: str, start: int, dur: int, cat: str = "cpu_op", tid: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": dur}


def opened(folder: Path, records: list[dict[str, Any]]) -> Trace:
    path = folder / "t.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": records}))
    return open_trace(path)


def family(trace: Trace) -> dict[str, str]:
    parent = trace.events.parent
    return {trace.name_of(i): trace.name_of(int(p)) if p >= 0 else "" for i, p in enumerate(parent)}


def test_by_hand(tmp_path: Path) -> None:
    records = [event("a", 0, 100), event("b", 10, 30), event("c", 15, 5), event("d", 40, 10), event("e", 100, 5), event("x", 20, 5, tid=2)]
    assert family(opened(tmp_path, records)) == {"a": "", "b": "a", "c": "b", "d": "a", "e": "", "x": ""}


def test_ties_are_settled_by_length_kind_and_name(tmp_path: Path) -> None:
    records = [
        event("run", 0, 9, "cuda_runtime"),
        event("q", 0, 9),
        event("p", 0, 9),
        event("mark", 0, 9, "user_annotation"),
        event("long", 0, 10),
    ]
    want = {"long": "", "mark": "long", "p": "mark", "q": "p", "run": "q"}
    for order in (records, records[::-1]):
        assert family(opened(tmp_path, order)) == want


def test_the_recorded_id_goes_before_the_name(tmp_path: Path) -> None:
    outer, inner = event("z", 0, 9) | {"args": {"External id": 1}}, event("a", 0, 9) | {"args": {"External id": 2}}
    assert family(opened(tmp_path, [inner, outer])) == {"z": "", "a": "z"}


def test_a_frame_that_outlives_its_parent_does_not_steal_children(tmp_path: Path) -> None:
    """`frame` starts in `op` and claims to end long after it: `kid` is still inside `op`, `later` is not inside `frame`."""
    records = [event("op", 0, 100), event("frame", 50, 5000, "python_function"), event("kid", 60, 10), event("later", 200, 10)]
    assert family(opened(tmp_path, records)) == {"op": "", "frame": "op", "kid": "frame", "later": ""}


def test_events_without_length_enclose_nothing(tmp_path: Path) -> None:
    records = [event("a", 0, 10), event("z", 5, 0), event("y", 5, 0), event("end", 10, 0)]
    assert family(opened(tmp_path, records)) == {"a": "", "z": "a", "y": "a", "end": "a"}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-2, 12), st.integers(1, 2)), max_size=14), st.randoms())
def test_parents_are_the_innermost_enclosing_events(tmp_path_factory: Any, spans: list[tuple[int, int, int]], random: Random) -> None:
    """Against the definition, tried on every pair; and shuffling the file changes nothing."""
    records = [event(f"e{i:02}", start, dur, tid=tid) for i, (start, dur, tid) in enumerate(spans)]
    folder = tmp_path_factory.mktemp("n")
    want = {}
    keys = [(start, -max(dur, 0), f"e{i:02}") for i, (start, dur, _) in enumerate(spans)]
    for i, (start, dur, tid) in enumerate(spans):
        stop = start + max(dur, 0)
        around = [
            j
            for j, (s, d, t) in enumerate(spans)
            if j != i and t == tid and d > 0 and keys[j] < keys[i] and s + d >= stop and (s + d > start or dur <= 0)
        ]
        want[f"e{i:02}"] = f"e{max(around, key=lambda j: keys[j]):02}" if around else ""
    assert family(opened(folder, records)) == want
    random.shuffle(records)
    assert family(opened(folder, records)) == want


@pytest.mark.parametrize("name", ["unsorted.json", "same_ts.json", "python_stack.json", "steps_twice.json"])
def test_shuffled_files_give_the_same_trace(shared: Path, tmp_path: Path, name: str) -> None:
    records = json.loads((shared / "cases" / "traces" / name).read_text())["traceEvents"]

    def content(trace: Trace) -> list[tuple[Any, ...]]:
        e = trace.events
        rows = []
        for i in range(len(e)):
            track, parent = trace.tracks[e.track[i]], trace.name_of(int(e.parent[i])) if e.parent[i] >= 0 else ""
            rows.append((int(e.start_ns[i]), int(e.dur_ns[i]), trace.name_of(i), track, int(e.category[i]), int(e.correlation[i]), parent))
        return sorted(rows, key=str)

    first = opened(tmp_path, records)
    for seed in range(3):
        Random(seed).shuffle(records)
        again = opened(tmp_path, records)
        assert content(again) == content(first)
        assert again.tracks == first.tracks
        assert np.array_equal(again.steps.start_ns, first.steps.start_ns)
