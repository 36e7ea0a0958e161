"""Work whose launches a recording missed is priced as the operators it repeats: a recording that began late says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.naive.executor import execute
from tests.naive.kineto import document
from tests.naive.programs import launch_bound
from workbench.graph.build import build_graph
from workbench.graph.units import price_units
from workbench.graph.unlaunched import groups, twins
from workbench.operators.table import Kind, OpTable
from workbench.trace.open import open_trace


def _table(folder: Path, events: list[dict[str, Any]]) -> OpTable:
    path = folder / "made.json"
    path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}))
    return price_units(open_trace([path]))[0]


def test_a_recording_that_began_late_prices_the_same_operators(tmp_path: Path) -> None:
    """Intervention: the host's records of the first of three steps are taken out; every operator keeps its count and its time."""
    events = document(execute(launch_bound(steps=3, layers=3)))["traceEvents"]
    begins = sorted(e["ts"] for e in events if str(e.get("name", "")).startswith("ProfilerStep"))
    host = ("cpu_op", "cuda_runtime", "user_annotation", "cuda_sync", "ac2g", "fwdbwd")
    late = [e for e in events if not (e.get("cat") in host and e["ts"] < begins[1])]
    assert len(late) < len(events)
    whole, part = _table(tmp_path, events), _table(tmp_path, late)
    found = {name: (int(n), s) for name, n, s in zip(part.signature, part.count, part.measured_s, strict=True)}
    for name, count, seconds in zip(whole.signature, whole.count, whole.measured_s, strict=True):
        assert found[name] == (count, pytest.approx(seconds))


def test_sequences_are_matched_longest_first_and_chance_is_left_alone() -> None:
    """By hand: 'abcdefghij' runs launched; a stretch 'cdefghij' (8 long) repeats it, 'xy' and a stretch of 7 repeat nothing."""
    launched = list(range(10))
    stretch = [20, 21, 2, 3, 4, 5, 6, 7, 8, 9]
    key = np.array([*stretch, *launched])
    known = np.array([False] * 10 + [True] * 10)
    lane = np.zeros(20, dtype=np.int64)
    assert twins(lane, key, known).tolist() == [-1, -1, 12, 13, 14, 15, 16, 17, 18, 19, *[-1] * 10]
    key[2] = 30
    assert (twins(lane, key, known) == -1).all()
    assert (twins(np.where(known, 1, 0), np.array([*stretch, *launched]), known) == -1).all(), "another stream is another sequence"


def test_a_unit_counts_only_where_all_of_it_is_repeated() -> None:
    """By hand: twins 5..8, where 4-5 are one unit (half of it repeated) and 6, 7-8 are whole."""
    twin = np.array([5, 6, 7, 8, -1, -1, -1, -1, -1])
    unit = np.array([-1, -1, -1, -1, 0, 0, 1, 2, 2])
    group, of = groups(twin, unit)
    assert of.tolist() == [1, 2]
    assert group.tolist() == [-1, 0, 1, 1, -1, -1, -1, -1, -1]


@pytest.mark.parametrize("card", ["h100", "mi300x"])
def test_kernels_before_the_first_recorded_launch_get_their_operators(shared: Path, card: str) -> None:
    """qwen_0.5b lacks the launches of its first kernels (README of the traces): their names are those of the step's tail, one by one."""
    trace = open_trace([shared / "traces" / "pairs" / f"qwen_0.5b_{card}.json.gz"])
    graph, table = build_graph(trace)
    (note,) = [note for note in graph.notes if note.code == "orphan-repeats"]
    assert note.count > 400
    unknown = (table.kind == Kind.UNKNOWN) & ~table.has_shapes
    assert (table.measured_s * table.count)[unknown].sum() == 0.0
