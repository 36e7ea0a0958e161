"""Execution traces joined to the profile of their rank: the handed one against independent facts, made ones by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.errors import Refused, UnreadableInput
from workbench.graph.build import build_graph
from workbench.operators.table import Kind
from workbench.trace.open import open_trace

TENSOR_A, TENSOR_B, TENSOR_C = [11, 1, 0, 128, 4, "cuda:0"], [12, 2, 0, 256, 4, "cuda:0"], [13, 3, 0, 128, 4, "cuda:0"]


def test_the_handed_trace_joins_as_counted(shared: Path) -> None:
    """facts.json: 5 422 nodes join by External id = rf_id + 2."""
    facts = json.loads((shared / "traces" / "facts.json").read_text())["across_ranks"]["megatron_a100_tp8"]
    where = shared / "traces" / "megatron_a100_tp8"
    trace = open_trace([where / "et_rank0.json.gz", where / "kineto_rank0.json.gz"])
    note = next(note for note in trace.notes if note.code == "execution-trace-joined")
    assert note.count == facts["et_nodes_linked"]
    assert f"rf_id + {facts['ext_id_equals_rf_id_plus']})" in note.text


def kineto(shift: int = 5, pid: int = 77) -> dict[str, Any]:
    """Return a profile whose operator has no shapes: aten::mm launches one kernel."""
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": pid, "tid": 1, "ts": 10, "dur": 20, "args": {"External id": 40 + shift}}
    call = {
        "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": pid, "tid": 1, "ts": 15, "dur": 5,
        "args": {"correlation": 9, "External id": 40 + shift},
    }  # fmt: skip
    kernel = {
        "ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 30, "dur": 50,
        "args": {"correlation": 9, "device": 0, "stream": 7, "External id": 40 + shift},
    }  # fmt: skip
    return {"traceEvents": [op, call, kernel], "distributedInfo": {"rank": 0}}


def execution(newer: bool, pid: int = 77, name: str = "aten::mm") -> dict[str, Any]:
    values, shapes, types = [TENSOR_A, TENSOR_B], [[8, 16], [16, 16]], ["Tensor(float)", "Tensor(float)"]
    if newer:
        node: dict[str, Any] = {
            "name": name, "id": 3, "ctrl_deps": 2, "inputs": {"values": values, "shapes": shapes, "types": types, "strides": []},
            "outputs": {"values": [TENSOR_C], "shapes": [[8, 16]], "types": ["Tensor(float)"]},
            "attrs": [{"name": "rf_id", "type": "uint64", "value": 40}],
        }  # fmt: skip
    else:
        node = {"name": name, "id": 3, "rf_id": 40, "parent": 2, "inputs": values, "input_shapes": shapes, "input_types": types}
        node |= {"outputs": [TENSOR_C], "output_shapes": [[8, 16]], "output_types": ["Tensor(float)"]}
    return {"schema": "1.1.1-chakra.0.0.4" if newer else "1.0.1", "pid": pid, "nodes": [node]}


def write(folder: Path, **content: dict[str, Any]) -> list[Path]:
    paths = []
    for name, data in content.items():
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(data))
    return paths


@pytest.mark.parametrize("newer", [False, True])
def test_operators_gain_shapes_and_tensors(tmp_path: Path, newer: bool) -> None:
    """Without the execution trace the product has no formula; with it, 2 x 8 x 16 x 16 = 4 096 FLOP, read and written tensors known."""
    _, bare = build_graph(open_trace(write(tmp_path, alone=kineto())))
    assert bare.flops.tolist() == [0.0]
    trace = open_trace(write(tmp_path, profile=kineto(), nodes=execution(newer)))
    _, table = build_graph(trace)
    assert table.kind.tolist() == [Kind.GEMM]
    assert table.flops.tolist() == [4096.0]
    operator = int(np.flatnonzero([trace.name_of(i) == "aten::mm" for i in range(len(trace.events))])[0])
    assert json.loads(trace.strings[trace.text_arg("Input tensors")[operator]]) == [TENSOR_A, TENSOR_B]
    assert json.loads(trace.strings[trace.text_arg("Output tensors")[operator]]) == [TENSOR_C]


def test_alone_it_holds_no_times(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="no times") as fault:
        open_trace(write(tmp_path, nodes=execution(False)))
    assert "profiles" in fault.value.fix


def test_of_another_job_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="belongs to none"):
        open_trace(write(tmp_path, profile=kineto(), nodes=execution(False, name="aten::add")))


def test_two_for_one_profile_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="both belong to"):
        open_trace(write(tmp_path, profile=kineto(), first=execution(False), second=execution(True)))


def test_odd_nodes_are_counted_not_read(tmp_path: Path) -> None:
    data = execution(False)
    data["nodes"] += [{}, {"name": "x"}, 7, {"name": "y", "rf_id": "many"}]
    trace = open_trace(write(tmp_path, profile=kineto(), nodes=data))
    assert {note.code: note.count for note in trace.notes}["execution-trace-unread"] == 4
