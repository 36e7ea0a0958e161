"""Cluster descriptions: what is read, what is refused and where, and the catalogue's published figures."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from workbench.errors import InvalidSpec, UnreadableInput
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.cluster_text import clusters, libraries, load_cluster, load_library, read_cluster
from workbench.hardware.npu import load_npu
from workbench.network.curve import curve
from workbench.network.groups import strided
from workbench.operators.table import Kind

NODE = "{name: node, size: 8, topology: switch, bandwidth_per_direction: 400 Gb/s, latency: 1 us}"


def read(*tiers: str, top: str = "") -> object:
    return read_cluster(f"name: made\nsources: [made here]\n{top}tiers:\n" + "".join(f"- {tier}\n" for tier in tiers), "made.yaml")


def test_si_units_and_world_size() -> None:
    cluster = read_cluster(f"name: made\nsources: [x]\ntiers:\n- {NODE}\n- {NODE.replace('node', 'unit')}\n", "made.yaml")
    assert (cluster.cards, cluster.below) == (64, (1, 8, 64))
    assert (cluster.tiers[0].bandwidth_per_direction, cluster.tiers[0].latency) == (5e10, 1e-6)
    assert [cluster.medium(t) for t in (0, 1)] == ["memory", "network"]
    assert cluster.notes == ()


@pytest.mark.parametrize(
    ("tiers", "top", "said"),
    [
        ([NODE.replace("400 Gb/s", "400")], "", r"made.yaml:4: tiers.node.bandwidth_per_direction: 400 is a bare number"),
        ([NODE.replace("400 Gb/s", "400 Gbs")], "", "unknown unit"),
        ([NODE.replace("latency", "latencie")], "", "did you mean 'latency'"),
        ([NODE.replace("size: 8, ", "")], "", "size is missing"),
        ([NODE.replace("8", "0")], "", "size"),
        ([NODE.replace("switch", "swich")], "", "did you mean 'switch'"),
        ([NODE, NODE], "", "two tiers are called 'node'"),
        ([NODE.replace("switch", "torus")], "", "a torus without a shape"),
        ([NODE.replace("switch", "torus, shape: 2x2")], "", "'2x2' do not give 8"),
        ([NODE.replace("switch", "torus, shape: 2xtwo")], "", "do not give 8"),
        ([NODE.replace("switch", "switch, shape: 2x4")], "", "a switch with a shape"),
        ([NODE.replace("switch", "ring, ports: 2")], "", "ports in a ring"),
        ([NODE.replace("switch", "ring, oversubscription: 2")], "", "no switches to share"),
        ([NODE.replace("switch", "full, in_network_reduction: true")], "", "needs switches"),
        ([NODE.replace("switch", "fat_tree, leaf: 3")], "", "leaf 3 does not divide 8"),
        ([NODE], "npus: 10\n", "npus says 10, the tiers hold 8 = 8 cards"),
        ([NODE], "library: ncll\n", "did you mean 'nccl'"),
        ([NODE], "hosts: 3\n", "'hosts' is not a key of a cluster description"),
        (["node"], "", "a tier is not a mapping"),
        ([], "", "no list of tiers"),
    ],
)
def test_what_does_not_hold_is_refused_by_place_and_remedy(tiers: list[str], top: str, said: str) -> None:
    with pytest.raises(InvalidSpec, match=said) as refusal:
        read(*tiers, top=top)
    assert refusal.value.where.startswith("made.yaml")


def test_fields_by_path() -> None:
    cluster = load_cluster("dgx-h100").with_({"tiers.node.bandwidth_per_direction": "1 TB/s", "tiers.unit.size": 4})
    assert (cluster.tiers[0].bandwidth_per_direction, cluster.cards) == (1e12, 8 * 4 * 4)
    assert cluster.digest != load_cluster("dgx-h100").digest
    with pytest.raises(InvalidSpec, match=r"did you mean \'tiers\.node\.latency\'"):
        cluster.with_({"tiers.node.latncy": "1 us"})
    with pytest.raises(InvalidSpec, match="no unit"):
        cluster.with_({"tiers.node.latency": "1"})


def test_a_part_of_a_cluster() -> None:
    cluster = load_cluster("dgx-h100")
    assert [tier.size for tier in cluster.of(4).tiers] == [4]
    assert [tier.size for tier in cluster.of(64).tiers] == [8, 8]
    assert [tier.size for tier in cluster.of(2048).tiers] == [8, 32, 8]  # the outermost grows
    with pytest.raises(InvalidSpec, match="whole instances of 'node'"):
        cluster.of(12)


@pytest.mark.parametrize("name", clusters())
def test_the_catalogue_is_sourced_and_names_cards_that_exist(name: str) -> None:
    cluster = load_cluster(name)
    assert cluster.sources
    assert cluster.notes == ()
    assert load_npu(cluster.npu).name == cluster.npu


@pytest.mark.parametrize("name", libraries())
def test_libraries_are_sourced(name: str) -> None:
    assert load_library(name).sources
    assert load_library(name).protocols


@pytest.mark.parametrize(
    ("name", "cards", "bandwidth"),
    [
        ("dgx-a100", 1120, 300e9),  # DGX SuperPOD A100: 140 nodes; 600 GB/s both ways a card
        ("dgx-h100", 1024, 450e9),  # DGX SuperPOD H100: 128 nodes of 4 units; 900 GB/s both ways
        ("nvl72", 576, 900e9),  # GB200 NVL72: 1.8 TB/s both ways
        ("tpu-v4-pod", 4096, 50e9),  # Jouppi et al. 2023: 4096 chips
        ("pyramid-1024", 1024, 60e9),
    ],
)
def test_published_sizes(name: str, cards: int, bandwidth: float) -> None:
    cluster = load_cluster(name)
    assert (cluster.cards, cluster.tiers[0].bandwidth_per_direction) == (cards, bandwidth)


def test_names_and_paths_that_are_none() -> None:
    with pytest.raises(InvalidSpec, match="dgx-h100"):
        load_cluster("dgx-h10")
    with pytest.raises(UnreadableInput):
        load_cluster("nowhere.yaml")


def test_case_28_switches_are_no_cards(shared: Path) -> None:
    document = yaml.safe_load((shared / "cases" / "field" / "28_switches.yaml").read_text())
    plan = document.pop("plan")
    cluster = read_cluster(yaml.safe_dump(document), "28_switches.yaml")
    assert cluster.cards == 16
    assert [(tier.size, tier.topology, tier.bandwidth_per_direction) for tier in cluster.tiers] == [(8, "switch", 2e11), (2, "rail", 5e10)]
    # data-parallel groups of 8, and the whole world: 2 (n - 1)/n of the message round a ring, whose slowest link is a rail of 50 GB/s
    for group, factor in ((strided(cluster, plan["dp"], plan["tp"]), 2 * 7 / 8), (strided(cluster, 16), 2 * 15 / 16)):
        assert curve(cluster, Kind.ALL_REDUCE, group, "ring").per_byte_s[0] * 5e10 == pytest.approx(factor)


def drawn(nodes: str, *links: str) -> ClusterSpec:
    listed = "".join(f"- {{id: {i}, kind: {'npu' if kind == 'n' else 'switch'}}}\n" for i, kind in enumerate(nodes))
    text = f"sources: [made here]\nlatency: 1 us\nnodes:\n{listed}links:\n" + "".join(f"- [{link}]\n" for link in links)
    return read_cluster(text, "drawn.yaml")


def test_cards_joined_to_cards() -> None:
    ring = drawn("nnnn", "0, 1, 1 GB/s", "1, 2, 1 GB/s", "2, 3, 1 GB/s", "3, 0, 1 GB/s")
    assert [(tier.topology, tier.size, tier.latency) for tier in ring.tiers] == [("ring", 4, 1e-6)]
    full = drawn("nnnn", *(f"{i}, {j}, 1 GB/s" for i in range(4) for j in range(i)))
    assert [(tier.topology, tier.size, tier.ports) for tier in full.tiers] == [("full", 4, 3.0)]


@pytest.mark.parametrize(
    ("nodes", "links", "said"),
    [
        ("ss", ["0, 1, 1 GB/s"], "no node is an npu"),
        ("nn", ["0, 7, 1 GB/s"], "'7', which is no node"),
        ("nsns", ["0, 1, 1 GB/s", "2, 3, 1 GB/s", "1, 3, 1 GB/s"], "switches '1' and '3' are joined"),
        ("nnn", ["0, 1, 1 GB/s"], "unequal instances"),
        ("nnnn", ["0, 1, 1 GB/s", "2, 3, 1 GB/s"], "links join 2 of 4 cards"),
        ("nnnnn", ["0, 1, 1 GB/s", "1, 2, 1 GB/s", "2, 3, 1 GB/s", "3, 4, 1 GB/s", "4, 0, 1 GB/s", "0, 2, 1 GB/s"], "as many links"),
        ("nnnnnn", [f"{i}, {j}, 1 GB/s" for i in range(3) for j in range(3, 6)], "neither a ring nor fully connected"),
        ("nn", ["0, 1, 1"], "no unit"),
        ("nn", ["0, 1"], "not a link"),
    ],
)
def test_drawings_that_do_not_hold(nodes: str, links: list[str], said: str) -> None:
    with pytest.raises(InvalidSpec, match=said) as refusal:
        drawn(nodes, *links)
    assert "drawn.yaml" in refusal.value.where
