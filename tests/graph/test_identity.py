"""Measured times replayed on the recorded graph give the recorded steps, on every real recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.graph.made import built, check_invariants
from workbench.graph.graph import DEVICE_KINDS
from workbench.graph.lags import ledger, unexplained_share
from workbench.replay.account import account
from workbench.trace.open import open_trace

SMALL = [
    "a100_alexnet",
    "a100_event_sync",
    "cpu_only",
    "mi300x_compiled_triton",
    "mi300x_llm_graph_decode",
    "v100_nanoseconds",
    "v100_resnet50_2021",
    "a100_ddp_six_steps",
    *(f"megatron_a100_tp8/kineto_rank{r}" for r in range(8)),
    *(f"pairs/{m}_{c}" for m in ("bert_small", "qwen_0.5b", "owlv2") for c in ("h100", "mi300x")),
]
LARGE = ["size_v100_216k_events", "size_mtia_456k_events"]


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(n, marks=pytest.mark.accuracy) for n in LARGE)])
def test_replay_gives_the_recorded_steps(shared: Path, name: str) -> None:
    trace = open_trace([shared / "traces" / f"{name}.json.gz"])
    b = built(trace)
    graph, timeline = b.graph, b.timeline
    check_invariants(graph)
    assert np.abs(timeline.step_s / graph.measured_step_s - 1).max() < 1e-3  # the demand
    np.testing.assert_allclose(timeline.step_s, graph.measured_step_s, rtol=1e-9)  # what is reached: rounding
    assert np.isin(graph.kind, DEVICE_KINDS).sum() == trace.is_device_work.sum(), "no device work is dropped"
    parts = account(graph, timeline)
    total = parts.compute_s + parts.exposed_communication_s + parts.exposed_copy_s + parts.host_s + parts.waiting_s + parts.idle_s
    np.testing.assert_allclose(total, timeline.step_s, rtol=1e-12)
    lags = ledger(graph, timeline, trace)
    assert all(lag.cause and lag.seconds > 0 for lag in lags)
    assert ((unexplained_share(graph, timeline) >= 0) & (unexplained_share(graph, timeline) <= 1)).all()
