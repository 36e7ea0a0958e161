"""Records of allocators: by hand in every spelling, across the borders of windows, and those of handed profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.study.inspect import inspect
from workbench.study.memory import memory_of
from workbench.trace import allocations as module
from workbench.trace.allocations import NONE, allocations, held
from workbench.trace.open import open_trace


def instant(at: float, size: int, address: int, total: int, name: str = "[memory]", **more: Any) -> dict[str, Any]:
    args = {"Bytes": size, "Addr": address, "Device Type": 1, "Device Id": 0, "Total Allocated": total, "Total Reserved": 4096, **more}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": name, "pid": 7, "tid": 7, "ts": at, "args": args}


ROWS = [
    instant(10.5, 512, 1000, 1512), instant(20, 1024, 2000, 2536), instant(30, -512, 1000, 2024), instant(40, 256, 1000, 2280),
    instant(50, -100, 9000, 2180),  # allocated before the recording
]  # fmt: skip


def profile(folder: Path, rows: list[dict[str, Any]], indent: int | None = None) -> Path:
    operators = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 5, "dur": 20, "args": {"[memory]": 1}}]
    path = folder / "profile.json"
    document = {"schemaVersion": 1, "profile_memory": 1, "distributedInfo": {"rank": 0}, "traceEvents": [*operators, *rows]}
    path.write_text(json.dumps(document, indent=indent))
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_records_by_hand(tmp_path: Path, indent: int | None) -> None:
    """1000 bytes are older (1512 - 512); most is allocated after the second record: 512 and 1024 of this recording live then."""
    [found] = allocations(profile(tmp_path, ROWS, indent))
    assert found.device == "cuda:0"
    assert found.at_ns.tolist() == [10500, 20000, 30000, 40000, 50000]
    got = held(found)
    assert (got.before, int(got.level.max()), got.peak) == (1000, 2536, 1)
    assert got.live == ((1024, 20000), (512, 10500))
    assert got.clashes == ()


def test_the_document_names_who_holds_the_peak(tmp_path: Path) -> None:
    """Both are allocated while mm lasts (5 to 25 us)."""
    [found], faults, notes = memory_of(open_trace(profile(tmp_path, ROWS)))
    assert (found.basis, found.peak_bytes, found.reserved_peak_bytes, found.resident_bytes) == ("allocator", 2536, 4096, 1000)
    assert found.allocated_bytes == 512 + 1024 + 256
    assert [(row.bytes, row.made_by) for row in found.held] == [(1024, "aten::mm"), (512, "aten::mm")]
    assert found.peak_at_s == pytest.approx(15e-6)
    assert not faults
    assert not notes


def test_records_of_2021_count_from_nothing(tmp_path: Path) -> None:
    """Bytes and device alone: the level is relative."""
    rows = [instant(10 * i, size, 0, 0) for i, size in enumerate((100, 200, -100))]
    for row in rows:
        row["args"] = {key: row["args"][key] for key in ("Bytes", "Device Type", "Device Id")}
    [found] = allocations(profile(tmp_path, rows))
    assert (found.total == NONE).all()
    assert held(found).level.tolist() == [100, 300, 200]


def test_an_allocation_inside_a_live_one(tmp_path: Path) -> None:
    rows = [ROWS[0], instant(20, 64, 1256, 1576), instant(30, 64, 1512, 1640), instant(40, 64, 8000, 1704)]
    path = profile(tmp_path, rows)
    [found] = allocations(path)
    assert held(found).clashes == ((20000, 64),)
    [alarm] = [one for one in inspect(open_trace(path)).findings if one.code == "overlapping-allocation"]
    assert (alarm.count, alarm.certainty) == (1, "certain")


def test_long_profiles_are_read_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.study.memory.MANY", 4)
    trace = open_trace(profile(tmp_path, ROWS))
    documents, _, notes = memory_of(trace)
    assert not documents
    assert [(note.code, note.count) for note in notes] == [("memory-unread", 5)]
    assert len(inspect(trace, memory=True).memory) == 1


def test_other_records_and_nonsense_are_passed_over(tmp_path: Path) -> None:
    rows = [instant(1, 1, 1, 1, name="[memory] of a friend"), {"ph": "i", "name": "[memory]", "ts": "x", "args": {"Bytes": 1}},
            {"ph": "i", "name": "[memory]"}, instant(2, 1, 1, 1, Bytes="much"), *ROWS]  # fmt: skip
    [found] = allocations(profile(tmp_path, rows))
    assert len(found.at_ns) == len(ROWS)


@pytest.mark.parametrize("chunk", [301, 1000, 4097])
def test_windows_lose_and_repeat_nothing(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [instant(i, 1 + i % 7, 64 * i, 10 * i) for i in range(300)]
    path = profile(tmp_path, rows)
    monkeypatch.setattr(module, "CHUNK", chunk)
    monkeypatch.setattr(module, "REACH", 300)
    [found] = allocations(path)
    assert found.at_ns.tolist() == [1000 * i for i in range(300)]


def test_handed_profiles(shared: Path) -> None:
    """Independent: totals that the allocator wrote beside each change agree with the sum of changes; inference of a 0.5 B model in 16 bit
    holds about 1 GB of weights before it begins.
    """
    [*_, found] = allocations(shared / "traces" / "pairs" / "qwen_0.5b_h100.json.gz")
    got = held(found)
    assert np.array_equal(got.before + np.cumsum(found.nbytes), found.total)
    assert 0.9e9 < got.before < 1.1e9
    assert not got.clashes


def test_a_profile_that_is_gone_since_it_was_opened_is_said(tmp_path: Path) -> None:
    path = profile(tmp_path, ROWS)
    trace = open_trace(path)
    path.unlink()
    found, _, notes = memory_of(trace)
    assert not found
    assert [note.code for note in notes] == ["memory-unread"]
