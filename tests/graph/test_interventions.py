"""A prediction is proved by a change it did not see (design, 5b).

A small program is executed by an independent event simulator (`tests.naive`: no graph, no longest path). The graph is built from
that recording alone; then the program is changed and executed again for the truth, and the same change is predicted by
replaying the graph of the *unchanged* recording with changed durations.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tests.graph.made import Built, built
from tests.naive.actions import Begin, End, Program, Work
from tests.naive.answers import answers
from tests.naive.executor import execute
from tests.naive.kineto import document
from tests.naive.programs import ADD, ALL_REDUCE, GELU, GEMM, LAYER_NORM, data_parallel, launch_bound, queue_full
from workbench.graph.graph import DEVICE_KINDS, EdgeKind, NodeKind
from workbench.replay.replay import replay
from workbench.trace.open import open_trace

PROGRAMS: dict[str, Callable[[], Program]] = {
    "data_parallel": data_parallel,
    "data_parallel with latencies": lambda: replace(data_parallel(steps=2), gap_ns=1_200, wait_ns=2_500),
    "compute bound": lambda: data_parallel(steps=2, all_reduce_ns=100_000),
    "communication bound": lambda: data_parallel(steps=2, layers=4, width=2048, tokens=1024, all_reduce_ns=4_000_000),
    # a stream that never queues does not show its gaps: the graph takes 1 us for them, and so does this machine
    "launch_bound": lambda: replace(launch_bound(steps=2, layers=6), gap_ns=1_000),
    "queue_full": queue_full,
}


def truth(program: Program) -> np.ndarray:
    """Seconds of every step when a program really runs."""
    return np.array([step["step_ns"] for step in answers(execute(program))["steps"]]) / 1e9


@cache
def recording(name: str, *, sync_records: bool) -> Built:
    """The recording of an unchanged program."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.json"
        path.write_text(json.dumps(document(execute(PROGRAMS[name]()), sync_records=sync_records)))
        return built(open_trace([path]))


@dataclass(frozen=True)
class Change:
    """One intervention, in the program and in the graph."""

    program: Callable[[Program], Program]
    node_s: Callable[[Built, Program], np.ndarray]


def work(*scaled: tuple[str, float]) -> Change:
    """Device work of some names lasts longer or shorter."""

    def in_program(program: Program) -> Program:
        for name, factor in scaled:
            program = program.scaled(name, factor)
        return program

    def in_graph(b: Built, _: Program) -> np.ndarray:
        node_s = b.graph.measured_s.copy()
        for name, factor in scaled:
            node_s[[v for v in b.nodes(name) if b.graph.kind[v] in DEVICE_KINDS]] *= factor
        return node_s

    return Change(in_program, in_graph)


def all_work(factor: float) -> Change:
    """The whole device gets slower or faster."""

    def in_program(program: Program) -> Program:
        return program.edited(lambda a: replace(a, ns=round(a.ns * factor)) if hasattr(a, "stream") and hasattr(a, "ns") else a)

    def in_graph(b: Built, _: Program) -> np.ndarray:
        return np.where(np.isin(b.graph.kind, DEVICE_KINDS), factor, 1.0) * b.graph.measured_s

    return Change(in_program, in_graph)


def delay(thread: str, share: float, ns: int) -> Change:
    """A host thread computes for longer at some point of its program."""

    def index(program: Program) -> int:
        actions = program.threads[thread]
        works = [i for i, a in enumerate(actions) if isinstance(a, Work) and a.ns > 0]
        return works[int(share * (len(works) - 1))]

    def in_graph(b: Built, program: Program) -> np.ndarray:
        actions, at = program.threads[thread], index(program)
        marked = replace(program, threads={**program.threads, thread: (*actions[:at], Begin("here"), End(), *actions[at:])})
        rows = execute(marked)
        moment = next(r.start_ns for r in rows if r.name == "here") / 1e9
        first = min(r.start_ns for r in rows) / 1e9
        tid = f"({thread})"
        mine = [v for v in range(len(b.graph)) if b.graph.resources[b.graph.resource[v]].endswith(tid)]
        end = b.graph.recorded_start_s + b.graph.measured_s
        inside = [v for v in mine if b.graph.recorded_start_s[v] <= moment - first + 1e-10 and end[v] > moment - first + 1e-10]
        node_s = b.graph.measured_s.copy()
        node_s[inside[0]] += ns / 1e9
        return node_s

    return Change(lambda p: p.delayed(thread, index(p), ns), in_graph)


def removed(name: str, occurrence: int) -> Change:
    """One launch is left out: neither its call nor its work takes time."""

    def in_graph(b: Built, _: Program) -> np.ndarray:
        node_s = b.graph.measured_s.copy()
        node = [v for v in b.nodes(name) if b.graph.kind[v] in DEVICE_KINDS][occurrence]
        call = next(u for u, kind in b.causes(node).items() if kind == EdgeKind.LAUNCH)
        same = np.flatnonzero((b.graph.event == b.graph.event[call]) & np.isin(b.graph.kind, (NodeKind.LAUNCH, NodeKind.LAUNCH_RETURN)))
        node_s[[node, *same]] = 0.0
        return node_s

    return Change(lambda p: p.without(name, occurrence), in_graph)


TN, NN = GEMM.format("tn"), GEMM.format("nn")
CASES: list[tuple[str, str, Change]] = [
    *((p, f"all work x {f}", all_work(f)) for p in PROGRAMS for f in (0.25, 0.9, 2.0, 4.0)),
    *((p, f"gemm x {f}", work((TN, f))) for p in PROGRAMS if p != "queue_full" for f in (0.5, 2.0)),
    *((p, f"all-reduce x {f}", work((ALL_REDUCE, f))) for p in PROGRAMS if p[:4] in ("data", "comp", "comm") for f in (0.1, 2.0, 5.0)),
    *((p, "gemm x 0.5, all-reduce x 2", work((TN, 0.5), (NN, 0.5), (ALL_REDUCE, 2.0))) for p in ("data_parallel", "compute bound")),
    ("queue_full", "add x 2", work((ADD, 2.0))),
    *((p, f"main {ns} ns later at {s}", delay("main", s, ns)) for p in PROGRAMS for s in (0.0, 0.3, 0.7) for ns in (50_000, 3_000_000)),
    *((p, "autograd 2 ms later", delay("autograd", 0.5, 2_000_000)) for p in ("data_parallel", "communication bound")),
    *((p, "one gemm less", removed(TN, 3)) for p in PROGRAMS if p != "queue_full"),
    ("launch_bound", "one layer norm less", removed(LAYER_NORM, 2)),
    ("data_parallel", "one gelu less", removed(GELU, 1)),
    ("queue_full", "one add less", removed(ADD, 10)),
]


@pytest.mark.parametrize("sync_records", [True, False], ids=["records", "inferred"])
@pytest.mark.parametrize(("name", "change"), [pytest.param(p, c, id=f"{p}: {t}") for p, t, c in CASES])
def test_change_is_predicted(name: str, change: Change, sync_records: bool) -> None:
    program = PROGRAMS[name]()
    b = recording(name, sync_records=sync_records)
    before, after = truth(program), truth(change.program(program))
    np.testing.assert_allclose(b.timeline.step_s, before, rtol=1e-9)
    predicted = replay(b.graph, change.node_s(b, program)).step_s
    np.testing.assert_allclose(predicted, after, rtol=2e-3)


def test_gaps_a_recording_does_not_show_cost_at_most_their_assumption() -> None:
    """Where kernels never queue, a machine without gaps is predicted to within the assumed 1 us a kernel."""
    program = launch_bound(steps=1, layers=6)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.json"
        path.write_text(json.dumps(document(execute(program))))
        b = built(open_trace([path]))
    change = all_work(4.0)
    kernels = int(np.isin(b.graph.kind, DEVICE_KINDS).sum())
    error = replay(b.graph, change.node_s(b, program)).step_s - truth(change.program(program))
    assert 0 <= error[0] <= kernels * 1e-6
