"""The documents of ``workbench plan --json``: one plan, or a search over all."""

from __future__ import annotations

from pydantic import Field

from workbench.scale.memory import PARTS
from workbench.scale.plan_text import plan_text
from workbench.study.document import Document, Maybe, NoteDocument, note_documents
from workbench.study.plan_inference import Inference
from workbench.study.plan_result import PlanStep
from workbench.study.plan_search import Search


class StageDocument(Document):
    """One stage of the pipeline."""

    stage: int
    memory: dict[str, float] = Field(description="bytes of its heaviest card by part [B]")
    total: float = Field(description="all parts [B]")
    in_flight: float = Field(description="microbatches whose activations it keeps at most")
    busy_s: float
    waiting_s: float = Field(description="for messages of other stages, from its first to its last operation")


class PlanDocument(Document):
    """One plan and its predicted step; times of the stage that sets the pace, unless said otherwise."""

    plan: str = Field(description="as --plan takes it")
    cards: int
    global_batch: int
    step_s: float
    low_s: float = Field(description="80 % interval of the operators' times, as if all erred alike; errors of the network are not in it")
    high_s: float
    compute_s: float
    recomputed_s: float = Field(description="part of compute_s that recomputation repeats")
    host_s: float = Field(description="beyond operators and messages, because the host launches them; 0 unless a system states it")
    exposed_s: dict[str, float] = Field(description="messages waited for, by axis: tp, cp, ep, dp, pp")
    messages_s: dict[str, float] = Field(description="all messages by axis, waited for or not")
    tier: dict[str, str] = Field(description="outermost tier that the messages of an axis cross; empty: none")
    limiting_tier: str = Field(description="tier whose messages are waited for longest; empty: none")
    bubble_s: float = Field(description="waiting for other stages")
    optimizer_s: float
    mfu: float = Field(description="model FLOPs over the dense peak")
    hfu: float = Field(description="executed FLOPs over the dense peak")
    samples_per_s: float
    tokens_per_s_card: float = Field(description="samples, of a model without tokens")
    energy_j: Maybe = Field(description="of a step on all cards; null where the card states none")
    cost: Maybe = Field(description="of a step on all cards, in the currency of --price; null where none is given")
    fits: bool
    memory_peak: float = Field(description="of the heaviest stage [B]")
    heaviest_stage: int
    capacity: float = Field(description="memory of a card that may be used [B]")
    why_not: str = Field(description="why it does not fit; empty where it does")
    reason: str = Field(description="what the step consists of, largest loss first")
    stages: list[StageDocument]
    warnings: list[str]
    notes: list[NoteDocument]


class SearchDocument(Document):
    """Plans found by a search."""

    tried: int
    fitting: int
    best: list[PlanDocument] = Field(description="that fit, fastest first, replayed")
    unfit: PlanDocument | None = Field(description="the fastest that does not fit; null: all fit")
    front: list[FrontDocument] = Field(description="plans that no other beats in time, memory and cards at once; times by closed forms")


class FrontDocument(Document):
    """A plan of the Pareto front."""

    plan: str
    cards: int
    step_s: float
    memory: float = Field(description="heaviest stage [B]")


class InferenceDocument(Document):
    """Serving under a plan."""

    plan: str
    prompt: int
    context: int = Field(description="tokens in the cache while a token is made")
    first_token_s: float
    token_s: float = Field(description="between two tokens of a sequence")
    tokens_per_s: float = Field(description="of all cards")
    tokens_per_s_card: float
    memory: dict[str, float]
    fits: bool
    why_not: str


class PlansDocument(Document):
    """Output of ``workbench plan --json``: one of the three."""

    model: str
    parameters: float
    npu: str
    cluster: str
    step: PlanDocument | None
    search: SearchDocument | None
    inference: InferenceDocument | None


SearchDocument.model_rebuild()


def plan_document(step: PlanStep, *, capacity: float | None = None, price: float | None = None) -> PlanDocument:
    """Return the document of a step.

    Parameters
    ----------
    step : PlanStep
    capacity : float, optional
        Memory of a card that may be used [B]; the card's.
    price : float, optional
        Of a card and hour.
    """
    room = step.capacity if capacity is None else capacity
    return PlanDocument(
        plan=plan_text(step.plan), cards=step.plan.world, global_batch=step.plan.global_batch, step_s=step.step_s, low_s=step.low_s,
        high_s=step.high_s, compute_s=step.compute_s, recomputed_s=step.again_s, host_s=step.host_s, exposed_s=dict(step.exposed_s),
        messages_s=dict(step.messages_s), tier=dict(step.tier), limiting_tier=step.limiting_tier, bubble_s=step.bubble_s,
        optimizer_s=step.optimizer_s, mfu=step.mfu, hfu=step.hfu, samples_per_s=step.plan.global_batch / step.step_s,
        tokens_per_s_card=step.tokens_per_s_card, energy_j=step.energy_j,
        cost=None if price is None else price * step.plan.world * step.step_s / 3600.0, fits=step.memory.peak <= room,
        memory_peak=step.memory.peak, heaviest_stage=step.memory.heaviest, capacity=room, why_not=step.memory.why(room),
        reason=reason(step), stages=[_stage(step, s) for s in range(step.plan.pp)], warnings=list(step.warnings),
        notes=note_documents(step.notes),
    )  # fmt: skip


def _stage(step: PlanStep, s: int) -> StageDocument:
    parts = step.memory.parts[s]
    return StageDocument(
        stage=s, memory=dict(zip(PARTS, parts.tolist(), strict=True)), total=float(parts.sum()), in_flight=float(step.memory.in_flight[s]),
        busy_s=float(step.run.busy_s[s]), waiting_s=float(step.run.waiting_s[s]),
    )  # fmt: skip


def reason(step: PlanStep) -> str:
    """Return what a step consists of besides useful work, largest first, as shares of it."""
    names = {"tp": "tensor-parallel messages", "cp": "context-parallel messages", "ep": "messages of experts",
             "dp": "gradients and parameters", "pp": "messages between stages"}  # fmt: skip
    lost = {
        f"{names[axis]} ({step.tier[axis]})" if step.tier.get(axis) else names[axis]: spent for axis, spent in step.exposed_s.items()
    }  # fmt: skip
    lost |= {"pipeline bubble": step.bubble_s, "recomputation": step.again_s, "optimizer": step.optimizer_s}
    lost["launching by the host"] = step.host_s
    order = sorted(lost.items(), key=lambda item: -item[1])
    said = [f"{name} {spent / step.step_s:.1%}" for name, spent in order if spent > 0.005 * step.step_s]
    return ", ".join([f"useful work {(step.compute_s - step.again_s) / step.step_s:.0%}", *said])


def search_document(found: Search, *, capacity: float | None = None, price: float | None = None) -> SearchDocument:
    """Return the document of a search; capacity and price as in `plan_document`."""
    return SearchDocument(
        tried=found.tried, fitting=found.fitting, best=[plan_document(step, capacity=capacity, price=price) for step in found.best],
        unfit=None if found.unfit is None else plan_document(found.unfit, capacity=capacity, price=price),
        front=[FrontDocument(plan=plan_text(found.plans[row]), cards=found.plans[row].world, step_s=float(found.step_s[row]),
                             memory=float(found.memory[row])) for row in found.front],
    )  # fmt: skip


def inference_document(served: Inference) -> InferenceDocument:
    """Return the document of serving."""
    held = served.memory.parts[served.memory.heaviest]
    return InferenceDocument(
        plan=plan_text(served.plan), prompt=served.prompt, context=served.context, first_token_s=served.first_token_s,
        token_s=served.token_s, tokens_per_s=served.tokens_per_s, tokens_per_s_card=served.tokens_per_s / served.plan.world,
        memory=dict(zip(PARTS, held.tolist(), strict=True)), fits=served.memory.peak <= served.capacity,
        why_not=served.memory.why(served.capacity),
    )  # fmt: skip
