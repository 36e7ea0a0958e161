"""Handing tiles from core to core: by hand, and against an event-by-event walk of a two-stage pipeline with so many buffers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.cost.handover import TRIPS, handover

TIME = st.floats(1e-7, 1e-4)


def walk(matrix: float, vector: float, trip: float, tiles: int, depth: int) -> float:
    """Finish of the last tile: a tile starts on the matrix core when that is free and a buffer is; a buffer is free again when
    the vector core is done with the tile of ``depth`` before."""
    made = done = 0.0
    finished: list[float] = []
    for tile in range(tiles):
        free = finished[tile - depth] if tile >= depth else 0.0
        made = max(made, free) + matrix
        done = max(done, made + trip) + vector
        finished.append(done)
    return done


def test_by_hand():
    """10 tiles of 1 us on either side; a way of 1 us moving and 2 x 0.5 us waiting: a trip of 4 us, two in flight, one every 2 us."""
    found = handover(10e-6, 10e-6, 10, 1000.0, 2, 2e9, 0.5e-6)
    assert found.stall == pytest.approx(10 * 1e-6)
    assert found.fill == pytest.approx(2e-6)
    assert found.moved == pytest.approx(10 * 2 * 1000.0 * 2)  # by both pairs, written and read
    slow = handover(10e-6, 10e-6, 10, 4000.0, 2, 2e9, 0.5e-6)  # 4 us a tile through the level, which both pairs share
    assert slow.stall == pytest.approx(10 * 3e-6)
    assert handover(10e-6, 10e-6, 10, 0.0, 2, 2e9, 0.0).stall == 0  # nothing on the way: two buffers are enough
    nothing = handover(0.0, 0.0, 0, 1e6, 2, 2e9, 1e-6)
    assert nothing.stall == nothing.fill == nothing.moved == 0


def test_one_tile_goes_all_the_way():
    """A single tile overlaps with nothing: matrix, trip and vector time one after the other."""
    found = handover(3e-6, 2e-6, 1, 1000.0, 1, 1e9, 1e-6)
    assert max(3e-6, 2e-6) + found.stall + found.fill == pytest.approx(3e-6 + 1e-6 + TRIPS * 1e-6 + 2e-6)


@given(TIME, TIME, TIME, st.integers(1, 200), st.integers(1, 4))
def test_against_a_walk_through_the_pipeline(matrix, vector, latency, tiles, depth):
    found = handover(matrix * tiles, vector * tiles, tiles, 0.0, 1, 1e9, latency, depth=depth)
    exact = walk(matrix, vector, TRIPS * latency, tiles, depth)
    total = max(matrix, vector) * tiles + found.stall + found.fill
    assert total == pytest.approx(exact, rel=1.0 / tiles + 1e-9)
    assert total >= exact * (1 - 1 / tiles) - 1e-12


@given(TIME, TIME, st.integers(1, 100), st.floats(1.0, 1e7), TIME)
def test_better_exchange_never_costs_more(matrix, vector, tiles, size, latency):
    def total(rate: float, delay: float, depth: float) -> float:
        found = handover(matrix, vector, tiles, size, 24, rate, delay, depth)
        assert (np.array([found.stall, found.fill, found.moved]) >= 0).all()
        return float(found.stall + found.fill)

    base = total(1e12, latency, 2.0)
    assert total(2e12, latency, 2.0) <= base * (1 + 1e-12)
    assert total(1e12, latency / 2, 2.0) <= base * (1 + 1e-12)
