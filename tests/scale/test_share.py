"""A model divided: extents by hand, messages as the papers draw them, work that adds up, memory as published, verdicts with all reasons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InvalidSpec
from workbench.models.describe import gpt, load_model
from workbench.network.expert import distinct_ranks
from workbench.operators.blocks import Axis, Limit, Model
from workbench.operators.table import Kind
from workbench.scale.memory import ADAM, Bytes, memory
from workbench.scale.plan import ParallelPlan
from workbench.scale.plan_text import complete, parse_plan, plan_text
from workbench.scale.shard import Pass, Share, share, shares
from workbench.scale.stages import stages
from workbench.scale.verdict import verdict

LLAMA = load_model("llama-2-70b")


def named(model: Model, plan: ParallelPlan) -> dict[str, dict[str, int]]:
    """Extents of the products of a layer by name."""
    found = share(model, plan)
    table = found.table
    rows = found.row[(found.block == 1) & (found.when == Pass.FORWARD)]
    return {table.name[row]: {dim: int(table.dim(dim)[row]) for dim in ("m", "n", "k")} for row in rows if table.kind[row] == Kind.GEMM}


def test_heads_are_whole_and_few_ones_are_kept_in_copies() -> None:
    """64 query heads and 8 of keys and values of 128: on 8 cards 8 and 1 a card; on 16 cards 4 and 1, each kept twice."""
    model = LLAMA.build(1, 4096)
    assert named(model, ParallelPlan(tp=8))["qkv"] == {"m": 4096, "n": 8 * 128 + 2 * 128, "k": 8192}
    assert named(model, ParallelPlan(tp=16))["qkv"] == {"m": 4096, "n": 4 * 128 + 2 * 128, "k": 8192}
    assert named(model, ParallelPlan(tp=8, cp=2))["mlp down"] == {"m": 2048, "n": 8192, "k": 28672 // 8}


def messages(found: Share, when: Pass, block: int = 1) -> list[tuple[Kind, Axis]]:
    rows = np.flatnonzero((found.message_block == block) & (found.message_when == when))
    return [(Kind(int(found.message_kind[row])), found.message_axis[row]) for row in rows]


def test_messages_of_tensor_parallelism() -> None:
    """Two all-reduces forward, two backward (arXiv 1909.08053, figure 4); full recomputation repeats the forward ones."""
    found = share(LLAMA.build(1, 4096), ParallelPlan(tp=8, recompute="full"))
    reduce = [(Kind.ALL_REDUCE, Axis.TP)] * 2
    assert messages(found, Pass.FORWARD) == messages(found, Pass.INPUT) == messages(found, Pass.AGAIN) == reduce
    assert set(found.message_bytes[found.message_block == 1]) == {4096 * 8192 * 2.0}


def test_messages_of_sequence_parallelism() -> None:
    """An all-gather and a reduce-scatter in the place of every all-reduce (arXiv 2205.05198, figure 5); backward each input once more."""
    found = share(LLAMA.build(1, 4096), ParallelPlan(tp=8, sequence_parallel=True))
    gather, scatter = (Kind.ALL_GATHER, Axis.TP), (Kind.REDUCE_SCATTER, Axis.TP)
    assert messages(found, Pass.FORWARD) == [gather, scatter] * 2
    beside = found.message_beside[(found.message_block == 1) & (found.message_when == Pass.INPUT)]
    assert messages(found, Pass.INPUT) == [gather, gather, scatter] * 2
    assert beside.tolist() == [False, True, False] * 2


def test_one_card_sends_nothing() -> None:
    assert len(share(load_model("mixtral-8x7b").build(), ParallelPlan()).message_kind) == 0


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.booleans(), st.sampled_from(["flash", "unfused"]))
def test_cards_of_a_replica_together_do_the_work_of_one(tp: int, cp: int, sp: bool, attention: str) -> None:
    """Nothing of the products is done twice or lost where everything divides; unfused scores only without context parallelism."""
    if attention == "unfused" and cp > 1:
        return
    model = gpt(2, 1024, 16, 4096, 512).build(2, attention=attention)
    one, part = shares([(model, ParallelPlan()), (model, ParallelPlan(tp=tp, cp=cp, sequence_parallel=sp and tp > 1))])
    products = one.table.among((Kind.GEMM, Kind.BATCHED_GEMM))
    work = [float(np.sum(one.table.flops[found.row] * products[found.row] * found.runs)) for found in (one, part)]
    assert work[1] * tp * cp == pytest.approx(work[0])


@given(st.integers(2, 64), st.integers(1, 8), st.integers(1, 6))
def test_expected_cards_of_a_token(ranks: int, each: int, top: int) -> None:
    """All experts chosen: every card. One expert a token: one card. Never more than there are of either."""
    experts = ranks * each
    found = float(distinct_ranks(experts, min(top, experts), ranks))
    assert 1.0 <= found <= min(top, ranks) + 1e-9
    assert float(distinct_ranks(experts, experts, ranks)) == pytest.approx(ranks)
    assert float(distinct_ranks(experts, 1, ranks)) == pytest.approx(1.0)


def test_expected_cards_by_counting() -> None:
    """Against drawing: 8 of 256 experts on 32 cards, 20 000 tokens."""
    random = np.random.default_rng(1)
    drawn = np.argpartition(random.random((20_000, 256)), 8, axis=1)[:, :8] // 8
    counted = np.mean([len(set(row)) for row in drawn.tolist()])
    assert float(distinct_ranks(256, 8, 32)) == pytest.approx(counted, rel=0.01)


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_states_are_those_of_the_zero_paper(zero: int, gigabytes: float) -> None:
    """arXiv 1910.02054, figure 1: 7.5 B parameters on 64 cards."""
    plan = ParallelPlan(dp=64, zero=zero)
    model = load_model("llama-2-7b").build(1, 128)
    found = memory(share(model, plan), stages(model, plan), plan, state=ADAM)
    assert found.parts[0, :3].sum() / model.parameters * 7.5 == pytest.approx(gigabytes, abs=0.05)


@pytest.mark.parametrize(("virtual", "factor"), [(1, 1.0), (3, 1 + 7 / 24)])
def test_activations_of_the_first_stage(virtual: int, factor: float) -> None:
    """arXiv 2205.05198, section 4.2.3: s b h L / t (34 + 5 a s / h), interleaved 1 + (p - 1)/(p v) times; s b h p / t of the embedding."""
    s, b, h, a, t, p, layers = 2048, 1, 12288, 96, 8, 8, 96
    plan = ParallelPlan(tp=t, pp=p, microbatches=64, sequence_parallel=True, virtual_stages=virtual,
                        schedule="interleaved" if virtual > 1 else "1f1b")  # fmt: skip
    model = gpt(layers, h, a, 51200, s).build(b, attention="unfused")
    found = memory(share(model, plan), stages(model, plan), plan)
    embedding = s * b * h / t * (p if virtual == 1 else 5)  # of the chunks in flight those of the first
    assert found.parts[0, 3] == pytest.approx(s * b * h * layers / t * (34 + 5 * a * s / h) * factor + embedding, rel=0.01)


def test_why_it_does_not_fit_names_the_stage_and_the_largest_parts() -> None:
    plan = ParallelPlan(tp=8, pp=8, microbatches=64)
    model = load_model("gpt3-175b").build(1)
    found = memory(share(model, plan), stages(model, plan), plan, state=Bytes(gradient=4.0))
    assert found.why(1e15) == ""
    said = found.why(40e9)
    assert said.startswith("stage 0 needs")
    assert "optimizer" in said
    assert "8 microbatches in flight" in said


def test_every_layer_lies_on_one_stage() -> None:
    model = load_model("mixtral-8x7b").build()
    for plan in (ParallelPlan(pp=4), ParallelPlan(pp=5), ParallelPlan(pp=4, virtual_stages=2, schedule="interleaved"),
                 ParallelPlan(pp=4, virtual_stages=2, schedule="zb-v"), ParallelPlan(pp=2, stage_layers=(20, 12))):  # fmt: skip
        held = stages(model, plan).holds
        assert held.sum(axis=(0, 1)).tolist() == [1, 32, 1]
    assert stages(model, ParallelPlan(pp=4, virtual_stages=2, schedule="zb-v")).of_stage[:, 2].tolist() == [1, 0, 0, 0]
    assert stages(model, ParallelPlan(pp=2, stage_layers=(20, 12))).of_stage[:, 1].tolist() == [20, 12]


def test_verdicts_of_the_case(shared: Path) -> None:
    case = yaml.safe_load((shared / "cases" / "field" / "29_plans.yaml").read_text())
    of = case["model"]
    limits = (Limit("heads", of["heads"], Axis.TP), Limit("heads of keys and values", of["kv_heads"], Axis.TP, replicates=True),
              Limit("layers", of["layers"], Axis.PP), Limit("experts", of["experts"], Axis.EP))  # fmt: skip
    for given_ in case["plans"]:
        plan = ParallelPlan(dp=given_["dp"], tp=given_["tp"], pp=given_["pp"], ep=given_["ep"], microbatches=64)
        found = verdict(limits, plan, given_["world"], unit=case["unit_size"])
        assert found.judgement == given_["verdict"], given_
        assert (not found.reasons) == (given_["verdict"] == "ok")


def test_all_reasons_are_given() -> None:
    plan = ParallelPlan(dp=3, tp=3, sequence_parallel=True, pp=2, virtual_stages=2, ep=2, microbatches=1)
    said = " | ".join(verdict(LLAMA.build().limits, plan, 16, global_batch=8).reasons)
    for part in ("tp pp dp = 18, not the 16 cards", "not the global batch of 8", "64 heads are not divisible by tp 3", "no experts",
                 "need the interleaved schedule", "ep 2 does not divide"):  # fmt: skip
        assert part in said


@given(st.integers(1, 16), st.integers(1, 16), st.booleans(), st.sampled_from(["none", "selective", "full"]), st.integers(0, 3))
def test_a_plan_survives_its_text(tp: int, pp: int, sp: bool, recompute: str, zero: int) -> None:
    plan = ParallelPlan(tp=tp, pp=pp, dp=2, microbatches=3, sequence_parallel=sp, recompute=recompute, zero=zero, bucket_bytes=1e8)
    assert ParallelPlan(**parse_plan(plan_text(plan))) == plan


def test_what_is_open_is_filled_in() -> None:
    plan = complete(parse_plan("tp=8, pp=8, v=2, mb=2"), 1024, 1024)
    assert (plan.dp, plan.microbatches, plan.schedule) == (16, 32, "interleaved")
    assert parse_plan("layers=12x2:8")["stage_layers"] == (12, 12, 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [("tpp=8", "did you mean 'tp'"), ("tp=8,tp=4", "stated twice"), ("tp=eight", "no count"), ("schedule=1f1", "did you mean '1f1b'"),
     ("tp", "has no value"), ("order=tp:xx", "no order"), ("bucket=25", "bucket")],
)  # fmt: skip
def test_faults_of_a_plan_are_named(text: str, said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_plan(text)
    assert said in str(caught.value)
