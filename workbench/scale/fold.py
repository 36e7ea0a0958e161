"""Many cards folded: one copy of the graph for every class of cards that behave alike, joined where the cards wait for each other.

Cards that run the same program at the same speed are at the same place at the same time: one of them stands for all. A collective starts
for every member when the last one has arrived, so copies of different classes meet before it. The replay of one copy a class equals the
replay of one copy a card, whatever the number of cards (the arrival of a class is that of each of its cards).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.errors import Refused
from workbench.graph.graph import ROW_FIXED, EdgeKind, Graph, NodeKind
from workbench.scale.fold_insert import NODE_COLUMNS


@dataclass(frozen=True)
class Folded:
    """Copies of a graph in one: node v of copy c is ``node[c, v]``; ``meeting[i]`` is where copies meet before the i-th collective."""

    graph: Graph
    node: np.ndarray  # int64 [C, V]
    meeting: np.ndarray  # int64 [M]


def folded(graph: Graph, copies: int, meets: np.ndarray) -> Folded:
    """Return copies of a graph that wait for each other.

    Parameters
    ----------
    graph : Graph
    copies : int
        Classes of cards, or cards.
    meets : int64 [M]
        Nodes before which all copies meet, ascending.

    Returns
    -------
    Folded
        Steps of copy c are those from ``c S`` on, S the steps of the graph.

    Raises
    ------
    Refused
        Less than one copy.
    """
    if copies < 1:
        raise Refused("fold", f"{copies} copies of a recording", "ask for at least one")
    count = len(graph)
    if copies == 1:
        return Folded(graph, np.arange(count)[None, :], np.zeros(0, dtype=np.int64))
    width = np.full(count, copies, dtype=np.int64)
    width[meets] += 1
    first = np.concatenate(([0], np.cumsum(width)[:-1]))
    meets_at = np.zeros(count, dtype=bool)
    meets_at[meets] = True
    node = first + meets_at + np.arange(copies)[:, None]
    meeting = first[meets]
    return Folded(_joined(graph, node, meeting, meets, meets_at), node, meeting)


def _joined(graph: Graph, node: np.ndarray, meeting: np.ndarray, meets: np.ndarray, meets_at: np.ndarray) -> Graph:
    copies, count = node.shape
    total = copies * count + len(meets)
    target = np.repeat(np.arange(count), np.diff(graph.edge_ptr))
    place = np.zeros(count, dtype=np.int64)
    place[meets] = meeting
    into = np.where(meets_at[target], place[target], node[:, target])  # [C, L]: edges into a collective lead to the meeting
    source = np.concatenate((node[:, graph.edge_from].ravel(), np.tile(meeting, copies)))
    goal = np.concatenate((into.ravel(), node[:, meets].ravel()))
    peers = np.full(copies * len(meets), int(EdgeKind.PEER), dtype=np.int8)
    kind = np.concatenate((np.tile(graph.edge_kind, copies), peers))
    lag, known = (np.concatenate((np.tile(a, copies), np.zeros(len(peers)))) for a in (graph.edge_lag_s, graph.edge_known_s))
    order = np.lexsort((source, goal))
    columns: dict[str, Any] = {}
    for name in NODE_COLUMNS:
        old = getattr(graph, name)
        new = np.empty(total, dtype=old.dtype)
        new[node.ravel()] = np.tile(old, copies)
        new[meeting] = _meeting(name, old[meets])
        columns[name] = new
    lanes = len(graph.resources)
    steps = len(graph.step_numbers)
    for copy in range(copies):
        columns["resource"][node[copy]] += copy * lanes
        columns["step"][node[copy]] += np.where(graph.step >= 0, copy * steps, 0).astype(columns["step"].dtype)
    columns |= {
        "edge_ptr": np.searchsorted(goal[order], np.arange(total + 1)).astype(np.int64),
        "edge_from": source[order].astype(np.int32),
        "edge_kind": kind[order],
        "edge_lag_s": lag[order],
        "edge_known_s": known[order],
        "step_begin": node[:, graph.step_begin].ravel().astype(np.int32),
        "step_end": node[:, graph.step_end].ravel().astype(np.int32),
        "resource_is_device": np.tile(graph.resource_is_device, copies),
    }
    columns |= {name: np.tile(getattr(graph, name), copies) for name in ("step_numbers", "measured_step_s", "step_complete")}
    for column in columns.values():
        column.setflags(write=False)
    names = tuple(f"copy {copy} {name}" for copy in range(copies) for name in graph.resources)
    return replace(graph, resources=names, **columns)


def _meeting(name: str, of: np.ndarray) -> np.ndarray | int | float:
    """Column of meetings: of no length, in no step."""
    plain = {"kind": int(NodeKind.MEETING), "op": ROW_FIXED, "unit": -1, "share": 1.0, "event": -1, "measured_s": 0.0, "step": -1}
    return plain.get(name, of)
