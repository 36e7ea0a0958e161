"""Models: published parameter counts and FLOPs, activations as published, a backward pass that doubles the forward one, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InvalidSpec, Refused, UnreadableInput
from workbench.models.build import _model_flops
from workbench.models.describe import gpt, list_models, load_model, read_model
from workbench.operators.blocks import Axis, BlockMessage, BlockOp, Model, Phase, Role

COUNTED = [name for name in list_models() if load_model(name).published_parameters]


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_the_published_ones(name: str) -> None:
    spec = load_model(name)
    assert spec.build().parameters == spec.published_parameters


@pytest.mark.parametrize(
    ("name", "billions", "source"),
    [("gpt-22b", 22, "arXiv 2205.05198, table 3"), ("gpt3-175b", 175, "same"), ("mt-nlg-530b", 530, "same"), ("gpt-1t", 1008, "same")],
)
def test_sizes_of_table_3(name: str, billions: int, source: str) -> None:
    assert round(load_model(name).build().parameters / 1e9) == billions, source


def test_a_token_uses_the_active_parameters() -> None:
    """Mixtral: 12.9 B of 46.7 B (arXiv 2401.04088, section 1); Qwen1.5-MoE-A2.7B: 2.7 B."""
    assert round(load_model("mixtral-8x7b").build().active_parameters / 1e9, 1) == 12.9
    assert round(load_model("qwen1.5-moe-a2.7b").build().active_parameters / 1e9, 1) == 2.7


def test_published_operations_of_images() -> None:
    """ResNet-50: 4.09 GMAC (torchvision's weight documentation: 4.09 GFLOPS, counted as multiply-adds)."""
    assert load_model("resnet-50").build().model_flops / 2e9 == pytest.approx(4.09, abs=0.005)


@given(st.integers(1, 8), st.sampled_from([128, 1024, 2048]), st.sampled_from([(4, 256, 4), (2, 1024, 16)]), st.integers(1000, 60_000))
def test_flops_are_those_of_the_published_formula(batch: int, tokens: int, shape: tuple[int, int, int], vocab: int) -> None:
    """Narayanan et al., arXiv 2104.04473, equation 3 without recomputation: 72 B s l h^2 (1 + s / 6h + V / 12lh), a third of it forward."""
    layers, width, heads = shape
    model = gpt(layers, width, heads, vocab, tokens).build(batch)
    formula = 72.0 * batch * tokens * layers * width**2 * (1 + tokens / (6 * width) + vocab / (12 * layers * width))
    assert 3 * model.model_flops == pytest.approx(formula)


@pytest.mark.parametrize("tensor", [1, 8])
@pytest.mark.parametrize("sequence", [False, True])
def test_activations_are_those_of_korthikanti(tensor: int, sequence: bool) -> None:
    """arXiv 2205.05198, table 2: a layer of GPT-3 175B, with tensor and sequence parallelism; 5 a s / h is the selective part."""
    s, b, h, a, t = 2048, 2, 12288, 96, tensor
    layer = gpt(96, h, a, 51200, s).build(b, attention="unfused").blocks[1]
    degree = {Axis.TP: t, Axis.SP: t if sequence else 1, Axis.CP: 1}

    def share(divided: tuple[Axis, ...]) -> float:
        out = 1.0
        for axis in divided:
            out /= degree[axis]
        return out

    held = sum(kept.bytes * share(kept.divided) for kept in layer.saved)
    selective = sum(kept.bytes * share(kept.divided) for kept in layer.saved if kept.selective)
    table = s * b * h / t * (34 + 5 * a * s / h) if sequence else s * b * h * (10 + 24 / t + 5 * a * s / (h * t))
    assert held == pytest.approx(table)
    assert selective == pytest.approx(5 * a * s * s * b / t)


def flops(model: Model, phase: Phase) -> float:
    forward = phase == Phase.FORWARD
    return sum(
        block.count * _model_flops(op)
        for block in model.blocks
        for op in (block.steps if forward else block.backward)
        if isinstance(op, BlockOp) and op.phase == phase
    )


@pytest.mark.parametrize("name", ["gpt-22b", "llama-3-8b", "mixtral-8x7b", "bert-base", "vit-b-16"])
def test_input_and_weight_gradients_each_cost_a_forward_pass(name: str) -> None:
    """dX = dY W^T and dW = X^T dY have the products of Y = X W; with unfused attention both operands' gradients are input gradients."""
    model = load_model(name).build(1, attention="unfused")
    assert flops(model, Phase.INPUT) + flops(model, Phase.WEIGHT) == pytest.approx(2 * model.model_flops, rel=0.02)


def test_the_backward_pass_mirrors_the_messages() -> None:
    for block in load_model("mixtral-8x7b").build().blocks:
        forward = [(step.name, step.role) for step in block.steps if isinstance(step, BlockMessage)]
        back = [(step.name, step.role) for step in block.backward if isinstance(step, BlockMessage)]
        assert back == forward[::-1]
    assert all(step.phase == Phase.INPUT for step in block.backward if isinstance(step, BlockMessage))


def test_decoding_keeps_keys_and_values() -> None:
    """Llama-2 70B in 16 bits: 2 x 80 layers x 8 heads x 128 x 2 B = 320 KiB a token (arXiv 2307.09288: grouped queries, 8 heads)."""
    model = load_model("llama-2-70b").build(4, phase="decode", context=1023)
    kept = sum(block.count * part.bytes for block in model.blocks for part in block.cache)
    assert kept == 4 * 1024 * 320 * 1024
    assert not any(block.backward or block.saved for block in model.blocks)


def test_experts_of_a_token_are_sent_away_and_back() -> None:
    layer = load_model("mixtral-8x7b").build(2, 1024).blocks[1]
    sent = [step for step in layer.steps if isinstance(step, BlockMessage) and step.role in (Role.EP_DISPATCH, Role.EP_COMBINE)]
    assert [message.bytes for message in sent] == [2 * 1024 * 4096 * 2.0] * 2
    assert {message.fan_out for message in sent} == {2.0}


TINY = """name: tiny
width: 256
tokens: 128
blocks:
  - {name: embedding, layer: false, steps: [{embedding: {vocab: 1000}}]}
  - name: layer
    count: 4
    steps: [{norm: {type: rms}}, {attention: {heads: 4}}, residual, {norm: {type: rms}}, {mlp: {width: 1024}}, residual]
  - {name: head, layer: false, steps: [{norm: {type: rms}}, {head: {vocab: 1000}}]}
"""


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    """By hand: 2 x 1000 x 256 + 4 (2 x 256 + 4 x 256^2 + 2 x 256 x 1024) + 256."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    assert load_model(path).build().parameters == 512_000 + 4 * (512 + 262_144 + 524_288) + 256


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("heads: 4", "heds: 4", "did you mean 'heads'"),
        ("heads: 4", "heads: 3", "3 heads do not divide the width 256"),
        ("heads: 4", "heads: 4, kv_heads: 3", "3 heads of keys do not divide"),
        ("{attention: {heads: 4}}", "{atention: {heads: 4}}", "did you mean 'attention'"),
        ("{attention: {heads: 4}}", "{conv: {out: 4, kernel: 3}}", "no images flow"),
        ("{attention: {heads: 4}}", "{attention: {}}", "heads is missing"),
        ("{mlp: {width: 1024}}", "{mlp: {width: many}}", "width"),
        ("width: 256\n", "", "width is missing"),
        ("{mlp: {width: 1024}}, residual", "{dense: {out: 8}}", "repeats, but its output 8 is not as its input 256"),
        ("{norm: {type: rms}}, {head", "{norm: {type: rms}, residual: {}}, {head", "write one layer a step"),
        ("blocks:", "blocks: []\nrest:", "'rest' is not a key"),
        ("count: 4", "count: 0", "count"),
    ],
)
def test_faults_are_named_with_their_place(old: str, new: str, said: str) -> None:
    assert old in TINY
    with pytest.raises(InvalidSpec) as caught:
        read_model(TINY.replace(old, new), "tiny.yaml").build()
    assert said in str(caught.value)
    assert "tiny.yaml" in str(caught.value)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(InvalidSpec, match="nearest: llama-3-70b"):
        load_model("llama-3-70")
    with pytest.raises(UnreadableInput):
        load_model("no/such.yaml")
    with pytest.raises(Refused, match="no tokens to decode"):
        load_model("resnet-50").build(phase="decode")
    with pytest.raises(InvalidSpec, match="batch"):
        load_model("resnet-50").build(0)
    with pytest.raises(Refused, match="phase"):
        load_model("resnet-50").build(1, phase="both")
