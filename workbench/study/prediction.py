"""Prediction: the answer to one Scenario, with its evidence. Views and reports read this and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr

from workbench.cost.cost import OpCost
from workbench.errors import Note
from workbench.graph.graph import Graph
from workbench.graph.lags import unexplained_share
from workbench.operators.table import OpTable
from workbench.replay.launch_bound import LaunchBound, launch_bound
from workbench.replay.timeline import Account, Timeline
from workbench.study.energy import StepEnergy
from workbench.study.scenario import Scenario
from workbench.study.steps import kept_steps, period


@dataclass(frozen=True)
class Prediction:
    """What a Scenario comes to.

    ``step_time_s`` is the median over complete steps, as is ``measured_step_s``; per-step values are in
    ``timeline.step_s`` and ``graph.measured_step_s``. ``interval_s`` is an 80 % interval of the step time
    from that of every operator, all at their low or high ends together, and of the host
    where the candidate is not the recording's card; lags are taken as recorded.
    ``evidence_share`` maps evidence names to their share of predicted device time. ``op_seconds`` is the
    predicted mean seconds of one execution of each row of ``table``. ``energy`` is that of a step (see `workbench.study.energy`).
    """

    scenario: Scenario = field(repr=False)
    graph: Graph = field(repr=False)
    table: OpTable = field(repr=False)
    cost: OpCost = field(repr=False)
    node_s: np.ndarray = field(repr=False)  # float64 [V] [s], predicted duration of every node
    timeline: Timeline = field(repr=False)
    measured_timeline: Timeline = field(repr=False)
    account: Account = field(repr=False)
    measured_account: Account = field(repr=False)
    step_time_s: float
    measured_step_s: float
    interval_s: tuple[float, float]
    evidence_share: dict[str, float]
    energy: StepEnergy  # of a step, one cell
    notes: tuple[Note, ...] = field(repr=False)

    @property
    def op_seconds(self) -> np.ndarray:
        """Float64 [U] [s]: predicted time of one execution of each unique operator."""
        return self.cost.seconds[:, 0]

    @property
    def period_s(self) -> float:
        """Predicted time between the ends of successive steps [s]: what a long job pays for a step (see `workbench.study.steps`)."""
        return period(self.graph, self.timeline)

    @property
    def measured_period_s(self) -> float:
        """The same as recorded [s]."""
        return period(self.graph, self.measured_timeline)

    @property
    def unexplained_share(self) -> float:
        """Share of the predicted critical path that rests on lags no record explains, mean of the steps that count [1]."""
        return float(unexplained_share(self.graph, self.timeline)[kept_steps(self.graph.step_complete)].mean())

    @cached_property
    def launch_bound(self) -> LaunchBound:
        """Regions of the predicted replay in which the device waits for the host to launch (see `workbench.replay.launch_bound`)."""
        return launch_bound(self.graph, self.timeline)

    @cached_property
    def measured_launch_bound(self) -> LaunchBound:
        """The same as recorded."""
        return launch_bound(self.graph, self.measured_timeline)

    def operators(self) -> xr.Dataset:
        """Return the operator table as a labelled dataset over ``operator`` (see `workbench.study.tables`)."""
        from workbench.study.tables import operator_table

        return operator_table(self)

    def lags(self) -> xr.Dataset:
        """Return the ledger of unexplained lags, largest first (see `workbench.study.tables`)."""
        from workbench.study.tables import lag_table

        return lag_table(self)

    @property
    def digest(self) -> str:
        """Digest of the question this answers."""
        return self.scenario.digest
