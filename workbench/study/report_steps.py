"""Documents of a prediction's steps: how they scatter, and where the device waits for the host to launch."""

from __future__ import annotations

import numpy as np

from workbench.graph.graph import DEVICE_KINDS
from workbench.study.documents import DistributionDocument, LaunchBoundDocument, RegionDocument
from workbench.study.prediction import Prediction
from workbench.study.steps import kept_steps, outlying

LONGEST = 5


def distribution_document(prediction: Prediction) -> DistributionDocument:
    """Return how the steps that count scatter."""
    graph = prediction.graph
    kept = kept_steps(graph.step_complete)
    measured, predicted = (steps[kept] for steps in (graph.measured_step_s, prediction.timeline.step_s))
    warm, far = outlying(graph)
    return DistributionDocument(
        counted=int(kept.sum()),
        measured_s=(float(measured.min()), float(np.median(measured)), float(measured.max())),
        predicted_s=(float(predicted.min()), float(np.median(predicted)), float(predicted.max())),
        warm_up=graph.step_numbers[warm].tolist(),
        outliers=graph.step_numbers[far].tolist(),
    )


def launch_bound_document(prediction: Prediction) -> LaunchBoundDocument:
    """Return the launch-bound share of a step, and the longest regions of the prediction."""
    graph, trace, found = prediction.graph, prediction.scenario.workload.trace, prediction.launch_bound
    kept = kept_steps(graph.step_complete)
    device = np.flatnonzero(np.isin(graph.kind, DEVICE_KINDS) & (graph.step >= 0))
    device = device[np.argsort(prediction.timeline.start_s[device], kind="stable")]
    starts = prediction.timeline.start_s[device]
    regions = []
    for k in np.argsort(-(found.end_s - found.begin_s), kind="stable")[:LONGEST].tolist():
        first = device[min(int(np.searchsorted(starts, found.begin_s[k])), len(device) - 1)]
        name = trace.name_of(int(graph.event[first])) if graph.event[first] >= 0 else ""
        values = (float(column[k]) for column in (found.begin_s, found.end_s, found.idle_s))
        begin, end, idle = values
        number = int(graph.step_numbers[found.step[k]])
        regions.append(RegionDocument(begin_s=begin, end_s=end, idle_s=idle, launches=int(found.launches[k]), step=number, first=name))
    shares = (float(one.share[kept].mean()) for one in (prediction.measured_launch_bound, found))
    measured, predicted = shares
    return LaunchBoundDocument(measured=measured, predicted=predicted, longest=regions)
