"""Buckets of gradients put into the graph of a recording: overlap follows from what waits for what, no share of it is typed in.

A bucket starts when the last of its gradients is ready and the bucket before it has been sent (one communication stream a rank); what
follows the last gradient on its stream, and the optimizer, wait for the last bucket. Source of the rule: PyTorch,
torch/csrc/distributed/c10d/reducer.cpp (``mark_bucket_ready``, ``finalize_backward``); Li et al., PyTorch Distributed (VLDB 2020), 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.graph.gradients import Gradients
from workbench.graph.graph import DEVICE_KINDS, ROW_FIXED, EdgeKind, Graph, NodeKind
from workbench.scale.fold_buckets import Buckets

NODE_COLUMNS = ("kind", "op", "unit", "share", "resource", "rank", "step", "event", "measured_s", "recorded_start_s")


@dataclass(frozen=True)
class Inserted:
    """A graph with buckets: their nodes in order of the buckets, and where the recorded nodes went."""

    graph: Graph
    bucket: np.ndarray  # int64 [B], node of each bucket; it lasts 0 s until it is given a time
    moved: np.ndarray  # int64 [V], node of the new graph of every recorded node


def insert(graph: Graph, found: Gradients, sent: Buckets, optimizer: np.ndarray) -> Inserted:
    """Return the graph with a communication node a bucket.

    Parameters
    ----------
    graph : Graph
    found : Gradients
        Of the graph.
    sent : Buckets
        Of the gradients.
    optimizer : bool [V]
        Nodes of the optimizer.

    Returns
    -------
    Inserted
        Buckets of no length leave every time as recorded where a step computes on one stream.
    """
    count, many = len(graph), len(sent)
    latest = np.maximum.reduceat(found.ready, sent.ptr[:-1]).astype(np.int64)
    head = np.ones(many, dtype=bool)
    head[1:] = (sent.rank[1:] != sent.rank[:-1]) | (sent.step[1:] != sent.step[:-1])
    for b in np.flatnonzero(~head).tolist():
        latest[b] = max(latest[b], latest[b - 1])
    order = np.argsort(np.concatenate((np.arange(count, dtype=np.float64), latest + 0.5)), kind="stable")
    place = np.empty(count + many, dtype=np.int64)
    place[order] = np.arange(count + many)
    moved, bucket = place[:count], place[count:]
    source, target = _edges(graph, found, sent, head, latest, optimizer)
    new_source, new_target = place[source], place[target]
    old_target = np.repeat(moved, np.diff(graph.edge_ptr))
    zero = np.zeros(len(source))
    edges = (
        np.concatenate((moved[graph.edge_from], new_source)),
        np.concatenate((old_target, new_target)),
        np.concatenate((graph.edge_kind, np.full(len(source), int(EdgeKind.EVENT)))).astype(np.int8),
        np.concatenate((graph.edge_lag_s, zero)),
        np.concatenate((graph.edge_known_s, zero)),
    )
    return Inserted(_assembled(graph, sent, latest, order, moved, edges), bucket, moved)


def _edges(
    graph: Graph, found: Gradients, sent: Buckets, head: np.ndarray, latest: np.ndarray, optimizer: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """New dependencies (source, target); bucket b is node V + b."""
    count, many = len(graph), len(sent)
    of_gradient = np.repeat(np.arange(many), np.diff(sent.ptr))
    lane = graph.resource[found.ready].astype(np.int64)
    last = np.unique(np.stack((of_gradient, lane, found.ready)), axis=1)
    ends = np.append((np.diff(last[:2]) != 0).any(axis=0), True)  # the last gradient of every stream in a bucket
    sources, targets = [last[2][ends]], [count + last[0][ends]]
    chained = np.flatnonzero(~head)
    sources.append(count + chained - 1)
    targets.append(count + chained)
    device = np.isin(graph.kind, DEVICE_KINDS) | ((graph.kind == NodeKind.HOST_WORK) & (graph.op >= 0))
    by_lane = {r: np.flatnonzero((graph.resource == r) & device) for r in np.unique(graph.resource[found.ready]).tolist()}
    of_optimizer = np.flatnonzero(optimizer & device)
    tails = np.append(np.flatnonzero(head)[1:], many) - 1
    for b in tails.tolist():
        lanes = np.unique(lane[(found.rank == sent.rank[b]) & (found.step == sent.step[b])])
        waiting = {int(r): by_lane[int(r)] for r in lanes}
        own = of_optimizer[(graph.rank[of_optimizer] == sent.rank[b]) & (graph.step[of_optimizer] == sent.step[b])]
        for r in np.unique(graph.resource[own]).tolist():
            waiting.setdefault(r, own[graph.resource[own] == r])
        for nodes in waiting.values():
            after = np.searchsorted(nodes, latest[b], "right")
            if after < len(nodes):
                sources.append(np.array([count + b]))
                targets.append(nodes[after : after + 1])
    return np.concatenate(sources), np.concatenate(targets)


def _assembled(
    graph: Graph, sent: Buckets, latest: np.ndarray, order: np.ndarray, moved: np.ndarray, edges: tuple[np.ndarray, ...]
) -> Graph:
    """Return the graph with its buckets in place, edges sorted by target."""
    ranks = np.unique(sent.rank)
    lanes = len(graph.resources) + np.searchsorted(ranks, sent.rank)
    finish = graph.recorded_start_s[latest] + graph.measured_s[latest]
    new = {
        "kind": int(NodeKind.COMMUNICATION), "op": ROW_FIXED, "unit": -1, "share": 1.0, "resource": lanes, "rank": sent.rank,
        "step": sent.step, "event": -1, "measured_s": 0.0, "recorded_start_s": finish,
    }  # fmt: skip
    columns: dict[str, Any] = {}
    for name in NODE_COLUMNS:
        old = getattr(graph, name)
        columns[name] = np.concatenate((old, np.broadcast_to(np.asarray(new[name], dtype=old.dtype), len(sent))))[order]
    source, target, kind, lag, known = edges
    by_target = np.lexsort((kind, source, target))
    total = len(order)
    columns |= {
        "edge_ptr": np.searchsorted(target[by_target], np.arange(total + 1)).astype(np.int64),
        "edge_from": source[by_target].astype(np.int32),
        "edge_kind": kind[by_target],
        "edge_lag_s": lag[by_target],
        "edge_known_s": known[by_target],
        "step_begin": moved[graph.step_begin].astype(np.int32),
        "step_end": moved[graph.step_end].astype(np.int32),
        "resource_is_device": np.concatenate((graph.resource_is_device, np.ones(len(ranks), dtype=bool))),
    }
    for column in columns.values():
        column.setflags(write=False)
    names = tuple(f"rank {rank} gradient buckets" for rank in ranks.tolist())
    return replace(graph, resources=(*graph.resources, *names), **columns)
