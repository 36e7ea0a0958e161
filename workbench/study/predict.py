"""The only file that knows the whole path from a Scenario to a Prediction. No arithmetic of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.errors import Refused
from workbench.replay.account import account
from workbench.replay.replay import replay, step_times
from workbench.study.energy import energy_of_steps
from workbench.study.notes import prediction_notes
from workbench.study.prediction import Prediction
from workbench.study.price import at_bounds, price, price_recorded
from workbench.study.recorded_on import with_source
from workbench.study.scenario import Scenario
from workbench.study.shares import evidence_shares
from workbench.study.steps import kept_steps


def predict(scenario: Scenario) -> Prediction:
    """Replay a recording on the scenario's card.

    Parameters
    ----------
    scenario : Scenario
        Without ``npu`` the recording is replayed as measured.

    Returns
    -------
    Prediction

    Raises
    ------
    Refused
        When the recording holds nothing to replay.
    """
    scenario = with_source(scenario)
    workload = scenario.workload
    graph, table = workload.graph, workload.table
    if not (graph.measured_step_s > 0).any():
        raise Refused(workload.path, "the recording holds no host or device work to replay", "record a window with at least one operator")
    pricing = price_recorded(scenario) if scenario.npu is None else price(scenario, [scenario.npu])
    node_s = pricing.node_seconds()
    timeline = replay(graph, node_s)
    ends = step_times(graph, pricing.weight, at_bounds(pricing), pricing.row)
    kept = kept_steps(graph.step_complete)
    low, high = (float(np.median(end[kept])) for end in ends)
    step = float(np.median(timeline.step_s[kept]))
    prediction = Prediction(
        scenario=scenario,
        graph=graph,
        table=table,
        cost=pricing.cost,
        node_s=node_s,
        timeline=timeline,
        measured_timeline=workload.measured_timeline,
        account=account(graph, timeline, on_card=scenario.npu is not None),
        measured_account=workload.measured_account,
        step_time_s=step,
        measured_step_s=float(np.median(graph.measured_step_s[kept])),
        interval_s=(min(low, step), max(high, step)),
        evidence_share=evidence_shares(graph, pricing.cost, node_s),
        energy=energy_of_steps(scenario, pricing, np.array([step]), [scenario.npu]),
        notes=(),
    )
    return replace(prediction, notes=prediction_notes(prediction))
