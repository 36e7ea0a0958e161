"""Speed of graph building and replay, printed as ratios to what one run needs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.replay.graphs import random_graph
from workbench.graph.build import build_graph
from workbench.replay.account import account
from workbench.replay.replay import replay, step_times
from workbench.trace.open import open_trace

pytestmark = pytest.mark.benchmark
NODES, SCENARIOS = 100_000, 1_000


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def best(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of the fastest of some runs, after one to warm up."""
    run()
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def test_sweep_and_single_replay(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    rows = 300
    g = random_graph(rng, NODES, rows, more=0.1)  # 1.3 causes a node; recordings have 1.1 to 1.4
    weight, value = rng.random(NODES), rng.random((rows + 2, SCENARIOS))
    sweep = best(lambda: step_times(g, weight, value, threads=2), 2)
    one_thread = best(lambda: step_times(g, weight, value, threads=1), 1)
    node_s = rng.random(NODES)
    single = best(lambda: replay(g, node_s))
    rate = NODES * SCENARIOS / sweep / 1e6
    with capsys.disabled():
        say(f"\nreplay: {rate:.0f} M node x scenario/s on 2 threads ({one_thread / sweep:.2f} x one thread), goal 150: {rate / 150:.2f} x")
        say(f"replay of {NODES} nodes, slack and critical path: {single * 1e3:.1f} ms, goal 15 ms: {15e-3 / single:.2f} x")
    assert rate > 150
    assert single < 15e-3


def test_build_and_account(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = open_trace([shared / "traces" / "size_v100_216k_events.json.gz"])
    seconds = best(lambda: build_graph(trace), 2)
    g, _ = build_graph(trace)
    timeline = replay(g, g.measured_s)
    accounted = best(lambda: account(g, timeline))
    with capsys.disabled():
        say(f"\ngraph: {len(trace.events) / seconds / 1e3:.0f} k events/s ({seconds:.2f} s for {len(trace.events)} events), {len(g)} nodes")
        say(f"account of {len(timeline.step_s)} steps: {accounted * 1e3:.1f} ms")
    assert len(trace.events) / seconds > 2e5
