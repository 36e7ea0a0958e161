"""Nodes and edges -> Graph: topological order, causes for all, lags, CSR."""

from __future__ import annotations

import numpy as np

from workbench.errors import Note
from workbench.graph import kernels
from workbench.graph.graph import EdgeKind, Graph
from workbench.graph.nodes import Nodes
from workbench.graph.settle import Edges, settle
from workbench.graph.steps import Marks


def assemble(nodes: Nodes, edges: Edges, marks: Marks, measured: np.ndarray, complete: np.ndarray, notes: tuple[Note, ...]) -> Graph:
    """Order the nodes, give every edge its lag, and freeze the result.

    Parameters
    ----------
    nodes : Nodes
    edges : Edges
        In building order of nodes, as the rules found them.
    marks : Marks
    measured : float64 [S] [s]
        Recorded steps.
    complete : bool [S]
    notes : tuple of Note

    Returns
    -------
    Graph
    """
    edges, sequence, more = _ordered(nodes, edges)
    position = np.empty(len(nodes), dtype=np.int32)
    position[sequence] = np.arange(len(nodes), dtype=np.int32)
    source, target = position[edges.source], position[edges.target]
    order = _by_target(source, target, edges.kind, len(nodes))
    edges = Edges(source[order], target[order], edges.kind[order])
    start, end = nodes.start[sequence], nodes.end[sequence]
    lag, known = settle(edges, start, end, _devices(nodes)[sequence], nodes.peer_lag[sequence])
    columns = {
        "kind": nodes.kind[sequence],
        "op": nodes.op[sequence],
        "unit": nodes.unit[sequence],
        "share": nodes.share[sequence],
        "resource": nodes.resource[sequence],
        "rank": nodes.rank[sequence],
        "step": nodes.step[sequence],
        "event": nodes.event[sequence],
        "measured_s": (end - start) / 1e9,
        "recorded_start_s": start / 1e9,
        "edge_ptr": _pointers(edges.target, len(nodes)),
        "edge_from": edges.source,
        "edge_kind": edges.kind,
        "edge_lag_s": lag / 1e9,
        "edge_known_s": known / 1e9,
        "resource_is_device": nodes.resource_is_device,
        "step_numbers": marks.number,
        "step_begin": position[nodes.step_begin],
        "step_end": position[nodes.step_end],
        "measured_step_s": measured,
        "step_complete": complete,
    }
    for column in columns.values():
        column.setflags(write=False)
    return Graph(resources=nodes.resources, notes=tuple(sorted((*notes, *more))), **columns)


def _by_target(source: np.ndarray, target: np.ndarray, kind: np.ndarray, count: int) -> np.ndarray:
    """Return the order of edges by target, source, kind: of one number an edge (2^28 nodes fit), which sorts thrice as fast as columns."""
    if count >= 1 << 28:
        return np.lexsort((kind, source, target))
    return np.argsort((target.astype(np.int64) * count + source) * len(EdgeKind) + kind, kind="stable")


def _pointers(target: np.ndarray, count: int) -> np.ndarray:
    """Int64 [V + 1]: where the edges of each target begin, of targets in ascending order."""
    out = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(target, minlength=count), out=out[1:])
    return out


def _devices(nodes: Nodes) -> np.ndarray:
    """Device of each node among those of all ranks, int64 [V] (-1: host)."""
    width = int(nodes.device.max(initial=0)) + 1
    return np.where(nodes.device >= 0, np.maximum(nodes.rank, 0).astype(np.int64) * width + nodes.device, -1)


def _ordered(nodes: Nodes, edges: Edges) -> tuple[Edges, np.ndarray, list[Note]]:
    """Return edges (none closes a cycle, every node has a cause), a topological order, and notes.

    The order is by recorded start, then end, then building order; predecessors at the same instant come first.
    """
    count = len(nodes)
    edges = edges.where(_by_target(edges.source, edges.target, edges.kind, count))
    fresh = np.ones(len(edges.kind), dtype=bool)
    fresh[1:] = (np.diff(edges.target) != 0) | (np.diff(edges.source) != 0) | (np.diff(edges.kind) != 0)
    edges = edges.where(fresh)
    by_time = np.lexsort((np.arange(count), nodes.end, nodes.start)).astype(np.int32)
    by_time = np.concatenate([[np.int32(0)], by_time[by_time != 0]]).astype(np.int32)
    ptr = _pointers(edges.target, count)
    sequence, keep = kernels.topological(by_time, ptr, edges.source)
    notes = []
    if not keep.all():
        notes.append(
            Note(
                "cycle-opened",
                "graph",
                int((~keep).sum()),
                "dependencies between work of no length at one instant that would close a cycle were set aside",
            )
        )
        edges = edges.where(keep)
    caused = np.zeros(count, dtype=bool)
    caused[edges.target] = True
    caused[0] = True
    loose = np.flatnonzero(~caused).astype(np.int32)
    if len(loose):
        edges = Edges.join([(edges.source, edges.target, edges.kind), (np.zeros(len(loose), np.int32), loose, int(EdgeKind.ROOT))])
    late = int((nodes.start[loose] > 0).sum())
    if late:
        notes.append(Note("root-cause", "graph", late, "nodes without a recorded cause hang on the start of the recording with their lag"))
    fallback = int((edges.kind == EdgeKind.FALLBACK).sum())
    if fallback:
        notes.append(
            Note(
                "fallback-cause", "graph", fallback, "nodes without a recorded cause hang on the latest activity before them with their lag"
            )
        )
    return edges, sequence, notes
