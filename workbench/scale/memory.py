"""Memory of every stage of a plan: parameters, gradients, optimizer, activations in flight, working tensors; and why it does not fit.

Mixed-precision Adam holds 2 bytes of parameter, 2 of gradient and 12 of optimizer (fp32 parameter, two moments) for every parameter;
ZeRO divides the 12 over the cards of data parallelism (1), the gradients too (2), the parameters too (3): Rajbhandari et al., ZeRO, arXiv
1910.02054, section 3.1 and figure 1. Megatron-LM accumulates gradients in fp32: 4 bytes in place of 2 (`MEGATRON`).
What a layer keeps for its backward pass: `workbench.models`, after Korthikanti et al., arXiv 2205.05198; as often as the schedule has
microbatches in flight on the stage (`workbench.scale.schedules`). It is an estimate: allocators round up and leave gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workbench import units
from workbench.scale.held import own
from workbench.scale.plan import RECOMPUTE, ParallelPlan
from workbench.scale.schedules import Schedule, What, in_flight, schedule
from workbench.scale.shard import Share
from workbench.scale.stages import Stages

PARTS = ("parameters", "gradients", "optimizer", "activations", "working", "cache", "reserve")


@dataclass(frozen=True)
class Bytes:
    """Bytes that every parameter takes [B], and what a card holds besides: driver context, library buffers [B]."""

    parameter: float = 2.0
    gradient: float = 2.0
    optimizer: float = 12.0
    reserve: float = 1.5e9


ADAM, MEGATRON = Bytes(), Bytes(gradient=4.0)


@dataclass(frozen=True)
class Memory:
    """Bytes of the card with most of every stage: ``parts[s, k]`` of stage s by `PARTS`, float64 [p, 7] [B]; microbatches in flight [p]."""

    parts: np.ndarray
    in_flight: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Float64 [p] [B]."""
        return np.asarray(self.parts.sum(axis=1))

    @property
    def heaviest(self) -> int:
        """Stage that needs most."""
        return int(np.argmax(self.total))

    @property
    def peak(self) -> float:
        """What the heaviest stage needs [B]."""
        return float(self.total.max())

    def why(self, capacity: float) -> str:
        """Return why it does not fit into a capacity [B], with the largest parts; empty where it fits."""
        if self.peak <= capacity:
            return ""
        stage = self.heaviest
        order = np.argsort(self.parts[stage])[::-1][:3]
        parts = ", ".join(f"{PARTS[k]} {units.format(float(self.parts[stage, k]), 'B', 3)}" for k in order if self.parts[stage, k] > 0)
        flight = self.in_flight[stage]
        beside = f", {flight:g} microbatches in flight" if flight > 1 else ""
        return (
            f"stage {stage} needs {units.format(self.peak, 'B', 3)} of {units.format(capacity, 'B', 3)}: {parts}{beside}; "
            f"{units.format(self.peak - capacity, 'B', 3)} too much"
        )


def memory(share: Share, held: Stages, plan: ParallelPlan, *, state: Bytes = ADAM, training: bool = True) -> Memory:
    """Return the memory of every stage.

    Parameters
    ----------
    share : Share
        What a card runs and keeps of every block.
    held : Stages
        Which blocks every stage holds.
    plan : ParallelPlan
    state : Bytes
        Bytes a parameter.
    training : bool
        Whether there are gradients, an optimizer and activations that are kept.

    Returns
    -------
    Memory
    """
    blocks = held.of_stage.astype(np.float64)
    each = own(share, blocks)
    dense, experts = (blocks * each).sum(axis=1), blocks @ share.experts
    shards = np.array([plan.dp * plan.cp, max(plan.dp * plan.cp // plan.ep, 1)], dtype=np.float64)

    def states(size: float, from_zero: int) -> np.ndarray:
        over = shards if plan.zero >= from_zero else np.ones(2)
        return size * (dense / over[0] + experts / over[1])

    parts = np.zeros((plan.pp, len(PARTS)))
    parts[:, 0] = states(state.parameter, 3)
    parts[:, 5] = blocks @ share.cache
    parts[:, 6] = state.reserve
    parts[:, 4] = _working(share, blocks, each, plan, state, training)
    flight = np.ones(plan.pp)
    if training:
        parts[:, 1], parts[:, 2] = states(state.gradient, 2), states(state.optimizer, 1)
        flight, parts[:, 3] = _activations(plan, held.holds @ share.kept[RECOMPUTE.index(plan.recompute)])
    return Memory(parts, flight)


def _working(share: Share, blocks: np.ndarray, each: np.ndarray, plan: ParallelPlan, state: Bytes, training: bool) -> np.ndarray:
    """Return what the block that runs needs besides, float64 [p] [B].

    Its input and output, backward their gradients; of the head its output in 16 bits, as a loss over a divided vocabulary works in place
    (Megatron-LM, core/tensor_parallel/cross_entropy.py). A layer that is run again has all of its activations once. ZeRO-3 has the layer
    that runs and those gathered ahead whole, and one layer's gradients; with ZeRO-0 to 2 there is a bucket of gradients being sent.
    """
    here = blocks > 0
    passes = np.full(blocks.shape[1], 2.0)
    passes[-1] = 1.0
    out = (here * passes * share.handed).max(axis=1)
    if training:
        again = share.kept[0] - share.kept[RECOMPUTE.index(plan.recompute)]
        out = out + (here * np.maximum(again, 0.0)).max(axis=1)
    cards = plan.dp * plan.cp
    if plan.zero == 3 and cards > 1:
        layer = (each + here * share.experts * (cards > plan.ep)).max(axis=1)
        return np.asarray(out + layer * ((plan.prefetch + 1) * state.parameter + (state.gradient if training else 0.0)))
    if training and cards > 1:
        out = out + np.minimum(plan.bucket_bytes, state.gradient * (blocks * each).sum(axis=1))
    return np.asarray(out)


@lru_cache(maxsize=512)
def _schedule(name: str, stages: int, microbatches: int, virtual: int) -> tuple[Schedule, np.ndarray, np.ndarray]:
    """Return a schedule, +1 where an activation begins to be kept and -1 where it ends, and most of them at once by stage."""
    order = schedule(name, stages, microbatches, virtual)
    sign = np.select([order.what == What.FORWARD, order.what == What.INPUT], [1.0, 0.0], -1.0)
    return order, sign, in_flight(order).astype(np.float64)


def _activations(plan: ParallelPlan, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return microbatches in flight and the most bytes kept at once, float64 [p] each; ``kept`` is [p, v] of one microbatch.

    After 3 p microbatches no schedule but GPipe has more in flight.
    """
    if plan.schedule == "gpipe":
        return np.full(plan.pp, float(plan.microbatches)), plan.microbatches * kept.sum(axis=1)
    most = min(plan.microbatches, 3 * plan.pp)
    order, sign, flight = _schedule(plan.schedule, plan.pp, most, plan.virtual_stages)
    if plan.virtual_stages == 1:
        return flight, flight * kept[:, 0]
    running = np.cumsum(sign * kept[order.stage, order.chunk])
    before = np.concatenate([[0.0], running])[order.ptr[:-1]]
    return flight / plan.virtual_stages, np.maximum.reduceat(running, order.ptr[:-1]) - before
