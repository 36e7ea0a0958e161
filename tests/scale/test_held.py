"""What a stage holds once, what two stages hold, what runs on it; uneven experts: by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.hardware.cluster_text import load_cluster
from workbench.hardware.npu import load_npu
from workbench.models.describe import BlockSpec, ModelSpec, gpt, load_model
from workbench.network.expert import busiest_card
from workbench.operators.table import Kind
from workbench.scale.held import Tie, own, ties
from workbench.scale.memory import PARTS, Bytes, memory
from workbench.scale.plan import ParallelPlan
from workbench.scale.plan_text import complete, parse_plan
from workbench.scale.shard import share
from workbench.scale.stages import stages
from workbench.scale.verdict import verdict
from workbench.study.plan_step import plan_step

TIED = gpt(4, 1024, 16, 50_000, 512)
PLAIN = Bytes(reserve=0.0)


def untied() -> ModelSpec:
    """The same model with a head of its own."""
    blocks = []
    for block in TIED.blocks:
        steps = tuple(dataclasses.replace(step, values={k: v for k, v in step.values.items() if k != "tied"}) for step in block.steps)
        blocks.append(dataclasses.replace(block, steps=steps))
    return dataclasses.replace(TIED, blocks=tuple(blocks))


@pytest.mark.parametrize(("plan", "once"), [(ParallelPlan(), True), (ParallelPlan(pp=2), False),
                                            (ParallelPlan(pp=2, schedule="zb-v", virtual_stages=2), True)])  # fmt: skip
def test_a_tied_weight_is_held_once_a_stage(plan: ParallelPlan, once: bool) -> None:
    """All stages together hold the model's parameters; where embedding and head lie on two stages, those of one of them more."""
    model = TIED.build(1)
    found = own(share(model, plan), stages(model, plan).of_stage)
    held = (found * stages(model, plan).of_stage).sum()
    assert held == model.parameters + (0 if once else 50_000 * 1024)
    assert ties(share(model, plan), stages(model, plan).of_stage) == (() if once else (Tie((0, 1), 50_000 * 1024.0),))


def test_states_on_one_card_are_those_of_the_parameters() -> None:
    """16 bytes for every parameter, the tied ones once."""
    model, plan = TIED.build(1), ParallelPlan()
    found = memory(share(model, plan), stages(model, plan), plan, state=PLAIN)
    assert found.parts[0, :3].sum() == 16.0 * model.parameters


def test_gradients_of_a_tied_weight_are_summed_between_first_and_last_stage() -> None:
    """The step of a pipeline of four grows by an all-reduce of the embedding's gradients between two cards, and by nothing else."""
    npu, cluster, plan = load_npu("a100-sxm4-80gb"), load_cluster("dgx-a100"), ParallelPlan(pp=4, microbatches=8)
    one, other = (plan_step(spec, npu, cluster, plan) for spec in (TIED, untied()))
    more = one.exposed_s["pp"] - other.exposed_s["pp"]
    assert one.step_s - other.step_s == pytest.approx(more)
    # two cards: each sends half and then the other half, 1 x 2 x 51.2 M bytes over 300 GB/s one way, latencies and protocol besides
    assert 50_000 * 1024 * 2 / 300e9 < more < 3 * 50_000 * 1024 * 2 / 300e9


def working(plan: ParallelPlan, tokens: int = 512) -> np.ndarray:
    model = untied().build(plan.microbatch, tokens)
    return memory(share(model, plan), stages(model, plan), plan, state=PLAIN).parts[:, PARTS.index("working")]


@pytest.mark.parametrize(
    ("plan", "scores"), [(ParallelPlan(), 1), (ParallelPlan(tp=4), 4), (ParallelPlan(tp=4, sequence_parallel=True), 4)]
)
def test_scores_of_the_head_are_divided_by_tensor_parallelism(plan: ParallelPlan, scores: int) -> None:
    assert working(plan)[0] == 512 * 50_000 * 2 / scores


def test_a_layer_that_runs_again_counts_beside_the_head() -> None:
    """Full recomputation: the last stage has the scores, and one layer's activations but its input."""
    model, plan = untied().build(1), ParallelPlan(recompute="full")
    kept = share(model, plan).kept[:, 1]
    assert working(plan)[0] == pytest.approx(512 * 50_000 * 2 + kept[0] - kept[2])


def test_zero_3_has_layers_whole() -> None:
    """On 4 cards: the embedding, largest of the blocks, gathered twice in 16 bits, its gradients once, and the scores."""
    largest = (50_000 + 512) * 1024
    assert working(ParallelPlan(dp=4, zero=3))[0] == 512 * 50_000 * 2 + 3 * 2 * largest


@given(st.integers(1, 16), st.integers(1, 8), st.floats(1.0, 8.0))
def test_rows_of_the_busiest_card(ranks: int, each: int, factor: float) -> None:
    """One card: all rows. One expert a card: the factor. Between: never more than the factor, and the cards together have all rows."""
    experts = ranks * each
    factor = min(factor, float(experts))
    found = float(busiest_card(experts, factor, ranks))
    assert float(busiest_card(experts, factor, 1)) == pytest.approx(1.0)
    assert float(busiest_card(experts, factor, experts)) == pytest.approx(factor)
    assert 1.0 - 1e-9 <= found <= factor + 1e-9
    if ranks > 1:
        others = each * (experts - factor) / (experts - 1)
        assert found * each + (ranks - 1) * others == pytest.approx(experts)


def test_uneven_experts_send_and_multiply_more() -> None:
    """8 experts on 8 cards, the busiest with twice the mean: twice the rows of its card, twice the bytes it gets."""
    even_ = load_model("mixtral-8x7b")
    blocks = []
    for block in even_.blocks:
        steps = tuple(
            dataclasses.replace(step, values={**step.values, "imbalance": 2.0}) if step.kind == "moe" else step for step in block.steps
        )
        blocks.append(BlockSpec(block.name, steps, block.count, block.layer))
    uneven = dataclasses.replace(even_, blocks=tuple(blocks))
    plan = ParallelPlan(dp=8, ep=8)
    one, two = (share(spec.build(1, 4096), plan) for spec in (even_, uneven))
    sent = [found.message_bytes[found.message_kind == Kind.ALL_TO_ALL] for found in (one, two)]
    assert len(sent[0]) > 0
    assert sent[1] == pytest.approx(2 * sent[0])
    rows = [found.table.dim("rows")[found.row[found.table.kind[found.row] == Kind.GROUPED_GEMM]] for found in (one, two)]
    assert rows[1].tolist() == (2 * rows[0]).tolist()


def test_stated_virtual_stages_are_kept() -> None:
    """A schedule that needs chunks gets two where none are stated; one that is stated is refused, not changed."""
    assert complete(parse_plan("pp=4,schedule=interleaved"), 4, 8).virtual_stages == 2
    plan = complete(parse_plan("pp=4,schedule=interleaved,v=1"), 4, 8)
    assert plan.virtual_stages == 1
    assert "at least 2 virtual stages" in " ".join(verdict(TIED.build().limits, plan, 4).errors)


def test_refusals_say_what_would_do() -> None:
    limits = load_model("llama-2-70b").build().limits
    said = " | ".join(verdict(limits, ParallelPlan(tp=24, dp=2, microbatches=3), 96, global_batch=12).reasons)
    for part in ("tp 16 or 32 fits", "dp 4 makes it so", "6 microbatches make it so"):
        assert part in said
