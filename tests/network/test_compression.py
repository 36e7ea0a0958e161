"""Compressed all-reduces: the three forms by hand, and when they pay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import Refused
from workbench.hardware.cluster_text import read_cluster
from workbench.network.compression import Codec, compressed_s, pays_from
from workbench.network.curve import curve
from workbench.network.groups import strided
from workbench.operators.table import Kind

TIER = "{name: unit, size: 8, topology: switch, bandwidth_per_direction: 10 GB/s, latency: 0 s}"
CLUSTER = read_cluster(f"name: made\nsources: [made here]\ntiers: [{TIER}]\n", "made.yaml")
ALL = strided(CLUSTER, 8)


def test_by_hand() -> None:
    size, codec = 1e9, Codec(32.0, 100e9, launch=0.0)
    part = size / 32 / 10e9
    exchanged = (3 + 1 / 8) * size / 100e9 + 2 * 7 / 8 * part
    gathered = 9 * size / 100e9 + 8 * 7 / 8 * part
    assert float(compressed_s(CLUSTER, ALL, codec, size)) == pytest.approx(min(exchanged, gathered), rel=1e-12)
    adds = Codec(32.0, 100e9, adds=True, launch=0.0)
    assert float(compressed_s(CLUSTER, ALL, adds, size)) == pytest.approx(2 * size / 100e9 + 2 * 7 / 8 * part, rel=1e-12)


def test_gathering_moves_n_over_2r_of_the_ring() -> None:
    # the claim that an all-gather of 1/32 payloads moves N/64 of a ring's volume: 16 times as much on 1024 cards
    plain = curve(CLUSTER, Kind.ALL_REDUCE, ALL, "ring").per_byte_s[0]
    gathered = curve(CLUSTER, Kind.ALL_GATHER, ALL, "ring").per_byte_s[0] * 8 / 32
    assert gathered / plain == pytest.approx(8 / 64)


@given(st.floats(1, 1000), st.floats(1e9, 1e12), st.booleans())
def test_a_free_codec_of_ratio_one_changes_nothing_and_more_ratio_never_costs(ratio, rate, adds) -> None:
    size = np.array([0.0, 1e3, 1e6, 1e9])
    one, more = (compressed_s(CLUSTER, ALL, Codec(r, rate, adds), size) for r in (ratio, ratio * 2))
    assert (more <= one).all()
    assert (np.diff(one) >= 0).all()
    free = compressed_s(CLUSTER, ALL, Codec(1.0, 1e30, adds=True, launch=0.0), size)
    assert free == pytest.approx(curve(CLUSTER, Kind.ALL_REDUCE, ALL).seconds(size))


def test_pays_above_the_launches_and_only_where_links_are_slower_than_the_codec() -> None:
    first, last = pays_from(CLUSTER, ALL, Codec(32.0, 100e9))
    # gains per byte (2 x 7/8)(1 - 1/32)/10 GB/s - 3.125/100 GB/s against 4 launches of 5 us
    assert first == pytest.approx(20e-6 / (1.75 * (1 - 1 / 32) / 10e9 - 3.125 / 100e9), rel=0.02)
    assert last == np.inf
    assert pays_from(CLUSTER, ALL, Codec(32.0, 10e9)) is None


@pytest.mark.parametrize("codec", [Codec(0.5, 1e9), Codec(2.0, 0.0), Codec(float("nan"), 1e9)])
def test_no_codec(codec: Codec) -> None:
    with pytest.raises(Refused):
        compressed_s(CLUSTER, ALL, codec, 1.0)


def test_one_card_compresses_nothing() -> None:
    assert compressed_s(CLUSTER, strided(CLUSTER, 1), Codec(32.0, 1e9), [1e9]) == [0.0]
