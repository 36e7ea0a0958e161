"""All plans worth trying for a job: every division of the cards that the model allows; what is dominated is left out, and said so here.

Left out because another plan is at least as fast and needs no more memory: tensor parallelism without sequence parallelism; optimizer
states that are not divided where there is data parallelism (ZeRO-1 sends what an all-reduce sends); ZeRO-2 with a pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.operators.blocks import Axis, Limit
from workbench.scale.plan import ParallelPlan

DEFAULT_SCHEDULES = ("1f1b", "interleaved")
MOST_MICROBATCH, MOST_VIRTUAL = 16, 8


@dataclass(frozen=True)
class Space:
    """What a search tries: schedules, recomputation, stages of ZeRO, most cards of tensor and context parallelism."""

    schedules: tuple[str, ...] = DEFAULT_SCHEDULES
    recompute: tuple[str, ...] = ("none", "full")
    zero: tuple[int, ...] = (1, 3)
    most_tp: int = 64
    most_cp: int = 1
    most_microbatch: int = MOST_MICROBATCH
    sequence_parallel: bool = True

    def keeping(self, stated: Mapping[str, Any]) -> Space:
        """Return the space with what a plan states in the place of its choices."""
        out: dict[str, Any] = {}
        for name, field in (("schedule", "schedules"), ("recompute", "recompute"), ("zero", "zero")):
            if name in stated:
                out[field] = (stated[name],)
        for name, field in (("tp", "most_tp"), ("cp", "most_cp"), ("microbatch", "most_microbatch")):
            if name in stated:
                out[field] = stated[name]
        if "sequence_parallel" in stated:
            out["sequence_parallel"] = stated["sequence_parallel"]
        return replace(self, **out)


def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a whole number, rising."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


def plans(limits: Sequence[Limit], cards: int, global_batch: int, space: Space) -> Iterator[ParallelPlan]:
    """Yield every plan of a space that divides cards, batch and model evenly.

    Parameters
    ----------
    limits : sequence of Limit
        Of the model.
    cards, global_batch : int
        Cards, and samples of a step on all of them.
    space : Space
        What is tried.

    Yields
    ------
    ParallelPlan
    """
    layers = _extent(limits, Axis.PP)
    experts = _extent(limits, Axis.EP)
    for tp in divisors(cards):
        if tp > space.most_tp or not _divides(limits, Axis.TP, tp):
            continue
        for cp in divisors(cards // tp):
            if cp > space.most_cp or not _divides(limits, Axis.CP, cp):
                continue
            for pp in divisors(cards // tp // cp):
                if pp > layers or layers % pp:
                    continue
                dp = cards // tp // cp // pp
                if global_batch % dp:
                    continue
                base = ParallelPlan(dp=dp, tp=tp, pp=pp, cp=cp, sequence_parallel=tp > 1 and space.sequence_parallel)
                for ep in divisors(experts) if experts else (1,):
                    if (dp * cp) % ep == 0:
                        yield from _of(base.with_({"ep": ep}), layers, global_batch, space)


def _of(base: ParallelPlan, layers: int, global_batch: int, space: Space) -> Iterator[ParallelPlan]:
    """Yield microbatches, schedules, recomputation and ZeRO of one division of the cards."""
    each = global_batch // base.dp
    shards = base.dp * base.cp
    zeros = tuple(z for z in space.zero if shards > 1 and (z in (0, 1) or base.pp == 1 or len(space.zero) == 1)) or (0,)
    for microbatch in divisors(each):
        if microbatch > space.most_microbatch:
            break
        m = each // microbatch
        for schedule, virtual in _orders(base.pp, m, layers, space):
            for recompute in space.recompute:
                for zero in zeros:
                    yield base.with_(
                        {"microbatch": microbatch, "microbatches": m, "schedule": schedule, "virtual_stages": virtual,
                         "recompute": recompute, "zero": zero}
                    )  # fmt: skip


def _orders(pp: int, m: int, layers: int, space: Space) -> Iterator[tuple[str, int]]:
    if pp == 1:
        yield ("gpipe" if space.schedules == ("gpipe",) else "1f1b"), 1
        return
    for name in space.schedules:
        if name == "interleaved":
            if m % pp == 0:
                yield from ((name, v) for v in divisors(layers // pp) if 1 < v <= MOST_VIRTUAL)
        elif name == "zb-v":
            if layers % (2 * pp) == 0:
                yield name, 2
        else:
            yield name, 1


def _extent(limits: Sequence[Limit], axis: Axis) -> int:
    return next((limit.extent for limit in limits if limit.axis == axis), 0)


def _divides(limits: Sequence[Limit], axis: Axis, degree: int) -> bool:
    for limit in limits:
        if limit.axis != axis or degree == 1:
            continue
        if limit.extent < 1:
            return False
        if limit.replicates:
            if max(limit.extent, degree) % min(limit.extent, degree):
                return False
        elif limit.extent % degree:
            return False
    return True
