"""Loads of links against an explicit graph: every flow is routed link by link, the busiest link is counted."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from workbench.hardware.cluster import ClusterSpec, Tier
from workbench.hardware.cluster_text import read_cluster
from workbench.network import topology


def tier(topology_: str, size: int, **more: object) -> Tier:
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    made = f"{{name: t, size: {size}, topology: {topology_}, bandwidth_per_direction: 1 GB/s, latency: 1 us{extra}}}"
    spec: ClusterSpec = read_cluster(f"name: t\nsources: [made here]\ntiers: [{made}]\n", "made.yaml")
    return spec.tiers[0]


def steps(extents: tuple[int, ...], at: int, to: int, wrap: bool) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Links of a shortest path, dimension by dimension; ties (half way round) go forward from even places, backward from odd ones."""

    def place(index: int) -> list[int]:
        out = []
        for a in extents:
            out.append(index % a)
            index //= a
        return out

    here, there, links = place(at), place(to), []
    for axis, a in enumerate(extents):
        gap = (there[axis] - here[axis]) % a if wrap else there[axis] - here[axis]
        if wrap and (gap > a / 2 or (gap == a / 2 and here[axis] % 2)):
            gap -= a
        for _ in range(abs(gap)):
            before = tuple(here)
            here[axis] = (here[axis] + (1 if gap > 0 else -1)) % a
            links.append((before, tuple(here)))
    return links


def busiest(extents: tuple[int, ...], flows: list[tuple[int, int, float]], wrap: bool) -> float:
    load: Counter[object] = Counter()
    for at, to, bytes_ in flows:
        for link in steps(extents, at, to, wrap):
            load[link] += bytes_
    return max(load.values())


@pytest.mark.parametrize(
    ("name", "extents"),
    [("ring", (8,)), ("ring", (9,)), ("torus", (4, 4)), ("torus", (4, 4, 8)), ("torus", (3, 5)), ("mesh", (4, 4)), ("mesh", (3, 6))],
)
def test_uniform_traffic_of_grids(name: str, extents: tuple[int, ...]) -> None:
    size = 1
    for a in extents:
        size *= a
    flows = [(i, j, 1.0 / (size - 1)) for i, j in itertools.permutations(range(size), 2)]
    shape = {} if name == "ring" else {"shape": "x".join(map(str, extents))}
    link, _ = topology.uniform_load(tier(name, size, **shape), size)
    assert busiest(extents, flows, name != "mesh") == pytest.approx(link)


@pytest.mark.parametrize("members", [2, 3, 4])
def test_a_part_of_a_ring_is_open(members: int) -> None:
    flows = [(i, j, 1.0 / (members - 1)) for i, j in itertools.permutations(range(members), 2)]
    assert busiest((8,), flows, True) == pytest.approx(topology.uniform_load(tier("ring", 8), members)[0])


@pytest.mark.parametrize("distance", [1, 2, 4])
def test_pairs_on_a_ring_share_its_middle_link(distance: int) -> None:
    flows = [(i, i ^ distance, 1.0) for i in range(16)]
    link, _ = topology.pair_load(tier("ring", 16), 16, distance)
    assert busiest((16,), flows, True) == link == distance


def test_pairs_on_a_torus_share_links_of_one_dimension() -> None:
    made = tier("torus", 32, shape="4x8")
    for distance, expected in ((1, 1), (2, 2), (4, 1), (8, 2)):  # 4 and 8 ranks away: 1 and 2 along the second dimension
        flows = [(i, i ^ distance, 1.0) for i in range(32)]
        assert topology.pair_load(made, 32, distance)[0] == expected == busiest((4, 8), flows, False)


def test_fully_connected_pairs_have_one_link_of_seven() -> None:
    assert topology.pair_load(tier("full", 8), 8, 1) == (7.0, 0.0)
    assert topology.uniform_load(tier("full", 8), 8) == (1.0, 0.0)
    assert topology.uniform_load(tier("full", 8), 4)[0] == topology.neighbour_load(tier("full", 8), 4)[0] == pytest.approx(7 / 3)


def test_uplinks_carry_what_leaves_a_leaf() -> None:
    made = tier("fat_tree", 16, leaf=4, oversubscription=2.0)
    # 4 members a leaf, each sends 12/15 of its bytes to other leaves over uplinks of half the ports' bandwidth.
    assert topology.uniform_load(made, 16)[1] == pytest.approx(2.0 * 12 / 15)
    # of a ring one message in four leaves the leaf: 1 byte over uplinks that carry 2 ports' worth
    assert topology.neighbour_load(made, 16)[1] == pytest.approx(2.0 / 4)
    assert [topology.pair_load(made, 16, d)[1] for d in (1, 2, 4, 8)] == [0.0, 0.0, 2.0, 2.0]


def test_rings_without_a_common_link() -> None:
    assert topology.parallel_rings(tier("ring", 8), 8) == 2
    assert topology.parallel_rings(tier("torus", 64, shape="4x4x4"), 64) == 6
    assert topology.parallel_rings(tier("torus", 64, shape="4x4x4"), 32) == 1
    assert topology.dimensions(tier("torus", 64, shape="4x4x4"), 64) == (9, 6)
    assert topology.dimensions(tier("mesh", 16, shape="4x4"), 16) == (6, 2)
