"""Recordings made for the tests of this room, and small questions to a graph."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.graph.build import build_graph
from workbench.graph.graph import EdgeKind, Graph
from workbench.replay.replay import replay
from workbench.replay.timeline import Timeline
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace

US = 1e-6


def event(category: str, name: str, start: float, length: float, tid: object = 11, pid: object = 100, **args: object) -> dict[str, Any]:
    """A complete event; times in us."""
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length, "args": args}


def launch(correlation: int, start: float, length: float = 5, tid: object = 11, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return event("cuda_runtime", name, start, length, tid, correlation=correlation)


def kernel(correlation: int, name: str, start: float, length: float, stream: int = 7, category: str = "kernel") -> dict[str, Any]:
    return event(category, name, start, length, stream, 0, device=0, stream=stream, correlation=correlation)


def write(folder: Path, events: Iterable[dict[str, Any]], name: str = "made.json") -> Trace:
    """Write a Kineto document and read it as anyone would."""
    path = folder / name
    document = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": list(events)}
    path.write_text(json.dumps(document))
    return open_trace([path])


@dataclass(frozen=True)
class Built:
    """A recording, its graph, and its identity replay."""

    trace: Trace
    graph: Graph
    timeline: Timeline

    def nodes(self, name: str) -> list[int]:
        """Nodes whose record has a name."""
        return [v for v in range(len(self.graph)) if self.graph.event[v] >= 0 and self.trace.name_of(int(self.graph.event[v])) == name]

    def node(self, name: str) -> int:
        """The only node, or the first, of a name."""
        return self.nodes(name)[0]

    def causes(self, node: int) -> dict[int, EdgeKind]:
        """Predecessors of a node and the kinds of their edges."""
        edges = range(self.graph.edge_ptr[node], self.graph.edge_ptr[node + 1])
        return {int(self.graph.edge_from[e]): EdgeKind(int(self.graph.edge_kind[e])) for e in edges}

    def lasting(self, **seconds: float) -> Timeline:
        """Replay with other durations of named work."""
        node_s = self.graph.measured_s.copy()
        for name, value in seconds.items():
            node_s[self.node(name)] = value
        return replay(self.graph, node_s)

    def codes(self) -> dict[str, int]:
        return {note.code: note.count for note in (*self.trace.notes, *self.graph.notes)}


def built(trace: Trace) -> Built:
    graph, _ = build_graph(trace)
    return Built(trace, graph, replay(graph, graph.measured_s))


def identity_error(b: Built) -> float:
    """Largest relative error over steps of the replay with measured durations."""
    return float(np.abs(b.timeline.step_s / b.graph.measured_step_s - 1).max())


def check_invariants(graph: Graph) -> None:
    """Topological order, a cause for every node, and the recorded start as the latest cause plus its lag."""
    target = np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))
    assert (graph.edge_from < target).all(), "edges run forward: the graph has no cycle"
    assert (np.diff(graph.edge_ptr)[1:] > 0).all(), "every node but the root has a cause"
    assert graph.edge_ptr[1] == 0
    finish = graph.recorded_start_s + graph.measured_s
    start = np.zeros(len(graph))
    np.maximum.at(start, target, finish[graph.edge_from] + graph.edge_lag_s)
    np.testing.assert_allclose(start, graph.recorded_start_s, atol=1e-9, rtol=1e-12)
    assert (graph.edge_known_s <= graph.edge_lag_s + 1e-15).all()
    assert (graph.measured_s >= 0).all()
