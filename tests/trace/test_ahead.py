"""A source read ahead in another thread hands out what the source itself does: the same bytes, size, digest, and the same fault."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from workbench.errors import UnreadableInput
from workbench.trace.ahead import SMALLEST, Ahead
from workbench.trace.scanner import Scanner
from workbench.trace.source import Source

TEXT = random.Random(0).randbytes(3 * SMALLEST + 17)


def read(source: Source | Ahead, step: int) -> bytes:
    out, view = bytearray(), memoryview(bytearray(step))
    while count := source.readinto(view):
        out += view[:count]
    assert source.readinto(view) == 0
    assert source.size == len(out)
    return bytes(out)


@pytest.mark.parametrize("step", [1000, SMALLEST, 2 * SMALLEST + 1, 5 * SMALLEST])
@pytest.mark.parametrize("cut", [0, 1000, 100_000])
def test_as_the_source_itself(tmp_path: Path, step: int, cut: int) -> None:
    path = tmp_path / "x.gz"
    packed = gzip.compress(TEXT)
    path.write_bytes(packed[: len(packed) - cut])
    alone, ahead = Source(path), Ahead(Source(path), 1)
    assert read(ahead, step) == read(alone, step)
    assert (ahead.digest(), ahead.fault) == (alone.digest(), alone.fault)
    assert bool(ahead.fault) == bool(cut)


def test_nothing_inside(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b""))
    assert read(Ahead(Source(path), 1), 10) == b""


def test_truncated_trace_says_so(tmp_path: Path) -> None:
    record = b'{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}'
    packed = gzip.compress(b"[" + b",".join([record] * 5000) + b"]")
    path = tmp_path / "x.json.gz"
    path.write_bytes(packed[:-20])
    with pytest.raises(UnreadableInput, match="the gzip stream is truncated"):
        Scanner(Source(path)).run()
    assert Scanner(Source(path), salvage=True).run().damage
