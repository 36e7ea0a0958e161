"""A plan whose blocks are priced -> its step: stages, the schedule replayed, data parallelism beside it.

Nothing is overlapped by decree: messages of tensor, context and expert parallelism stand where the next operator waits for them; those of
the pipeline are replayed with the schedule (`workbench.replay.schedule`), gradients and parameters with the passes they run beside
(`workbench.scale.overlap`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from workbench.errors import InvalidSpec, Note
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.spec import NpuSpec
from workbench.models.build import flops_of
from workbench.operators.blocks import Axis, Model
from workbench.operators.table import Kind
from workbench.replay.schedule import StageOrders, replay_schedule, stage_orders
from workbench.scale.held import own, ties
from workbench.scale.memory import Bytes, memory
from workbench.scale.overlap import data_parallel, gradient_buckets
from workbench.scale.plan import ParallelPlan
from workbench.scale.schedules import Schedule, schedule, seconds, times
from workbench.scale.stages import Stages, stages
from workbench.study.plan_price import AXES, Priced, along, of_pass, tier_of
from workbench.study.plan_result import PlanStep
from workbench.study.plan_system import System

STEADY = 4
"""Microbatches with messages of ZeRO-2 and ZeRO-3 that are replayed one by one; each further one takes as long as the last of them."""


@lru_cache(maxsize=256)
def orders_of(name: str, stages_: int, microbatches: int, virtual: int) -> tuple[Schedule, StageOrders]:
    """Return a schedule, ready to run."""
    order = schedule(name, stages_, microbatches, virtual)
    return order, stage_orders(order.ptr, order.source)


def capacity_of(npu: NpuSpec) -> float:
    """Return the size of the card's outermost memory [B]."""
    return float(list(npu.memory.values())[-1].size)


def assemble(
    model: Model,
    npu: NpuSpec,
    cluster: ClusterSpec,
    plan: ParallelPlan,
    priced: Priced,
    *,
    system: System,
    state: Bytes,
    gradient_bytes: float,
    slow: Sequence[float] | None = None,
    warnings: tuple[str, ...] = (),
) -> PlanStep:
    """Return the step of a plan whose blocks are priced.

    Parameters
    ----------
    model : Model
        Built for the plan's microbatch.
    npu, cluster, plan, system, state, gradient_bytes, slow
        As in `workbench.study.plan_step.plan_step`; the cluster is large enough.
    priced : Priced
        Times of its blocks.
    warnings : tuple of str
        What the verdict warned of.
    """
    held, m = stages(model, plan), plan.microbatches
    factor = factors(slow, plan.pp)
    order, orders = orders_of(plan.schedule, plan.pp, m, plan.virtual_stages)
    ops = times(order, _chunks(held, priced.compute_s, priced.exposed_s.sum(axis=0) + priced.host_s, factor))
    latency, occupancy = link_s(cluster, plan, model, priced, system)
    run = replay_schedule(orders, ops, latency, occupancy)
    free = run if plan.pp == 1 else replay_schedule(orders, ops)
    update = _optimizer(held, priced, plan)
    each = own(priced.share, held.of_stage)
    beside = [_beside(held.of_stage[s], each[s], priced, plan, cluster, system, gradient_bytes, float(factor[s])) for s in range(plan.pp)]
    shared, waits = tied_s(held, priced, plan, cluster, system, gradient_bytes)
    ends = _together(run.end_s + np.array([one[0] for one in beside]), waits) + shared + update
    pace, busiest = int(np.argmax(ends)), int(np.argmax(free.busy_s))
    step, blocks = float(ends.max()), held.of_stage[busiest]
    exposed = {axis.value: m * float((priced.exposed_s[a] @ blocks).sum()) for a, axis in enumerate(AXES)}
    exposed["pp"] = max(run.makespan_s - free.makespan_s, 0.0) + float(shared[pace])
    exposed["dp"] += beside[pace][0]
    messages = {axis.value: m * float((priced.messages_s[a] @ blocks).sum()) for a, axis in enumerate(AXES)}
    messages["pp"] = (2 * m * plan.virtual_stages * occupancy if plan.pp > 1 else 0.0) + float(shared[pace])
    messages["dp"] += beside[pace][1]

    def spent(values: np.ndarray) -> float:
        return m * float(factor[busiest]) * float((values @ blocks).sum())

    compute, host = spent(priced.compute_s), m * float((priced.host_s @ blocks).sum())
    again = spent(priced.compute_s[1:2])
    flops = model.model_flops * plan.dp * m
    return PlanStep(
        model=model, plan=plan, cluster=cluster.name, npu=npu.name, system=system, step_s=step,
        low_s=step - max(compute - spent(priced.low_s), 0.0), high_s=step + max(spent(priced.high_s) - compute, 0.0),
        compute_s=compute, exposed_s=exposed, messages_s=messages, tier=_tiers(cluster, plan),
        bubble_s=max(step - float(update[pace]) - compute - host - sum(exposed.values()), 0.0), optimizer_s=float(update[pace]),
        again_s=again, host_s=host, memory=memory(priced.share, held, plan, state=state), capacity=capacity_of(npu),
        tokens=float(plan.global_batch * model.tokens), model_flops=3.0 * flops,
        executed_flops=3.0 * flops + _again_flops(model, plan, flops), peak=npu.peak_flops(model.dtype.name.lower()),
        energy_j=_energy(held, priced, plan, step), warnings=warnings, order=order, run=run, notes=_notes(priced, npu, system),
    )  # fmt: skip


def factors(slow: Sequence[float] | None, stages_: int) -> np.ndarray:
    """Return the factor on the compute of every stage, float64 [p].

    Raises
    ------
    InvalidSpec
        Not one a stage, or not positive.
    """
    out = np.ones(stages_) if slow is None else np.asarray(slow, dtype=np.float64)
    if out.shape != (stages_,) or not (np.isfinite(out) & (out > 0)).all():
        raise InvalidSpec("slow", f"{list(np.ravel(out))[:8]} are no factors of {stages_} stages", "give one positive number a stage")
    return out


def _chunks(held: Stages, compute: np.ndarray, exposed: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the times of every chunk [What, p, v] [s]."""
    work, waits = of_pass(compute), of_pass(exposed)
    forward, back, weight = (held.holds @ work[k] * factor[:, None] + held.holds @ waits[k] for k in range(3))
    return seconds(forward, back, weight, held.holds.shape[:2])


def _handed(model: Model, priced: Priced) -> float:
    """Return the bytes that a layer hands to the next stage [B]."""
    return max((float(priced.share.handed[b]) for b, block in enumerate(model.blocks) if block.layer), default=0.0)


def link_s(cluster: ClusterSpec, plan: ParallelPlan, model: Model, priced: Priced, system: System) -> tuple[float, float]:
    """Return latency and occupancy of a message from a stage to the next [s].

    Cards of tensor parallelism hold the same activation: each sends a part, and they gather it where it arrives, inside their unit
    (Narayanan et al., arXiv 2104.04473, section 4.1). With sequence parallelism each has a part only.

    Parameters
    ----------
    cluster, plan, model, priced, system
        As in `assemble`.
    """
    if plan.pp == 1:
        return 0.0, 0.0
    size = _handed(model, priced)
    doubled = plan.tp > 1 and not plan.sequence_parallel
    part = size / plan.tp if doubled else size
    start, whole = along(cluster, Kind.SEND_RECV, 2, plan.stride(Axis.PP)).seconds(np.array([0.0, part])) * system.network
    gather = along(cluster, Kind.ALL_GATHER, plan.tp, plan.stride(Axis.TP)).seconds(np.array([size]))[0] if doubled else 0.0
    return float(start + gather * system.network), float(whole - start)


def tied_s(
    held: Stages, priced: Priced, plan: ParallelPlan, cluster: ClusterSpec, system: System, gradient_bytes: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return how long the gradients of weights that several stages hold take, float64 [p] [s], and which stages wait for each other.

    They are summed when every gradient is there, before the update (Megatron-LM, core/distributed/finalize_model_grads.py).

    Parameters
    ----------
    held, priced, plan, cluster, system, gradient_bytes
        As in `assemble`.
    """
    out, waits = np.zeros(plan.pp), np.zeros(plan.pp, dtype=bool)
    for tie in ties(priced.share, held.of_stage):
        count, at = len(tie.stages), list(tie.stages)
        stride = plan.stride(Axis.PP) * ((at[-1] - at[0]) // (count - 1))
        size = tie.elements * gradient_bytes / (plan.dp * plan.cp if plan.zero >= 2 else 1)
        out[at] += along(cluster, Kind.ALL_REDUCE, count, stride).seconds(np.array([size]))[0] * system.network
        waits[at] = True
    return out, waits


def _together(ends: np.ndarray, waits: np.ndarray) -> np.ndarray:
    """Return times of stages where some wait for the last of them."""
    return np.where(waits, np.max(ends, where=waits, initial=0.0), ends)


def _beside(
    blocks: np.ndarray,
    weights: np.ndarray,
    priced: Priced,
    plan: ParallelPlan,
    cluster: ClusterSpec,
    system: System,
    gradient_bytes: float,
    factor: float,
) -> tuple[float, float]:
    """Return what messages of data parallelism add to a stage, and how long they all take [s]; ``weights`` as `held.own` gives them.

    Weights are divided over dp x cp, those of experts over dp x cp / ep; the passes of the stage's layers hide them.
    """
    layers = np.repeat(np.arange(len(blocks)), blocks)
    forward, back, weight = (values[layers] for values in of_pass(priced.compute_s * factor + priced.exposed_s.sum(axis=0) + priced.host_s))
    stride = min(plan.stride(Axis.DP), plan.stride(Axis.CP))
    spent = np.zeros((2, len(layers)))  # gradients, parameters
    for sizes, cards, step in (
        (weights, plan.dp * plan.cp, stride),
        (priced.share.experts, plan.dp * plan.cp // plan.ep, stride * plan.ep),
    ):
        if cards < 2 or not (blocks @ sizes):
            continue
        kind = Kind.ALL_REDUCE if plan.zero == 0 else Kind.REDUCE_SCATTER
        made = gradient_buckets(sizes[layers] * gradient_bytes, plan.bucket_bytes)
        reduce = along(cluster, kind, cards, step).seconds(made.bytes) * system.network
        np.add.at(spent[0], made.completed_by, reduce)
        if plan.zero:
            spent[1] += along(cluster, Kind.ALL_GATHER, cards, step).seconds(sizes[layers] * 2.0) * system.network * (sizes[layers] > 0)
    if not spent.any():
        return 0.0, 0.0
    each = gradient_buckets(np.ones(len(layers)), 0.0)
    m = min(plan.microbatches, STEADY) if plan.zero >= 2 else 1

    def run(count: int) -> tuple[float, float]:
        gather = None if plan.zero == 0 else spent[1] if plan.zero == 3 else spent[1][each.completed_by]
        found = data_parallel(forward, back + weight, each, spent[0][each.completed_by], gather, zero=plan.zero, microbatches=count,
                              prefetch=plan.prefetch, gather_beside_forward=True)  # fmt: skip
        return float(found.exposed_s), float(found.messages_s)

    exposed, messages = run(m)
    if plan.zero >= 2 and plan.microbatches > m:
        before = run(m - 1)
        exposed += (plan.microbatches - m) * max(exposed - before[0], 0.0)
        messages += (plan.microbatches - m) * (messages - before[1])
    return exposed, messages


def _optimizer(held: Stages, priced: Priced, plan: ParallelPlan) -> np.ndarray:
    """Return the time of the update on every stage, float64 [p] [s]."""
    return priced.adam_s * updated(held, priced, plan)


def updated(held: Stages, priced: Priced, plan: ParallelPlan) -> np.ndarray:
    """Return the parameters that a card of every stage updates, float64 [p]."""
    over = (plan.dp * plan.cp, max(plan.dp * plan.cp // plan.ep, 1)) if plan.zero else (1, 1)
    blocks = held.of_stage
    return np.asarray((blocks * own(priced.share, blocks)).sum(axis=1) / over[0] + blocks @ priced.share.experts / over[1])


def _again_flops(model: Model, plan: ParallelPlan, flops: float) -> float:
    """Return model FLOPs that are executed again: all of the layers, or the core of attention [FLOP]."""
    if plan.recompute == "none":
        return 0.0
    return flops * flops_of(model, selective=plan.recompute == "selective", layers=True) / max(model.model_flops, 1.0)


def _tiers(cluster: ClusterSpec, plan: ParallelPlan) -> dict[str, str]:
    """Return the outermost tier that the messages of every axis cross."""
    out = {axis.value: tier_of(cluster, plan.degree(axis), plan.stride(axis)) for axis in (Axis.TP, Axis.CP, Axis.EP, Axis.PP)}
    return out | {"dp": tier_of(cluster, plan.dp * plan.cp, min(plan.stride(Axis.DP), plan.stride(Axis.CP)))}


def _energy(held: Stages, priced: Priced, plan: ParallelPlan, step: float) -> float:
    """Return the energy of a step on all cards [J]: operators, the update, and idle power for the rest of the step."""
    blocks, m = held.of_stage, plan.microbatches
    update = updated(held, priced, plan)
    busy = m * (blocks @ priced.compute_s.sum(axis=0)) + update * priced.adam_s
    taken = m * (blocks @ priced.energy_j.sum(axis=0)) + update * priced.adam_j + priced.idle_w * np.maximum(step - busy, 0.0)
    return float(taken.sum() * plan.dp * plan.tp * plan.cp)


def _notes(priced: Priced, npu: NpuSpec, system: System) -> tuple[Note, ...]:
    out = [Note("estimated-plan", npu.name, 1, "no trace: operators by the analytical model, messages by the network model")]
    if system.name != "ideal":
        out.append(Note("system", system.name, 1, "scalars of software and host, fitted elsewhere, are applied"))
    if priced.energy_why:
        out.append(Note("energy", npu.name, 1, priced.energy_why))
    return tuple(out)
