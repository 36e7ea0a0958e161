"""Scaling efficiency of a plan over the number of cards: data parallelism grows, the model's own division stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from workbench.errors import InvalidSpec, Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.spec import NpuSpec
from workbench.models.describe import ModelSpec
from workbench.scale.efficiency import Fixed, efficiency
from workbench.scale.plan import ParallelPlan
from workbench.study.plan_price import enough
from workbench.study.plan_result import PlanStep
from workbench.study.plan_step import plan_step

AXES = ("tp", "cp", "ep", "pp", "dp")


def plan_scaling(
    model: ModelSpec,
    npu: NpuSpec,
    cluster: ClusterSpec,
    plan: ParallelPlan,
    cards: Sequence[int],
    *,
    fixed: str = "weak",
    base_cards: int | None = None,
    **how: Any,
) -> xr.Dataset:
    """Predict the step of a plan on several numbers of cards.

    Parameters
    ----------
    model, npu, cluster
        As in `workbench.study.plan_step.plan_step`.
    plan : ParallelPlan
        Division of one replica; its dp is replaced.
    cards : sequence of int
        Numbers of cards, multiples of the cards of a replica.
    fixed : {"weak", "strong"}
        Weak scaling keeps the batch of a card (the plan's microbatches), strong scaling the global batch (of the plan as given).
    base_cards : int, optional
        N0 that efficiencies refer to; the fewest cards.
    how
        Further arguments of `plan_step`.

    Returns
    -------
    Dataset
        Dimensions ``cards``, ``tier`` and ``axis``: step_s, exposed_s, exposed_tier_s, exposed_axis_s, bubble_s [s], efficiency, overhead,
        mfu, tokens_per_s, limiting_tier. Attributes say what N0 is and what is fixed.

    Raises
    ------
    Refused, InvalidSpec
        Cards that hold no whole number of replicas, a batch that does not divide, a plan that cannot be.
    """
    if fixed not in ("weak", "strong"):
        raise InvalidSpec("fixed", f"{fixed!r} is none", "use weak or strong")
    counts = sorted({int(n) for n in cards})
    if not counts or counts[0] < 1:
        raise InvalidSpec("cards", f"{list(cards)[:8]} are no numbers of cards", "give e.g. 64, 256, 1024")
    base = counts[0] if base_cards is None else base_cards
    every = sorted({*counts, base})
    steps = {n: plan_step(model, npu, cluster, _with_cards(plan, n, fixed), **how) for n in every}
    times = np.array([steps[n].step_s for n in every])
    found = efficiency(every, times, Fixed.PER_CARD if fixed == "weak" else Fixed.GLOBAL, base, steps[base].step_s)
    keep = np.isin(every, counts)
    large = enough(cluster, every[-1])
    return _dataset(counts, [steps[n] for n in counts], found.value[keep], found.overhead[keep], str(found), base, large)


def _with_cards(plan: ParallelPlan, cards: int, fixed: str) -> ParallelPlan:
    replica = plan.tp * plan.pp * plan.cp
    if cards % replica:
        raise Refused("cards", f"{cards} cards hold no whole number of replicas of {replica}", f"give multiples of {replica}")
    dp = cards // replica
    if fixed == "weak":
        return plan.with_({"dp": dp})
    if plan.global_batch % (dp * plan.microbatch):
        raise Refused(
            "cards",
            f"a global batch of {plan.global_batch} does not divide over dp {dp} x microbatch {plan.microbatch}",
            "choose other cards",
        )
    return plan.with_({"dp": dp, "microbatches": plan.global_batch // (dp * plan.microbatch)})


def _dataset(
    counts: list[int], steps: list[PlanStep], value: np.ndarray, overhead: np.ndarray, said: str, base: int, cluster: ClusterSpec
) -> xr.Dataset:
    tiers = [tier.name for tier in cluster.tiers]
    axis = np.array([[step.exposed_s[name] for name in AXES] for step in steps])
    tier = np.array([[sum(spent for a, spent in step.exposed_s.items() if step.tier.get(a) == name) for name in tiers] for step in steps])
    second = {"units": "s"}

    def column(of: Any) -> np.ndarray:
        return np.array([of(step) for step in steps])

    return xr.Dataset(
        {
            "step_s": ("cards", column(lambda step: step.step_s), second),
            "exposed_s": ("cards", axis.sum(axis=1), second),
            "bubble_s": ("cards", column(lambda step: step.bubble_s), second),
            "efficiency": ("cards", value),
            "overhead": ("cards", overhead),
            "mfu": ("cards", column(lambda step: step.mfu)),
            "tokens_per_s": ("cards", column(lambda step: step.tokens / step.step_s), {"units": "1/s"}),
            "limiting_tier": ("cards", column(lambda step: step.limiting_tier)),
            "exposed_tier_s": (("cards", "tier"), tier, second),
            "exposed_axis_s": (("cards", "axis"), axis, second),
        },
        {"cards": counts, "tier": tiers, "axis": list(AXES)},
        {"efficiency": said, "base_cards": base, "cluster": cluster.name, "notes": [str(note) for note in steps[0].notes]},
    )
