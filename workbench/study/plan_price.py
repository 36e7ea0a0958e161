"""Times of what a plan runs: operators by the cost model, messages by the network; one pricing for many plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from workbench.cost.estimate import estimate
from workbench.errors import InvalidSpec
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.spec import NpuSpec
from workbench.network.curve import Curve, curve
from workbench.network.groups import strided
from workbench.operators.blocks import Axis, Model
from workbench.operators.listed import Listed, operator_list
from workbench.operators.rows import join
from workbench.operators.table import Dtype, Kind, OpTable
from workbench.operators.words import Word
from workbench.scale.plan import ParallelPlan
from workbench.scale.shard import Pass, Share, shares, times
from workbench.study.plan_system import System

ADAM = Word(Kind.OPTIMIZER, reads=4.0, writes=3.5, operations=14.0)
"""Adam on fp32 state: reads parameter, gradient and two moments; writes three of them and the parameter in 16 bits."""
COUNT = 1 << 24
"""Parameters of the update that stands for all: the time of a larger one is in proportion."""


@dataclass(frozen=True)
class Priced:
    """Times of one share by pass w and block b; messages by axis a of `AXES`."""

    share: Share
    compute_s: np.ndarray  # float64 [4, B] [s], operators
    host_s: np.ndarray  # float64 [4, B] [s], what the host needs beyond operators and messages to launch them
    low_s: np.ndarray  # float64 [4, B] [s], ends of their 80 % interval
    high_s: np.ndarray
    exposed_s: np.ndarray  # float64 [A, 4, B]
    messages_s: np.ndarray  # float64 [A, 4, B], exposed or not
    energy_j: np.ndarray  # float64 [4, B] [J], idle power while they run included
    adam_s: float  # update of one parameter [s]
    adam_j: float  # [J]
    idle_w: float  # of the card [W]
    energy_why: str  # what of the card's energies is estimated or missing


AXES = (Axis.TP, Axis.CP, Axis.EP, Axis.DP)


def enough(cluster: ClusterSpec, cards: int) -> ClusterSpec:
    """Return a cluster of at least ``cards`` cards: the outermost tier grown where it has fewer."""
    if cards < 1:
        raise InvalidSpec("cards", f"{cards} cards are no cluster", "ask for at least one")
    if cards <= cluster.cards:
        return cluster
    inner = cluster.below[len(cluster.tiers) - 1]
    last = replace(cluster.tiers[-1], size=math.ceil(cards / inner), shape="")
    if cluster.tiers[-1].shape:
        raise InvalidSpec(cluster.name, f"{cards} cards are more than its {cluster.cards}", "describe a larger grid")
    return replace(cluster, tiers=(*cluster.tiers[:-1], last))


@lru_cache(maxsize=4096)
def along(cluster: ClusterSpec, kind: Kind, size: int, stride: int) -> Curve:
    """Return the curve of a collective over ``size`` cards that are ``stride`` apart."""
    return curve(cluster, kind, strided(cluster, size, stride))


@lru_cache(maxsize=4096)
def tier_of(cluster: ClusterSpec, size: int, stride: int) -> str:
    """Return the outermost tier that such a group crosses; empty for one card."""
    counts = strided(cluster, size, stride).counts
    crossed = [tier.name for tier, count in zip(cluster.tiers, counts, strict=True) if count > 1]
    return crossed[-1] if crossed else ""


def price(asked: Sequence[tuple[Model, ParallelPlan]], npu: NpuSpec, cluster: ClusterSpec, system: System) -> tuple[Priced, ...]:
    """Price what a card runs under each of several plans, all operators in one go.

    Parameters
    ----------
    asked : sequence of (Model, ParallelPlan)
        Every model built for the microbatch of its plan.
    npu : NpuSpec
        The card.
    cluster : ClusterSpec
        Large enough for every plan, see `enough`.
    system : System
        What software and host add.

    Returns
    -------
    tuple of Priced
        One a plan.
    """
    divided = shares(asked)
    if not divided:
        return ()
    table = divided[0].table
    cost = estimate(_with_adam(table), [npu])
    count = len(table)
    seconds = cost.seconds[:count, 0] * system.operator_factor(table)
    low, high = (bound[:count, 0] * system.operator_factor(table) for bound in (cost.low_s, cost.high_s))
    energy, idle, why = cost.energy_j[:, 0], float(cost.idle_w[0]), cost.energy_why[0]
    adam_s, adam_j = float(cost.seconds[count, 0]) / COUNT, float(energy[count]) / COUNT
    out = []
    for one, (_, plan) in zip(divided, asked, strict=True):
        compute = times(one, seconds)
        messages, exposed, sent = _messages(one, plan, cluster, compute, system)
        host = np.maximum(system.host_s * (times(one, np.ones(count)) + sent) - compute - exposed.sum(axis=0), 0.0)
        bounds = times(one, low), times(one, high)
        out.append(Priced(one, compute, host, *bounds, exposed, messages, times(one, energy[:count]), adam_s, adam_j, idle, why))
    return tuple(out)


def _with_adam(table: OpTable) -> OpTable:
    return join([table, operator_list([Listed("adam", Dtype.FP32, (COUNT, 1), ADAM)])])


def _messages(
    share: Share, plan: ParallelPlan, cluster: ClusterSpec, compute: np.ndarray, system: System
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the time of all messages and what of it is exposed, float64 [A, 4, B] [s], and how many there are, float64 [4, B].

    Messages that run ``beside`` are hidden behind the operators of their block and pass; the rest is waited for.
    """
    shape = (len(AXES), *compute.shape)
    waited, beside = np.zeros(shape), np.zeros(shape)
    for kind, axis in sorted(set(zip(share.message_kind.tolist(), share.message_axis, strict=True))):
        rows = np.flatnonzero((share.message_kind == kind) & np.array([one == axis for one in share.message_axis]))
        spent = along(cluster, Kind(kind), plan.degree(axis), plan.stride(axis)).seconds(share.message_bytes[rows]) * system.network
        for to, chosen in ((beside, share.message_beside[rows]), (waited, ~share.message_beside[rows])):
            at = rows[chosen]
            np.add.at(to[AXES.index(axis)], (share.message_when[at], share.message_block[at]), spent[chosen])
    over = np.maximum(beside.sum(axis=0) - compute, 0.0)
    part = np.divide(beside, beside.sum(axis=0), out=np.zeros_like(beside), where=beside > 0)
    sent = np.zeros(compute.shape)
    np.add.at(sent, (share.message_when, share.message_block), 1.0)
    return waited + beside, waited + part * over, sent


def of_pass(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return forward, input-gradient (what is run again counted to it) and weight-gradient parts of ``[..., 4, B]``."""
    forward, again = values[..., Pass.FORWARD, :], values[..., Pass.AGAIN, :]
    return forward, again + values[..., Pass.INPUT, :], values[..., Pass.WEIGHT, :]
