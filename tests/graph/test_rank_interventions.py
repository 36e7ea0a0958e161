"""Several ranks: a change on one is predicted on all (design, 5b), against the naive simulator executing the job again.

The recordings get clocks of their own (seconds apart, microseconds of noise would hide the differences asked for); the graph is built
from the unchanged job alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tests.graph.made import Built, built, check_invariants
from tests.naive.actions import Action, Launch, Program, Work
from tests.naive.answers import answers
from tests.naive.executor import execute_job
from tests.naive.kineto import document
from tests.naive.programs import ADD, ALL_REDUCE, GEMM, data_parallel
from workbench.graph.graph import DEVICE_KINDS, NodeKind
from workbench.replay.account import account
from workbench.replay.replay import replay
from workbench.trace.open import open_trace

SKEW_NS = (0, 3_000_123, -2_000_000_457, 11_560_000_001)
TN, NN = GEMM.format("tn"), GEMM.format("nn")


def member(program: Program, rank: int, groups: tuple[tuple[int, ...], ...]) -> Program:
    """One rank of a job: its k-th all-reduce meets those of the k-th group in turn that holds it."""
    mine = [group for group in groups if rank in group]
    seen = dict.fromkeys(mine, 0)

    def one(action: Action) -> Action:
        if not isinstance(action, Launch) or action.name != ALL_REDUCE:
            return action
        group = mine[sum(seen.values()) % len(mine)]
        number, seen[group] = seen[group], seen[group] + 1
        args = {**action.args, "Group size": len(group), "Process Group Ranks": str(list(group)), "Process Group Name": str(group[0])}
        return replace(action, meets=f"{group} {number}", members=len(group), args=args | {"Seq": number})

    return program.edited(one)


def job(groups: tuple[tuple[int, ...], ...] = ((0, 1, 2, 3),), steps: int = 2) -> list[Program]:
    """Four data-parallel ranks of which some compute more slowly than others."""
    base = data_parallel(steps=steps, layers=4)
    ranks = [base, base.scaled(TN, 1.1), base.scaled(NN, 1.3), base.scaled(ADD, 3.0)]
    return [member(program, rank, groups) for rank, program in enumerate(ranks)]


JOBS: dict[str, Callable[[], list[Program]]] = {
    "one group": job,
    "all and pairs": lambda: job(((0, 1, 2, 3), (0, 1), (2, 3))),
    "crossing pairs": lambda: job(((0, 1), (2, 3), (0, 2), (1, 3))),
}


def truth(programs: list[Program]) -> np.ndarray:
    """Seconds of every step of every rank, [ranks, steps]."""
    return np.array([[step["step_ns"] for step in answers(rows)["steps"]] for rows in execute_job(programs)]) / 1e9


@cache
def recording(name: str) -> Built:
    with TemporaryDirectory() as folder:
        paths = []
        for rank, rows in enumerate(execute_job(JOBS[name]())):
            skewed = [replace(r, start_ns=r.start_ns + SKEW_NS[rank], end_ns=r.end_ns + SKEW_NS[rank]) for r in rows]
            paths.append(Path(folder) / f"{rank}.json")
            paths[-1].write_text(json.dumps(document(skewed, rank=rank, world_size=4)))
        return built(open_trace(paths))


def by_rank(b: Built, step_s: np.ndarray) -> np.ndarray:
    """Steps of a replay as [ranks, steps]."""
    rank = b.graph.rank[b.graph.step_begin]
    return np.array([step_s[rank == r] for r in range(4)])


def scaled(b: Built, rank: int, names: tuple[str, ...], factor: float) -> np.ndarray:
    node_s = b.graph.measured_s.copy()
    nodes = [v for n in names for v in b.nodes(n) if b.graph.kind[v] in DEVICE_KINDS and b.graph.rank[v] == rank]
    node_s[nodes] *= factor
    return node_s


@pytest.mark.parametrize("name", JOBS)
def test_job_replays_itself(name: str) -> None:
    b = recording(name)
    check_invariants(b.graph)
    np.testing.assert_allclose(by_rank(b, b.timeline.step_s), truth(JOBS[name]()), rtol=1e-9)
    np.testing.assert_allclose(b.timeline.start_s, b.graph.recorded_start_s, atol=1e-9)


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("factor", [0.25, 0.8, 1.5, 3.0])
def test_slower_or_faster_rank_moves_all(name: str, rank: int, factor: float) -> None:
    """The straggler may become another rank: waiting is recomputed, not scaled."""
    b, programs = recording(name), JOBS[name]()
    programs[rank] = programs[rank].scaled(TN, factor).scaled(NN, factor)
    predicted = by_rank(b, replay(b.graph, scaled(b, rank, (TN, NN), factor)).step_s)
    after = truth(programs)
    np.testing.assert_allclose(predicted, after, rtol=2e-3)
    if factor == 3.0:
        assert (after > 1.3 * truth(JOBS[name]())).all(), "the change reaches every rank"


@pytest.mark.parametrize("factor", [0.1, 4.0])
def test_faster_or_slower_links_move_the_transfer_alone(factor: float) -> None:
    b, programs = recording("all and pairs"), JOBS["all and pairs"]()
    node_s = np.where(b.graph.kind == NodeKind.COMMUNICATION, factor, 1.0) * b.graph.measured_s
    np.testing.assert_allclose(
        by_rank(b, replay(b.graph, node_s).step_s), truth([p.scaled(ALL_REDUCE, factor) for p in programs]), rtol=2e-3
    )


def test_late_host_of_one_rank_delays_the_others() -> None:
    """Rank 2's main thread computes 5 ms more at the start of its program."""
    b, programs = recording("one group"), job()
    first = next(i for i, a in enumerate(programs[2].threads["main"]) if isinstance(a, Work))
    programs[2] = programs[2].delayed("main", first, 5_000_000)
    mine = [v for v in range(len(b.graph)) if b.graph.rank[v] == 2 and b.graph.resources[b.graph.resource[v]].endswith("(main)")]
    node_s = b.graph.measured_s.copy()
    node_s[next(v for v in mine if b.graph.measured_s[v] > 0)] += 5e-3
    np.testing.assert_allclose(by_rank(b, replay(b.graph, node_s).step_s), truth(programs), rtol=2e-3)


def test_account_of_each_rank_is_its_own() -> None:
    """Busy time of a rank is the union over its own streams, a collective that waits for its peers included; transfer is apart."""
    b = recording("one group")
    parts = account(b.graph, b.timeline)
    for rank, rows in enumerate(execute_job(job())):
        mine = b.graph.rank[b.graph.step_begin] == rank
        known = answers(rows)["steps"]
        np.testing.assert_allclose(parts.compute_s[mine], [s["compute_ns"] / 1e9 for s in known], rtol=1e-6)
        recorded = np.array([s["communication_ns"] for s in known]) / 1e9
        assert (parts.communication_s[mine] <= recorded + 1e-12).all()
    transfer = 2 * 950e-6  # two all-reduces a step, whatever the rank
    np.testing.assert_allclose(parts.communication_s, transfer, rtol=1e-6)
