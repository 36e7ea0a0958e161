"""Serving under a plan: time to the first token, time between tokens, tokens a second; keys and values in memory.

A prompt passes all stages once. Decoding makes one token for every sequence of a microbatch; ``pp`` microbatches take turns, so that every
stage works (Pope et al., Efficiently Scaling Transformer Inference, arXiv 2211.05102, sections 2 and 3). Requests do not wait for each
other: queues are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.spec import NpuSpec
from workbench.models.describe import ModelSpec
from workbench.operators.table import Dtype
from workbench.scale.memory import Bytes, Memory, memory
from workbench.scale.plan import ParallelPlan
from workbench.scale.stages import stages
from workbench.scale.verdict import verdict
from workbench.study.plan_assemble import capacity_of, link_s
from workbench.study.plan_price import enough, price
from workbench.study.plan_system import IDEAL, System


@dataclass(frozen=True)
class Inference:
    """Serving: ``dp`` replicas, each with ``pp`` microbatches of ``microbatch`` sequences at work."""

    plan: ParallelPlan
    prompt: int
    context: int
    first_token_s: float  # of a microbatch of prompts that meets idle stages [s]
    token_s: float  # between two tokens of a sequence [s]
    tokens_per_s: float  # of all replicas, while they decode [1/s]
    memory: Memory  # of decoding
    capacity: float


def infer(
    model: ModelSpec,
    npu: NpuSpec,
    cluster: ClusterSpec,
    plan: ParallelPlan,
    prompt: int,
    context: int | None = None,
    *,
    attention: str = "flash",
    dtype: Dtype | None = None,
    system: System = IDEAL,
) -> Inference:
    """Predict serving.

    Parameters
    ----------
    model, npu, cluster, plan, attention, dtype, system
        As in `workbench.study.plan_step.plan_step`; of the plan the degrees, ``microbatch`` and the schedule's stages count.
    prompt : int
        Tokens of a prompt.
    context : int, optional
        Tokens in the cache while a token is made; those of the prompt.

    Returns
    -------
    Inference

    Raises
    ------
    Refused
        A plan that cannot be.
    """
    seen = prompt if context is None else context
    plan = plan.with_({"virtual_stages": 1, "schedule": "1f1b", "recompute": "none", "zero": 0, "microbatches": plan.pp})
    prefill = model.build(plan.microbatch, prompt, phase="prefill", attention=attention, dtype=dtype)
    decode = model.build(plan.microbatch, phase="decode", context=seen, attention=attention, dtype=dtype)
    judged = verdict(prefill.limits, plan, plan.world, unit=cluster.tiers[0].size, training=False)
    if judged.errors:
        raise Refused("plan", "; ".join(judged.errors), "change the degrees it names")
    if plan.cp > 1:
        raise Refused("plan", "context parallelism of decoding is not modelled", "use tp and pp, which divide keys and values too")
    large = enough(cluster, plan.world)
    both = price([(prefill, plan), (decode, plan)], npu, large, system)
    passes, messages = [], []
    for built, priced in zip((prefill, decode), both, strict=True):
        spent = priced.compute_s + priced.exposed_s.sum(axis=0) + priced.host_s
        passes.append(stages(built, plan).of_stage @ spent[0])
        messages.append(sum(link_s(large, plan, built, priced, system)))
    first, each = (float(p.sum()) + (plan.pp - 1) * m for p, m in zip(passes, messages, strict=True))
    token = max(each + (messages[1] if plan.pp > 1 else 0.0), plan.pp * float(np.max(passes[1])))
    held = memory(both[1].share, stages(decode, plan), plan, state=Bytes(), training=False)
    full = held.parts.copy()
    full[:, 5] *= plan.pp  # every microbatch has keys and values on every stage
    rate = plan.dp * plan.pp * plan.microbatch / token
    return Inference(plan, prompt, seen, first, token, rate, Memory(full, held.in_flight), capacity_of(npu))
