"""Graphs written by hand or at random, for the tests of this room."""

from __future__ import annotations

import numpy as np

from workbench.graph.graph import ROW_FIXED, EdgeKind, Graph, NodeKind


def graph(kinds: list[NodeKind], edges: list[tuple[int, int, float]], op: list[int] | None = None) -> Graph:
    """A graph of one step: node 0 begins it, the last node ends it; edges are (from, to, lag in s)."""
    n = len(kinds)
    edges = sorted(edges, key=lambda e: (e[1], e[0]))
    target = np.array([e[1] for e in edges], dtype=np.int64)
    zero, none = np.zeros(n), np.full(n, -1, dtype=np.int32)
    lag = np.array([e[2] for e in edges])
    return Graph(
        kind=np.array(kinds, dtype=np.int8),
        op=np.array(op, dtype=np.int32) if op else np.full(n, ROW_FIXED, dtype=np.int32),
        unit=none,
        share=np.ones(n),
        resource=np.zeros(n, dtype=np.int32),
        rank=np.zeros(n, dtype=np.int32),
        step=np.zeros(n, dtype=np.int32),
        event=none,
        measured_s=zero,
        recorded_start_s=zero,
        edge_ptr=np.searchsorted(target, np.arange(n + 1)).astype(np.int64),
        edge_from=np.array([e[0] for e in edges], dtype=np.int32),
        edge_kind=np.full(len(edges), int(EdgeKind.PROGRAM), dtype=np.int8),
        edge_lag_s=lag,
        edge_known_s=lag,
        resources=("rank 0 thread 1",),
        resource_is_device=np.zeros(1, dtype=bool),
        step_numbers=np.zeros(1, dtype=np.int64),
        step_begin=np.zeros(1, dtype=np.int32),
        step_end=np.array([n - 1], dtype=np.int32),
        measured_step_s=np.ones(1),
        step_complete=np.ones(1, dtype=bool),
        notes=(),
    )


def random_graph(rng: np.random.Generator, nodes: int, rows: int, more: float = 0.5) -> Graph:
    """A layered graph of host and device nodes with one cause each and up to three more, each with probability ``more``."""
    kinds = [NodeKind.STEP_BEGIN, *rng.choice([NodeKind.HOST_WORK, NodeKind.COMPUTE, NodeKind.COPY], nodes - 2), NodeKind.STEP_END]
    edges = {
        (int(rng.integers(max(0, v - 40), v)), v): float(rng.random()) for v in range(1, nodes) for _ in range(1 + rng.binomial(3, more))
    }
    op = [ROW_FIXED, *rng.integers(-2, rows, nodes - 2).tolist(), ROW_FIXED]
    return graph([NodeKind(int(k)) for k in kinds], [(u, v, lag) for (u, v), lag in edges.items()], op)
