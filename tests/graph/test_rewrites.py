"""Edits are proved by doing: the program is rewritten and executed again by an independent simulator (`tests.naive`).

The edit sees the recording of the unchanged program alone. Times of new kernels are left as the sum of what they were made of, so
that what is compared is the structure: launches, order, streams, host work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tests.graph.test_interventions import PROGRAMS, truth
from tests.naive.actions import Action, Begin, End, Launch, Program, Record, Replay, Synchronize, Wait, Work
from tests.naive.executor import execute
from tests.naive.kineto import document
from tests.naive.programs import ADD, GELU, LAYER_NORM, Thread
from workbench.graph.build import build_graph
from workbench.graph.rewrite import Rewrite, Rewritten, recorded
from workbench.graph.rewrite_capture import Capture
from workbench.graph.rewrite_drop import Drop, Split
from workbench.graph.rewrite_fuse import Fuse
from workbench.graph.rewrite_move import Move, Overlap
from workbench.graph.rewrite_retype import Retype
from workbench.replay.replay import replay
from workbench.trace.open import open_trace


def recording(program: Program, *, sync_records: bool = True) -> Rewritten:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.json"
        path.write_text(json.dumps(document(execute(program), sync_records=sync_records)))
        trace = open_trace([path])
    return recorded(*build_graph(trace), trace)


@cache
def known(name: str, *, sync_records: bool) -> Rewritten:
    return recording(program_of(name), sync_records=sync_records)


def beside(steps: int = 3) -> Program:
    """Inputs, a long kernel on the side, long work that does not need it, and a reader of both."""
    main, shape = Thread(), (4096, 4096)
    for step in range(steps):
        main.do(Begin(f"ProfilerStep#{step + 1}", category="user_annotation"), Work(30_000))
        main.kernel("aten::native_layer_norm", LAYER_NORM, 50_000, shape)
        main.kernel("aten::gelu", GELU, 400_000 + 1_000 * step, shape)
        main.linear(4096, 4096, 4096)
        main.linear(4096, 4096, 4096)
        main.kernel("aten::add", ADD, 60_000, shape, shape)
        main.do(Synchronize(), End(), Work(5_000))
    return Program({"main": tuple(main.actions)})


def program_of(name: str) -> Program:
    return beside() if name == "beside" else PROGRAMS[name]()


# -- the same edits in programs ----------------------------------------------------------------------------------------
def blocks(actions: tuple[Action, ...], name: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end (exclusive) of every operator of a name."""
    for i, action in enumerate(actions):
        if isinstance(action, Begin) and action.name == name:
            depth, j = 1, i + 1
            while depth:
                depth += isinstance(actions[j], Begin) - isinstance(actions[j], End)
                j += 1
            yield i, j


def each_thread(program: Program, change: Callable[[tuple[Action, ...]], tuple[Action, ...]]) -> Program:
    return replace(program, threads={name: change(actions) for name, actions in program.threads.items()})


def without(name: str) -> Callable[[Program], Program]:
    def change(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        gone = {k for i, j in blocks(actions, name) for k in range(i, j)}
        return tuple(a for k, a in enumerate(actions) if k not in gone)

    return lambda program: each_thread(program, change)


def into_the_one_before(name: str, after: str) -> Callable[[Program], Program]:
    """An operator's kernel is done by the launch before it, where that is in an operator ``after``."""

    def change(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        out, gone = list(actions), set()
        owner = {k: after for i, j in blocks(actions, after) for k in range(i, j)}
        for i, j in blocks(actions, name):
            before = next(k for k in range(i - 1, -1, -1) if isinstance(actions[k], Launch) and k not in gone)
            if owner.get(before) == after:
                own = next(a for a in actions[i:j] if isinstance(a, Launch))
                head = out[before]
                assert isinstance(head, Launch)
                out[before] = replace(head, ns=head.ns + own.ns)
                gone |= set(range(i, j))
        return tuple(a for k, a in enumerate(out) if k not in gone)

    return lambda program: each_thread(program, change)


def launched(name: str, change: Callable[[Launch], tuple[Action, ...]]) -> Callable[[Program], Program]:
    """Every launch inside an operator becomes some actions."""

    def edit(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        inside = {k for i, j in blocks(actions, name) for k in range(i, j)}
        return tuple(b for k, a in enumerate(actions) for b in (change(a) if k in inside and isinstance(a, Launch) else (a,)))

    return lambda program: each_thread(program, edit)


def captured(program: Program) -> Program:
    """All operators between the mark of a step and its read-back become one replay (launch-bound program)."""

    def edit(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        out: list[Action] = []
        held: list[Launch] = []
        until = {i: j for name in {a.name for a in actions if isinstance(a, Begin)} for i, j in blocks(actions, name)}
        k = 0
        while k < len(actions):
            a = actions[k]
            if isinstance(a, Begin) and a.name.startswith("aten::") and a.name not in ("aten::item", "aten::_local_scalar_dense"):
                held += [b for b in actions[k : until[k]] if isinstance(b, Launch)]
                k = until[k]
                continue
            if held:
                out.append(Replay(tuple(held)))
                held = []
            out.append(a)
            k += 1
        return tuple(out)

    return each_thread(program, edit)


def on_stream_9(program: Program) -> Program:
    """GELU runs on stream 9, behind an event; the sum at the end waits for it."""

    def edit(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        out: list[Action] = []
        for a in actions:
            if isinstance(a, Launch) and a.name == GELU:
                out += [Record("before", 7), Wait("before", 9), replace(a, stream=9)]
            elif isinstance(a, Launch) and a.name == ADD:
                out += [Record("after", 9), Wait("after", 7), a]
            else:
                out.append(a)
        return tuple(out)

    return each_thread(program, edit)


def halves(launch: Launch) -> tuple[Action, ...]:
    return replace(launch, ns=launch.ns // 2), replace(launch, ns=launch.ns - launch.ns // 2)


def between_casts(launch: Launch) -> tuple[Action, ...]:
    return replace(launch, ns=0, name="cast"), launch, replace(launch, ns=0, name="cast")


CASES: list[tuple[str, Rewrite, Callable[[Program], Program]]] = [
    *((p, Fuse("aten::addmm > aten::gelu"), into_the_one_before("aten::gelu", "aten::addmm")) for p in ("launch_bound", "data_parallel")),
    ("queue_full", Fuse("aten::add > aten::mul"), into_the_one_before("aten::mul", "aten::add")),
    *((p, Drop("aten::gelu"), without("aten::gelu")) for p in ("launch_bound", "data_parallel", "compute bound", "beside")),
    ("launch_bound", Drop("aten::native_layer_norm"), without("aten::native_layer_norm")),
    ("data_parallel with latencies", Drop("aten::native_layer_norm"), without("aten::native_layer_norm")),
    ("queue_full", Drop("aten::mul"), without("aten::mul")),
    ("launch_bound", Capture(), captured),
    ("launch_bound", Split("aten::gelu", 2), launched("aten::gelu", halves)),
    ("data_parallel", Split("aten::gelu", 2), launched("aten::gelu", halves)),
    ("beside", Retype("aten::gelu", "fp32"), launched("aten::gelu", between_casts)),
    ("beside", Retype("aten::gelu", "fp16"), launched("aten::gelu", between_casts)),  # bf16 is as wide, and another type
    ("beside", Move("aten::gelu", "9", "aten::add"), on_stream_9),
    ("beside", Overlap("aten::gelu", "aten::add"), on_stream_9),
]


@pytest.mark.parametrize("sync_records", [True, False], ids=["records", "inferred"])
@pytest.mark.parametrize(("name", "edit", "change"), [pytest.param(p, e, c, id=f"{p}: {e.text}") for p, e, c in CASES])
def test_an_edit_is_what_the_rewritten_program_does(
    name: str, edit: Rewrite, change: Callable[[Program], Program], sync_records: bool
) -> None:
    before = known(name, sync_records=sync_records)
    after = edit.apply(before)
    predicted = replay(after.graph, after.graph.measured_s).step_s
    np.testing.assert_allclose(predicted, truth(change(program_of(name))), rtol=2e-3)
    assert abs(predicted - truth(program_of(name))).max() > 0 or isinstance(edit, Drop), "the edit does something"
