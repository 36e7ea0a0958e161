"""Whether a plan can run at all, with every reason and what would do: refused, warned of, or fine.

Whether it fits is for `workbench.scale.memory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from workbench.operators.blocks import Axis, Limit
from workbench.scale.plan import RECOMPUTE, SCHEDULES, ParallelPlan
from workbench.scale.stages import even


class Judgement(StrEnum):
    """What is said of a plan."""

    OK = "ok"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True)
class Verdict:
    """A judgement with all its reasons, those that refuse first."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def judgement(self) -> Judgement:
        """The worst of the reasons."""
        return Judgement.ERROR if self.errors else Judgement.WARN if self.warnings else Judgement.OK

    @property
    def reasons(self) -> tuple[str, ...]:
        """All of them."""
        return self.errors + self.warnings


def verdict(
    limits: Sequence[Limit], plan: ParallelPlan, cards: int, *, unit: int = 0, global_batch: int | None = None, training: bool = True
) -> Verdict:
    """Judge a plan.

    Parameters
    ----------
    limits : sequence of Limit
        Extents that its axes divide: `workbench.operators.blocks.Model.limits`.
    plan : ParallelPlan
    cards : int
        Cards of the job; switches are none.
    unit : int
        Cards of the innermost tier, 0: unknown. Tensor parallelism across it is warned of.
    global_batch : int, optional
        Samples of a step that were asked for.
    training : bool
        Whether there is a backward pass.

    Returns
    -------
    Verdict
    """
    counts = tuple(_counts(plan, cards))
    if counts:
        return Verdict(counts)
    errors = [*_world(plan, cards, global_batch), *_extents(limits, plan), *_combinations(plan, limits)]
    warnings = [*_copies(limits, plan), *_crossing(plan, unit), *_uneven(limits, plan), *_idle(plan, training)]
    return Verdict(tuple(errors), tuple(warnings))


def _counts(plan: ParallelPlan, cards: int) -> Iterator[str]:
    least = {"cards": cards, "dp": plan.dp, "tp": plan.tp, "pp": plan.pp, "cp": plan.cp, "ep": plan.ep, "microbatch": plan.microbatch,
             "microbatches": plan.microbatches, "virtual stages": plan.virtual_stages}  # fmt: skip
    low = [f"{name} is {value}" for name, value in least.items() if value < 1]
    if low:
        yield f"{' and '.join(low)}: must be at least 1"
    if plan.schedule not in SCHEDULES:
        yield f"{plan.schedule!r} is no schedule: choose one of {', '.join(SCHEDULES)}"
    if plan.recompute not in RECOMPUTE:
        yield f"recompute {plan.recompute!r} is none: choose one of {', '.join(RECOMPUTE)}"
    if plan.zero not in (0, 1, 2, 3):
        yield f"zero {plan.zero} is none: choose 0, 1, 2 or 3"
    if sorted(plan.order) != sorted((Axis.TP, Axis.CP, Axis.DP, Axis.PP)):
        yield f"order {':'.join(plan.order)} does not name tp, cp, dp and pp once each"


def _world(plan: ParallelPlan, cards: int, global_batch: int | None) -> Iterator[str]:
    if plan.world != cards:
        context = " cp" if plan.cp > 1 else ""
        beside = plan.world // plan.dp
        fix = f"dp {cards // beside} makes it so" if cards % beside == 0 else "no dp makes it so"
        yield f"tp pp dp{context} = {plan.world}, not the {cards} cards of the job: {fix}"
    if global_batch is not None and plan.global_batch != global_batch:
        each = plan.dp * plan.microbatch
        more, left = divmod(global_batch, each)
        fix = f"it is no multiple of dp x microbatch = {each}" if left else f"{more} microbatches make it so"
        yield (
            f"dp {plan.dp} x microbatch {plan.microbatch} x {plan.microbatches} microbatches = {plan.global_batch} samples, "
            f"not the global batch of {global_batch}: {fix}"
        )


def _extents(limits: Sequence[Limit], plan: ParallelPlan) -> Iterator[str]:
    for limit in limits:
        degree = plan.degree(limit.axis)
        if degree == 1:
            continue
        axis = limit.axis.value
        fix = f"{axis} {_near(limit.extent, degree)} fits"
        if limit.extent < 1:
            yield f"{axis} {degree}, but the model has no {limit.name}"
        elif limit.axis == Axis.PP:
            chunks = plan.pp * plan.virtual_stages
            if limit.extent < chunks:
                most = limit.extent // plan.virtual_stages
                yield f"{limit.extent} layers are fewer than {plan.pp} stages x {plan.virtual_stages} chunks: pp {most} at most"
        elif limit.replicates:
            if max(limit.extent, degree) % min(limit.extent, degree):
                yield f"{limit.extent} {limit.name} and {axis} {degree}: neither divides the other; {fix}"
        elif limit.extent % degree:
            yield f"{limit.extent} {limit.name} are not divisible by {axis} {degree}: {fix}"


def _near(extent: int, degree: int) -> str:
    """Return the divisors of an extent on both sides of a degree, "16 or 32"."""
    below = next((d for d in range(min(degree, extent), 0, -1) if extent % d == 0), 1)
    above = next((d for d in range(degree, extent + 1) if extent % d == 0), below)
    return f"{below}" if above == below else f"{below} or {above}"


def _combinations(plan: ParallelPlan, limits: Sequence[Limit]) -> Iterator[str]:
    if plan.ep > 1 and (plan.dp * plan.cp) % plan.ep:
        fix = f"ep {_near(plan.dp * plan.cp, plan.ep)} fits"
        yield f"ep {plan.ep} does not divide dp x cp = {plan.dp * plan.cp}, the cards that experts are spread over: {fix}"
    if plan.sequence_parallel and plan.tp == 1:
        yield "sequence parallelism divides over the cards of tensor parallelism, and tp is 1: leave sp out, or raise tp"
    if plan.schedule == "interleaved" and plan.virtual_stages < 2:
        yield "the interleaved schedule needs at least 2 virtual stages: state v=2"
    if plan.schedule == "zb-v" and plan.virtual_stages != 2:
        yield f"zb-v has two chunks a stage, not {plan.virtual_stages}: state v=2"
    if plan.virtual_stages > 1 and plan.schedule not in ("interleaved", "zb-v"):
        yield f"{plan.virtual_stages} virtual stages need the interleaved schedule or zb-v, not {plan.schedule}"
    if plan.virtual_stages > 1 and plan.pp == 1:
        yield f"{plan.virtual_stages} virtual stages, but pp is 1: there is no pipeline, leave them out"
    if plan.schedule == "interleaved" and plan.pp > 1 and plan.microbatches % plan.pp:
        fix = f"choose 1f1b, or {max(plan.microbatches // plan.pp, 1) * plan.pp} microbatches"
        yield f"{plan.microbatches} microbatches are no multiple of pp {plan.pp}, which the interleaved order goes round in: {fix}"
    layers = next((limit.extent for limit in limits if limit.axis == Axis.PP), None)
    if plan.stage_layers and layers is not None:
        chunks = plan.pp * plan.virtual_stages
        if len(plan.stage_layers) != chunks or sum(plan.stage_layers) != layers:
            yield (
                f"stage_layers has {len(plan.stage_layers)} entries with {sum(plan.stage_layers)} layers in all, "
                f"for {chunks} chunks and {layers} layers"
            )
    if plan.prefetch < 0 or plan.bucket_bytes < 0:
        yield "prefetch and bucket_bytes must not be negative"


def _copies(limits: Sequence[Limit], plan: ParallelPlan) -> Iterator[str]:
    for limit in limits:
        degree = plan.degree(limit.axis)
        if limit.replicates and 1 <= limit.extent < degree and degree % limit.extent == 0:
            yield f"{limit.extent} {limit.name} for {limit.axis.value} {degree}: each is kept {degree // limit.extent} times"


def _crossing(plan: ParallelPlan, unit: int) -> Iterator[str]:
    if unit and plan.tp > 1 and plan.tp * plan.stride(Axis.TP) > unit:
        yield f"tp {plan.tp} crosses the {unit}-card unit: its messages take the tier above"


def _uneven(limits: Sequence[Limit], plan: ParallelPlan) -> Iterator[str]:
    layers = next((limit.extent for limit in limits if limit.axis == Axis.PP), 0)
    chunks = plan.pp * plan.virtual_stages
    if plan.pp > 1 and layers >= chunks and layers % chunks and not plan.stage_layers:
        what = "stages" if plan.virtual_stages == 1 else "chunks"
        yield f"{layers} layers over {chunks} {what}: uneven, the slowest has {even(layers, chunks).max()}"


def _idle(plan: ParallelPlan, training: bool) -> Iterator[str]:
    if training and plan.pp > 1 and plan.microbatches < plan.pp:
        yield f"{plan.microbatches} microbatches for {plan.pp} stages: most stages wait most of the time"
