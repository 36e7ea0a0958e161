"""Ring collectives: textbook figures, floors, and never less time for more bytes (field cases 23 and 26)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import Refused
from workbench.network.collectives import transfer_s
from workbench.operators.table import COLLECTIVES, Kind


@pytest.mark.parametrize(("members", "seconds"), [(8, 3.514e-3), (64, 4.0635e-3)])
def test_case_23_the_ring_depends_on_its_size(members, seconds):
    # the case's figures: 100 MB over 50 GB/s and 1 us a step, 2 (n - 1) steps, 2 (n - 1) / n of the message
    assert transfer_s(Kind.ALL_REDUCE, 100e6, members, 50e9, 1e-6) == pytest.approx(seconds, rel=1e-12)


def test_an_all_reduce_is_its_two_halves():
    parts = [float(transfer_s(kind, 1e8, 16, 25e9, 2e-6)) for kind in (Kind.REDUCE_SCATTER, Kind.ALL_GATHER)]
    assert float(transfer_s(Kind.ALL_REDUCE, 1e8, 16, 25e9, 2e-6)) == pytest.approx(sum(parts))


@given(st.sampled_from(COLLECTIVES), st.integers(1, 4096), st.floats(1e8, 1e13), st.floats(0, 1e-4))
def test_never_negative_never_falling_floor_at_nothing(kind, members, bandwidth, latency):
    size = np.array([0.0, *np.logspace(0, 13, 11)])  # field case 26 has 11 sizes
    time = transfer_s(kind, size, members, bandwidth, latency)
    assert (time >= 0).all()
    assert (np.diff(time) >= 0).all()
    assert np.isfinite(time).all()
    assert (time[0] == 0) == (members == 1 or latency == 0)


def test_one_member_moves_nothing():
    assert transfer_s(Kind.ALL_REDUCE, 1e9, 1, 1e9, 1e-6) == 0


@pytest.mark.parametrize(
    "bad", [(-1, 8, 1e9, 0), (1, 0, 1e9, 0), (1, 8, 0, 0), (1, 8, 1e9, -1), (math.nan, 8, 1e9, 0), (1, 8, math.nan, 0)]
)
def test_what_makes_no_sense_is_refused(bad):
    with pytest.raises(Refused):
        transfer_s(Kind.ALL_REDUCE, *bad)


def test_a_product_is_no_collective():
    with pytest.raises(Refused):
        transfer_s(Kind.GEMM, 1, 8, 1e9, 0)
