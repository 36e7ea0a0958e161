"""Replay against textbook graphs, and the batch kernel against a loop in plain Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.replay.graphs import graph, random_graph
from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS, ROW_FIXED, ROW_HOST, Graph, NodeKind
from workbench.replay import kernels
from workbench.replay.replay import replay, step_times

B, C, E = NodeKind.STEP_BEGIN, NodeKind.COMPUTE, NodeKind.STEP_END


def test_diamond() -> None:
    """Two branches of 3 s and 5 s (one with a lag of 1 s) meet: 1 + 5 + 1 + 2 = 9 s are critical; the other branch has 3 s of slack."""
    g = graph([B, C, C, C, C, E], [(0, 1, 0), (1, 2, 0), (1, 3, 1), (2, 4, 0), (3, 4, 0), (4, 5, 0)])
    t = replay(g, np.array([0.0, 1, 3, 5, 2, 0]))
    assert t.start_s.tolist() == [0, 1 - 1, 1, 2, 7, 9]
    assert t.finish_s.tolist() == [0, 1, 4, 7, 9, 9]
    assert t.critical.tolist() == [True, True, False, True, True, True]
    assert t.slack_s.tolist() == [0, 0, 3, 0, 0, 0]
    assert t.step_s.tolist() == [9]
    assert t.makespan_s == 9


def test_textbook_project() -> None:
    """Critical path method by hand: A(3) B(4) C(2) D(5) E(1), D after A and B, E after C."""
    g = graph([B, C, C, C, C, C, E], [(0, 1, 0), (0, 2, 0), (0, 3, 0), (1, 4, 0), (2, 4, 0), (3, 5, 0), (4, 6, 0), (5, 6, 0)])
    t = replay(g, np.array([0.0, 3, 4, 2, 5, 1, 0]))
    assert t.makespan_s == 9  # B then D
    assert t.slack_s.tolist() == [0, 1, 0, 6, 0, 6, 0]
    assert np.flatnonzero(t.critical).tolist() == [0, 2, 4, 6]


def test_overlap_falls_out_of_dependencies() -> None:
    """Data-parallel step of public report 43: forward, backward and gradient messages; 750 us instead of 1100 us one after the other."""
    names = ["f0", "f1", "g1", "b1", "b0", "g0", "opt"]
    length = dict(zip(names, [100, 100, 150, 200, 200, 300, 50], strict=True))
    after = {"f1": ["f0"], "g1": ["f1"], "b1": ["f1"], "b0": ["b1"], "g0": ["b1", "g1"], "opt": ["b0", "g0"]}
    kinds = [B, *(NodeKind.COMMUNICATION if n[0] == "g" else C for n in names), E]
    edges = [(names.index(u) + 1, names.index(v) + 1, 0.0) for v, us in after.items() for u in us]
    g = graph(kinds, [(0, 1, 0.0), *edges, (7, 8, 0.0)])
    t = replay(g, np.array([0, *length.values(), 0]) * 1e-6)
    assert t.makespan_s == pytest.approx(750e-6)
    from workbench.replay.account import account

    assert account(g, t).exposed_communication_s[0] == pytest.approx(100e-6)


def plain(g: Graph, node_s: np.ndarray) -> float:
    """Seconds of the step, by a loop over a dictionary of predecessors."""
    causes: dict[int, list[tuple[int, float]]] = {v: [] for v in range(len(g))}
    for v in range(len(g)):
        for e in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
            causes[v].append((int(g.edge_from[e]), float(g.edge_lag_s[e])))
    finish: list[float] = []
    start: list[float] = []
    for v in range(len(g)):
        start.append(max((finish[u] + lag for u, lag in causes[v]), default=0.0))
        finish.append(start[v] + float(node_s[v]))
    ends = [v for v in range(len(g)) if g.kind[v] in DEVICE_KINDS or g.kind[v] == NodeKind.STEP_END]
    return max(finish[v] for v in ends) - start[0]


@pytest.mark.parametrize("scenarios", [1, 15, 16, 37])
@pytest.mark.parametrize("threads", [1, 2])
def test_batch_equals_plain_loop(scenarios: int, threads: int) -> None:
    rng = np.random.default_rng(scenarios)
    rows = 7
    g = random_graph(rng, 300, rows)
    weight, value = rng.random(len(g)), np.concatenate([rng.random((rows + 1, scenarios)), np.ones((1, scenarios))])
    row = np.where(g.op == ROW_HOST, rows, np.where(g.op == ROW_FIXED, rows + 1, g.op))
    expected = [plain(g, weight * value[row, c]) for c in range(scenarios)]
    found = step_times(g, weight, value, threads=threads)
    assert found.shape == (scenarios, 1)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-13)
    np.testing.assert_allclose([replay(g, weight * value[row, c]).step_s[0] for c in range(scenarios)], expected, rtol=1e-13)


def test_slots_are_few_and_never_shared_by_live_nodes() -> None:
    g = random_graph(np.random.default_rng(5), 4000, 3)
    slot, count = kernels.slots(g.edge_ptr, g.edge_from, np.arange(len(g)))
    assert count < 120, "a node's slot is free again after its last reader, at most 40 nodes later here"
    owner = np.full(count, -1)
    for v in range(len(g)):
        for e in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
            assert owner[slot[g.edge_from[e]]] == g.edge_from[e]
        owner[slot[v]] = v


def test_two_steps_and_a_copy_that_ends_the_first() -> None:
    """A step ends with the later of its mark and the device work launched in it, also when the next step has begun."""
    kinds = [B, NodeKind.HOST_WORK, NodeKind.COPY, E, B, NodeKind.HOST_WORK, E]
    g = graph(kinds, [(0, 1, 0), (1, 2, 0), (1, 3, 0), (3, 4, 0), (4, 5, 0), (5, 6, 0)])
    g = replace(
        g,
        step=np.array([0, 0, 0, 0, 1, 1, 1], dtype=np.int32),
        step_numbers=np.array([0, 1]),
        step_begin=np.array([0, 4], dtype=np.int32),
        step_end=np.array([3, 6], dtype=np.int32),
    )
    node_s = np.array([0, 1, 7, 0, 0, 2, 0.0])
    t = replay(g, node_s)
    assert t.step_s.tolist() == [8, 2]
    assert t.critical.tolist() == [True, True, True, False, True, True, True]
    assert step_times(g, node_s, np.ones((2, 1))).tolist() == [[8, 2]]


def test_bad_durations_are_refused() -> None:
    g = graph([B, C, E], [(0, 1, 0), (1, 2, 0)])
    for bad in (np.array([0.0, np.nan, 0]), np.array([0.0, -1, 0]), np.zeros(2)):
        with pytest.raises(Refused):
            replay(g, bad)
    with pytest.raises(Refused):
        step_times(g, np.ones(3), np.ones((1, 4)))
    with pytest.raises(Refused):
        step_times(g, np.ones(3), np.full((2, 4), np.inf))
