"""Collectives on tiers: figures by hand, laws that hold on any cluster, and the worked example of 1.34 GB of gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.cluster_text import clusters, load_cluster, read_cluster
from workbench.network.curve import Curve, curve
from workbench.network.groups import group_of, strided
from workbench.operators.table import Kind

KINDS = (Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL, Kind.BROADCAST)
SIZES = np.array([0.0, *np.logspace(0, 13, 27)])


def made(*tiers: str) -> ClusterSpec:
    lines = "".join(f"- {{{tier}}}\n" for tier in tiers)
    return read_cluster(f"name: made\nsources: [made here]\ntiers:\n{lines}", "made.yaml")


def two(oversubscription: float = 1.0, inner: str = "100 GB/s") -> ClusterSpec:
    """4 nodes of 8 cards; a card has one port of 10 GB/s out of its node."""
    return made(
        f"name: node, size: 8, topology: switch, bandwidth_per_direction: {inner}, latency: 1 us",
        f"name: unit, size: 4, topology: fat_tree, bandwidth_per_direction: 10 GB/s, latency: 5 us, oversubscription: {oversubscription}",
    )


def all_reduce(cluster: ClusterSpec, algorithm: str = "", cards: int = 0) -> Curve:
    return curve(cluster, Kind.ALL_REDUCE, strided(cluster, cards or cluster.cards), algorithm)


def test_hierarchical_by_hand() -> None:
    # in the node 2 (7/8) S / 100 GB/s in 14 messages of 1 us, then of an eighth 2 (3/4) S/8 / 10 GB/s in 6 messages of 5 us
    by_hand = 14e-6 + 2 * 7 / 8 * 1e9 / 100e9 + 6 * 5e-6 + 2 * 3 / 4 * 1e9 / 8 / 10e9
    assert float(all_reduce(two(), "hierarchical").seconds(1e9)) == pytest.approx(by_hand, rel=1e-12)


def test_a_single_ring_leaves_a_node_by_one_port_and_a_ring_a_card_by_all() -> None:
    share = 2 * 31 / 32 * 1e9
    steps = 58 - 4  # 62 messages, 8 of them between nodes: 2 rounds of 4 crossings
    assert float(all_reduce(two(), "ring").seconds(1e9)) == pytest.approx(share / 10e9 + steps * 1e-6 + 8 * 5e-6, rel=1e-12)
    assert float(all_reduce(two(), "rings").seconds(1e9)) == pytest.approx(share / 80e9 + steps * 1e-6 + 8 * 5e-6, rel=1e-12)


def test_oversubscription_slows_what_fills_the_uplinks() -> None:
    slow, fast = two(4.0), two()
    # rings of all cards, and the hierarchical form, use all ports of a node, of which a quarter's worth goes through
    out = 2 * 31 / 32 * 1e9 / 80e9
    assert float(all_reduce(slow, "rings").seconds(1e9) - all_reduce(fast, "rings").seconds(1e9)) == pytest.approx(3 * out)
    # one ring uses one port: its bandwidth goes through
    assert float(all_reduce(slow, "ring").seconds(1e9)) == float(all_reduce(fast, "ring").seconds(1e9))


def test_groups_beside_each_other_share_ports() -> None:
    # tensor groups of 8 inside nodes; data-parallel groups of 4, one card a node: each has its own port when all are busy
    cluster = two()
    busy = curve(cluster, Kind.ALL_REDUCE, strided(cluster, 4, 8))
    assert float(busy.per_byte_s[-1]) == pytest.approx(2 * 3 / 4 / 10e9)
    shared = cluster.with_({"tiers.unit.ports": 0.25})  # two ports a node
    assert float(curve(shared, Kind.ALL_REDUCE, strided(shared, 4, 8)).per_byte_s[-1]) == pytest.approx(2 * 3 / 4 / 2.5e9)
    assert float(curve(shared, Kind.ALL_REDUCE, strided(shared, 4, 8, alone=True)).per_byte_s[-1]) == pytest.approx(2 * 3 / 4 / 10e9)


def test_a_scattered_ring_crosses_nodes_with_every_message() -> None:
    cluster = two()
    ordered = group_of(cluster, range(32))
    scattered = group_of(cluster, sorted(range(32), key=lambda rank: (rank % 8, rank // 8)))
    assert (ordered.crossings, scattered.crossings) == ((1, 1), (0, 8))
    good, bad = (float(curve(cluster, Kind.ALL_REDUCE, group, "rings").seconds(1e9)) for group in (ordered, scattered))
    assert bad > 5 * good


@pytest.mark.parametrize(
    ("kind", "cards", "links"),
    # S over the links that lead to other members, of 7 at 10 GB/s each: one to a single peer, three among four
    [(Kind.SEND_RECV, 2, 1.0), (Kind.ALL_REDUCE, 2, 1.0), (Kind.ALL_TO_ALL, 4, 3 / (3 / 4)), (Kind.ALL_REDUCE, 4, 3 / (2 * 3 / 4)),
     (Kind.BROADCAST, 4, 3.0), (Kind.ALL_REDUCE, 8, 7 / (2 * 7 / 8))],
)  # fmt: skip
def test_part_of_a_fully_connected_node_has_part_of_its_links(kind: Kind, cards: int, links: float) -> None:
    cluster = made("name: node, size: 8, topology: full, bandwidth_per_direction: 70 GB/s, latency: 1 us")
    assert 1 / float(curve(cluster, kind, strided(cluster, cards)).per_byte_s[-1]) == pytest.approx(links * 10e9)


def test_switches_that_add_take_the_vector_once() -> None:
    cluster = made("name: node, size: 8, topology: switch, bandwidth_per_direction: 100 GB/s, latency: 1 us, in_network_reduction: true")
    by_hand = 2e-6 + (1 + 1 / 8) * 1e9 / 100e9
    assert float(all_reduce(cluster, "in-network").seconds(1e9)) == pytest.approx(by_hand)
    with pytest.raises(Refused, match="in-network"):
        all_reduce(two(), "in-network")


@pytest.mark.parametrize(("cards", "measured"), [(5, 414e9), (6, 436e9), (7, 460e9), (8, 477e9)])
def test_nvls_bus_bandwidth_of_h200(cards: int, measured: float) -> None:
    # stas00/ml-engineering, network/README.md: bus bandwidth of large all-reduces over NVLS on 5 to 8 H200; same links as H100
    size = 8e9
    seconds = float(all_reduce(load_cluster("dgx-h100"), "in-network", cards).seconds(size))
    assert 2 * (cards - 1) / cards * size / seconds == pytest.approx(measured, rel=0.06)


@pytest.mark.parametrize(("algorithm", "most"), [("ring", 0.02), ("hierarchical", 0.04)])
def test_1024_cards_and_gradients_of_1_34_gb(algorithm: str, most: float) -> None:
    # 100 Gb/s a card at 0.9: a flat ring takes 2 x 1.34 GB / 11.25 GB/s, hierarchical the node's 2 (7/8) S/60 GB/s and an eighth of it
    by_hand = {"ring": 2 * 1.34 / 11.25, "hierarchical": 2 * 7 / 8 * 1.34 / 60 + 2 * 127 / 128 * 1.34 / 8 / 11.25}
    seconds = float(all_reduce(load_cluster("pyramid-1024"), algorithm).seconds(1.34e9))
    assert seconds == pytest.approx(by_hand[algorithm], rel=most)


@pytest.mark.parametrize("name", clusters())
@pytest.mark.parametrize("kind", KINDS)
def test_laws_on_every_cluster_of_the_catalogue(name: str, kind: Kind) -> None:
    cluster = load_cluster(name)
    for cards in {1, 2, min(6, cluster.below[1]), cluster.below[1], min(cluster.cards, 2 * cluster.below[1])}:
        line = curve(cluster, kind, strided(cluster, cards))
        seconds, load = line.seconds(SIZES), line.link_load(SIZES)
        assert (seconds >= 0).all()
        assert (np.diff(seconds) >= 0).all()
        assert (load <= 1 + 1e-12).all()
        assert (seconds[0] > 0) == (cards > 1)
        assert (np.diff(line.per_byte_s) < 0).all()  # every later line is the better one for larger messages


@given(
    st.sampled_from(KINDS), st.integers(2, 32), st.sampled_from([1, 2, 4]), st.floats(0, 12), st.floats(1, 8),
    st.sampled_from(["tiers.node.bandwidth_per_direction", "tiers.unit.bandwidth_per_direction", "tiers.unit.ports"]),
)  # fmt: skip
def test_more_bandwidth_never_slower_and_the_best_choice_is_chosen(kind, cards, stride, power, factor, field) -> None:
    cluster = two(2.0)
    group = strided(cluster, min(cards, 32 // stride), stride)
    if group.size == 1:
        return
    base = curve(cluster, kind, group)
    value = {"tiers.node.bandwidth_per_direction": 100e9, "tiers.unit.bandwidth_per_direction": 10e9, "tiers.unit.ports": 1.0}[field]
    faster = curve(cluster.with_({field: value * factor}), kind, group)
    assert float(faster.seconds(10**power)) <= float(base.seconds(10**power)) * (1 + 1e-12)
    for name in set(base.algorithm):
        assert float(base.seconds(10**power)) <= float(curve(cluster, kind, group, name).seconds(10**power)) * (1 + 1e-12)


@given(st.lists(st.tuples(st.floats(1e-7, 1e-3), st.floats(1e-13, 1e-8)), min_size=1, max_size=12), st.floats(0, 1e13))
def test_the_envelope_is_the_least_of_its_lines(lines, size) -> None:
    from workbench.network.curve import _lowest, envelope

    start, slope = (np.array(part) for part in zip(*lines, strict=True))
    keep = _lowest(start, slope)
    least = float(np.min(start + slope * size))
    assert float(envelope(np.array(size), start[keep], slope[keep])[0]) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("ranks", [[], [0, 0], [-1], [32]])
def test_no_group(ranks: list[int]) -> None:
    with pytest.raises(Refused):
        group_of(two(), ranks)


@pytest.mark.parametrize("size", [-1.0, math.nan, math.inf])
def test_no_size(size: float) -> None:
    with pytest.raises(Refused):
        all_reduce(two()).seconds(size)
