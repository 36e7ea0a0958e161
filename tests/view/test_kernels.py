"""Level of detail: what is folded must still add up, and nothing rare may vanish."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.view import kernels as k


def lanes_of(rows):
    """Sort (lane, kind, start, finish) rows into the arrays the kernels read."""
    rows = sorted(rows, key=lambda r: (r[0], r[2]))
    lane, kind, start, finish = (np.array(c) for c in zip(*rows, strict=True))
    ptr = np.searchsorted(lane, np.arange(lane.max() + 2)).astype(np.int64)
    start, finish = start.astype(float), finish.astype(float)
    reach = np.empty_like(finish)
    k.running_max(ptr, finish, reach)
    return ptr, start, finish, reach, kind.astype(np.uint8)


def detail(arrays, t0, t1, pixels=1000, budget=9000, critical=None):
    ptr, start, finish, reach, kind = arrays
    critical = np.zeros(len(start), dtype=bool) if critical is None else critical
    return k.detail(ptr, start, finish, reach, kind, critical, t0, t1, pixels, budget)


def busy(box):
    return ((box[:, 1] - box[:, 0]) * box[:, 2]).sum()


@pytest.fixture(scope="module")
def thin(shared):
    with open(shared / "cases/field/38_thin_spans.csv") as file:
        rows = [
            (0 if r["stream"] == "7" else 1, 0 if r["kind"] == "compute" else 3, int(r["start_us"]), int(r["end_us"]))
            for r in csv.DictReader(file)
        ]
    return lanes_of(rows)


def test_thin_spans_keep_their_busy_time_and_the_single_message(thin):
    """4000 spans of 1 us every 10 us: 4000 us busy, each pixel 10 % shaded, and the one 3 us message is there."""
    box, index, lane, tag = detail(thin, 0.0, 40000.0)
    compute = lane == 0
    assert busy(box[compute]) == pytest.approx(4000.0)
    np.testing.assert_allclose(box[compute, 2], 0.1)
    assert index[compute, 1].sum() == 4000
    message = np.flatnonzero(lane == 1)
    assert len(message) == 1 and tag[message[0], 0] == 3
    assert busy(box[message]) == pytest.approx(3.0)


def test_the_message_survives_inside_a_compute_lane(thin):
    """The same spans in one lane: the 3 us message is 0.075 % of the busy time, so it is drawn beside the compute."""
    _ptr, start, finish, _reach, kind = thin
    rows = [(0, int(kind[i]), start[i], finish[i]) for i in range(len(start))]
    box, _index, _lane, tag = detail(lanes_of(rows), 0.0, 40000.0)
    rare = tag[:, 1] & k.FLAG_RARE > 0
    assert rare.sum() == 1 and tag[rare, 0] == 3
    assert busy(box) == pytest.approx(4003.0)


def test_wide_spans_stand_alone_and_are_clipped_to_the_window():
    arrays = lanes_of([(0, 1, 0, 10), (0, 2, 10, 30)])
    box, index, _lane, tag = detail(arrays, 5.0, 20.0)
    np.testing.assert_allclose(box, [[5, 10, 1], [10, 20, 1]])
    assert index[:, 1].tolist() == [1, 1] and tag[:, 0].tolist() == [1, 2]


def test_an_interval_before_the_window_that_reaches_into_it_is_found():
    """A long interval starts first and ends last: a search on starts alone would miss it."""
    arrays = lanes_of([(0, 1, 0, 100), (0, 2, 10, 20), (0, 2, 30, 40)])
    box, _index, _lane, _tag = detail(arrays, 50.0, 60.0)
    np.testing.assert_allclose(box, [[50, 60, 1]])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(0, 900), st.integers(1, 40)), min_size=1, max_size=200),
    st.integers(30, 120),
)
def test_shares_conserve_busy_time_whatever_the_budget(rows, budget):
    """Independent sum: clipped lengths added one by one in Python."""
    arrays = lanes_of([(lane, kind, begin, begin + length) for lane, kind, begin, length in rows])
    t0, t1 = 100.0, 800.0
    expected = sum(max(0, min(begin + length, t1) - max(begin, t0)) for _l, _k, begin, length in rows)
    lanes = len(arrays[0]) - 1
    box, _index, _lane, tag = detail(arrays, t0, t1, pixels=350, budget=max(budget, 8 * lanes))
    assert busy(box) == pytest.approx(expected, abs=1e-6)
    present = {kind for _l, kind, begin, length in rows if begin < t1 and begin + length > t0}
    assert set(tag[:, 0].tolist()) <= present
    assert len(box) <= max(budget, 8 * lanes) + 3 * lanes + sum(length >= (t1 - t0) / 10 for *_x, length in rows)


def test_dense_lanes_stay_within_the_budget():
    rng = np.random.default_rng(1)
    rows = [(lane, int(rng.integers(9)), i * 3.0, i * 3.0 + 2.0) for lane in range(24) for i in range(4000)]
    box, *_rest = detail(lanes_of(rows), 0.0, 12000.0, pixels=1400, budget=9000)
    assert len(box) <= 9000
    assert busy(box) == pytest.approx(24 * 8000.0)


def test_raster_agrees_with_the_rectangles(thin):
    ptr, start, finish, reach, kind = thin
    top, share = k.raster(ptr, start, finish, reach, kind, 0.0, 40000.0, 1000)
    np.testing.assert_allclose(share[0], 0.1, rtol=1e-5)
    assert (top[1] == 3).sum() == 1 and (top[1] == 255).sum() == 999


def test_statistics_of_a_selection():
    """[5, 25] of spans 0-10, 10-30, 40-50: two counted, 5 + 15 inside, durations 10 and 20."""
    ptr, start, finish, reach, kind = lanes_of([(0, 1, 0, 10), (0, 1, 10, 30), (0, 1, 40, 50), (1, 1, 0, 100)])
    out = k.interval_statistics(ptr, start, finish, reach, kind, np.array([True, False]), 5.0, 25.0)
    assert out[1].tolist() == [2, 20, 30, 10, 20]
    edge = k.interval_statistics(ptr, start, finish, reach, kind, np.array([True, False]), 10.0, 30.0)
    assert edge[1, 0] == 1


@pytest.mark.benchmark
def test_a_million_intervals_at_full_view():
    """ui.md: 6 ms for 1 M intervals at full view."""
    n = 1_000_000
    start = np.tile(np.arange(n // 20) * 10.0, 20)
    ptr = np.arange(0, n + 1, n // 20)
    finish = start + 7.0
    reach, kind = np.empty(n), (np.arange(n) % 9).astype(np.uint8)
    k.running_max(ptr, finish, reach)
    arrays = ptr, start, finish, reach, kind
    detail(arrays, 0.0, 5e5)
    begin = time.perf_counter()
    detail(arrays, 0.0, 5e5)
    assert time.perf_counter() - begin < 0.1
