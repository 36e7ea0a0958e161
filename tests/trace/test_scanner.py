"""The byte-level scanner against Python's json and decimal, at every chunk border, and under damage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.reference import Number, ns, read, render, same_argument, shown
from workbench.errors import WorkbenchError
from workbench.trace import kernels_json
from workbench.trace.facts import facts
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace

DIGITS = st.text("0123456789", min_size=1, max_size=15).map(lambda d: d.lstrip("0") or "0")
FRACTION = st.one_of(st.just(""), st.text("0123456789", min_size=1, max_size=12).map(lambda d: "." + d))
EXPONENT = st.one_of(
    st.just(""), st.builds(lambda e, s, n: f"{e}{s}{n}", st.sampled_from("eE"), st.sampled_from(("", "+", "-")), st.integers(0, 3))
)
TIMES = st.builds(lambda sign, d, f, e: Number(sign + d + f + e), st.sampled_from(("", "-")), DIGITS, FRACTION, EXPONENT)
TEXT = st.text(max_size=12)
LEAF = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), TIMES, TEXT)
VALUE = st.recursive(LEAF, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=3)), max_leaves=8)
RECORD = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXXXisM"), "ts": st.one_of(TIMES, TIMES.map(str))},
    optional={
        "dur": st.one_of(TIMES, st.none()),
        "name": TEXT,
        "cat": st.sampled_from(("cpu_op", "kernel", "Runtime", "", "new")),
        "pid": st.one_of(st.integers(0, 3), TEXT),
        "tid": st.one_of(st.integers(0, 3), st.just("stream 7")),
        "id": st.integers(0, 9),
        "args": st.dictionaries(st.one_of(TEXT, st.sampled_from(("correlation", "stream", "name"))), VALUE, max_size=4),
        "extra": VALUE,
    },
)


def write(folder: Path, text: str) -> Path:
    path = folder / "trace.json"
    path.write_bytes(text.encode())
    return path


@given(st.lists(RECORD, max_size=6), st.booleans(), st.integers(0, 2**32), st.integers(1, 300))
def test_round_trip_is_what_python_reads(tmp_path_factory: Any, records: list[Any], bare: bool, seed: int, chunk: int) -> None:
    """Any layout, escape, order, and number form, cut at any chunk size, gives the columns that json and Decimal give."""
    random = Random(seed)
    document = records if bare else {"before": [1, {"a": "]}"}], "traceEvents": records, "baseTimeNanoseconds": 5}
    path = write(tmp_path_factory.mktemp("t"), render(document, random) + random.choice(("", "\n")))
    if records and not any(r["ph"] for r in records):
        return
    trace = open_trace(path, chunk=chunk)
    got, want = shown(trace), read(path.read_text())
    assert [{k: v for k, v in row.items() if k != "args"} for row in got] == [{k: v for k, v in row.items() if k != "args"} for row in want]
    for a, b in zip(got, want, strict=True):
        assert a["args"].keys() == b["args"].keys()
        assert all(same_argument(a["args"][key], b["args"][key]) for key in b["args"])


@given(TIMES)
def test_nanoseconds_are_exact(text: str) -> None:
    raw = np.frombuffer(str(text).encode(), np.uint8).copy()
    fits, value = kernels_json.nanoseconds(raw, 0, len(raw))
    assert fits
    assert value == ns(str(text))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1704161511420306.491", 1704161511420306491),  # epoch microseconds: a float64 would lose 128 ns
        ("0.0005", 1),  # half away from zero at the fourth decimal
        ("0.00049999999999999", 0),
        ("-0.0005", -1),
        ("-1", -1000),
        ("5e-4", 1),
        ("1.5E3", 1500000),
        ("0e99999", 0),
        ("9223372036854775.806", 9223372036854775806),
    ],
)
def test_nanoseconds_by_hand(text: str, want: int) -> None:
    raw = np.frombuffer(text.encode(), np.uint8).copy()
    assert kernels_json.nanoseconds(raw, 0, len(raw)) == (True, want)


@pytest.mark.parametrize("text", ["9223372036854775.808", "1e20", "1e999999999999", "99999999999999999999999"])
def test_times_beyond_64_bits_are_refused_by_the_kernel(text: str) -> None:
    raw = np.frombuffer(text.encode(), np.uint8).copy()
    assert not kernels_json.nanoseconds(raw, 0, len(raw))[0]


def same(a: Trace, b: Trace) -> None:
    for name in a.events.__slots__:
        assert (getattr(a.events, name) == getattr(b.events, name)).all(), name
    for name in a.flows.__slots__:
        assert (getattr(a.flows, name) == getattr(b.flows, name)).all(), name
    assert (a.strings, a.tracks, a.ranks, a.counts, a.notes, a.digest) == (b.strings, b.tracks, b.ranks, b.counts, b.notes, b.digest)
    assert a.args.keys() == b.args.keys()
    for key in a.args:
        assert all((getattr(a.args[key], part) == getattr(b.args[key], part)).all() for part in ("event", "value", "is_text"))


@pytest.mark.parametrize("chunk", [97, 1000, 4099])
def test_chunk_borders_change_nothing(shared: Path, chunk: int) -> None:
    path = shared / "traces" / "a100_event_sync.json.gz"
    same(open_trace(path), open_trace(path, chunk=chunk))


@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize("name", ["unescaped_quotes.json", "truncated.json", "bom_crlf.json", "string_ts.json", "jax_like.json.gz"])
def test_chunk_borders_change_nothing_in_damaged_files(shared: Path, name: str, chunk: int) -> None:
    path = shared / "cases" / "traces" / name
    same(open_trace(path, salvage=True), open_trace(path, salvage=True, chunk=chunk))


def base_document() -> str:
    names = ("aten::mm", "cudaLaunchKernel", 'say "hi" \\ tab\t', "gemm<float>")
    records: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "GPU 0"}}]
    for i in range(12):
        args = {"correlation": i, "Input Dims": [[2, 3], []], "note": "é\u0001"}
        records.append({"ph": "X", "cat": "kernel", "name": names[i % 4], "pid": 0, "tid": 7, "ts": 10.5 * i, "dur": 3.25, "args": args})
        records.append({"ph": "f", "id": i, "pid": 0, "tid": 7, "ts": 10.5 * i, "cat": "ac2g", "name": "ac2g", "bp": "e"})
    return json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": records, "traceName": "x"}, indent=1)


def mutate(raw: bytes, random: Random) -> bytes:
    data = bytearray(raw)
    for _ in range(random.choice((1, 1, 2, 5))):
        at, kind = random.randrange(len(data)), random.randrange(5)
        if kind == 0:
            data[at] = random.randrange(256)
        elif kind == 1:
            data[at : at + 1] = bytes((data[at], random.choice(b'"\\{}[],:0-.enu\n\0')))
        elif kind == 2:
            del data[at : at + random.choice((1, 1, 3, 40))]
        elif kind == 3:
            other = random.randrange(len(data))
            data[at:at] = data[other : other + random.choice((5, 60))]
        else:
            del data[at:]
        if not data:
            return b""
    return bytes(data)


def survive(path: Path, raw: bytes, packed: bool) -> None:
    """Whatever the bytes: an error a person can act on, or a trace; salvage never imports less, and never hangs."""
    path.write_bytes(gzip.compress(raw, 1)[: -random_cut(raw)] if packed else raw)
    strict, salvaged = (events_or_error(path, salvage) for salvage in (False, True))
    assert strict <= salvaged <= raw.count(b"ph") + raw.count(b"\\u")


def events_or_error(path: Path, salvage: bool) -> int:
    try:
        trace = open_trace(path, salvage=salvage)
    except WorkbenchError as error:
        return 0 if error.where == str(path) else -1
    facts(trace)
    return len(trace.events)


def random_cut(raw: bytes) -> int:
    return 1 + len(raw) % 40


@pytest.mark.parametrize("seed", range(4))
def test_mutated_bytes_never_crash(tmp_path: Path, seed: int) -> None:
    random, raw = Random(seed), base_document().encode()
    for i in range(40):
        survive(tmp_path / "m.json", mutate(raw, random), packed=i % 8 == 0)


@pytest.mark.fuzz
def test_mutated_public_traces_never_crash(tmp_path: Path, shared: Path) -> None:
    random = Random()
    small = [p for p in (shared / "cases" / "traces").glob("*.json")] + [shared / "traces" / "a100_event_sync.json.gz"]
    for i in range(3000):
        raw = random.choice(small).read_bytes()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        survive(tmp_path / "m.json", mutate(raw, random), packed=i % 10 == 0)


def test_strict_reading_accepts_exactly_what_python_accepts(tmp_path: Path) -> None:
    """Mutations that keep to ASCII: where Python's json reads the file, so does the scanner, with the same number of events."""
    random, raw = Random(5), base_document().encode("ascii")
    agreed = 0
    for _ in range(150):
        text = bytes(b & 127 for b in mutate(raw, random)).decode("ascii")
        path = write(tmp_path, text)
        try:
            want = len(read(text))
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
        agreed += 1
        assert len(open_trace(path).events) == want
    assert agreed > 20
