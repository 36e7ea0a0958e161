"""Replay of pipeline schedules against a queue of events, and what the parts of a run mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.pipeline import Operation, Pipeline
from workbench.errors import Refused
from workbench.replay.schedule import Run, StageOrders, replay_schedule, stage_ends, stage_orders
from workbench.scale.schedules import Schedule, schedule, seconds, times

LETTERS = "FBIW"
JOBS = [
    ("gpipe", 3, 5, 1),
    ("1f1b", 4, 9, 1),
    ("1f1b", 5, 2, 1),
    ("interleaved", 2, 6, 2),
    ("interleaved", 3, 7, 3),
    ("zb-h1", 4, 7, 1),
    ("zb-h2", 3, 8, 1),
    ("zb-v", 3, 6, 2),
    ("zb-v", 2, 1, 2),
]


def ready(order: Schedule) -> StageOrders:
    return stage_orders(order.ptr, order.source)


def naive(order: Schedule, op_s: np.ndarray, latency: float, occupancy: float, blocking: bool) -> tuple[float, np.ndarray]:
    """Makespan and finish of every row by the queue of events."""
    rows = list(zip((LETTERS[w] for w in order.what), order.chunk.tolist(), order.microbatch.tolist(), strict=True))
    lists = [rows[a:b] for a, b in zip(order.ptr[:-1], order.ptr[1:], strict=True)]
    number = {(int(s), row): n for n, (s, row) in enumerate(zip(order.stage, rows, strict=True))}

    def place(stage: int, chunk: int) -> int:
        return 2 * order.stages - 1 - stage if order.name == "zb-v" and chunk else chunk * order.stages + stage

    def duration(stage: int, operation: Operation) -> float:
        return float(op_s[number[stage, operation]])

    pipeline = Pipeline(lists, place, duration, latency, occupancy, blocking)
    end = pipeline.run()
    return end, np.array([pipeline.finished[int(s), row] for s, row in zip(order.stage, rows, strict=True)])


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(("latency", "occupancy"), [(0.0, 0.0), (0.3, 0.0), (0.1, 0.4), (0.0, 1.7)])
@pytest.mark.parametrize("job", JOBS)
def test_replay_is_what_a_queue_of_events_does(job: tuple[str, int, int, int], latency: float, occupancy: float, blocking: bool) -> None:
    """Every operation with a time of its own: jitter, uneven stages, queues on links."""
    order = schedule(*job)
    op_s = np.random.default_rng(7).uniform(0.1, 2.0, len(order))
    run = replay_schedule(ready(order), op_s, latency, occupancy, blocking=blocking)
    end, finish = naive(order, op_s, latency, occupancy, blocking)
    assert run.makespan_s == pytest.approx(end)
    assert run.finish_s == pytest.approx(finish)


def chain(run: Run, op_s: np.ndarray) -> float:
    return float(op_s[run.critical].sum() + run.critical_message_s)


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("job", JOBS)
def test_the_critical_path_has_no_holes(job: tuple[str, int, int, int], blocking: bool) -> None:
    """Its operations and its messages add up to the makespan; a longer operation on it lengthens the run, one with slack may not."""
    order = schedule(*job)
    op_s = np.random.default_rng(3).uniform(0.1, 2.0, len(order))
    orders = ready(order)
    for latency, occupancy in ((0.0, 0.0), (0.2, 0.1), (0.05, 2.5)):
        run = replay_schedule(orders, op_s, latency, occupancy, blocking=blocking)
        assert chain(run, op_s) == pytest.approx(run.makespan_s)
        longer = op_s + 0.5 * (np.arange(len(op_s)) == np.flatnonzero(run.critical)[0])
        assert replay_schedule(orders, longer, latency, occupancy, blocking=blocking).makespan_s == pytest.approx(run.makespan_s + 0.5)


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("job", JOBS)
def test_the_time_of_a_stage_has_three_parts(job: tuple[str, int, int, int], blocking: bool) -> None:
    """Up to its last operation a stage works, is held by its messages or waits; its bubble is all but work."""
    order = schedule(*job)
    op_s = np.random.default_rng(5).uniform(0.1, 2.0, len(order))
    run = replay_schedule(ready(order), op_s, 0.2, 0.1, blocking=blocking)
    gaps = run.start_s - np.where(np.arange(len(order)) == order.ptr[order.stage], 0.0, np.roll(run.finish_s, 1))
    assert run.waiting_s + run.sending_s == pytest.approx(np.bincount(order.stage, weights=gaps, minlength=order.stages))
    assert (run.sending_s > 0).any() == (blocking and order.stages > 1)
    assert run.bubble_s == pytest.approx(run.makespan_s - np.bincount(order.stage, weights=op_s, minlength=order.stages))


@given(st.sampled_from(JOBS), st.integers(0, 2**31), st.booleans())
def test_many_scenarios_are_single_ones(job: tuple[str, int, int, int], seed: int, blocking: bool) -> None:
    order = schedule(*job)
    orders, rng = ready(order), np.random.default_rng(seed)
    rows, count = 4 * job[1] * job[3], 18  # more than run side by side
    value, latency, occupancy = rng.random((rows, count)), rng.random(count), rng.random((job[1], job[1], count))
    row = (order.what.astype(np.int64) * job[1] + order.stage) * job[3] + order.chunk
    begin, end = stage_ends(orders, row, value, latency, occupancy, blocking=blocking)
    for c in (0, 15, 16, 17):
        run = replay_schedule(orders, value[row, c], latency[c], occupancy[..., c], blocking=blocking)
        assert np.array_equal(run.begin_s, begin[:, c])
        assert np.array_equal(run.end_s, end[:, c])


@given(st.sampled_from(JOBS), st.integers(0, 2**31))
def test_nothing_gets_faster_by_slower_parts(job: tuple[str, int, int, int], seed: int) -> None:
    """The orders are fixed, so longer operations and messages never shorten a run."""
    order = schedule(*job)
    orders, rng = ready(order), np.random.default_rng(seed)
    op_s, latency = rng.random(len(order)), float(rng.random())
    run = replay_schedule(orders, op_s, latency, 0.1)
    slower = replay_schedule(orders, op_s + rng.random(len(order)), latency + 0.1, 0.2)
    assert (slower.finish_s >= run.finish_s).all()


def test_links_carry_one_message_at_a_time_each_way() -> None:
    """Two forward passes of 1 s, messages that keep the link 3 s: they arrive at 4 and 7 s; latency comes on top and delays none."""
    order = schedule("gpipe", 2, 2)
    table = seconds(1.0, 1.0, 0.0, (2, 1))
    run = replay_schedule(ready(order), times(order, table), 0.5, 3.0)
    assert run.start_s[order.ptr[1] : order.ptr[1] + 2].tolist() == [4.5, 7.5]
    assert run.makespan_s == 17.0  # gradients are ready at 9.5 and 10.5, the second leaves at 12.5 and arrives at 16


def test_what_cannot_run_is_refused() -> None:
    order = schedule("1f1b", 2, 2)
    orders = ready(order)
    with pytest.raises(Refused, match="shape"):
        replay_schedule(orders, np.ones(3))
    with pytest.raises(Refused, match="finite"):
        replay_schedule(orders, np.full(len(order), np.nan))
    with pytest.raises(Refused, match="latency"):
        replay_schedule(orders, np.ones(len(order)), np.ones(3))
    with pytest.raises(Refused, match="latency"):
        replay_schedule(orders, np.ones(len(order)), -1.0)
    with pytest.raises(Refused, match="rows"):
        stage_ends(orders, np.full(len(order), 7), np.ones((2, 3)))
    with pytest.raises(Refused, match="outside"):
        stage_orders(np.array([0, 3]), np.array([-1, -1]))
    with pytest.raises(Refused, match="one message"):
        stage_orders(np.array([0, 1, 2, 3]), np.array([-1, 0, 0]))
