"""Scale-out of recordings: identity, by hand, monotone, folding against every card, the arithmetic of a public claim."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.data import data_path
from workbench.errors import InvalidSpec, Refused
from workbench.graph.graph import NodeKind
from workbench.hardware.cluster_text import load_cluster
from workbench.hardware.npu import load_npu
from workbench.network.compression import Codec
from workbench.network.curve import curve
from workbench.network.groups import strided
from workbench.operators.table import Kind
from workbench.replay import kernels
from workbench.replay.replay import replay
from workbench.scale.fold import folded
from workbench.scale.fold_slow import slowest
from workbench.study.predict import predict
from workbench.study.scale_out import scale_out
from workbench.study.scale_out_found import scaled
from workbench.study.scenario import Scenario
from workbench.trace.open import open_trace

PYRAMID = load_cluster("pyramid-1024")


@lru_cache
def cached() -> Scenario:
    return Scenario(open_trace(data_path("traces", "synthetic_one_card.json.gz")))


@pytest.fixture(scope="module")
def one_card() -> Scenario:
    return cached()


def test_one_card_is_the_recording(one_card: Scenario) -> None:
    """No message, no change: the identity replay's step; also on another card."""
    assert scale_out(one_card, PYRAMID, [1]).step_s[0] == pytest.approx(predict(one_card).step_time_s, rel=1e-9)
    other = Scenario(one_card.workload, npu=load_npu("h100-sxm"))
    assert scale_out(other, PYRAMID, [1]).step_s[0] == pytest.approx(predict(other).step_time_s, rel=1e-9)


def test_the_recorded_number_of_cards_is_the_recording() -> None:
    scenario = Scenario(open_trace(data_path("traces", "synthetic_ddp.json.gz")))
    found = scale_out(scenario, load_cluster("dgx-a100"), [8, 64])
    assert found.attrs["base_cards"] == 8
    assert found.step_s[0] == pytest.approx(predict(scenario).step_time_s, rel=1e-9)
    assert found.efficiency[0] == 1.0
    assert found.step_s[1] > found.step_s[0]


def test_gradients_are_those_of_the_program(one_card: Scenario) -> None:
    """20 layers of two weights of 4096 x 2048 in fp32."""
    assert scale_out(one_card, PYRAMID, [8]).attrs["gradient_bytes"] == 20 * 2 * 4096 * 2048 * 4


def test_all_at_once_exposes_the_whole_message(one_card: Scenario) -> None:
    """One message after the last gradient, by hand: all of it is waited for but what runs of the backward pass after that gradient."""
    size = 20 * 2 * 4096 * 2048 * 4.0
    found = scale_out(one_card, PYRAMID, [1024], bucket_bytes="inf", algorithm="ring")
    whole = float(curve(PYRAMID, Kind.ALL_REDUCE, strided(PYRAMID, 1024), "ring").seconds(np.array([size]))[0])
    assert found.messages_s[0] == pytest.approx(whole)
    assert whole - 0.02 < float(found.exposed_s[0]) <= whole


def test_the_last_bucket_cannot_be_hidden(one_card: Scenario) -> None:
    """On a network so fast that buckets never queue, only what is sent after the last gradient is waited for."""
    fast = PYRAMID.with_({f"tiers.{tier.name}.bandwidth_per_direction": "1 TB/s" for tier in PYRAMID.tiers})
    found = scale_out(one_card, fast, [8])
    layer = 4096 * 2048 * 4.0
    last = float(curve(fast, Kind.ALL_REDUCE, strided(fast, 8)).seconds(np.array([layer]))[0])
    assert 0.0 < float(found.exposed_s[0]) <= last * 1.0001


@pytest.mark.parametrize(
    ("how", "efficiency", "within"),
    [
        ({"algorithm": "ring", "bucket_bytes": "inf"}, 68.0, 0.5),
        ({"algorithm": "hierarchical", "bucket_bytes": "inf"}, 84.5, 2.5),
        ({"algorithm": "ring"}, 87.6, 1.5),
        ({"algorithm": "hierarchical"}, 89.4, 0.5),
        ({"codec": Codec(32, 60e9)}, 89.6, 0.5),
    ],
)
def test_scaling_efficiency_at_1024_cards(one_card: Scenario, how: dict[str, object], efficiency: float, within: float) -> None:
    """68 % -> 89 %: 1.34 GB of gradients, 100 Gb/s RoCE x 0.9, 8-card nodes, 32-card units, jitter 3.45 %, a step of 0.66 s.

    An independent prototype's figures [%]. The bandwidth inside a node is not stated there; ours is 60 GB/s, which the second row shows.
    """
    found = scale_out(one_card, PYRAMID, [1024], jitter=0.0345, **how)  # type: ignore[arg-type]
    assert 100 * float(found.efficiency[0]) == pytest.approx(efficiency, abs=within)


def test_at_128_cards(one_card: Scenario) -> None:
    found = scale_out(one_card, PYRAMID, [128], jitter=0.0345, algorithm="hierarchical")
    assert 100 * float(found.efficiency[0]) == pytest.approx(91.2, abs=0.5)


@given(cards=st.integers(1, 8).map(lambda k: 8 * k), jitter=st.floats(1e-4, 0.1), straggler=st.floats(1.0, 1.5))
@settings(max_examples=15, deadline=None)
def test_slower_cards_never_shorten_the_step(cards: int, jitter: float, straggler: float) -> None:
    plain = scale_out(cached(), PYRAMID, [cards])
    slow = scale_out(cached(), PYRAMID, [cards], jitter=jitter, straggler=straggler)
    assert float(slow.step_s[0]) >= float(plain.step_s[0]) * (1 - 1e-12)
    assert float(slow.slowest[0]) >= straggler * (1 - 1e-9)


@pytest.mark.parametrize("cards", [8, 16])
def test_folding_equals_the_replay_of_every_card(one_card: Scenario, cards: int) -> None:
    """One slow card among N: N copies that meet before every message, against two copies, a slow one and one for all others."""
    found = scaled(one_card, None, 25.0 * 2**20)
    node_s = found.node_s.copy()
    node_s[found.message] = 2e-3
    ends = []
    for copies in (cards, 2):
        fold = folded(found.graph, copies, np.sort(found.message))
        spent = np.zeros(len(fold.graph))
        for copy in range(copies):
            spent[fold.node[copy]] = np.where(found.compute & (copy == 0), 1.1, 1.0) * node_s
        timeline = replay(fold.graph, spent)
        steps = len(found.graph.step_numbers)
        ends.append(timeline.step_s.reshape(copies, steps))
        if copies > 2:
            assert np.allclose(ends[0][1:], ends[0][1])
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=1e-9)
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-9)
    slow = found.node_s.copy()
    slow[found.compute] *= 1.1
    slow[found.message] = 2e-3
    np.testing.assert_allclose(replay(found.graph, slow).step_s, ends[0][0], rtol=1e-9)


def test_expected_slowest_of_many() -> None:
    """Largest of N standard normals (Harter, Biometrika 48, 1961): 0.56419 of 2, 1.42360 of 8; 3.2482 of 1024 as in models of clusters."""
    for cards, largest in ((2, 0.56419), (8, 1.42360), (1024, 3.2482)):
        assert slowest(cards, 0.01) == pytest.approx(1 + 0.01 * largest, abs=2e-5)
    assert slowest(1024, 0.0, 1.1) == pytest.approx(1.1)


def test_overlap_falls_out_of_the_graph() -> None:
    """Case 43 of public bug reports: two streams, dependencies and nothing else; 750 us, of which 100 us wait for the last message."""
    names = ["f0", "f1", "g1", "b1", "b0", "g0", "opt"]
    spent = np.array([100.0, 100, 150, 200, 200, 300, 50]) * 1e-6
    after = {"f1": ["f0"], "g1": ["f1"], "b1": ["f1"], "b0": ["b1"], "g0": ["b1", "g1"], "opt": ["b0", "g0"]}
    edges = [[names.index(name) for name in after.get(node, [])] for node in names]
    ptr = np.concatenate([[0], np.cumsum([len(one) for one in edges])]).astype(np.int64)
    source = np.array([one for some in edges for one in some], dtype=np.int32)

    def makespan(seconds: np.ndarray) -> float:
        return float(kernels.forward(ptr, source, np.zeros(len(source)), seconds)[1].max())

    assert makespan(spent) == pytest.approx(750e-6)
    assert makespan(spent) - makespan(np.where([name.startswith("g") for name in names], 0.0, spent)) == pytest.approx(100e-6)


def test_a_real_recording_says_its_gradients(shared: Path) -> None:
    """ResNet-50 of 2021: 25 557 032 parameters in fp32."""
    found = scale_out(open_trace(shared / "traces" / "v100_resnet50_2021.json.gz"), load_cluster("dgx-a100"), [1, 8])
    assert found.attrs["gradient_bytes"] == 25_557_032 * 4


def test_tensor_parallel_messages_keep_their_group(shared: Path) -> None:
    trace = open_trace(shared / "traces" / "megatron_a100_tp8")
    found = scale_out(trace, load_cluster("dgx-a100"), [8, 64], gradient_bytes="2 GB")
    assert found.attrs["base_cards"] == 8
    assert any("keep their group" in note for note in found.attrs["notes"])
    with pytest.raises(Refused, match="whole number of replicas"):
        scale_out(trace, load_cluster("dgx-a100"), [12], gradient_bytes="2 GB")


def test_what_cannot_be_answered_says_what_is_missing() -> None:
    trace = open_trace(data_path("traces", "synthetic_launch_bound.json.gz"))
    with pytest.raises(Refused, match="--gradients"):
        scale_out(trace, PYRAMID, [8])
    found = scale_out(trace, PYRAMID, [8], gradient_bytes="100 MB")
    assert any("an assumption" in note for note in found.attrs["notes"])
    for cards in ([], [0], [-8]):
        with pytest.raises(InvalidSpec):
            scale_out(trace, PYRAMID, cards, gradient_bytes="100 MB")
    with pytest.raises(Refused):
        scale_out(trace, PYRAMID, [8], gradient_bytes=-1.0)
    assert (scaled(Scenario(trace), 1e8, 1e9).graph.kind == NodeKind.COMMUNICATION).any()
