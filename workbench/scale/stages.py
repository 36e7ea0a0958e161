"""Which blocks every stage of a pipeline holds: layers in order, divided as evenly as whole layers allow or as the plan states.

What comes before the first layer (the embedding) lies with the first chunk, what comes after the last (the head) with the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.operators.blocks import Model
from workbench.scale.plan import ParallelPlan
from workbench.scale.schedules import place


@dataclass(frozen=True)
class Stages:
    """Blocks by chunk: ``holds[s, c, b]`` of block b in chunk c of stage s, int64 [p, v, B]."""

    holds: np.ndarray

    @property
    def of_stage(self) -> np.ndarray:
        """Blocks by stage, int64 [p, B]."""
        return np.asarray(self.holds.sum(axis=1))


def even(layers: int, chunks: int) -> np.ndarray:
    """Return layers of every chunk, int64 [chunks]; those that do not divide lie with the first chunks."""
    return np.asarray(layers // chunks + (np.arange(chunks) < layers % chunks), dtype=np.int64)


def stages(model: Model, plan: ParallelPlan) -> Stages:
    """Return which blocks every stage and chunk holds.

    Parameters
    ----------
    model : Model
        B blocks in order.
    plan : ParallelPlan
        ``pp`` stages of ``virtual_stages`` chunks; ``stage_layers`` gives the layers of every chunk in the order of the pipeline.
    """
    chunks = plan.pp * plan.virtual_stages
    layers = np.asarray(plan.stage_layers, dtype=np.int64) if plan.stage_layers else even(model.layers, chunks)
    bounds = np.concatenate([[0], np.cumsum(layers)])
    held = np.zeros((chunks, len(model.blocks)), dtype=np.int64)
    before = 0
    for b, block in enumerate(model.blocks):
        if block.layer:
            inside = np.minimum(bounds[1:], before + block.count) - np.maximum(bounds[:-1], before)
            held[:, b] = np.maximum(inside, 0)
            before += block.count
        else:
            last = np.searchsorted(bounds[1:], before, side="left") if 0 < before < model.layers else (0 if not before else chunks - 1)
            held[last, b] = block.count
    stage, chunk = np.divmod(np.arange(chunks), plan.virtual_stages)
    return Stages(held[place(plan.schedule, plan.pp, stage, chunk)].reshape(plan.pp, plan.virtual_stages, -1))
