"""Pipeline schedules: orders against their papers, deadlock-free for every size, and equal to closed forms exactly when links are free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.pipeline import by_hand, megatron
from workbench.errors import InvalidSpec, Refused
from workbench.replay.schedule import Run, replay_schedule, stage_orders
from workbench.scale.bubble import bubble_s, heavy_stage_s, is_exact, pipeline_s
from workbench.scale.plan import SCHEDULES
from workbench.scale.schedules import Schedule, What, in_flight, place, schedule, seconds, times

LETTERS = "FBIW"
SPANS = ("zb-h2", "zb-v")  # their bubble is that of the longest span of a stage
exact_times = st.integers(1, 40).map(lambda k: k / 8)  # sums of eighths are exact in floating point


@st.composite
def sizes(draw: st.DrawFn, most_stages: int = 6, most_microbatches: int = 14) -> tuple[str, int, int, int]:
    name = draw(st.sampled_from(SCHEDULES))
    virtual = {"interleaved": draw(st.integers(2, 4)), "zb-v": 2}.get(name, 1)
    return name, draw(st.integers(1, most_stages)), draw(st.integers(1, most_microbatches)), virtual


def played(order: Schedule, f: float, i: float, w: float, message: float = 0.0) -> Run:
    """The replay with times of a whole stage, divided evenly over its chunks."""
    v = order.virtual
    table = seconds(f / v, i / v, w / v, (order.stages, v))
    return replay_schedule(stage_orders(order.ptr, order.source), times(order, table), message)


def lists(order: Schedule) -> list[list[tuple[str, int, int]]]:
    rows = list(zip((LETTERS[w] for w in order.what), order.chunk.tolist(), order.microbatch.tolist(), strict=True))
    return [rows[a:b] for a, b in zip(order.ptr[:-1], order.ptr[1:], strict=True)]


@given(sizes())
def test_every_operation_once_and_no_deadlock(size: tuple[str, int, int, int]) -> None:
    """Every microbatch goes through every chunk once each way, backward after forward, weights after inputs, and all of it runs."""
    name, p, m, v = size
    order = schedule(name, p, m, v)
    whats = (What.FORWARD, What.INPUT, What.WEIGHT) if order.splits_backward else (What.FORWARD, What.BACKWARD)
    for row in lists(order):
        assert sorted(row) == sorted((LETTERS[w], c, k) for w in whats for c in range(v) for k in range(m))
        at = {operation: n for n, operation in enumerate(row)}
        for c in range(v):
            for k in range(m):
                stations = [at[LETTERS[w], c, k] for w in whats]
                assert stations == sorted(stations)
    assert len(stage_orders(order.ptr, order.source).order) == len(order)


@given(sizes())
def test_messages_come_from_the_neighbouring_place(size: tuple[str, int, int, int]) -> None:
    name, p, m, v = size
    order = schedule(name, p, m, v)
    where = place(name, p, order.stage, order.chunk)
    assert sorted(where[(order.what == What.FORWARD) & (order.microbatch == 0)]) == list(range(p * v))
    step = np.select([order.what == What.FORWARD, order.what == What.WEIGHT], [-1, 0], 1)
    inner = (step != 0) & (where + step >= 0) & (where + step < p * v)
    assert np.array_equal(order.source >= 0, inner)
    source = order.source[inner]
    assert np.array_equal(where[source], (where + step)[inner])
    assert np.array_equal(order.microbatch[source], order.microbatch[inner])
    assert np.array_equal(order.what[source], order.what[inner])


@pytest.mark.parametrize(("p", "m"), [(1, 1), (4, 2), (4, 8), (8, 32), (5, 7)])
@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_orders_as_the_papers_draw_them(name: str, p: int, m: int) -> None:
    assert lists(schedule(name, p, m)) == by_hand(name, p, m)


@pytest.mark.parametrize(("p", "m", "v"), [(4, 8, 2), (2, 6, 3), (8, 8, 2), (4, 16, 4)])
def test_interleaved_is_the_order_of_megatron(p: int, m: int, v: int) -> None:
    assert lists(schedule("interleaved", p, m, v)) == megatron(p, m, v)


def test_the_zero_bubble_orders_as_drawn() -> None:
    """Figures 2 and 3 of arXiv 2401.10241 (first and last of 4 stages), and the first of figure 5 of arXiv 2405.15362 for 2 stages."""

    def text(name: str, p: int, m: int, stage: int, v: int = 1) -> str:
        return " ".join(f"{w}{k}" + ("'" if c else "") for w, c, k in lists(schedule(name, p, m, v))[stage])

    assert text("zb-h1", 4, 5, 0) == "F0 F1 F2 F3 I0 W0 F4 I1 W1 I2 W2 I3 W3 I4 W4"
    assert text("zb-h1", 4, 5, 3) == "F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 W2 W3 W4"
    assert text("zb-h2", 2, 4, 0) == "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3"
    assert text("zb-h2", 2, 4, 1) == "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3"
    assert text("zb-v", 1, 2, 0, 2) == "F0 F0' I0' W0' F1 I0 W0 F1' I1' W1' I1 W1"


def test_activations_in_flight() -> None:
    """1F1B keeps p - s microbatches, GPipe all, ZB-H1 p, ZB-H2 2 p - 1; ZB-V 2 p halves: p microbatches (table 1 of both papers).

    Interleaved keeps 2 (p - s - 1) + (v - 1) p + 1 chunks (arXiv 2104.04473, section 2.2).
    """
    assert in_flight(schedule("gpipe", 4, 16)).tolist() == [16] * 4
    assert in_flight(schedule("1f1b", 4, 16)).tolist() == [4, 3, 2, 1]
    assert in_flight(schedule("zb-h1", 4, 16)).tolist() == [4] * 4
    assert in_flight(schedule("zb-h2", 4, 16)).tolist() == [7] * 4
    assert in_flight(schedule("zb-v", 4, 16, 2)).tolist() == [8] * 4
    assert in_flight(schedule("interleaved", 4, 16, 2)).tolist() == [11, 9, 7, 5]


@given(sizes(8, 24), exact_times, exact_times, exact_times)
def test_free_links_give_the_closed_form_exactly(size: tuple[str, int, int, int], f: float, i: float, w: float) -> None:
    name, p, m, v = size
    v = 2 if name == "interleaved" else v  # halves are exact in floating point
    run = played(schedule(name, p, m, v), f, i, w)
    found = (run.period_s if name in SPANS else run.makespan_s) - m * (f + i + w)
    closed = bubble_s(name, p, m, v, f, i, w)
    if is_exact(name, p, m, v, f, i, w):
        assert found == closed
    elif name == "interleaved":
        assert found <= closed
    else:
        assert found >= closed
    assert pipeline_s(name, p, m, v, f, i, w) == closed + m * (f + i + w)


@given(st.integers(1, 7), st.integers(1, 20), exact_times)
def test_equal_times_leave_no_bubble_in_zb_v_and_zb_h2(p: int, more: int, t: float) -> None:
    """The promise of both papers: with F = I = W and enough microbatches no stage waits between its first and last operation."""
    m = 2 * p - 2 + more
    for name, v in (("zb-h2", 1), ("zb-v", 2)):
        run = played(schedule(name, p, m, v), t, t, t)
        assert np.array_equal(run.end_s - run.begin_s, run.busy_s)


def test_the_textbook_bubbles() -> None:
    """(p - 1)(F + I + W) = 21 for 8 stages and F = I = W = 1; half of it with two chunks; ZB-H1 a third."""
    assert [float(bubble_s(n, 8, 32, v, 1, 1, 1)) for n, v in (("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("zb-h1", 1))] == [
        21,
        21,
        10.5,
        7,
    ]


def test_messages_cost_more_than_the_textbook_says() -> None:
    """8 stages, 32 microbatches, messages of 0.05 F: 24.4, where (p - 1)(F + B) + 2 (p - 1) l says 21.7."""
    run = played(schedule("1f1b", 8, 32), 1.0, 1.0, 1.0, 0.05)
    assert run.makespan_s - 96 == pytest.approx(24.4)
    assert bubble_s("1f1b", 8, 32, 1, 1, 1, 1, 0.05) == pytest.approx(24.4)
    assert bubble_s("gpipe", 8, 32, 1, 1, 1, 1, 0.05) == pytest.approx(21.7)


@given(sizes(8, 30), exact_times, exact_times, exact_times, st.integers(1, 320).map(lambda k: k / 64))
def test_closed_forms_with_messages(size: tuple[str, int, int, int], f: float, i: float, w: float, message: float) -> None:
    name, p, m, v = size
    v = 2 if name == "interleaved" else v
    run = played(schedule(name, p, m, v), f, i, w, message)
    found = (run.period_s if name in SPANS else run.makespan_s) - m * (f + i + w)
    closed = bubble_s(name, p, m, v, f, i, w, message)
    if is_exact(name, p, m, v, f, i, w, message):
        assert found == closed
    elif name != "interleaved":
        assert found >= closed


@given(st.integers(1, 8), st.integers(1, 20), st.data())
def test_a_heavy_stage(p: int, m: int, data: st.DataObject) -> None:
    """All stages alike but one: m times the longest and the others once."""
    heavy, extra = data.draw(st.integers(0, p - 1)), data.draw(exact_times)
    f, b = np.ones(p), np.full(p, 2.0)
    f[heavy], b[heavy] = 1 + extra, 2 * (1 + extra)
    closed = heavy_stage_s(m, f + b)
    for name in ("gpipe", "1f1b"):
        order = schedule(name, p, m)
        table = seconds(f[:, None], b[:, None], 0.0, (p, 1))
        found = replay_schedule(stage_orders(order.ptr, order.source), times(order, table)).makespan_s
        if name == "gpipe" or heavy == p - 1:
            assert found == closed
        else:
            assert found <= closed


def test_what_cannot_be_is_refused() -> None:
    for name, p, m, v, word in [
        ("1f1f", 4, 4, 1, "no schedule"),
        ("1f1b", 0, 4, 1, "stages are 0"),
        ("1f1b", 4, 0, 1, "microbatches are 0"),
        ("1f1b", 4, 4, 2, "2 chunks"),
        ("interleaved", 4, 4, 1, "one chunk"),
        ("zb-v", 4, 4, 3, "3 chunks"),
    ]:
        with pytest.raises(InvalidSpec, match=word):
            schedule(name, p, m, v)
    with pytest.raises(InvalidSpec):
        bubble_s("1f1f", 1, 1, 1, 1, 1, 1)
    with pytest.raises(InvalidSpec):
        is_exact("1f1f", 1, 1, 1, 1, 1, 1)
    with pytest.raises(Refused, match="wait for each other"):
        stage_orders(np.array([0, 1, 2]), np.array([1, 0]))
