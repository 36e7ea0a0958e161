"""Speed and memory of importing a trace: against json.loads in the same run, and against the stated goals (python3 run.py bench)."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.trace import kineto
from workbench.trace.merge import merge
from workbench.trace.open import open_trace
from workbench.trace.scanner import Scanner
from workbench.trace.source import Source

pytestmark = pytest.mark.benchmark

GOAL_MB_S = 100.0  # MB of plain JSON a second, decompression left out
GOAL_HTA, FLOOR_HTA = 10.0, 5.0  # times as fast as HTA
GOAL_BYTES = 1.5  # bytes of memory growth per byte of plain JSON
SIZES = ["size_v100_216k_events.json.gz", "size_mtia_456k_events.json.gz"]
GROWTH = """
import sys
from workbench.trace.open import open_trace
def status(key):
    return 1024 * [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)][0]
open_trace(sys.argv[1])
before = status("VmRSS")
open_trace(sys.argv[2])
print(status("VmHWM") - before)
"""


def best(repeats: int, work) -> float:
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


@pytest.mark.parametrize("name", SIZES)
def test_import_speed(shared: Path, tmp_path: Path, name: str) -> None:
    plain = tmp_path / "plain.json"
    plain.write_bytes(gzip.decompress((shared / "traces" / name).read_bytes()))
    size = plain.stat().st_size / 1e6
    text = plain.read_bytes()

    def imported() -> None:
        merge([kineto.to_part(Scanner(Source(plain)).run(), str(plain))], [0], [True], "")

    imported()
    ours, python = best(5, imported), best(2, lambda: json.loads(text))
    whole = best(2, lambda: open_trace(shared / "traces" / name))
    sys.stdout.write(f"\n{name}: {size / ours:.0f} MB/s plain ({python / ours:.1f} x json.loads), {size / whole:.0f} MB/s from gzip\n")
    assert size / ours >= GOAL_MB_S


@pytest.mark.parametrize("name", SIZES)
def test_import_against_hta(shared: Path, tmp_path: Path, name: str) -> None:
    """Processor time to open the same file, gzip undone by both; HTA (Holistic Trace Analysis) in this process, one rank, no pool."""
    hta = pytest.importorskip("hta.common.trace", reason="hta is not installed (HolisticTraceAnalysis)")
    path = tmp_path / name
    path.write_bytes((shared / "traces" / name).read_bytes())

    def theirs() -> None:
        hta.Trace(trace_files={0: str(path)}, trace_dir=str(tmp_path)).parse_traces(use_multiprocessing=False)

    def ours() -> None:
        merge([kineto.to_part(Scanner(Source(path)).run(), str(path))], [0], [True], "")

    ours()
    ratio = best(1, theirs) / best(5, ours)
    sys.stdout.write(f"\n{name}: imported {ratio:.1f} times as fast as by HTA, goal {GOAL_HTA:.0f}\n")
    assert ratio >= FLOOR_HTA


def growth(project: Path, small: Path, large: Path) -> int:
    command = [sys.executable, "-c", GROWTH, str(small), str(large)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True, cwd=project) for _ in range(2)]  # the first may compile
    return int(runs[-1].stdout)


@pytest.mark.parametrize("name", SIZES)
def test_memory_growth(project: Path, shared: Path, name: str) -> None:
    path = shared / "traces" / name
    size = len(gzip.decompress(path.read_bytes()))
    bytes_each = growth(project, shared / "traces" / "a100_event_sync.json.gz", path) / size
    sys.stdout.write(f"\n{name}: {bytes_each:.2f} bytes of memory growth per JSON byte\n")
    assert bytes_each <= GOAL_BYTES


def test_memory_of_a_large_file(project: Path, shared: Path, tmp_path: Path) -> None:
    """A trace repeated to half a gigabyte is streamed, never held as text."""
    document = gzip.decompress((shared / "traces" / SIZES[0]).read_bytes())
    head, records = document.split(b'"traceEvents": [', 1)
    records = records[: records.rindex(b"]")]
    path = tmp_path / "large.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head + b'"traceEvents": [')
        for i in range(10):
            file.write((b"," if i else b"") + records)
        file.write(b"]}")
    bytes_each = growth(project, shared / "traces" / "a100_event_sync.json.gz", path) / (10 * len(records))
    sys.stdout.write(f"\n{10 * len(records) / 1e6:.0f} MB: {bytes_each:.2f} bytes of memory growth per JSON byte\n")
    assert bytes_each <= GOAL_BYTES
