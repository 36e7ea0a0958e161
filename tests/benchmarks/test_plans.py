"""Speed of plans: a search over all of a 175B model's on 1 024 cards, one step, a recording on ten thousand cards and more."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from workbench.data import data_path
from workbench.hardware.cluster_text import load_cluster
from workbench.hardware.npu import load_npu
from workbench.models.describe import load_model
from workbench.network.curve import curve
from workbench.network.groups import strided
from workbench.operators.table import Kind
from workbench.scale.plan import ParallelPlan
from workbench.study.plan_search import search_plans
from workbench.study.plan_step import plan_step
from workbench.study.scale_out import scale_out
from workbench.study.scenario import Scenario
from workbench.trace.open import open_trace

pytestmark = pytest.mark.benchmark


def seconds(act: Callable[[], object], times: int = 3) -> float:
    """The shortest of several runs, after one that compiles and fills caches."""
    act()
    spent = []
    for _ in range(times):
        begin = time.perf_counter()
        act()
        spent.append(time.perf_counter() - begin)
    return min(spent)


def test_all_plans_of_175b_on_1024_cards() -> None:
    """Goal: one second (Calculon evaluates 57 plans a second, Isaev et al., SC 2023)."""
    model, npu, cluster = load_model("gpt3-175b"), load_npu("a100-sxm4-80gb"), load_cluster("dgx-a100")
    found = search_plans(model, npu, cluster, 1024, 1536)
    spent = seconds(lambda: search_plans(model, npu, cluster, 1024, 1536))
    print(f"{found.tried} plans in {spent:.2f} s, {found.tried / spent:,.0f} a second")
    assert found.tried > 1000
    assert spent < 2.0  # 0.75 s on a quiet core; a crowded one may take twice as long


def test_one_plan_takes_milliseconds() -> None:
    model, npu, cluster = load_model("gpt3-175b"), load_npu("a100-sxm4-80gb"), load_cluster("dgx-a100")
    plan = ParallelPlan(dp=16, tp=8, pp=8, microbatches=96, virtual_stages=3, schedule="interleaved", recompute="full")
    spent = seconds(lambda: plan_step(model, npu, cluster, plan))
    print(f"one plan: {spent * 1e3:.1f} ms")
    assert spent < 0.1


def test_a_recording_on_16384_cards() -> None:
    """Ten thousand cards take as long as eight: one stands for all."""
    scenario = Scenario(open_trace(data_path("traces", "synthetic_one_card.json.gz")))  # type: ignore[arg-type]
    cluster = load_cluster("pyramid-1024")
    few, many = (seconds(lambda n=n: scale_out(scenario, cluster, [n])) for n in (8, 16_384))  # type: ignore[misc]
    print(f"8 cards {few * 1e3:.1f} ms, 16 384 cards {many * 1e3:.1f} ms")
    assert many < 5 * few


def test_collectives_a_second() -> None:
    """Goal: ten million evaluations a second on one core."""
    line = curve(load_cluster("dgx-h100"), Kind.ALL_REDUCE, strided(load_cluster("dgx-h100"), 512))
    sizes = np.geomspace(8, 8e9, 1_000_000)
    spent = seconds(lambda: line.seconds(sizes))
    print(f"{len(sizes) / spent / 1e6:.0f} million collectives a second")
    assert len(sizes) / spent > 5e6
