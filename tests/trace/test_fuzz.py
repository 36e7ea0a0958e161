"""Whatever a file holds, it is a trace with notes or an error a person can act on: never another exception, never a hang.

Every producer's files are damaged in their bytes, their values and their wrapping, opened with and without salvage, counted and made a
graph. The long version (``python3 run.py fuzz``) does so in processes of bounded memory and time.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace import mutations as m
from tests.trace.fuzz_worker import example, outcome
from workbench.data import data_path
from workbench.errors import UnreadableInput
from workbench.trace.open import open_trace

KINDS = (
    "kineto", "kineto gzip", "execution trace", "viewer", "chrome", "chakra", "xplane", "ascend folder", "ascend timeline", "kernel table",
    "op summary", "nsight", "nsight values",
)  # fmt: skip
SECONDS = float(os.environ.get("WORKBENCH_FUZZ_SECONDS", "120"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, m.Files]:
    found = m.whole(tmp_path_factory.mktemp("whole"))
    assert sorted(found) == sorted(KINDS)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_undamaged_they_are_traces(whole: dict[str, m.Files], tmp_path: Path, kind: str) -> None:
    """Or the damaged ones below would prove nothing."""
    if kind != "nsight values":
        for name, raw in whole[kind].items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(raw)
        assert outcome(tmp_path, False) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_of_every_producer(whole: dict[str, m.Files], tmp_path: Path, kind: str) -> None:
    for seed in range(25):
        example(kind, whole[kind], tmp_path / "x", seed)


@pytest.mark.parametrize("name", ["synthetic_queue_full.json.gz", "synthetic_ddp.json.gz"])
def test_damaged_samples(tmp_path: Path, name: str) -> None:
    raw = data_path("traces", name).read_bytes()
    for seed in range(5):
        example(name, {name: raw}, tmp_path / "x", seed)


values = st.one_of(st.sampled_from(m.ODD), st.integers(), st.floats(), st.text(max_size=8), st.integers(0, 400), st.integers(0, 8))
KEYS = (
    "correlation", "stream", "device", "External id", "bytes", "Input Dims", "Input type", "Concrete Inputs", "Collective name", "dtype",
    "In msg nelems", "Process Group Name", "wait_on_stream", "wait_on_cuda_event_record_corr_id", "Sequence number", "name", "labels",
)  # fmt: skip
CATEGORIES = ("kernel", "cuda_runtime", "cpu_op", "cuda_sync", "ac2g", "user_annotation", "x", "")
NAMES = ("aten::mm", "cudaLaunchKernel", "cudaStreamSynchronize", "process_name", "thread_name", "ProfilerStep#1", "k")
arguments = st.dictionaries(st.sampled_from(KEYS), values, max_size=6)
records = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from((*m.PHASES, "X", "X", "X", "X")), "cat": st.sampled_from(CATEGORIES), "name": st.sampled_from(NAMES),
        "ts": values, "dur": values, "pid": values, "tid": values, "id": values, "args": st.one_of(arguments, values), "bp": values,
    },
)  # fmt: skip
heads = st.dictionaries(
    st.sampled_from(("distributedInfo", "deviceProperties", "baseTimeNanoseconds", "displayTimeUnit", "schema", "nodes")), values
)


@given(heads, st.lists(records, max_size=12))
@settings(max_examples=120)
def test_records_of_any_value(tmp_path_factory: pytest.TempPathFactory, top: dict[str, Any], rows: list[Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(json.dumps({**top, "traceEvents": rows}).encode())
    strict, salvaged = outcome(path, False), outcome(path, True)
    assert strict <= salvaged, "salvage never imports less"


WRAPPED: dict[str, tuple[Any, str]] = {
    "plain": (lambda raw: raw, ""),
    "byte order mark": (lambda raw: b"\xef\xbb\xbf" + raw, ""),
    "several members": (lambda raw: gzip.compress(raw[:99]) + gzip.compress(raw[99:]), ""),
    "padded member": (lambda raw: gzip.compress(raw) + b"\0" * 512, ""),
    "empty member": (lambda raw: gzip.compress(raw) + gzip.compress(b""), ""),
    "garbage behind": (lambda raw: gzip.compress(raw) + b"garbage", "gzip stream is damaged"),
    "half a header behind": (lambda raw: gzip.compress(raw) + b"\x1f\x8b", "gzip stream is truncated"),
    "text behind": (lambda raw: raw + b"garbage", "text after the end"),
    "twice": (lambda raw: raw + raw, "text after the end"),
    "packed twice": (lambda raw: gzip.compress(gzip.compress(raw)), "no trace"),
    "utf-16": (lambda raw: raw.decode().encode("utf-16"), "UTF-16"),
    "zip": (lambda raw: b"PK\x03\x04" + raw, "zip"),
    "empty": (lambda raw: b"", "empty"),
    "spaces": (lambda raw: b" \n" * 100_000, "empty"),
    "empty gzip": (lambda raw: gzip.compress(b""), "empty"),
    "deep array": (lambda raw: b"[" * 200_000, "nesting deeper"),
    "deep object": (lambda raw: b'{"a":' * 200_000, "nesting deeper"),
    "nothing": (lambda raw: b"null", "no JSON"),
}


@pytest.mark.parametrize("how", WRAPPED)
def test_wrapping(tmp_path: Path, how: str) -> None:
    wrap, why = WRAPPED[how]
    path = tmp_path / "x.json"
    path.write_bytes(wrap(json.dumps(m.kineto()).encode()))
    if not why:
        assert outcome(path, False) == len([row for row in m.kineto()["traceEvents"] if row["ph"] == "X"])
        return
    with pytest.raises(UnreadableInput, match=why):
        open_trace(path)
    outcome(path, True)


@pytest.mark.fuzz
@pytest.mark.parametrize("worker", range(2))
def test_long(project: Path, tmp_path: Path, worker: int) -> None:
    """Random seeds, small public traces included where they lie; set WORKBENCH_FUZZ_SECONDS for more."""
    seed = random.SystemRandom().randrange(2**40)
    folder = Path(os.environ.get("WORKBENCH_SHARED", project.parent / "shared")) / "traces"
    files = [
        path for path in sorted([*data_path("traces").glob("*.gz"), *folder.rglob("*")]) if path.is_file() and path.stat().st_size < 60_000
    ]
    files = [path for path in files if path.suffix in (".gz", ".csv", ".pb", ".json") and path.name != "facts.json"]
    command = [sys.executable, "-m", "tests.trace.fuzz_worker", str(seed), str(SECONDS), *map(str, files)]
    log = tmp_path / "log"
    with log.open("w") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, cwd=project, timeout=SECONDS + 300, check=False)
    assert done.returncode == 0, log.read_text()[-5000:]
