"""All plans for a model, cards and a global batch: ranked by step time, with reasons; the first that does not fit; the Pareto front.

Every plan is first timed by closed forms (`workbench.scale.bubble`), all operators priced in one go; the fastest are then replayed, so
that the order at the top does not rest on closed forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.errors import InvalidSpec, Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.spec import NpuSpec
from workbench.models.describe import ModelSpec
from workbench.operators.blocks import Axis, Model
from workbench.operators.table import Dtype, Kind
from workbench.scale.bubble import bubble_s
from workbench.scale.choices import Space, plans
from workbench.scale.held import own
from workbench.scale.memory import ADAM, Bytes, memory
from workbench.scale.plan import ParallelPlan
from workbench.scale.shard import key
from workbench.scale.stages import Stages, stages
from workbench.study.plan_assemble import assemble, capacity_of, link_s, tied_s, updated
from workbench.study.plan_price import Priced, along, enough, of_pass, price
from workbench.study.plan_result import PlanStep
from workbench.study.plan_system import IDEAL, System

REPLAYED = 24
"""Plans at the top that are replayed."""


@dataclass(frozen=True)
class Search:
    """Plans found: ``best`` fit and are replayed, fastest first; ``unfit`` is the fastest that does not fit, replayed; None: all fit.

    ``tried`` plans in all; ``fitting`` of them fit. ``plans``, ``step_s`` [s] by closed forms, ``memory`` of the heaviest stage [B] and
    ``cards`` of all of them; ``front`` those that none beats in time, memory and cards at once.
    """

    best: tuple[PlanStep, ...]
    unfit: PlanStep | None
    tried: int
    fitting: int
    plans: tuple[ParallelPlan, ...]
    step_s: np.ndarray  # float64 [P]
    memory: np.ndarray  # float64 [P] [B]
    front: tuple[int, ...]


def search_plans(
    model: ModelSpec,
    npu: NpuSpec,
    cluster: ClusterSpec,
    cards: int | Sequence[int],
    global_batch: int,
    *,
    space: Space | None = None,
    capacity: float | None = None,
    tokens: int | None = None,
    attention: str = "flash",
    dtype: Dtype | None = None,
    system: System = IDEAL,
    state: Bytes = ADAM,
    gradient_bytes: float = 2.0,
    top: int = 10,
    stated: Mapping[str, Any] | None = None,
) -> Search:
    """Rank all plans.

    Parameters
    ----------
    model, npu, cluster, tokens, attention, dtype, system, state, gradient_bytes
        As in `workbench.study.plan_step.plan_step`.
    cards : int or sequence of int
        Cards of the job; several: the front is over all of them.
    global_batch : int
        Samples of a step on all cards.
    space : Space, optional
        What is tried.
    capacity : float, optional
        Memory that may be used on a card [B]; the card's.
    top : int
        Plans to return.
    stated : mapping, optional
        Fields of a plan that are kept to, e.g. ``{"tp": 8}``.

    Returns
    -------
    Search

    Raises
    ------
    Refused
        No plan divides cards, batch and model evenly.
    """
    counts = (cards,) if isinstance(cards, int) else tuple(cards)
    space, room = (space or Space()).keeping(stated or {}), capacity_of(npu) if capacity is None else capacity
    found = _all(model, counts, global_batch, tokens, space, stated or {})
    large = enough(cluster, max(counts))
    built = {b: model.build(b, tokens, attention=attention, dtype=dtype) for b in {plan.microbatch for plan in found}}
    distinct = {key(plan): plan for plan in found}
    shared = dict(zip(distinct, price([(built[p.microbatch], p) for p in distinct.values()], npu, large, system), strict=True))
    quick = _Quick(large, system, gradient_bytes, state)
    times = np.array([quick.step_s(built[p.microbatch], p, shared[key(p)]) for p in found])
    needed = np.array([quick.bytes(built[p.microbatch], p, shared[key(p)]) for p in found])

    def replayed(rows: np.ndarray) -> list[PlanStep]:
        how: dict[str, Any] = {"system": system, "state": state, "gradient_bytes": gradient_bytes}
        done = [assemble(built[p.microbatch], npu, large, p, shared[key(p)], **how) for p in (found[int(row)] for row in rows)]
        return sorted(done, key=lambda step: step.step_s)

    order = np.argsort(times, kind="stable")
    fits = needed <= room
    best = replayed(order[fits[order]][: max(REPLAYED, top)])
    unfit = replayed(order[~fits[order]][:1])
    front = _front(times, needed, np.array([plan.world for plan in found]))
    return Search(tuple(best[:top]), unfit[0] if unfit else None, len(found), int(fits.sum()), found, times, needed, front)


def _all(
    model: ModelSpec, counts: tuple[int, ...], global_batch: int, tokens: int | None, space: Space, stated: Mapping[str, Any]
) -> tuple[ParallelPlan, ...]:
    """Return every plan of a space that keeps to what is stated; refused where there is none."""
    if min(counts, default=0) < 1 or global_batch < 1:
        raise InvalidSpec("cards and global batch", f"{counts} and {global_batch}", "give whole numbers of at least 1")
    limits = model.build(1, tokens).limits
    every = (plan for count in counts for plan in plans(limits, count, global_batch, space))
    found = tuple(plan for plan in every if all(getattr(plan, name) == value for name, value in stated.items()))
    if not found:
        asked = f"{', '.join(map(str, counts))} cards, a batch of {global_batch} and {model.name}"
        raise Refused("plan search", f"no plan divides {asked} evenly", "choose a batch with more divisors, or state less of the plan")
    return found


class _Quick:
    """Closed forms of one search."""

    def __init__(self, cluster: ClusterSpec, system: System, gradient_bytes: float, state: Bytes) -> None:
        self.cluster, self.system, self.gradient_bytes, self.state = cluster, system, gradient_bytes, state
        self.held: dict[tuple[object, ...], Stages] = {}
        self.memo: dict[tuple[object, ...], Any] = {}

    def stages(self, model: Model, plan: ParallelPlan) -> Stages:
        place = (plan.pp, plan.virtual_stages, plan.schedule == "zb-v", plan.stage_layers)
        if place not in self.held:
            self.held[place] = stages(model, plan)
        return self.held[place]

    def bytes(self, model: Model, plan: ParallelPlan, priced: Priced) -> float:
        """Return what the heaviest stage needs [B]."""
        return memory(priced.share, self.stages(model, plan), plan, state=self.state).peak

    def step_s(self, model: Model, plan: ParallelPlan, priced: Priced) -> float:
        """Return the step time by closed forms [s]."""
        held = self.stages(model, plan)
        blocks, m = held.of_stage, plan.microbatches
        forward, back, weight = (blocks @ values for values in of_pass(priced.compute_s + priced.exposed_s.sum(axis=0) + priced.host_s))
        step = m * (forward + back + weight).max()
        if plan.pp > 1:
            means = float(forward.mean()), float(back.mean()), float(weight.mean())
            message = sum(self.once("link", plan, lambda: link_s(self.cluster, plan, model, priced, self.system)))
            step += float(bubble_s(plan.schedule, plan.pp, m, plan.virtual_stages, means[0], means[1], means[2], message))
        beside = self._beside(blocks, forward, back + weight, plan, priced)
        shared = self.once("tied", plan, lambda: tied_s(held, priced, plan, self.cluster, self.system, self.gradient_bytes)[0].max())
        return float(step + beside + shared + self.once("update", plan, lambda: priced.adam_s * updated(held, priced, plan).max()))

    def once(self, what: str, plan: ParallelPlan, make: Callable[[], Any]) -> Any:
        """Return what plans that differ in microbatches and recomputation alone have in common."""
        size = plan.microbatch if what == "link" else 0
        place = (what, plan.tp, plan.pp, plan.dp, plan.cp, plan.ep, plan.zero, plan.virtual_stages, plan.schedule == "zb-v", size)
        if place not in self.memo:
            self.memo[place] = make()
        return self.memo[place]

    def _beside(self, blocks: np.ndarray, forward: np.ndarray, back: np.ndarray, plan: ParallelPlan, priced: Priced) -> float:
        """Return what messages of data parallelism add to the step [s]: what the passes they may run beside do not cover."""
        reduce, gather = self.once("data", plan, lambda: self._data(blocks, plan, priced))
        if not reduce.any():
            return 0.0
        layers = np.maximum(blocks.sum(axis=1), 1)
        if plan.zero == 3:
            each = np.maximum(gather - forward, gather / layers) + np.maximum(gather + reduce - back, reduce / layers)
            return float((plan.microbatches * each).max())
        last = np.maximum(reduce - back * (1.0 - 1.0 / layers), reduce / layers)
        return float((last + (np.maximum(gather - forward, gather / layers) if plan.zero else 0.0)).max())

    def _data(self, blocks: np.ndarray, plan: ParallelPlan, priced: Priced) -> tuple[np.ndarray, np.ndarray]:
        """Return the time of all gradients and of all parameters of every stage, float64 [p] each [s]."""
        stride, shards = min(plan.stride(Axis.DP), plan.stride(Axis.CP)), plan.dp * plan.cp
        reduce, gather = np.zeros(len(blocks)), np.zeros(len(blocks))
        kind = Kind.ALL_REDUCE if plan.zero == 0 else Kind.REDUCE_SCATTER
        dense, experts = (blocks * own(priced.share, blocks)).sum(axis=1), blocks @ priced.share.experts
        for held, cards, step in ((dense, shards, stride), (experts, shards // plan.ep, stride * plan.ep)):
            if cards > 1 and held.any():
                some = self.system.network * (held > 0)
                reduce += along(self.cluster, kind, cards, step).seconds(held * self.gradient_bytes) * some
                gather += along(self.cluster, Kind.ALL_GATHER, cards, step).seconds(held * 2.0) * some
        return reduce, gather


def _front(*costs: np.ndarray) -> tuple[int, ...]:
    """Return rows that no other row beats or equals in all costs and beats in one."""
    table = np.stack([np.asarray(cost, dtype=np.float64) for cost in costs], axis=1)
    order = np.lexsort(table.T[::-1])
    kept: list[int] = []
    for row in order.tolist():
        better = table[kept]
        if not (len(kept) and (better <= table[row]).all(axis=1).any()):
            kept.append(row)
    return tuple(kept)
