"""The ledger names what ran in a lag, whatever the card."""

from __future__ import annotations

import pytest

from workbench.graph.build import build_graph
from workbench.graph.lags import ledger
from workbench.replay.replay import replay
from workbench.trace.open import open_trace


@pytest.mark.parametrize("factor", [1.0, 0.1, 3.0])
def test_python_that_fills_a_gap_is_named_wherever_the_gap_moves(shared, factor: float) -> None:
    """Five images are resized on the host (scipy's zoom_shift, about 120 ms each): faster or slower device work moves the gaps only."""
    trace = open_trace(shared / "traces" / "pairs" / "owlv2_h100.json.gz")
    graph, _ = build_graph(trace)
    node_s = graph.measured_s.copy()
    node_s[graph.op >= 0] *= factor
    lags = ledger(graph, replay(graph, node_s), trace, n=5)
    assert [lag.seconds for lag in lags] == pytest.approx([0.12] * 5, rel=0.1)
    assert all("zoom_shift" in lag.cause for lag in lags)
