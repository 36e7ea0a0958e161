"""Step time of a training job under a parallel plan."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.spec import NpuSpec
from workbench.models.describe import ModelSpec
from workbench.operators.table import Dtype
from workbench.scale.memory import ADAM, Bytes
from workbench.scale.plan import ParallelPlan
from workbench.scale.verdict import verdict
from workbench.study.plan_assemble import assemble
from workbench.study.plan_price import enough, price
from workbench.study.plan_result import PlanStep
from workbench.study.plan_system import IDEAL, System


def plan_step(
    model: ModelSpec,
    npu: NpuSpec,
    cluster: ClusterSpec,
    plan: ParallelPlan,
    *,
    tokens: int | None = None,
    attention: str = "flash",
    dtype: Dtype | None = None,
    system: System = IDEAL,
    state: Bytes = ADAM,
    gradient_bytes: float = 2.0,
    slow: Sequence[float] | None = None,
) -> PlanStep:
    """Predict a training step.

    Parameters
    ----------
    model : ModelSpec
        The model.
    npu : NpuSpec
        The card.
    cluster : ClusterSpec
        How cards are joined; its outermost tier is grown where the plan has more cards.
    plan : ParallelPlan
        How the job is spread.
    tokens : int, optional
        Tokens of a sample.
    attention : {"flash", "unfused"}
        See `workbench.models.build.build`.
    dtype : Dtype, optional
        Type of the elements.
    system : System
        What software and host add; nothing unless stated.
    state : Bytes
        Bytes that a parameter takes.
    gradient_bytes : float
        Of an element in the messages of gradients [B].
    slow : sequence of float, optional
        Factor on the compute of every stage (a straggler); 1 each.

    Returns
    -------
    PlanStep

    Raises
    ------
    Refused
        A plan that cannot be, with all reasons.
    """
    built = model.build(plan.microbatch, tokens, attention=attention, dtype=dtype)
    judged = verdict(built.limits, plan, plan.world, unit=cluster.tiers[0].size)
    if judged.errors:
        raise Refused("plan", "; ".join(judged.errors), "change the degrees it names")
    large = enough(cluster, plan.world)
    (priced,) = price([(built, plan)], npu, large, system)
    return assemble(
        built, npu, large, plan, priced, system=system, state=state, gradient_bytes=gradient_bytes, slow=slow, warnings=judged.warnings
    )
