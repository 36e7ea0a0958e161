"""Which collective a message of a block is under a plan, and how many bytes.

Tensor parallelism all-reduces what leaves a divided region, backward what entered it (Shoeybi et al., Megatron-LM, arXiv 1909.08053,
figure 4). With sequence parallelism these become reduce-scatters, and all-gathers where a region begins; its input, kept in parts, is
gathered again for the weight gradients (Korthikanti et al., arXiv 2205.05198, section 4.2.2). Context parallelism gathers keys and values
and scatters their gradients, the bytes of a ring that passes them on (Liu et al., Ring Attention, arXiv 2310.01889; Grattafiori et al.,
arXiv 2407.21783, section 3.3.2). Experts: an all-to-all there and one back (arXiv 2006.16668): a token once to every card where it has
an expert (`workbench.network.expert`), as much as the busiest card gets.

Bytes are those of the whole message of a member, as `workbench.network.curve` takes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.network.expert import busiest_card, distinct_ranks
from workbench.operators.blocks import Axis, BlockMessage, Phase, Role
from workbench.operators.table import Kind
from workbench.scale.plan import ParallelPlan


@dataclass(frozen=True)
class Sent:
    """A collective of one axis; ``beside`` it runs beside the computation that follows (nothing waits for it at once)."""

    kind: Kind
    axis: Axis
    bytes: float
    beside: bool = False


def collectives(message: BlockMessage, plan: ParallelPlan, divide: float) -> tuple[Sent, ...]:
    """Return the collectives of a message.

    Parameters
    ----------
    message : BlockMessage
        Of a block, forward or backward.
    plan : ParallelPlan
        Degrees of the axes.
    divide : float
        Share of its bytes that this card has, by the axes that divide it [1].

    Returns
    -------
    tuple of Sent
        Empty where the axis has one card.
    """
    size, backward = message.bytes * divide, message.phase != Phase.FORWARD
    match message.role:
        case Role.TP_ENTER | Role.TP_EXIT:
            return _tensor(message.role == Role.TP_ENTER, backward, plan, size) if plan.tp > 1 else ()
        case Role.EP_DISPATCH | Role.EP_COMBINE if plan.ep > 1:
            experts = max(message.experts, 1)
            copies = float(distinct_ranks(experts, message.fan_out, plan.ep) * busiest_card(experts, message.imbalance, plan.ep))
            return (Sent(Kind.ALL_TO_ALL, Axis.EP, size * copies),)
        case Role.CP_KEYS if plan.cp > 1:
            gather = Sent(Kind.ALL_GATHER, Axis.CP, size, beside=True)
            return (gather, Sent(Kind.REDUCE_SCATTER, Axis.CP, size, beside=True)) if backward else (gather,)
        case Role.TABLES if plan.dp > 1:
            return (Sent(Kind.ALL_TO_ALL, Axis.DP, size),)
    return ()


def _tensor(enter: bool, backward: bool, plan: ParallelPlan, size: float) -> tuple[Sent, ...]:
    """Collectives of tensor parallelism: what is summed lies forward at exits, backward at entries."""
    summed = enter == backward
    if not plan.sequence_parallel:
        return (Sent(Kind.ALL_REDUCE, Axis.TP, size),) if summed else ()
    if not summed:
        return (Sent(Kind.ALL_GATHER, Axis.TP, size),)
    scattered = Sent(Kind.REDUCE_SCATTER, Axis.TP, size)
    return (Sent(Kind.ALL_GATHER, Axis.TP, size, beside=True), scattered) if backward else (scattered,)
