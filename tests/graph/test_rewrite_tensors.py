"""Who else reads an intermediate: by tensor ids, where an execution trace was recorded beside the profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.naive.actions import Begin, End, Program, Synchronize, Work
from tests.naive.executor import execute
from tests.naive.kineto import PID, document
from tests.naive.programs import ADD, GELU, MULTIPLY, Thread
from workbench.errors import Refused
from workbench.graph.build import build_graph
from workbench.graph.rewrite import Rewritten, recorded
from workbench.graph.rewrite_fuse import Fuse
from workbench.graph.rewrite_move import Overlap
from workbench.trace.open import open_trace

SHAPE = (64, 1024)
Tensors = tuple[tuple[int, ...], int]
"""Storages an operator reads, and the one it writes."""
KERNELS = {"aten::add": ADD, "aten::gelu": GELU, "aten::mul": MULTIPLY}


def job(folder: Path, operators: list[tuple[str, Tensors]]) -> Rewritten:
    """One step of operators with the storages they read and write, as profile and execution trace."""
    main = Thread()
    main.do(Begin("ProfilerStep#1", category="user_annotation"))
    for name, (reads, _) in operators:
        main.kernel(name, KERNELS[name], 50_000, *([SHAPE] * len(reads)))
    main.do(Synchronize(), End(), Work(5_000))
    rows = execute(Program({"main": tuple(main.actions)}))
    (folder / "profile.json").write_text(json.dumps(document(rows, rank=0, world_size=1)))
    ids = [row.external_id for row in rows if row.category == "cpu_op"]
    count = SHAPE[0] * SHAPE[1]
    nodes = []
    for number, (name, (reads, writes)) in zip(ids, operators, strict=True):
        node: dict[str, object] = {"name": name, "id": number + 3, "rf_id": number, "parent": 2}
        for side, storages in (("input", reads), ("output", (writes,))):
            node[f"{side}s"] = [[storage, storage, 0, count, 2, "cuda:0"] for storage in storages]
            node[f"{side}_shapes"], node[f"{side}_types"] = [list(SHAPE)] * len(storages), ["Tensor(c10::BFloat16)"] * len(storages)
        nodes.append(node)
    (folder / "execution.json").write_text(json.dumps({"schema": "1.0.1", "pid": PID, "nodes": nodes}))
    trace = open_trace([folder / "profile.json", folder / "execution.json"])
    return recorded(*build_graph(trace), trace)


CHAIN = [("aten::add", ((1, 2), 3)), ("aten::gelu", ((3,), 4)), ("aten::mul", ((4, 5), 6))]


def test_a_private_intermediate_is_fused_without_assumptions(tmp_path: Path) -> None:
    fused = Fuse("aten::add > aten::gelu").apply(job(tmp_path, CHAIN))
    assert [n.code for n in fused.graph.notes if n.code.startswith("rewrite")] == ["rewrite-applied"]


def test_another_reader_of_the_intermediate_forbids_it(tmp_path: Path) -> None:
    """mul reads what add wrote: fused, it must be written all the same, which has to be said."""
    shared = job(tmp_path, [*CHAIN[:2], ("aten::mul", ((4, 3), 6))])
    with pytest.raises(Refused, match="aten::mul reads the intermediate too"):
        Fuse("aten::add > aten::gelu").apply(shared)
    kept, private = Fuse("aten::add > aten::gelu", keep=True).apply(shared), Fuse("aten::add > aten::gelu").apply(job(tmp_path, CHAIN))
    rows = [of.table.name.index("aten::add + aten::gelu") for of in (kept, private)]
    assert kept.table.bytes_written[rows[0]] == 2 * private.table.bytes_written[rows[1]]


def test_neighbours_that_share_no_tensor_are_no_chain(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not read what the one before it writes"):
        Fuse("aten::add > aten::gelu").apply(job(tmp_path, [CHAIN[0], ("aten::gelu", ((9,), 4))]))


def test_work_on_another_stream_is_awaited_by_its_first_reader(tmp_path: Path) -> None:
    """gelu's result is read by the last operator: the mul between does not wait for it."""
    of = job(tmp_path, [CHAIN[0], CHAIN[1], ("aten::mul", ((1, 2), 7)), ("aten::add", ((4, 7), 8))])
    moved = Overlap("aten::gelu").apply(of)
    assert not [n for n in moved.graph.notes if n.code == "rewrite-assumed"]
    assert sum(name.endswith("stream beside") for name in moved.graph.resources) == 1
