"""XLA profiles: the handed ones against independent counts, made ones by hand, damaged ones refused or salvaged."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tests.trace.xspace import block, double, integer, plane, text
from workbench.errors import UnreadableInput
from workbench.trace.open import open_trace
from workbench.trace.trace import Category, Trace

MICRO = 1_000_000  # ps


@pytest.mark.parametrize("name", ["jax_conv_mi300x", "gpu_worker"])
def test_streams_hold_what_the_converted_file_holds(shared: Path, name: str) -> None:
    """facts.json counts the rows of the same profile as xprof converts it to JSON: equal count and duration on every stream."""
    facts = json.loads((shared / "traces" / "facts.json").read_text())["traces"][f"xla/{name}.trace.json.gz"]["rows"]
    trace = open_trace(shared / "traces" / "xla" / f"{name}.xplane.pb")
    streams = {key: value for key, value in facts.items() if "|Stream" in key}
    found = {}
    for i, track in enumerate(trace.tracks):
        if track.kind == "device":
            rows = trace.events.track == i
            dur = int(trace.events.dur_ns[rows].sum())
            found[f"GPU:{track.device}|{track.label}"] = {"n": int(rows.sum()), "dur_ns": dur}
    assert found == streams
    work = trace.is_device_work
    assert (trace.events.correlation[work] >= 0).all(), "every kernel names its launch"


def made(tmp_path: Path, data: bytes, name: str = "made.bin") -> Trace:
    path = tmp_path / name
    path.write_bytes(data)
    return open_trace(path)


def rows(trace: Trace, category: Category) -> list[tuple[str, int, int]]:
    e = trace.events
    return [(trace.name_of(i), int(e.start_ns[i]), int(e.dur_ns[i])) for i in np.flatnonzero(e.category == category)]


GPU = plane(
    "/device:GPU:3",
    {
        "Stream #7(Compute)": [("gemm", 5 * MICRO, 2 * MICRO + 499, {"correlation_id": 11, "hlo_op": "dot.1"})],
        "XLA Ops": [("dot.1", 5 * MICRO, 2 * MICRO, {})],
    },
    base_ns=1000,
) + plane("/host:CPU", {"python": [("cuLaunchKernel", 1 * MICRO, MICRO, {"correlation_id": 11})]}, base_ns=1000)


def test_a_made_gpu_profile_by_hand(tmp_path: Path) -> None:
    """Start 1000 ns + 5 us; picoseconds round half up; the lane of operations is a label beside real streams; links by id."""
    trace = made(tmp_path, GPU)
    assert rows(trace, Category.KERNEL) == [("gemm", 6000, 2000)]
    assert rows(trace, Category.RUNTIME) == [("cuLaunchKernel", 2000, 1000)]
    kernel = int(np.flatnonzero(trace.events.category == Category.KERNEL)[0])
    assert trace.events.correlation[kernel] == 11
    track = trace.tracks[trace.events.track[kernel]]
    assert (track.device, track.stream) == (3, 7)
    assert trace.strings[trace.text_arg("hlo_op")[kernel]] == "dot.1"


def test_on_a_tpu_the_innermost_operations_are_the_work(tmp_path: Path) -> None:
    """A core has no streams: its lane of operations is the work, a loop that holds others is a label, transfers overlap beside it."""
    ops = [("while.1", 0, 10 * MICRO, {}), ("fusion.1", 0, 4 * MICRO, {}), ("fusion.2", 4 * MICRO, 6 * MICRO, {})]
    lines = {"Steps": [("5", 0, 12 * MICRO, {})], "XLA Ops": ops, "Async XLA Ops": [("copy-start.1", 2 * MICRO, MICRO, {})]}
    trace = made(tmp_path, plane("/device:TPU:0", lines))
    assert [name for name, _, _ in rows(trace, Category.KERNEL)] == ["fusion.1", "fusion.2", "copy-start.1"]
    assert rows(trace, Category.GPU_ANNOTATION) == [("while.1", 0, 10_000)]
    assert sorted((t.device, t.stream) for t in trace.tracks if t.kind == "device") == [(0, 0), (0, 1)]


def test_shared_statistics_real_numbers_and_long_names(tmp_path: Path) -> None:
    """Statistics of an event's kind count for each of its events; a display name goes before, the long name becomes an argument."""
    kind = integer(1, 1) + text(2, "%fusion = f32[8] fusion(...)") + text(4, "fusion") + block(5, integer(1, 1) + double(2, 2.5))
    event = integer(1, 1) + integer(2, 0) + integer(3, MICRO)
    line = integer(1, 1) + text(2, "Stream #1") + block(4, event) + block(4, event)
    stat = integer(1, 1) + block(2, integer(1, 1) + text(2, "flops"))
    trace = made(tmp_path, block(1, text(2, "/device:GPU:0") + block(3, line) + block(4, integer(1, 1) + block(2, kind)) + block(5, stat)))
    assert [name for name, _, _ in rows(trace, Category.KERNEL)] == ["fusion", "fusion"]
    assert [trace.strings[i] for i in trace.text_arg("flops")] == ["2.5", "2.5"]
    assert {trace.strings[i] for i in trace.text_arg("long_name")} == {"%fusion = f32[8] fusion(...)"}


def test_content_decides_and_gzip_is_undone(tmp_path: Path) -> None:
    trace = made(tmp_path, gzip.compress(GPU), "trace.json")
    assert rows(trace, Category.KERNEL) == [("gemm", 6000, 2000)]


def test_a_cut_profile_is_refused_with_its_byte_and_salvaged_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "cut.xplane.pb"
    path.write_bytes(GPU[:-20])
    with pytest.raises(UnreadableInput, match="byte") as fault:
        open_trace(path)
    assert "--salvage" in fault.value.fix and fault.value.exit_code == 2
    trace = open_trace(path, salvage=True)
    assert rows(trace, Category.KERNEL) == [("gemm", 6000, 2000)]
    assert [note.count for note in trace.notes if note.code == "salvaged"] == [1]


def test_any_cut_or_changed_byte_is_read_or_refused(tmp_path: Path) -> None:
    """Never another exception: 400 damages, each opened with and without salvage."""
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.pb"
    for _ in range(400):
        data = bytearray(GPU)
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        path.write_bytes(bytes(data[: int(rng.integers(1, len(data) + 1))]))
        for salvage in (False, True):
            with contextlib.suppress(UnreadableInput):
                open_trace(path, salvage=salvage)
