"""An intervention in reality: the same model recorded twice, with two batch sizes.

The graph of one recording, with the operator times of the other, gives the other's steps: batch size changes how long operators
take, not what waits for what. Host time no record explains is not exchanged, so a few per cent remain.
"""

from __future__ import annotations

from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import pytest

from tests.graph.made import Built, built
from workbench.graph.graph import NodeKind
from workbench.replay.replay import replay
from workbench.trace.open import open_trace


def operator_times(b: Built) -> dict[str, deque[float]]:
    """Self times of the operators of a recording by name, in order [s]."""
    out: dict[str, deque[float]] = defaultdict(deque)
    for v in np.flatnonzero(b.graph.kind == NodeKind.HOST_WORK).tolist():
        out[b.trace.name_of(int(b.graph.event[v]))].append(float(b.graph.measured_s[v]))
    return out


@pytest.mark.parametrize(("model", "small", "large"), [("resnet", 8, 16), ("transformer", 4, 8)])
@pytest.mark.parametrize("way", ["small to large", "large to small"])
def test_other_batch_size_is_predicted_from_its_operators(project: Path, model: str, small: int, large: int, way: str) -> None:
    recordings = [built(open_trace([project / "data" / "traces" / f"cpu_{model}_b{batch}.json.gz"])) for batch in (small, large)]
    known, asked = recordings if way == "small to large" else recordings[::-1]
    times = operator_times(asked)
    node_s = known.graph.measured_s.copy()
    for v in np.flatnonzero(known.graph.kind == NodeKind.HOST_WORK).tolist():
        node_s[v] = times[known.trace.name_of(int(known.graph.event[v]))].popleft()
    predicted = float(np.median(replay(known.graph, node_s).step_s))
    truth = float(np.median(asked.graph.measured_step_s))
    unchanged = float(np.median(known.graph.measured_step_s))
    assert abs(predicted / truth - 1) < 0.06
    assert abs(predicted - truth) < 0.2 * abs(unchanged - truth)
