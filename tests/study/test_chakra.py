"""A recording written as a Chakra trace and read again: the same work, at the same times but for the microseconds the form counts in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.trace.test_chakra import file, job
from workbench.errors import Refused
from workbench.graph.build import build_graph
from workbench.study.chakra import write_chakra
from workbench.trace.open import open_trace


def test_there_and_back_by_hand(tmp_path: Path) -> None:
    """All times of the made job are whole microseconds: nothing is rounded, the step is its 80 us, the product keeps its operations."""
    trace = open_trace(file(tmp_path / "a.et", *job()))
    write_chakra(trace, tmp_path / "b.et")
    again = open_trace(tmp_path / "b.et")
    graph, table = build_graph(again)
    assert graph.measured_step_s[0] == pytest.approx(80e-6)
    assert 2 * 8 * 16 * 16 in table.flops.tolist()
    for which in (trace, again):
        work = np.flatnonzero(which.is_device_work)
        rows = sorted((int(which.events.start_ns[i]), int(which.events.dur_ns[i]), which.name_of(i)) for i in work.tolist())
        assert rows == [(10_000, 40_000, "sgemm"), (50_000, 30_000, "ring")]


@pytest.mark.parametrize("name", ["pairs/bert_small_h100.json.gz", "a100_alexnet.json.gz"])
def test_a_handed_recording_there_and_back(name: str, shared: Path, tmp_path: Path) -> None:
    """Each device node keeps its duration to half a microsecond, each has a launch, and the step stays within what gaps add."""
    trace = open_trace(shared / "traces" / name)
    write_chakra(trace, tmp_path / "a.et")
    again = open_trace(tmp_path / "a.et")
    before, after = (np.sort(t.events.dur_ns[t.is_device_work]) for t in (trace, again))
    assert len(before) == len(after)
    assert np.abs(before - after).max() <= 500
    (graph, _), (copy, _) = build_graph(trace), build_graph(again)
    assert copy.measured_step_s.sum() == pytest.approx(graph.measured_step_s.sum(), rel=0.02)
    assert "orphan-kernel" not in {note.code for note in copy.notes}


def test_several_ranks_are_refused(shared: Path, tmp_path: Path) -> None:
    cases = shared / "cases" / "traces"
    trace = open_trace([cases / "base_time_rank0.json", cases / "base_time_rank1.json"])
    with pytest.raises(Refused, match="of one rank"):
        write_chakra(trace, tmp_path / "a.et")
