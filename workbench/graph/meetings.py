"""Matched messages in the graph: a transfer starts when the last of those it waits for has arrived, on whatever rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.graph.graph import ROW_FIXED, EdgeKind, NodeKind
from workbench.graph.nodes import Nodes
from workbench.graph.ranks import Ranks
from workbench.graph.settle import Edges
from workbench.operators.table import OpTable


def with_transfers(table: OpTable, op: np.ndarray, ranks: Ranks) -> OpTable:
    """Return the table with the transfers of matched messages instead of their recorded times.

    Parameters
    ----------
    table : OpTable
    op : int32 [E]
        Row of each event.
    ranks : Ranks
    """
    parts, m = ranks.split, ranks.messages
    row = op[m.event]
    waiting = np.bincount(row[row >= 0], weights=parts.wait_ns[row >= 0] / 1e9, minlength=len(table))
    seconds = np.maximum(table.measured_s - waiting / np.maximum(table.count, 1), 0.0)
    seconds = np.where(waiting > 0, seconds, table.measured_s)
    seconds.setflags(write=False)
    return replace(table, measured_s=seconds)


def with_meetings(nodes: Nodes, edges: Edges, ranks: Ranks) -> tuple[Nodes, Edges]:
    """Add the arrivals of matched messages and where they meet.

    Parameters
    ----------
    nodes : Nodes
        Times on one clock.
    edges : Edges
    ranks : Ranks

    Returns
    -------
    nodes : Nodes
        What waited for the start of a message's kernel waits for its arrival, a node of no length; the kernel's own node is the
        transfer. One meeting a message: after the arrivals others wait for, before the transfers that wait.
    edges : Edges
    """
    m, parts = ranks.messages, ranks.split
    rows = np.flatnonzero(parts.known)
    node_of = np.full(int(m.event.max(initial=-1)) + 1, -1, dtype=np.int64)
    device = np.arange(nodes.first_device, len(nodes))
    event = nodes.event[device]
    inside = event < len(node_of)
    node_of[event[inside]] = device[inside]
    work = node_of[m.event[rows]]
    rows, work = rows[work >= 0], work[work >= 0]
    if not len(rows):
        return nodes, edges
    count = len(nodes)
    arrival = count + np.arange(len(rows))
    _, meeting = np.unique(ranks.matches.of[rows], return_inverse=True)
    meeting = count + len(rows) + meeting.reshape(-1)
    moved = np.arange(count)
    moved[work] = arrival
    target = np.concatenate((moved, arrival))[edges.target]
    comes, waits = parts.arrives[rows], parts.waits[rows]
    edges = Edges.join(
        [
            (edges.source, target, edges.kind),
            (arrival, work, int(EdgeKind.ARRIVAL)),
            (arrival[comes], meeting[comes], int(EdgeKind.PEER)),
            (meeting[waits], work[waits], int(EdgeKind.PEER)),
        ]
    )
    return _extended(nodes, ranks, rows, work, meeting), edges


def _extended(nodes: Nodes, ranks: Ranks, rows: np.ndarray, work: np.ndarray, meeting: np.ndarray) -> Nodes:
    """Nodes with arrivals and meetings behind them, the work of messages cut down to its transfer."""
    parts = ranks.split
    comes, many = parts.arrives[rows], int(meeting.max()) + 1 - len(nodes) - len(rows)
    met = np.full(many, np.iinfo(np.int64).min)
    np.maximum.at(met, meeting[comes] - len(nodes) - len(rows), (nodes.start[work] + parts.in_lag_ns[rows])[comes])
    start, peer_lag = nodes.start.copy(), nodes.peer_lag.copy()
    arrived = start[work]
    start[work] = nodes.end[work] - parts.transfer_ns[rows]
    peer_lag[work] = parts.out_lag_ns[rows]
    none = np.full(many, -1, dtype=np.int32)

    def column(old: np.ndarray, arrival: np.ndarray | int, at_meeting: np.ndarray | int) -> np.ndarray:
        more = (np.broadcast_to(arrival, len(rows)), np.broadcast_to(at_meeting, many))
        return np.concatenate((old, *more)).astype(old.dtype)

    return replace(
        nodes,
        kind=column(nodes.kind, int(NodeKind.ARRIVAL), int(NodeKind.MEETING)),
        start=column(start, arrived, met),
        end=column(nodes.end, arrived, met),
        event=column(nodes.event, nodes.event[work], none),
        resource=column(nodes.resource, nodes.resource[work], len(nodes.resources) - 1),
        step=column(nodes.step, nodes.step[work], none),
        device=column(nodes.device, nodes.device[work], none),
        rank=column(nodes.rank, nodes.rank[work], none),
        op=column(nodes.op, ROW_FIXED, ROW_FIXED),
        unit=column(nodes.unit, -1, -1),
        share=column(nodes.share, 1, 1),
        peer_lag=column(peer_lag, parts.in_lag_ns[rows], 0),
    )
