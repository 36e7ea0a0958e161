"""Energy of a step: idle power over the step, and what its operators take above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.cost.cost import OpCost
from workbench.hardware.npu import NpuSpec
from workbench.operators.table import OpTable
from workbench.study.price import Pricing
from workbench.study.scenario import Scenario
from workbench.study.steps import kept_steps


@dataclass(frozen=True)
class StepEnergy:
    """Energy of a step in C cells, mean of the steps that count; nan where it is not known.

    ``joules`` [C] [J] and ``watts`` [C], their mean over the step [W]; ``flops_per_joule`` [C]: the operations of its operators over
    its energy, performance per watt [FLOP/J]; ``assumed`` [C]: share of device time whose activity nobody knows (no shapes,
    communication), taken to draw as much as the rest; ``why`` [C] says what of a card's energies is estimated or missing.
    """

    joules: np.ndarray
    watts: np.ndarray
    flops_per_joule: np.ndarray
    assumed: np.ndarray
    why: tuple[str, ...]


def energy_of_steps(scenario: Scenario, pricing: Pricing, step_s: np.ndarray, specs: Sequence[NpuSpec | None]) -> StepEnergy:
    """Return the energy of a step in every cell of a pricing: `step_energy` of the times a step spends in each operator.

    Parameters
    ----------
    scenario : Scenario
    pricing : Pricing
        Of C cells.
    step_s : ndarray, shape (C,)
        Predicted step times [s].
    specs : sequence of NpuSpec or None, length C
        Cards; None: as recorded, of which no energy is known.
    """
    graph = scenario.workload.graph
    kept = kept_steps(graph.step_complete)
    inside = (graph.step >= 0) & kept[np.maximum(graph.step, 0)]
    busy = pricing.operator_totals(inside) / max(int(kept.sum()), 1)
    limit = np.array([np.inf if spec is None or spec.power.tdp is None else spec.power.tdp for spec in specs])
    return step_energy(scenario.workload.table, pricing.cost, busy, step_s, limit)


def step_energy(table: OpTable, cost: OpCost, busy_s: np.ndarray, step_s: np.ndarray, limit_w: np.ndarray) -> StepEnergy:
    """Return the energy of a step.

    An operator draws ``energy / seconds - idle`` above idle power while it runs; operators that overlap add up, at most to the TDP.

    Parameters
    ----------
    table : OpTable
        U operators.
    cost : OpCost
        Their costs in C cells.
    busy_s : ndarray, shape (U, C)
        Time a step spends in each operator [s].
    step_s : ndarray, shape (C,)
        Time of a step [s].
    limit_w : ndarray, shape (C,)
        Power limits; infinite without one [W].
    """
    runs = busy_s > 0
    seconds = np.where(runs & (cost.seconds > 0), cost.seconds, np.nan)
    above = cost.energy_j / seconds - cost.idle_w
    known = np.isfinite(above)
    dynamic = np.where(known, above * busy_s, 0.0).sum(axis=0)
    counted, whole = np.where(known, busy_s, 0.0).sum(axis=0), np.where(runs, busy_s, 0.0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        assumed = np.where(whole > 0, 1.0 - counted / whole, 0.0)
        joules = cost.idle_w * step_s + np.where(whole > 0, dynamic * whole / counted, 0.0)
        joules = np.where(np.isfinite(joules), np.minimum(joules, limit_w * step_s), np.nan)
        work = np.nansum(table.flops[:, None] * busy_s / seconds, axis=0)
        rate = np.where(joules > 0, work / joules, np.nan)
        return StepEnergy(joules, joules / step_s, rate, assumed, cost.energy_why)
