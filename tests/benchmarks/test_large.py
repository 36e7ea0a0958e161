"""A trace of 2 GB, and a second opening of the same file: memory and time (python3 run.py bench)."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from workbench.trace.open import open_trace

pytestmark = pytest.mark.benchmark

SIZE = 2_000_000_000
GOAL_BYTES = 1.5  # bytes of memory growth per byte of plain JSON
GOAL_AGAIN = 10.0  # how many times faster a second opening is
OPERATORS = (
    "aten::linear",
    "aten::addmm",
    "aten::native_layer_norm",
    "aten::gelu",
    "aten::_scaled_dot_product_flash_attention",
    "aten::add_",
)
KERNELS = (
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
    "void at::native::vectorized_elementwise_kernel<4>(int)",
    "flash_fwd",
)
WATCHED = """
import sys, time
from workbench.trace.open import open_trace
def status(key):
    return 1024 * [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)][0]
open_trace(sys.argv[1])
before, begin = status("VmRSS"), time.process_time()
trace = open_trace(sys.argv[2])
print(status("VmHWM") - before, time.process_time() - begin, len(trace.events), int(trace.events.dur_ns.sum()))
"""


def launches(seed: int) -> Iterator[tuple[str, int, int]]:
    """Yield an operator with its call, kernel and arrows as JSON, how many events that is, and the sum of their durations [ns]."""
    random, at = Random(seed), 0
    while True:
        start, n = 100 * at, random.randrange(1, 64)
        host, device = 3 + n % 5, 20 + n
        shape = f"[[{n}, 4096], [4096, {64 * n}], []]"
        name, kernel = OPERATORS[at % len(OPERATORS)], KERNELS[n % len(KERNELS)]
        ids = f'"External id": {at + 1}, "correlation": {at + 1}'
        shared = '"context": 1, "queued": 0, "shared memory": 0, "block": [128, 1, 1]'
        text = (
            f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 77, "tid": 77, "ts": {start}.125, "dur": {host}.250, "args": '
            f'{{"External id": {at + 1}, "Record function id": 0, "Concrete Inputs": ["", "", "1"], "Input type": ["float", "float", '
            f'"Scalar"], "Input Dims": {shape}, "Ev Idx": {at}}}}},\n'
            f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": 77, "ts": {start + 1}.000, "dur": 1.500, '
            f'"args": {{{ids}, "cbid": 211}}}},\n'
            f'{{"ph": "s", "id": {at + 1}, "pid": 77, "tid": 77, "ts": {start + 1}.000, "cat": "ac2g", "name": "ac2g"}},\n'
            f'{{"ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": 7, "ts": {start + 40}.001, "dur": {device}.007, '
            f'"args": {{{ids}, "device": 0, "stream": 7, {shared}, "registers per thread": {32 + n}, "blocks per SM": {n / 8}, '
            f'"warps per SM": {n / 2}, "grid": [{n}, 1, 1], "est. achieved occupancy %": {n}}}}},\n'
            f'{{"ph": "f", "id": {at + 1}, "pid": 0, "tid": 7, "ts": {start + 40}.001, "cat": "ac2g", "name": "ac2g", "bp": "e"}}'
        )
        yield text, 3, 1000 * host + 250 + 1500 + 1000 * device + 7
        at += 1


def write(path: Path, size: int) -> tuple[int, int]:
    """Write a trace of at least ``size`` bytes, never held whole; return its complete events and the sum of their durations [ns]."""
    events = total = 0
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [\n')
        separator = ""
        for text, count, dur in launches(0):
            file.write(separator)
            file.write(text)
            separator, events, total = ",\n", events + count, total + dur
            if events % 3000 == 0 and file.tell() >= size:
                break
        file.write("\n]}")
    return events, total


def watched(project: Path, small: Path, large: Path) -> tuple[int, float, int, int]:
    """Return memory growth [B], time [s], events and their duration [ns] of opening a file in a process of its own."""
    command = [sys.executable, "-c", WATCHED, str(small), str(large)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, cwd=project).stdout.split()
    return int(out[0]), float(out[1]), int(out[2]), int(out[3])


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_two_gigabytes(project: Path, tmp_path: Path, packed: bool) -> None:
    """Streamed, never the whole text as objects; every event is there."""
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    write(small, 1 << 20)
    events, total = write(large, SIZE)
    size = large.stat().st_size
    if packed:
        with large.open("rb") as plain, gzip.open(tmp_path / "large.json.gz", "wb", compresslevel=1) as file:
            shutil.copyfileobj(plain, file, 1 << 20)
        large.unlink()
        large = tmp_path / "large.json.gz"
    grown, seconds, found, dur = watched(project, small, large)
    large.unlink()
    sys.stdout.write(f"\n{size / 1e6:.0f} MB: {grown / size:.2f} bytes of memory growth per JSON byte, {size / 1e6 / seconds:.0f} MB/s\n")
    assert (found, dur) == (events, total)
    assert grown / size <= GOAL_BYTES


def fastest(repeats: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


NAMES = (
    "size_v100_216k_events.json.gz", "size_mtia_456k_events.json.gz", "a100_ddp_six_steps.json.gz", "cpu_only.json.gz",
    "xla/gpu_worker.xplane.pb", "chakra/host_and_device.0.et.gz", "megatron_a100_tp8",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_second_opening(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    again(shared / "traces" / name, tmp_path, monkeypatch)


def test_second_opening_of_plain_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest must be read at the speed of the disk."""
    write(tmp_path / "plain.json", 100_000_000)
    again(tmp_path / "plain.json", tmp_path, monkeypatch)


def again(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_trace(path)
    first = fastest(2, lambda: open_trace(path))
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "kept"))
    open_trace(path)
    second = fastest(5, lambda: open_trace(path))
    held = sum(entry.stat().st_size for entry in os.scandir(tmp_path / "kept"))
    sys.stdout.write(f"\n{path.name}: {first:.3f} s, again {second:.4f} s ({first / second:.1f} x), {held / 1e6:.1f} MB kept\n")
    assert first / second >= GOAL_AGAIN
