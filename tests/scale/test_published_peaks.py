"""Memory against peaks that others published: allocations of Megatron-LM's own tests, and a card's memory in use from Transformers' guide.

Megatron-LM, tests/functional_tests/test_cases: ``model_config.yaml`` and ``mem-max-allocated-bytes`` of the last rank, thus of the last
stage, in ``golden_values_dev_dgx_h100.json``. Parameters in bf16, gradients in fp32, optimizer of 12 bytes divided over data parallelism;
what an allocator counts has no driver context (reserve 0). A configuration does not state its cards: those of one machine (7B), or the
fewest its layout allows (Mixtral: 128), or, for 15B, the 128 with which ``mem-allocated-bytes`` between the steps, 13.27 GB, is met.
"""

from __future__ import annotations

from typing import Any

import pytest

from workbench.models.describe import BlockSpec, ModelSpec, layer
from workbench.models.part import Given
from workbench.operators.table import Dtype
from workbench.scale.memory import Bytes, Memory, memory
from workbench.scale.plan import ParallelPlan
from workbench.scale.shard import share
from workbench.scale.stages import stages

MEGATRON = Bytes(parameter=2.0, gradient=4.0, optimizer=12.0, reserve=0.0)


def spec(width: int, tokens: int, count: int, steps: tuple[Given, ...], vocab: int, norm: str = "layer", **first: Any) -> ModelSpec:
    """An untied model of alike layers."""
    return ModelSpec("published", (
        BlockSpec("embedding", (layer("embedding", vocab=vocab, **first),), layer=False),
        BlockSpec("layer", steps, count),
        BlockSpec("head", (layer("norm", type=norm), layer("head", vocab=vocab)), layer=False)), "tokens", width, tokens)  # fmt: skip


def seven(vocab: int) -> ModelSpec:
    """32 layers of 4096, 8 groups of keys and values, biases, dropout by default, 8192 learned positions."""
    attend = layer("attention", heads=32, kv_heads=8, bias=True, dropout=True)
    past, feed = layer("residual", dropout=True), layer("mlp", width=16384, activation="gelu", bias=True)
    return spec(4096, 8192, 32, (layer("norm"), attend, past, layer("norm"), feed, past), vocab, positions=8192, dropout=True)


def fifteen() -> ModelSpec:
    """32 layers of 6144 with squared ReLU, rotary positions, a vocabulary of 256 000."""
    attend, feed = layer("attention", heads=48, kv_heads=8, rotary=True), layer("mlp", width=24576, activation="relu")
    return spec(6144, 4096, 32, (layer("norm"), attend, layer("residual"), layer("norm"), feed, layer("residual")), 256_000)


def mixtral() -> ModelSpec:
    """Mixtral 8x22B."""
    attend, norm = layer("attention", heads=48, kv_heads=8, rotary=True), layer("norm", type="rms")
    experts = layer("moe", experts=8, top_k=2, width=16384, activation="swiglu")
    return spec(6144, 4096, 56, (norm, attend, layer("residual"), norm, experts, layer("residual")), 32_000, "rms")


def found(model: ModelSpec, plan: ParallelPlan, state: Bytes, attention: str = "flash", dtype: Dtype | None = None) -> Memory:
    built = model.build(plan.microbatch, attention=attention, dtype=dtype)
    return memory(share(built, plan), stages(built, plan), plan, state=state)


RUNS = {
    "gpt3_7b_tp1_pp4_memory_speed": (
        seven(131_200), ParallelPlan(dp=2, pp=4, virtual_stages=8, schedule="interleaved", microbatches=4, zero=1), 60_518_293_504),
    "gpt3_7b_tp4_pp1_memory_speed": (seven(131_072), ParallelPlan(dp=2, tp=4, microbatch=2, microbatches=2, zero=1), 57_143_791_616),
    "gpt3_15b_8t_release_sm": (
        fifteen(), ParallelPlan(dp=16, tp=8, sequence_parallel=True, microbatch=4, microbatches=18, zero=1), 28_158_672_896),
    "mixtral_8x22b_tp2pp8ep8vpp1_release": (
        mixtral(), ParallelPlan(dp=8, tp=2, pp=8, ep=8, sequence_parallel=True, microbatches=32, zero=1), 28_533_706_752),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_peak_allocations_of_megatron(name: str) -> None:
    """Within 10 % (found: -0.6, -0.4, -0.7 and -5.9 %)."""
    model, plan, peak = RUNS[name]
    assert found(model, plan, MEGATRON).total[-1] == pytest.approx(peak, rel=0.10)


@pytest.mark.parametrize(
    ("samples", "recompute", "mib", "within"), [(1, "none", 8681, 0.10), (1, "full", 6775, 0.10), (4, "none", 14949, 0.13)]
)
def test_memory_in_use_by_bert_large(samples: int, recompute: str, mib: int, within: float) -> None:
    """Hugging Face Transformers, "Model training anatomy" and "Efficient training on a single GPU": fp32, 512 tokens, a classifier, a V100.

    1343 MiB are in use before a model is loaded. What is published is what the process holds, so free blocks of the allocator count too:
    with four samples, 12 % lie between (found: -6.5, -2.9, -12.3 %).
    """
    attend, past = layer("attention", heads=16, bias=True, causal=False, dropout=True), layer("residual", dropout=True)
    steps = (attend, past, layer("norm"), layer("mlp", width=4096, activation="gelu", bias=True), past, layer("norm"))
    first = (layer("embedding", vocab=30_522, positions=512, types=2, dropout=True), layer("norm"))
    last = (layer("dense", out=1024, per_sample=True),)
    model = ModelSpec("bert-large", (BlockSpec("embedding", first, layer=False), BlockSpec("layer", steps, 24),
                                     BlockSpec("classifier", last, layer=False)), "tokens", 1024, 512)  # fmt: skip
    state = Bytes(parameter=4.0, gradient=4.0, optimizer=8.0, reserve=1343 * 2.0**20)
    plan = ParallelPlan(microbatch=samples, recompute=recompute)
    assert found(model, plan, state, "unfused", Dtype.FP32).peak / 2**20 == pytest.approx(mib, rel=within)
