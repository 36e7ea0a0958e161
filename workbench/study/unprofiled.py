"""A recording without what its profiler cost: the difference to an unprofiled step, spread over the recorded host events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench import units
from workbench.errors import Refused
from workbench.graph.graph import Graph
from workbench.graph.recorded_events import recorded_events
from workbench.replay.replay import replay
from workbench.replay.timeline import Timeline
from workbench.study.steps import kept_steps, overlaps, period
from workbench.study.workload import Workload

MOST_EVENT_S = 10e-6
"""No profiler takes this long for one event [s]; PyTorch's takes about 1 us (an operator) and 2 to 4 us (a runtime call)."""
SAME = 1e-3
"""Steps this close are the same [1]."""
HALVINGS = 40


def without_profiler(workload: Workload, step_s: float) -> Workload:
    """Return the workload as it runs without the profiler.

    Every recorded host event is taken to have cost the same, c: a node of host work with n events takes ``max(measured - n c, 0)``.
    c is the one with which the replay gives the stated step. Device work keeps its time.

    Parameters
    ----------
    workload : Workload
    step_s : float
        Median step without the profiler [s]; where steps overlap, the time between their ends.

    Returns
    -------
    Workload
        Its measured times are those without the profiler.

    Raises
    ------
    Refused
        A step longer than the profiled one, or shorter than what is left when events had cost `MOST_EVENT_S` each.
    """
    graph, table = workload.graph, workload.table
    events = recorded_events(graph, workload.trace)
    profiled = _step(graph, replay(graph, graph.measured_s))
    least = _step(graph, replay(graph, _lessened(graph, events, MOST_EVENT_S)))
    asked, recorded, shortest = (units.format(value, "s", 4) for value in (step_s, profiled, least))
    where = f"unprofiled step {asked}"
    if step_s > profiled * (1 + SAME):
        fix = "give the step of the same program, batch and card, timed without a profiler (where steps overlap, the time between two)"
        raise Refused(where, f"longer than the profiled step, {recorded}: a profiler shortens nothing", fix)
    if step_s < least:
        text = f"not even {units.format(MOST_EVENT_S, 's', 2)} an event of the host make the recorded {recorded} shorter than {shortest}"
        raise Refused(where, f"{text}: the rest is work of the device and waiting for it", "check that it is a step of this program")
    cost = _cost(graph, events, step_s)
    seconds = _lessened(graph, events, cost)
    steps = replay(graph, seconds).step_s
    made = replace(graph, measured_s=seconds, measured_step_s=steps)
    return Workload(workload.trace, given=(made, table), unprofiled_step_s=step_s, event_s=cost)


def _cost(graph: Graph, events: np.ndarray, step_s: float) -> float:
    """Return the cost of an event [s] at which the step is the stated one, by bisection: the step never grows with it."""
    low, high = 0.0, MOST_EVENT_S
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        longer = _step(graph, replay(graph, _lessened(graph, events, middle))) > step_s
        low, high = (middle, high) if longer else (low, middle)
    return high


def _lessened(graph: Graph, events: np.ndarray, cost: float) -> np.ndarray:
    return np.maximum(graph.measured_s - events * cost, 0.0)


def _step(graph: Graph, timeline: Timeline) -> float:
    step, between = float(np.median(timeline.step_s[kept_steps(graph.step_complete)])), period(graph, timeline)
    return between if overlaps(step, between) else step
