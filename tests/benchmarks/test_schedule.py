"""Speed of pipeline schedules: full replay of 8 stages x 64 microbatches, interleaved, and closed forms of many plans."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest

from tests.benchmarks.test_replay import best
from workbench.replay.schedule import replay_schedule, stage_ends, stage_orders
from workbench.scale.bubble import pipeline_s
from workbench.scale.schedules import schedule, seconds, times

pytestmark = pytest.mark.benchmark
GOAL_S, GOAL_FORMS = 2e-3, 1e6
SCENARIOS, PLANS = 1_000, 100_000


def test_replay_of_an_interleaved_schedule() -> None:
    table = seconds(1.0, 1.0, 1.0, (8, 2))
    order = schedule("interleaved", 8, 64, 2)
    orders, op_s = stage_orders(order.ptr, order.source), times(order, table)
    row = (order.what.astype(np.int64) * 8 + order.stage) * 2 + order.chunk
    value = np.random.default_rng(0).random((64, SCENARIOS))

    def whole() -> None:
        made = schedule("interleaved", 8, 64, 2)
        replay_schedule(stage_orders(made.ptr, made.source), times(made, table), 0.01, 0.01)

    first, again = best(whole, 50), best(lambda: replay_schedule(orders, op_s, 0.01, 0.01), 50)
    many = best(lambda: stage_ends(orders, row, value, 0.01))
    rate = len(order) * SCENARIOS / many / 1e6
    sys.stdout.write(f"\n{len(order)} operations with messages: {first * 1e6:.0f} us with their order, {again * 1e6:.0f} us again, ")
    sys.stdout.write(f"{rate:.0f} M operations/s in {SCENARIOS} scenarios\n")
    assert first < GOAL_S


def test_closed_forms() -> None:
    rng = np.random.default_rng(0)
    p, m = rng.integers(1, 17, PLANS), rng.integers(1, 65, PLANS)
    f, i, w = rng.random((3, PLANS))
    for name in ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2"):
        rate = PLANS / best(partial(pipeline_s, name, p, m, 2, f, i, w, 0.01))
        sys.stdout.write(f"\n{name}: {rate / 1e6:.1f} M closed forms/s")
        assert rate > GOAL_FORMS
