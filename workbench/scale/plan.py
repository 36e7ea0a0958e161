"""ParallelPlan: how a training job is spread over cards, as frozen data. What is wrong with one says `workbench.scale.verdict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from workbench import units
from workbench.errors import InvalidSpec
from workbench.operators.blocks import Axis

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v")
RECOMPUTE = ("none", "selective", "full")
BUCKET_BYTES = 25.0 * (1 << 20)
"""Default gradient bucket of PyTorch DDP (``bucket_cap_mb=25``), see torch.nn.parallel.DistributedDataParallel."""


@dataclass(frozen=True)
class ParallelPlan:
    """A plan. World size is ``dp tp pp cp``; ``ep`` divides experts over the cards of dp x cp.

    ``microbatch`` samples of ``microbatches`` a step on every replica: the global batch is ``dp microbatch microbatches``.
    ``zero`` 0: gradients all-reduced; 1: optimizer states divided; 2: gradients too; 3: parameters too (FSDP).
    ``virtual_stages``: chunks of layers a card holds (interleaved: >= 2, zb-v: 2). ``stage_layers``: layers of every stage in order,
    where they are not even. ``bucket_bytes``: gradients that are sent together [B]. ``prefetch``: layers gathered ahead (zero 3).
    ``order``: axes from neighbouring cards outward.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    microbatch: int = 1
    microbatches: int = 1
    schedule: str = "1f1b"
    virtual_stages: int = 1
    sequence_parallel: bool = False
    recompute: str = "none"
    zero: int = 0
    stage_layers: tuple[int, ...] = ()
    bucket_bytes: float = BUCKET_BYTES
    prefetch: int = 1
    order: tuple[Axis, ...] = (Axis.TP, Axis.CP, Axis.DP, Axis.PP)

    @property
    def world(self) -> int:
        """Cards."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def global_batch(self) -> int:
        """Samples of a step on all cards."""
        return self.dp * self.microbatch * self.microbatches

    def degree(self, axis: Axis) -> int:
        """Return by how many cards an axis divides; sequence parallelism divides by tp where the plan asks for it."""
        if axis == Axis.SP:
            return self.tp if self.sequence_parallel else 1
        return int(getattr(self, axis.value))

    def stride(self, axis: Axis) -> int:
        """Return how many cards apart neighbours along an axis are; experts lie along the cards of cp and dp."""
        if axis == Axis.SP:
            return self.stride(Axis.TP)
        if axis == Axis.EP:
            return min(self.stride(Axis.CP), self.stride(Axis.DP))
        stride = 1
        for other in self.order:
            if other == axis:
                return stride
            stride *= self.degree(other)
        raise InvalidSpec("plan.order", f"{axis.value} is not among {', '.join(self.order)}", "name tp, cp, dp and pp once each")

    def with_(self, changes: Mapping[str, Any]) -> ParallelPlan:
        """Return the plan with fields changed; unknown ones are refused with the nearest."""
        from workbench.hardware.check import unknown_key

        known = tuple(field.name for field in fields(self))
        for key in changes:
            if key not in known:
                raise unknown_key(key, known, "plan", "is not a field of a plan")
        given = dict(changes)
        if isinstance(given.get("bucket_bytes"), str):
            given["bucket_bytes"] = units.parse(given["bucket_bytes"], "B", "plan.bucket_bytes")
        return replace(self, **given)
