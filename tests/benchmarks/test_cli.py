"""Speed of the command line and of one warm prediction (python3 run.py bench)."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.data import data_path
from workbench.hardware.npu import load_npu
from workbench.study.predict import predict
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

pytestmark = pytest.mark.benchmark


def best(repeats: int, work) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def test_help_takes_less_than_a_second(project: Path) -> None:
    command = [sys.executable, "-m", "workbench.cli", "--help"]
    seconds = best(3, lambda: subprocess.run(command, check=True, capture_output=True, cwd=project))
    sys.stdout.write(f"\n--help: {seconds:.2f} s (limit 1 s)\n")
    assert seconds < 1.0


def test_a_warm_prediction_of_100_000_events_takes_at_most_50_ms(shared: Path) -> None:
    """The graph is built once; moving a slider prices and replays it again."""
    path = max((shared / "traces").glob("a100_ddp_six_steps.json.gz"), default=data_path("traces", "synthetic_ddp.json.gz"))
    workload = Workload(open_trace([path]))
    base = Scenario(workload, npu=load_npu("npu-x"))
    predict(base)
    bandwidths = iter(range(1, 100))
    seconds = best(7, lambda: predict(base.with_({"npu.memory.hbm.bandwidth": f"{next(bandwidths)} TB/s"})))
    events = len(workload.trace.events)
    scaled = seconds * 100_000 / events
    sys.stdout.write(f"\nwarm predict: {seconds * 1e3:.1f} ms for {events} events, {scaled * 1e3:.1f} ms scaled to 100 000 (limit 50 ms)\n")
    assert scaled <= 0.050
