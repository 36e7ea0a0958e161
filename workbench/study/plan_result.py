"""PlanStep: a predicted training step under a plan, and what it consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.errors import Note
from workbench.operators.blocks import Model
from workbench.replay.schedule import Run
from workbench.scale.memory import Memory
from workbench.scale.plan import ParallelPlan
from workbench.scale.schedules import Schedule
from workbench.study.plan_system import System


@dataclass(frozen=True)
class PlanStep:
    """A predicted step. Times [s] of the stage that sets the pace, per step."""

    model: Model
    plan: ParallelPlan
    cluster: str
    npu: str
    system: System
    step_s: float
    low_s: float  # 80 % interval of the operators' times
    high_s: float
    compute_s: float
    exposed_s: Mapping[str, float]  # by axis: tp, cp, ep, pp, dp
    messages_s: Mapping[str, float]  # by axis, exposed or not; of pp what its link is busy
    tier: Mapping[str, str]  # by axis, the outermost tier its messages cross
    bubble_s: float
    optimizer_s: float
    again_s: float  # recomputation, in compute_s
    host_s: float  # what passes take beyond operators and messages because the host launches them
    memory: Memory
    capacity: float  # of a card [B]
    tokens: float  # of a step on all cards
    model_flops: float  # of a step on all cards [FLOP]
    executed_flops: float
    peak: float  # of a card at the model's type [FLOP/s]
    energy_j: float  # of a step on all cards [J]; nan where the card states none
    warnings: tuple[str, ...]  # of `workbench.scale.verdict`
    order: Schedule
    run: Run  # of the pipeline, without what follows the last backward pass
    notes: tuple[Note, ...] = ()

    @property
    def mfu(self) -> float:
        """Model FLOPs over the dense peak of all cards [1]."""
        return self.model_flops / (self.step_s * self.plan.world * self.peak)

    @property
    def hfu(self) -> float:
        """Executed FLOPs, what is recomputed counted, over the dense peak of all cards [1]."""
        return self.executed_flops / (self.step_s * self.plan.world * self.peak)

    @property
    def tokens_per_s_card(self) -> float:
        """Tokens (or samples, of models without) a second and card [1/s]."""
        return self.tokens / self.step_s / self.plan.world

    @property
    def fits(self) -> bool:
        """Whether the heaviest stage fits the card's memory."""
        return self.memory.peak <= self.capacity

    @property
    def why_not(self) -> str:
        """Why it does not fit; empty where it does."""
        return self.memory.why(self.capacity)

    @property
    def limiting_tier(self) -> str:
        """The tier whose messages are exposed longest; empty where none is."""
        by: dict[str, float] = {}
        for axis, spent in self.exposed_s.items():
            if self.tier.get(axis):
                by[self.tier[axis]] = by.get(self.tier[axis], 0.0) + spent
        return max(by, key=by.__getitem__) if by and max(by.values()) > 0 else ""
