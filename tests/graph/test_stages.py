"""Stages: recordings whose phases, microbatches and layers are known because they were made so, and real ones of known models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.graph.made import event, kernel, launch, write
from workbench.data import data_path
from workbench.graph.stages import Basis, Phase, Stages, stages
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace

ENGINE = "autograd::engine::evaluate_function: "


class Training:
    """A training loop in the making: forward operators that make functions, a backward pass on its own thread, an optimizer."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.at, self.sequence, self.calls = 0.0, 100, 0
        self.open: list[tuple[int, str]] = []

    def device(self, name: str, tid: int) -> None:
        self.calls += 1
        self.events += [launch(self.calls, self.at + 2, 2, tid), kernel(self.calls, name, self.at + 6, 8)]

    def operator(self, name: str, tid: int = 11, **args: Any) -> None:
        self.events.append(event("cpu_op", name, self.at, 10, tid, **args))
        self.device(f"k {name}", tid)
        self.at += 20

    def forward(self, *names: str) -> None:
        for name in names:
            self.open.append((self.sequence, name))
            self.operator(name, **{"Sequence number": self.sequence, "Fwd thread id": 0})
            self.sequence += 1

    def backward(self) -> None:
        for number, name in reversed(self.open):
            function = f"{name.removeprefix('aten::').title()}Backward0"
            args = {"Sequence number": number, "Fwd thread id": 1}
            self.events.append(event("cpu_op", ENGINE + function, self.at, 10, 12, **args))
            self.events.append(event("cpu_op", function, self.at + 1, 8, 12, **args))
            self.device(f"k {function}", 12)
            self.at += 20
        self.open = []

    def optimizer(self, name: str = "Optimizer.step#AdamW.step") -> None:
        self.events.append(event("user_annotation", name, self.at, 50))
        self.at += 5
        self.operator("aten::add_")
        self.at += 40

    def step(self, number: int, start: float) -> None:
        self.events.append(event("user_annotation", f"ProfilerStep#{number}", start, self.at - start))


LAYER = ("aten::layer_norm", "aten::addmm", "aten::gelu", "aten::addmm_2", "aten::add")


def training(folder: Path, steps: int = 2, microbatches: int = 1, layers: int = 6) -> Trace:
    made = Training()
    for number in range(steps):
        start = made.at
        made.operator("aten::zero_")
        for _ in range(microbatches):
            made.forward("aten::embedding", *LAYER * layers, "aten::nll_loss")
            made.backward()
        made.optimizer()
        made.step(number, start)
        made.at += 10
    return write(folder, made.events)


def device(trace: Trace, found: Stages) -> list[tuple[str, Phase, int, str]]:
    """Name, phase, microbatch and layer of each kernel, in time order."""
    rows = np.flatnonzero(trace.is_device_work)
    rows = rows[np.argsort(trace.events.start_ns[rows])]
    names = (*found.layers.names, "")
    return [(trace.name_of(int(i)), Phase(found.phase[i]), int(found.microbatch[i]), names[found.layer[i]]) for i in rows]


def test_phases_of_a_made_loop(tmp_path: Path) -> None:
    """Every kernel: the zeroing at the start of a step that nothing encloses is unknown, the rest as it was made."""
    trace = training(tmp_path)
    found = stages(trace)
    for name, phase, _, _ in device(trace, found):
        wanted = Phase.UNKNOWN if name == "k aten::zero_" else Phase.OPTIMIZER if name == "k aten::add_" else Phase.FORWARD
        assert phase == (Phase.BACKWARD if "Backward" in name else wanted), name
    work = trace.is_device_work
    assert set(found.phase_basis[work & (found.phase == Phase.FORWARD)].tolist()) == {Basis.AUTOGRAD}
    assert set(found.phase_basis[work & (found.phase == Phase.OPTIMIZER)].tolist()) == {Basis.ANNOTATION}
    assert set(found.phase_basis[work & (found.phase == Phase.UNKNOWN)].tolist()) == {Basis.NONE}


def test_layers_of_a_made_loop_forward_and_backward(tmp_path: Path) -> None:
    """Six layers of five operators; embedding, loss and optimizer are in none; the backward pass meets them from the last to the first."""
    trace = training(tmp_path, layers=6)
    found = stages(trace)
    assert found.layers.families == (("A", 6),)
    rows = device(trace, found)
    for step in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        forward = [layer for _, phase, _, layer in step if phase == Phase.FORWARD]
        assert forward == ["", *[f"A{i}" for i in range(6) for _ in LAYER], ""]
        backward = [layer for _, phase, _, layer in step if phase == Phase.BACKWARD]
        assert backward == forward[::-1]


@pytest.mark.parametrize("microbatches", [1, 3])
def test_microbatches_are_calls_of_the_backward_pass(tmp_path: Path, microbatches: int) -> None:
    trace = training(tmp_path, microbatches=microbatches, layers=3)
    rows = [row for row in device(trace, stages(trace)) if row[1] in (Phase.FORWARD, Phase.BACKWARD)]
    each = len(rows) // (2 * microbatches)
    assert [row[2] for row in rows] == [i for _ in range(2) for i in range(microbatches) for _ in range(each)]


def test_microbatches_of_a_pipeline(tmp_path: Path) -> None:
    """Two forwards to warm up, then one backward, one forward (1F1B): f0, f1, b0, f2, b1, b2."""
    made, kept = Training(), []
    for order in ("f0", "f1", "b0", "f2", "b1", "b2"):
        if order[0] == "f":
            made.forward("aten::embedding", *LAYER)
            kept.append(made.open)
        else:
            made.open = kept[int(order[1])]
            made.backward()
        made.open = []
    made.step(0, 0)
    trace = write(tmp_path, made.events)
    got = [row[2] for row in device(trace, stages(trace))]
    assert got == [int(order[1]) for order in ("f0", "f1", "b0", "f2", "b1", "b2") for _ in range(6)]


@pytest.mark.parametrize(("name", "phase"), [
    ("DistributedDataParallel.forward", Phase.FORWARD), ("## forward ##", Phase.FORWARD), ("forward-compute", Phase.FORWARD),
    ("## backward ##", Phase.BACKWARD), ("backward_step", Phase.BACKWARD), ("Optimizer.step#SGD.step", Phase.OPTIMIZER),
    ("Optimizer.zero_grad#SGD.zero_grad", Phase.OPTIMIZER), ("DeepSpeedEngine.step", Phase.OPTIMIZER), ("optimizer", Phase.OPTIMIZER),
    ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Phase.INPUT), ("## load_batch ##", Phase.INPUT),
    ("[pl][profile]run_training_batch", Phase.UNKNOWN), ("my region", Phase.UNKNOWN), ("forwarding_address_book", Phase.UNKNOWN),
])  # fmt: skip
def test_annotations_of_frameworks(tmp_path: Path, name: str, phase: Phase) -> None:
    made = Training()
    made.events.append(event("user_annotation", name, 0, 50))
    made.operator("aten::mul")
    trace = write(tmp_path, made.events)
    assert [row[1] for row in device(trace, stages(trace))] == [phase]


def test_modules_name_layers(tmp_path: Path) -> None:
    """Frames of modules: a Block twice in a Model, each with a Linear; the outer ones are the layers."""
    made = Training()
    made.events.append(event("python_function", "nn.Module: Model_0", 0, 100))
    for i in range(2):
        made.events.append(event("python_function", f"nn.Module: Block_{i}", 5 + 40 * i, 35))
        made.events.append(event("python_function", f"nn.Module: Linear_{i}", 6 + 40 * i, 30))
        made.at = 7 + 40 * i
        made.operator("aten::linear")
    trace = write(tmp_path, made.events)
    found = stages(trace)
    assert found.layers.families == (("Block", 2),)
    assert [(row[1], row[3]) for row in device(trace, found)] == [(Phase.FORWARD, "Block_0"), (Phase.FORWARD, "Block_1")]


def test_recomputation_belongs_to_the_backward_pass(tmp_path: Path) -> None:
    """A module's frame inside a function of the backward pass: activation checkpointing."""
    made = Training()
    made.events.append(event("cpu_op", ENGINE + "CheckpointFunctionBackward", 0, 90, 12, **{"Sequence number": 5, "Fwd thread id": 1}))
    made.events.append(event("python_function", "nn.Module: Block_0", 1, 80, 12))
    made.at = 3
    made.operator("aten::mul", tid=12)
    trace = write(tmp_path, made.events)
    assert [row[1] for row in device(trace, stages(trace))] == [Phase.BACKWARD]


def test_a_recording_without_anything_that_proves_a_stage(tmp_path: Path) -> None:
    trace = write(tmp_path, [launch(1, 0), kernel(1, "a", 10, 10)])
    found = stages(trace)
    assert not found.phase[trace.is_device_work].any()
    assert (found.layer < 0).all()
    assert (found.microbatch < 0).all()


@pytest.mark.parametrize(("name", "blocks"), [("cpu_transformer_b4", 2), ("cpu_transformer_b8", 2)])
def test_recorded_transformers(name: str, blocks: int) -> None:
    """data/traces/record.py: an encoder of two layers, trained with AdamW."""
    trace = open_trace(data_path("traces", f"{name}.json.gz"))
    found = stages(trace)
    assert found.layers.families[0][1] == blocks
    operators = trace.events.category == 1
    assert {Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER} <= {Phase(p) for p in np.unique(found.phase[operators])}


def test_layers_of_real_models(shared: Path) -> None:
    """ResNet-50 has 3, 4, 6 and 3 blocks, of which the first of each stage differs (He et al. 2016); the Megatron run has 40 layers
    with two all-reduces each (80 of its 85 messages); BERT-small 4 layers (google/bert_uncased_L-4), Qwen2-0.5B 24 (its config.json).
    """
    for name, wanted in (
        ("v100_resnet50_2021", [2, 3, 5, 2]),
        ("megatron_a100_tp8/kineto_rank0", [40]),
        ("pairs/bert_small_h100", [4]),
        ("pairs/qwen_0.5b_mi300x", [24]),
    ):
        found = stages(open_trace(shared / "traces" / f"{name}.json.gz"))
        assert [count for _, count in found.layers.families] == wanted, name


def test_what_real_recordings_prove(shared: Path) -> None:
    """ResNet-50: SGD's annotation is around 1.5 % of the device time (its fills and updates), all else lies in the two passes; an inference
    has no backward pass.
    """
    trace = open_trace(shared / "traces" / "v100_resnet50_2021.json.gz")
    found, work = stages(trace), trace.is_device_work
    share = np.bincount(found.phase[work], weights=trace.events.dur_ns[work], minlength=len(Phase)) / trace.events.dur_ns[work].sum()
    assert share[Phase.UNKNOWN] < 0.01
    assert 1.5 < share[Phase.BACKWARD] / share[Phase.FORWARD] < 2.5  # two products for one: twice the work
    trace = open_trace(shared / "traces" / "pairs" / "bert_small_h100.json.gz")
    assert set(np.unique(stages(trace).phase[trace.is_device_work])) == {Phase.FORWARD}
