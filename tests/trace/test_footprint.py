"""Memory from execution traces: lives, peak and faults of hand-made ones, and of the handed Megatron job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.trace.footprint import Fault, Footprint, footprints
from workbench.trace.open import open_trace
from workbench.trace.storages import Role, lives, mentions
from workbench.trace.trace import Trace

GPU = "cuda:0"
Made = tuple[str, list[list[Any]], list[list[Any]]]
"""An operator: name, operands, results."""


def tensor(number: int, storage: int, count: int, offset: int = 0, size: int = 4) -> list[Any]:
    return [number, storage, offset, count, size, GPU]


def recording(folder: Path, operators: list[Made]) -> Trace:
    """A profile of operators one after the other, 10 us each, 20 us apart, and the execution trace of its process."""
    events, nodes = [], []
    for i, (name, inputs, outputs) in enumerate(operators):
        events.append(
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 1, "ts": 20 * i, "dur": 10, "args": {"External id": i + 1}}
        )
        node: dict[str, Any] = {"name": name, "id": i + 3, "rf_id": i + 1, "parent": 2, "inputs": inputs, "outputs": outputs}
        for side, tensors in (("input", inputs), ("output", outputs)):
            node |= {f"{side}_shapes": [[t[3]] for t in tensors], f"{side}_types": ["Tensor(float)"] * len(tensors)}
        nodes.append(node)
    (folder / "profile.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}))
    (folder / "execution.json").write_text(json.dumps({"schema": "1.0.1", "pid": 7, "nodes": nodes}))
    return open_trace([folder / "profile.json", folder / "execution.json"])


def of(folder: Path, operators: list[Made]) -> tuple[Footprint, list[Fault]]:
    found, faults = footprints(recording(folder, operators))
    return found[0], faults


CHAIN: list[Made] = [
    ("aten::mm", [tensor(1, 101, 1000), tensor(2, 102, 500)], [tensor(3, 103, 2000)]),  # 0 to 10 us: makes 8000 bytes
    ("aten::relu", [tensor(3, 103, 2000)], [tensor(4, 104, 2000)]),  # 20 to 30: 8000 more, the first is used last
    ("aten::empty", [], [tensor(5, 105, 250)]),  # 40: 1000 bytes
    ("aten::add_", [tensor(4, 104, 2000), tensor(5, 105, 250)], [tensor(4, 104, 2000)]),  # 60: in place
    ("aten::view", [tensor(4, 104, 2000)], [tensor(6, 104, 2000)]),
    ("aten::sum", [tensor(6, 104, 2000)], [tensor(7, 107, 1)]),
]


def test_lives_and_peak_by_hand(tmp_path: Path) -> None:
    """Two operands are older: 4000 + 2000 bytes. The most lives in relu: 6000 + 8000 + 8000. Made: 8000 + 8000 + 1000 + 4."""
    found, faults = of(tmp_path, CHAIN)
    assert (found.resident, found.peak, found.allocated) == (6000, 22000, 17004)
    assert (found.storages, found.in_place, found.views) == (6, 1, 1)
    assert 20_000 <= found.peak_ns <= 30_000
    assert [size for size, _, _ in found.held] == [8000, 8000, 4000, 2000]
    assert [old for _, _, old in found.held] == [False, False, True, True]
    assert not faults


def test_roles_by_hand(tmp_path: Path) -> None:
    trace = recording(tmp_path, CHAIN)
    told = [(trace.name_of(one.event), one.role) for one in mentions(trace) if one.role != Role.READ]
    assert told == [
        ("aten::mm", Role.CREATE), ("aten::relu", Role.CREATE), ("aten::empty", Role.ALLOCATE), ("aten::add_", Role.WRITE),
        ("aten::view", Role.VIEW), ("aten::sum", Role.CREATE),
    ]  # fmt: skip


def test_two_live_tensors_on_one_region(tmp_path: Path) -> None:
    """exp writes storage 103 without having an operand on it, and tensor 3 is read again: what it reads is overwritten."""
    overwrite: Made = ("aten::exp", [tensor(1, 101, 1000)], [tensor(8, 103, 2000)])
    again: Made = ("aten::neg", [tensor(3, 103, 2000)], [tensor(9, 109, 2000)])
    _, faults = of(tmp_path, [CHAIN[0], overwrite, again])
    assert [(fault.kind, fault.event, fault.other, fault.nbytes) for fault in faults] == [("aliased-storage", 2, 1, 8000)]
    # read before it is overwritten: the memory was free
    assert not of(tmp_path, [CHAIN[0], again, overwrite])[1]
    # the writer has a view of it as operand: an update in place
    assert not of(tmp_path, [CHAIN[0], ("aten::exp_", [tensor(8, 103, 2000)], [tensor(8, 103, 2000)]), again])[1]
    # the id returned for another tensor, which the new life itself makes
    renewed: Made = ("aten::exp", [tensor(1, 101, 1000)], [tensor(3, 103, 2000)])
    assert not of(tmp_path, [CHAIN[0], renewed, again])[1]


def test_disjoint_halves_are_no_alias(tmp_path: Path) -> None:
    """Two tensors on one storage at different offsets do not share a byte."""
    half: Made = ("aten::exp", [tensor(1, 101, 1000)], [tensor(8, 103, 1000, offset=2000)])
    again: Made = ("aten::neg", [tensor(3, 103, 2000)], [tensor(9, 109, 2000)])
    assert not of(tmp_path, [CHAIN[0], half, again])[1]


@pytest.mark.parametrize(
    ("operator", "certainty"),
    [
        (("aten::slice", [tensor(3, 103, 2000)], [tensor(8, 103, 500, offset=2000)]), "certain"),  # begins at the end
        (("aten::slice", [tensor(3, 103, 2000)], [tensor(8, 103, 500, offset=1800)]), "likely"),  # ends 300 elements behind it
        (("aten::slice", [tensor(3, 103, 2000)], [tensor(8, 103, 500, offset=1500)]), None),  # just fits
        (("aten::expand", [tensor(3, 103, 2000)], [tensor(8, 103, 64000)]), None),  # strides of 0: no extent can be told
        (("aten::neg", [tensor(8, 103, 4000)], [tensor(9, 109, 4000)]), "possible"),  # of unknown origin
    ],
)
def test_reads_past_the_end(tmp_path: Path, operator: Made, certainty: str | None) -> None:
    _, faults = of(tmp_path, [CHAIN[0], operator])
    assert [fault.certainty for fault in faults] == ([certainty] if certainty else [])


def test_a_returned_id_is_another_storage(tmp_path: Path) -> None:
    """A larger unknown tensor on an old id, after other storages were made: memory allocated out of sight. Used again: a fault."""
    strange: Made = ("aten::neg", [tensor(8, 103, 4000)], [tensor(9, 109, 4000)])
    other: Made = ("aten::exp", [tensor(1, 101, 1000)], [tensor(10, 110, 1000)])
    assert not of(tmp_path, [CHAIN[0], other, strange])[1]
    again: Made = ("aten::relu", [tensor(3, 103, 2000)], [tensor(11, 111, 2000)])
    assert [fault.certainty for fault in of(tmp_path, [CHAIN[0], strange, again])[1]] == ["likely"]


def test_resizing_is_no_fault(tmp_path: Path) -> None:
    grow: Made = ("aten::resize_", [tensor(3, 103, 2000)], [tensor(3, 103, 4000)])
    read: Made = ("aten::neg", [tensor(3, 103, 4000)], [tensor(9, 109, 4000)])
    found, faults = of(tmp_path, [CHAIN[0], grow, read])
    assert not faults
    assert found.peak >= 16000


def test_results_are_counted_once(tmp_path: Path) -> None:
    """linear contains addmm, which makes the tensor: the outer operator's result is the same."""
    made = tensor(3, 103, 100)
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 1, "ts": start, "dur": length, "args": {"External id": number}}
        for number, name, start, length in ((1, "aten::linear", 0, 50), (2, "aten::addmm", 10, 20))
    ]
    types = {"input_shapes": [[100]], "input_types": ["Tensor(float)"], "output_shapes": [[100]], "output_types": ["Tensor(float)"]}
    nodes = [{"name": e["name"], "id": 9, "rf_id": e["args"]["External id"], "inputs": [tensor(1, 101, 100)], "outputs": [made], **types}
             for e in events]  # fmt: skip
    (tmp_path / "p.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}))
    (tmp_path / "e.json").write_text(json.dumps({"schema": "1.0.1", "pid": 7, "nodes": nodes}))
    trace = open_trace([tmp_path / "p.json", tmp_path / "e.json"])
    told = [(trace.name_of(one.event), one.role) for one in mentions(trace) if one.role != Role.READ]
    assert told == [("aten::addmm", Role.CREATE)]
    assert len(lives(trace)) == 2


def test_the_handed_job(shared: Path) -> None:
    """Megatron, TP 8: the weights of a rank add up by hand. Of hidden size 4096 and 40 layers a rank holds 1/8: query, key and value
    [1536, 4096], projection [4096, 512], MLP [2048, 4096] and [4096, 2048] of 2 bytes, 50.3 MB a layer; what the forward pass mentions of
    them is resident, so at least 40 layers of it. No tensor lies where it must not for certain.
    """
    where = shared / "traces" / "megatron_a100_tp8"
    found, faults = footprints(open_trace([where / "et_rank0.json.gz", where / "kineto_rank0.json.gz"]))
    device = next(one for one in found if one.device == GPU)
    layer = 2 * (1536 * 4096 + 4096 * 512 + 2 * 2048 * 4096)
    assert device.resident >= 40 * layer
    assert device.resident < 1.3 * 40 * layer  # embeddings, norms, masks
    assert device.peak > device.resident
    assert not [fault for fault in faults if fault.certainty != "possible"]
