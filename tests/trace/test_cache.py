"""The cache of columns: equal to a fresh reading, and never in the way, whatever happens to its files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import UnreadableInput
from workbench.trace import cache
from workbench.trace.digest import CHUNK, digest, file_digest
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace


def write(path: Path, count: int = 12_000, tail: str = "") -> Path:
    rows = [
        {
            "ph": "X", "cat": ("kernel", "cpu_op")[i % 2], "name": f"f{i % 97} é漢😀", "pid": i % 2, "tid": 7, "ts": 10 * i, "dur": i % 9,
            "args": {"correlation": i, "stream": 7, "device": 0, "grid": [i % 5, 1], "note": "" if i % 3 else f"t{i}"},
        }
        for i in range(count)
    ]  # fmt: skip
    path.write_text(json.dumps({"traceEvents": rows, "some": {"x": [1.5, None]}}) + tail)
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "kept"
    monkeypatch.setenv("WORKBENCH_CACHE", str(where))
    return where


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "a.json")


def fresh(path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    with monkeypatch.context() as context:
        context.setenv("WORKBENCH_CACHE", "off")
        return open_trace(path)


def same(a: Trace, b: Trace) -> None:
    for name in ("strings", "tracks", "ranks", "counts", "notes", "digest"):
        assert getattr(a, name) == getattr(b, name), name
    assert list(a.args) == list(b.args)
    tables = [(a.events, b.events), (a.flows, b.flows), (a.steps, b.steps), *((a.args[key], b.args[key]) for key in a.args)]
    for left, right in tables:
        for field in fields(left):
            x, y = getattr(left, field.name), getattr(right, field.name)
            assert x.dtype == y.dtype and np.array_equal(x, y), field.name
            assert x.flags.writeable == y.flags.writeable, field.name


def no_reading(*_: object) -> None:
    raise AssertionError("the file was read again")


def test_second_opening_equals_the_first_and_reads_nothing(file: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fresh(file, monkeypatch)
    same(open_trace(file), expected)
    assert len(cache.entries(place)) == 1
    monkeypatch.setattr("workbench.trace.open._read", no_reading)
    same(open_trace(file), expected)


def test_the_sample_traces_come_back_exactly(shared: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of reader: Kineto old and new, XLA profiles; small ones are kept as well here."""
    monkeypatch.setattr(cache, "LEAST_ENTRY", 0)
    names = ["a100_alexnet.json.gz", "mi300x_llm_graph_decode.json.gz", "cpu_only.json.gz", "xla/gpu_worker.xplane.pb"]
    names += ["chakra/host_and_device.0.et.gz"]
    for name in names:
        path = shared / "traces" / name
        expected = fresh(path, monkeypatch)
        open_trace(path)
        same(open_trace(path), expected)
    assert len(cache.entries(place)) == len(names)


def test_each_rank_of_a_directory_and_its_execution_trace_is_kept(
    shared: Path, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kineto_rank0", "kineto_rank1", "et_rank0"):
        (tmp_path / "job").mkdir(exist_ok=True)
        (tmp_path / "job" / f"{name}.json.gz").symlink_to(shared / "traces" / "megatron_a100_tp8" / f"{name}.json.gz")
    expected = fresh(tmp_path / "job", monkeypatch)
    same(open_trace(tmp_path / "job"), expected)
    assert len(cache.entries(place)) == 3
    monkeypatch.setattr("workbench.trace.open._read", no_reading)
    same(open_trace(tmp_path / "job"), expected)


def test_a_file_written_while_it_is_read_is_not_kept(file: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its columns are of another content than the digest taken before."""
    from workbench.trace import open as opening

    read = opening._read

    def reading(path: Path, salvage: bool, chunk: int) -> object:
        found = read(path, salvage, chunk)
        path.write_bytes(path.read_bytes() + b" ")
        return found

    monkeypatch.setattr(opening, "_read", reading)
    open_trace(file)
    assert not cache.entries(place)


def test_what_a_killed_process_left_goes(file: Path, place: Path) -> None:
    place.mkdir()
    for name, age in (("old.new", 7200), ("young.new", 60)):
        (place / name).write_bytes(b"half")
        os.utime(place / name, (time.time() - age,) * 2)
    open_trace(file)
    assert {path.name for path in place.iterdir() if path.suffix == ".new"} == {"young.new"}


@given(st.binary(max_size=5000), st.integers(0, 4999), st.integers(1, 255))
def test_the_digest_sees_every_byte(data: bytes, at: int, flip: int) -> None:
    """Changed, cut or lengthened bytes have another digest, and a file has that of its bytes."""

    def of(data: bytes) -> bytes:
        return digest(np.frombuffer(data, np.uint8).copy())

    changed = bytearray(data)
    if at < len(data):
        changed[at] ^= flip
        assert of(bytes(changed)) != of(data)
    assert len({of(data), of(data + b"\0"), of(data[:-1] or b"x")}) == 3


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1025])
def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path: Path, size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    (tmp_path / "x").write_bytes(data.tobytes())
    assert file_digest(tmp_path / "x") == digest(data)


def test_equal_blocks_in_another_order_differ() -> None:
    """Two stripes, two words or two blocks exchanged: sums alone would not see it."""
    words = np.random.default_rng(1).integers(0, 2**63, 512, np.uint64)
    for a, b in ((slice(0, 8), slice(8, 16)), (slice(0, 1), slice(1, 2)), (slice(0, 128), slice(128, 256))):
        swapped = words.copy()
        swapped[a], swapped[b] = words[b], words[a]
        assert digest(swapped.view(np.uint8)) != digest(words.view(np.uint8))


def test_moved_file_is_named_where_it_lies_now(file: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_trace(file)
    (tmp_path / "b").mkdir()
    moved = file.rename(tmp_path / "b" / file.name)
    expected = fresh(moved, monkeypatch)
    monkeypatch.setattr("workbench.trace.open._read", no_reading)
    same(open_trace(moved), expected)


def test_changed_content_of_equal_size_and_time_is_read(file: Path, place: Path) -> None:
    status = file.stat()
    before = open_trace(file)
    file.write_bytes(file.read_bytes().replace(b'"dur": 8', b'"dur": 7', 1))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert int(open_trace(file).events.dur_ns.sum()) == int(before.events.dur_ns.sum()) - 1000


def test_damaged_entries_are_ignored_and_replaced(file: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random flips, cuts and foreign bytes: the result is the fresh one, and the entry is whole again."""
    expected, random = fresh(file, monkeypatch), np.random.default_rng(0)
    open_trace(file)
    entry = cache.entries(place)[0][2]
    whole = entry.read_bytes()
    broken = [b"", b"no cache", whole[:40], whole[:-1], whole + b"x", whole[: len(whole) // 2]]
    for at in [*range(0, 40, 3), *random.integers(0, len(whole), 10).tolist()]:
        broken.append(whole[:at] + bytes([whole[at] ^ (1 << int(random.integers(8)))]) + whole[at + 1 :])
    for data in broken:
        entry.write_bytes(data)
        same(open_trace(file), expected)
        assert entry.read_bytes() == whole


def test_an_edited_reader_reads_again(file: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_trace(file)
    monkeypatch.setattr(cache, "READER", "edited")
    open_trace(file)
    assert len(cache.entries(place)) == 2


def test_least_recently_used_goes_first(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = (write(tmp_path / f"{name}.json", 12_000 + i) for i, name in enumerate("abc"))
    open_trace(a)
    first = cache.entries(place)[0]
    open_trace(b)
    second = next(path for _, _, path in cache.entries(place) if path != first[2])
    os.utime(first[2], (1, 1))
    os.utime(second, (2, 2))
    open_trace(a)  # used again: b is now the older one
    monkeypatch.setenv("WORKBENCH_CACHE_BYTES", str(int(2.5 * first[1])))
    open_trace(c)
    left = {path for _, _, path in cache.entries(place)}
    assert len(left) == 2 and first[2] in left and second not in left


def test_disabled_tiny_damaged_and_unwritable_leave_nothing(
    tmp_path: Path, file: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(file, monkeypatch)
    open_trace(write(tmp_path / "tiny.json", 500))
    with pytest.raises(UnreadableInput):
        open_trace(write(tmp_path / "bad.json", tail="}"))
    assert not cache.entries(place)
    (tmp_path / "blocked").write_text("a file where a folder should be")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "blocked"))
    assert len(open_trace(file).events) == 12_000


def test_two_processes_at_once(file: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "p.json.gz"
    packed.write_bytes(gzip.compress(file.read_bytes(), 1))
    code = "import sys; from workbench.trace.open import open_trace; print([open_trace(sys.argv[1]).digest for _ in range(5)][-1])"
    runs = [subprocess.Popen([sys.executable, "-c", code, str(packed)], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [run.communicate(timeout=120)[0].strip() for run in runs]
    assert answers == [fresh(packed, monkeypatch).digest] * 2
    assert [path.suffix for path in place.iterdir()] == [cache.SUFFIX]
