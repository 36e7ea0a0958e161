"""Laws of every graph, on random programs executed by the independent simulator."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.graph.made import Built, built, check_invariants, event, write
from tests.naive.actions import Action, Await, Begin, End, Launch, Program, Record, Signal, Synchronize, Wait, Work
from tests.naive.executor import execute
from tests.naive.kineto import document
from workbench.graph.graph import DEVICE_KINDS
from workbench.replay.account import account
from workbench.replay.replay import replay

STREAMS = st.sampled_from([7, 20, 24])
LENGTH = st.integers(0, 60_000)


@st.composite
def actions(draw: st.DrawFn, prefix: str) -> tuple[Action, ...]:
    """What one thread does: operators around launches, records and waits of events, synchronisation."""
    out: list[Action] = []
    events = 0
    for index in range(draw(st.integers(1, 14))):
        choice = draw(st.sampled_from("wwoolllllcres"))
        if choice == "w":
            out.append(Work(draw(LENGTH)))
        elif choice == "o":
            out += [
                Begin(f"aten::op{draw(st.integers(0, 3))}"),
                Work(draw(LENGTH)),
                Launch(f"kernel{index % 4}", draw(STREAMS), draw(LENGTH)),
                End(),
            ]
        elif choice == "l":
            out.append(Launch(f"kernel{index % 4}", draw(STREAMS), draw(LENGTH)))
        elif choice == "c":
            copy = ("Memcpy DtoH (Device -> Pageable)", draw(STREAMS), draw(LENGTH), "gpu_memcpy", "cudaMemcpyAsync", True)
            out.append(Launch(*copy))
        elif choice == "r":
            events += 1
            out.append(Record(f"{prefix}{events}", draw(STREAMS)))
        elif choice == "e" and events:
            out.append(Wait(f"{prefix}{draw(st.integers(1, events))}", draw(STREAMS)))
        elif choice == "s":
            out.append(Synchronize(stream=draw(st.one_of(st.none(), STREAMS))))
    return tuple(out)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """One or two threads, the second of which may work while the first waits for it; step marks or none."""
    main = list(draw(actions("a")))
    threads: dict[str, tuple[Action, ...]] = {}
    if draw(st.booleans()):
        threads["other"] = (Await("go"), *draw(actions("b")), Signal("done"))
        main += [Signal("go"), Await("done"), *draw(actions("c"))]
    if draw(st.booleans()):
        main = [Begin("ProfilerStep#1", category="user_annotation"), *main, End()]
    names = {"main": (*main, Work(1_000), Launch("last", 7, 1_000)), **threads}
    return Program(names, latency_ns=draw(st.integers(0, 9_000)), queue_depth=draw(st.sampled_from([3, 1_024])))


def recorded(events: list[dict], shuffle: int | None = None) -> Built:
    """Write a document (its events in random order) and build its graph."""
    if shuffle is not None:
        random.Random(shuffle).shuffle(events)
    with TemporaryDirectory() as folder:
        return built(write(Path(folder), events))


@given(programs(), st.booleans())
def test_graph_is_acyclic_replays_the_recording_and_accounts_for_all_of_it(program: Program, sync_records: bool) -> None:
    b = recorded(document(execute(program), sync_records=sync_records)["traceEvents"])
    check_invariants(b.graph)
    np.testing.assert_allclose(b.timeline.start_s, b.graph.recorded_start_s, atol=1e-12)
    np.testing.assert_allclose(b.timeline.step_s, b.graph.measured_step_s, rtol=1e-9)
    parts = account(b.graph, b.timeline)
    named = (parts.compute_s, parts.exposed_communication_s, parts.exposed_copy_s, parts.host_s, parts.waiting_s, parts.idle_s)
    np.testing.assert_allclose(sum(named), b.timeline.step_s, rtol=1e-12)
    assert all((part >= -1e-15).all() for part in named)


@given(programs(), st.integers(0, 9))
def test_order_of_the_file_and_python_frames_do_not_matter(program: Program, seed: int) -> None:
    events = document(execute(program))["traceEvents"]
    base = 5_000_000_000.0  # where the simulator's clock starts [us]
    frames = [event("python_function", f"train.py({i}): f", base + 7 * i, 40, tid=4242, pid=4242) for i in range(5)]
    a, b = recorded(list(events)), recorded([*events, *frames], shuffle=seed)
    for column in (
        "kind",
        "measured_s",
        "recorded_start_s",
        "edge_ptr",
        "edge_from",
        "edge_kind",
        "edge_lag_s",
        "edge_known_s",
        "step",
        "resource",
    ):
        np.testing.assert_array_equal(getattr(a.graph, column), getattr(b.graph, column), err_msg=column)
    assert a.graph.resources == b.graph.resources
    names = [[t.trace.name_of(int(e)) if e >= 0 else "" for e in t.graph.event] for t in (a, b)]
    assert names[0] == names[1]


@given(programs(), st.data())
def test_a_faster_unit_never_lengthens_a_step(program: Program, data: st.DataObject) -> None:
    b = recorded(document(execute(program))["traceEvents"])
    device = np.flatnonzero(np.isin(b.graph.kind, DEVICE_KINDS))
    node_s = b.graph.measured_s.copy()
    chosen = data.draw(st.lists(st.sampled_from(device.tolist()), unique=True))
    node_s[chosen] *= data.draw(st.floats(0, 1))
    assert (replay(b.graph, node_s).step_s <= b.timeline.step_s + 1e-12).all()


@given(programs(), st.data())
def test_slack_is_what_a_node_may_take_longer(program: Program, data: st.DataObject) -> None:
    b = recorded(document(execute(program))["traceEvents"])
    end = b.timeline.start_s[b.graph.step_begin] + b.timeline.step_s
    v = data.draw(st.integers(1, len(b.graph) - 1))
    for more, moves in ((0.0, False), (1e-6, True)):
        node_s = b.graph.measured_s.copy()
        node_s[v] += b.timeline.slack_s[v] + more
        later = replay(b.graph, node_s)
        moved = (later.start_s[b.graph.step_begin] + later.step_s > end + 1e-9).any() or later.makespan_s > b.timeline.makespan_s + 1e-9
        assert moved == moves
