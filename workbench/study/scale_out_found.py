"""What of a recording is scaled out: the messages that change with the number of cards, and the graph they stand in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Note
from workbench.graph.gradients import gradients
from workbench.graph.graph import Graph, NodeKind
from workbench.graph.stages import Phase
from workbench.operators.table import COLLECTIVES, Kind, OpTable
from workbench.scale.fold_buckets import FIRST_BYTES, buckets
from workbench.scale.fold_insert import insert
from workbench.study.price import price, price_recorded
from workbench.study.scenario import Scenario

FORWARD_SHARE = 0.2
"""Reductions in the forward pass above which a group is not one of data parallelism, which sums gradients and a few statistics."""


@dataclass(frozen=True)
class Scaled:
    """A graph ready to be scaled: durations on one card, the messages that change, and what they are."""

    graph: Graph
    node_s: np.ndarray  # float64 [V] [s], messages 0
    message: np.ndarray  # int64 [M], nodes of the messages that change
    bytes: np.ndarray  # float64 [M] [B]
    kind: np.ndarray  # int8 [M], Kind
    base_s: np.ndarray  # float64 [M] [s], as recorded; nan where inserted
    base_cards: int
    replica: int  # cards that hold one copy of the model
    compute: np.ndarray  # bool [V], what a slow card stretches
    gradient_bytes: float
    notes: tuple[Note, ...]


def scaled(scenario: Scenario, total: float | None, bucket: float) -> Scaled:
    """Return what of a recording is scaled.

    Parameters
    ----------
    scenario : Scenario
    total : float or None
        Size of all gradients of a card, where it is stated [B].
    bucket : float
        Gradients that are sent together [B].

    Raises
    ------
    Refused
        A recording without gradients or their sizes.
    """
    return _existing(scenario, total) or _inserted(scenario, total, bucket)


def _seconds(scenario: Scenario) -> np.ndarray:
    """Return the duration of every node on the scenario's card, float64 [V] [s]."""
    pricing = price_recorded(scenario) if scenario.npu is None else price(scenario, [scenario.npu])
    return np.asarray(pricing.node_seconds())


def _inserted(scenario: Scenario, total: float | None, bucket: float) -> Scaled:
    """Return a recording of one card with its gradients' messages."""
    workload = scenario.workload
    found = gradients(workload.trace, workload.graph, workload.stages, total)
    world = _world(scenario)
    notes = found.notes
    if world > 1:
        text = f"messages among its {world} cards keep their group (they are also sent forward: tensor or pipeline parallelism)"
        notes = (*notes, Note("kept-messages", workload.path, 1, text))
    sent = buckets(found, bucket, min(FIRST_BYTES, bucket) if np.isfinite(bucket) else bucket)
    event = workload.graph.event
    optimizer = (event >= 0) & (workload.stages.phase[np.maximum(event, 0)] == Phase.OPTIMIZER)
    made = insert(workload.graph, found, sent, optimizer)
    node_s = np.zeros(len(made.graph))
    node_s[made.moved] = _seconds(scenario)
    steps = max(len(np.unique(np.stack((sent.rank, sent.step)), axis=1).T), 1)
    return Scaled(
        made.graph, node_s, made.bucket, sent.bytes, np.full(len(sent), int(Kind.ALL_REDUCE)), np.full(len(sent), np.nan), world, world,
        np.isin(made.graph.kind, (NodeKind.COMPUTE, NodeKind.COPY)), float(sent.bytes.sum() / steps), notes,
    )  # fmt: skip


def _existing(scenario: Scenario, total: float | None) -> Scaled | None:
    """Return a recording of a data-parallel job with the messages of all its cards; None where it has none."""
    graph, table = scenario.workload.graph, scenario.workload.table
    world, size, sizes = _world(scenario), table.dim("group_size"), _bytes(table)
    if world < 2 or _summed_forward(scenario, world):
        return None
    sent = np.flatnonzero((graph.kind == NodeKind.COMMUNICATION) & (graph.op >= 0))
    moved = sent[(size[graph.op[sent]] == world) & (sizes[graph.op[sent]] > 0)]
    bytes_, kind = sizes[graph.op[moved]], table.kind[graph.op[moved]]
    text = f"messages of all {world} cards are scaled by the network model"
    if not len(moved):
        moved = _unsized(scenario, sent)
        if not len(moved):
            return None
        bytes_, kind = _spread(scenario, moved, total), np.full(len(moved), int(Kind.ALL_REDUCE))
        text += "; their sizes are not recorded: the gradients, spread by their time"
    node_s = _seconds(scenario).copy()
    base = node_s[moved].copy()
    node_s[moved] = 0.0
    notes = (Note("recorded-messages", scenario.workload.path, len(moved), text),)
    per_step = float(bytes_.sum()) / max(len(graph.step_numbers), 1) / max(len(scenario.workload.trace.ranks), 1)
    return Scaled(
        graph, node_s, moved, bytes_, kind, base, world, 1, np.isin(graph.kind, (NodeKind.COMPUTE, NodeKind.COPY)), per_step, notes
    )


def _unsized(scenario: Scenario, sent: np.ndarray) -> np.ndarray:
    """Return reductions of the backward pass whose size is not recorded."""
    graph, workload = scenario.workload.graph, scenario.workload
    sent = sent[graph.event[sent] >= 0]
    names = np.array(["reduce" in workload.trace.name_of(int(event)).lower() for event in graph.event[sent]], dtype=bool)
    return sent[names & (workload.stages.phase[graph.event[sent]] == Phase.BACKWARD)]


def _spread(scenario: Scenario, moved: np.ndarray, total: float | None) -> np.ndarray:
    """Return bytes of messages: the gradients of every step over its messages, by their recorded time [B]."""
    graph, workload = scenario.workload.graph, scenario.workload
    if total is None:
        found = gradients(workload.trace, graph, workload.stages)
        total = float(found.bytes.sum()) / len(np.unique(np.stack((found.rank, found.step)), axis=1).T)
    step = np.maximum(graph.step[moved], 0)
    spent = np.bincount(step, weights=graph.measured_s[moved])
    return np.asarray(total * graph.measured_s[moved] / np.maximum(spent[step], 1e-12))


def _world(scenario: Scenario) -> int:
    """Return the cards of the recorded job, as far as its messages are recorded; at least 1."""
    graph = scenario.workload.graph
    if not (graph.kind == NodeKind.COMMUNICATION).any():
        return 1
    return max((rank.world_size or 1 for rank in scenario.workload.trace.ranks), default=1)


def _summed_forward(scenario: Scenario, world: int) -> bool:
    """Whether groups of all cards also reduce in the forward pass: then they are not (only) data parallel."""
    graph, table, phase = scenario.workload.graph, scenario.workload.table, scenario.workload.stages.phase
    row = np.maximum(graph.op, 0)
    summed = table.among((Kind.ALL_REDUCE, Kind.REDUCE_SCATTER))[row] & (table.dim("group_size") == world)[row]
    nodes = np.flatnonzero((graph.kind == NodeKind.COMMUNICATION) & (graph.op >= 0) & (graph.event >= 0) & summed)
    return len(nodes) > 0 and float((phase[graph.event[nodes]] == Phase.FORWARD).mean()) > FORWARD_SHARE


def _bytes(table: OpTable) -> np.ndarray:
    return np.where(table.among(COLLECTIVES), table.dim("bytes"), 0).astype(np.float64)
