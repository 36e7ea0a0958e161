"""Surgery on a graph: nodes taken out, put in or moved; dependencies closed over what is gone; frozen again in topological order.

Work taken out of a stream hands its waits on: what waited for it waits for the work before it. Nodes of the host keep their place
with no length. Depths of launch queues are kept: the call that needed the slot of the n-th launch before it still does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from workbench.errors import Note, Refused
from workbench.graph import kernels
from workbench.graph.graph import DEVICE_KINDS, ROW_FIXED, EdgeKind, Graph, NodeKind

COLUMNS = ("kind", "op", "unit", "share", "resource", "rank", "step", "event", "measured_s", "recorded_start_s")
HELD = (EdgeKind.LAUNCH, EdgeKind.QUEUE)
"""Edges that end with the work they lead to: nothing else waits for them."""


class Edge(NamedTuple):
    """One dependency."""

    source: int
    target: int
    kind: int
    lag_s: float
    known_s: float


class Draft:
    """A graph being edited."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.column = {name: getattr(graph, name).copy() for name in COLUMNS}
        self.key = np.arange(len(graph), dtype=np.float64)
        self.origin = np.arange(len(graph), dtype=np.int64)
        self.target = np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))
        self.cut = np.zeros(len(graph.edge_from), dtype=bool)
        self.added: list[Edge] = []
        self.dead = np.zeros(len(graph), dtype=bool)
        self.resources = list(graph.resources)
        self.resource_is_device = graph.resource_is_device
        self._new: list[dict[str, Any]] = []
        self._keys: list[float] = []

    def into(self, node: int) -> range:
        """Return the recorded edges into a node of the original graph."""
        return range(int(self.graph.edge_ptr[node]), int(self.graph.edge_ptr[node + 1]))

    def add_node(self, like: int, place: float, **columns: object) -> int:
        """Return a new node that is like another but for some columns; ``place`` (within +-0.5) orders it around that one."""
        self._new.append({name: self.column[name][like] for name in COLUMNS} | columns)
        self._keys.append(float(self.key[like]) + place)
        return len(self.graph) + len(self._new) - 1

    def add_edge(self, source: int, target: int, kind: EdgeKind, lag_s: float = 0.0, known_s: float | None = None) -> None:
        """Let one node wait for another."""
        self.added.append(Edge(source, target, int(kind), lag_s, lag_s if known_s is None else known_s))

    def add_resource(self, name: str) -> int:
        """Return the index of a device stream of this name, made where there is none."""
        if name not in self.resources:
            self.resources.append(name)
            self.resource_is_device = np.append(self.resource_is_device, True)
        return self.resources.index(name)

    def insert_host(self, before: int, kind: NodeKind, seconds: float) -> int:
        """Return a new node of the host just before another of its thread."""
        node = self.add_node(before, -0.3, kind=int(kind), op=-1, unit=-1, share=1.0, measured_s=seconds)
        for e in self.into(before):
            if self.graph.edge_kind[e] == EdgeKind.PROGRAM and not self.cut[e]:
                self.cut[e] = True
                self.add_edge(int(self.graph.edge_from[e]), node, EdgeKind.PROGRAM, float(self.graph.edge_lag_s[e]))
        for i, edge in enumerate(self.added):
            if edge.target == before and edge.kind == EdgeKind.PROGRAM:
                self.added[i] = edge._replace(target=node)
        self.add_edge(node, before, EdgeKind.PROGRAM)
        return node

    def quiet(self, nodes: Iterable[int]) -> None:
        """Let nodes of the host take no time: what they did is not done."""
        for node in nodes:
            self.column["measured_s"][node] = 0.0
            self.column["op"][node] = ROW_FIXED
            if self.column["kind"][node] in (NodeKind.LAUNCH, NodeKind.LAUNCH_RETURN):
                self.column["kind"][node] = NodeKind.GAP
            for e in self.into(node):
                self.cut[e] |= self.graph.edge_kind[e] == EdgeKind.QUEUE

    def remove(self, nodes: Iterable[int]) -> None:
        """Take device work out."""
        self.dead[list(nodes)] = True

    def freeze(self, notes: Iterable[Note], origin: np.ndarray) -> tuple[Graph, np.ndarray]:
        """Return the edited graph, and for each of its nodes the node of the recording it was (-1: new).

        Parameters
        ----------
        notes : iterable of Note
            To travel with the graph.
        origin : int64 [V]
            Node of the recording of every node before this edit.

        Raises
        ------
        Refused
            Work would have to wait for itself.
        """
        column = {
            name: np.concatenate([old, np.array([new[name] for new in self._new], dtype=old.dtype)]) for name, old in self.column.items()
        }
        total = len(column["kind"])
        dead = np.concatenate([self.dead, np.zeros(len(self._new), dtype=bool)])
        keys = np.concatenate([self.key, self._keys])
        edges = _requeued(self.graph, self.target, self._edges(), dead, keys, column)
        edges = _bridged(edges, dead, keys)
        edges = _rooted(edges, dead, total)
        alive = np.flatnonzero(~dead)
        number = np.full(total, -1, dtype=np.int64)
        number[alive] = np.arange(len(alive))
        source, target = number[[e.source for e in edges]], number[[e.target for e in edges]]
        order = np.argsort(keys[alive], kind="stable").astype(np.int32)
        by_target = np.lexsort((source, target))
        ptr = np.searchsorted(target[by_target], np.arange(len(alive) + 1)).astype(np.int64)
        sequence, fine = kernels.topological(order, ptr, source[by_target].astype(np.int32))
        if not fine.all():
            raise Refused("rewrite", "work would have to wait for itself", "leave it where it is")
        position = np.empty(len(alive), dtype=np.int64)
        position[sequence] = np.arange(len(alive))
        whole = np.concatenate([origin, np.full(len(self._new), -1)])[alive][sequence]
        chosen = {name: values[alive][sequence] for name, values in column.items()}
        return self._graph(chosen, edges, position[source], position[target], position[number], tuple(notes)), whole

    def _edges(self) -> list[Edge]:
        g = self.graph
        keep = np.flatnonzero(~self.cut)
        arrays = (g.edge_from[keep], self.target[keep], g.edge_kind[keep], g.edge_lag_s[keep], g.edge_known_s[keep])
        return [Edge(*values) for values in zip(*(a.tolist() for a in arrays), strict=True)] + self.added

    def _graph(
        self,
        column: dict[str, np.ndarray],
        edges: list[Edge],
        source: np.ndarray,
        target: np.ndarray,
        at: np.ndarray,
        notes: tuple[Note, ...],
    ) -> Graph:
        g = self.graph
        kind = np.array([e.kind for e in edges], dtype=np.int8)
        order = np.lexsort((kind, source, target))
        arrays = column | {
            "edge_ptr": np.searchsorted(target[order], np.arange(len(column["kind"]) + 1)).astype(np.int64),
            "edge_from": source[order].astype(np.int32),
            "edge_kind": kind[order],
            "edge_lag_s": np.array([e.lag_s for e in edges])[order],
            "edge_known_s": np.array([e.known_s for e in edges])[order],
            "resource_is_device": self.resource_is_device,
            "step_numbers": g.step_numbers,
            "step_begin": at[g.step_begin].astype(np.int32),
            "step_end": at[g.step_end].astype(np.int32),
            "measured_step_s": g.measured_step_s,
            "step_complete": g.step_complete,
        }
        for values in arrays.values():
            values.setflags(write=False)
        return Graph(resources=tuple(self.resources), notes=(*g.notes, *notes), **arrays)


def _bridged(edges: list[Edge], dead: np.ndarray, keys: np.ndarray) -> list[Edge]:
    """Hand the waits of dead nodes on, in order of their work."""
    if not dead.any():
        return edges
    kept = [e for e in edges if not (dead[e.source] or dead[e.target])]
    into: dict[int, list[Edge]] = defaultdict(list)
    out: dict[int, list[Edge]] = defaultdict(list)
    for e in edges:
        if dead[e.target] and not dead[e.source]:
            into[e.target].append(e)
        elif dead[e.source]:
            out[e.source].append(e)
    for node in sorted(np.flatnonzero(dead).tolist(), key=lambda v: keys[v]):
        causes = [e for e in into[node] if e.kind not in HELD] or [e._replace(kind=int(EdgeKind.FALLBACK)) for e in into[node]]
        for follower in out[node]:
            if follower.kind == EdgeKind.QUEUE:
                continue
            (into[follower.target] if dead[follower.target] else kept).extend(_joined(cause, follower) for cause in causes)
    return _longest(kept)


def _longest(edges: list[Edge]) -> list[Edge]:
    """Keep of equal edges the one with the longest lag."""
    best: dict[tuple[int, int, int], Edge] = {}
    for e in edges:
        key = (e.source, e.target, e.kind)
        if key not in best or e.lag_s > best[key].lag_s:
            best[key] = e
    return list(best.values())


def _joined(cause: Edge, follower: Edge) -> Edge:
    """Return what a follower of removed work waits for instead.

    A stream keeps its usual gap; other waits keep what they cost after the work that ends them.
    """
    if follower.kind != EdgeKind.STREAM:
        return Edge(cause.source, follower.target, follower.kind, follower.lag_s, follower.known_s)
    lag = follower.known_s if cause.kind == EdgeKind.STREAM else cause.known_s
    return Edge(cause.source, follower.target, cause.kind, lag, lag)


def _requeued(
    graph: Graph, target: np.ndarray, edges: list[Edge], dead: np.ndarray, keys: np.ndarray, column: dict[str, np.ndarray]
) -> list[Edge]:
    """Let every call that needs a slot of a launch queue need that of the same number of launches before it."""
    queue = np.flatnonzero(graph.edge_kind == EdgeKind.QUEUE)
    moved = len(keys) > len(graph) or dead.any()
    if not len(queue) or not moved:
        return edges
    device = np.isin(column["kind"], DEVICE_KINDS)
    launched = {e.source: e.target for e in edges if e.kind == EdgeKind.LAUNCH and not dead[e.target]}
    before = _places(np.flatnonzero(device[: len(graph)]), graph.resource, keys)
    alive = np.flatnonzero(device & ~dead)
    after, lanes = _places(alive, column["resource"], keys), _lanes(alive, column["resource"], keys)
    out = [e for e in edges if e.kind != EdgeKind.QUEUE]
    for e in edges:
        work = launched.get(e.target, -1)
        if e.kind != EdgeKind.QUEUE or work < 0 or work >= len(graph):
            continue
        place = after[work] - (before[work] - before[e.source])
        if place >= 0:
            out.append(e._replace(source=lanes[int(column["resource"][work])][place]))
    return out


def _lanes(nodes: np.ndarray, resource: np.ndarray, keys: np.ndarray) -> dict[int, list[int]]:
    out: dict[int, list[int]] = defaultdict(list)
    for node in nodes[np.argsort(keys[nodes], kind="stable")].tolist():
        out[int(resource[node])].append(node)
    return out


def _places(nodes: np.ndarray, resource: np.ndarray, keys: np.ndarray) -> dict[int, int]:
    return {node: place for lane in _lanes(nodes, resource, keys).values() for place, node in enumerate(lane)}


def _rooted(edges: list[Edge], dead: np.ndarray, total: int) -> list[Edge]:
    """Hang what has lost every cause on the start of the recording."""
    caused = np.zeros(total, dtype=bool)
    caused[0] = True
    caused[[e.target for e in edges]] = True
    return edges + [Edge(0, int(node), int(EdgeKind.ROOT), 0.0, 0.0) for node in np.flatnonzero(~caused & ~dead)]
