"""All nodes of a graph as columns, in building order: root, host threads, marks that stand beside, device lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.graph.graph import ROW_FIXED, ROW_HOST, NodeKind
from workbench.graph.host import HostNodes
from workbench.graph.links import Links
from workbench.graph.rows import Rows
from workbench.graph.steps import Marks, device_steps, windows
from workbench.operators.table import COLLECTIVES, OpTable
from workbench.trace.trace import Category


@dataclass(frozen=True)
class Nodes:
    """Columns of length V. Times are ns since the root."""

    kind: np.ndarray  # int8
    start: np.ndarray  # int64 [ns]
    end: np.ndarray  # int64 [ns]
    event: np.ndarray  # int32
    resource: np.ndarray  # int32
    step: np.ndarray  # int32
    device: np.ndarray  # int32, lane device (-1: host)
    rank: np.ndarray  # int32
    op: np.ndarray  # int32
    unit: np.ndarray  # int32
    share: np.ndarray  # float64
    peer_lag: np.ndarray  # int64 [ns], of the edges between a member of a message and the meeting of all (0 elsewhere)
    step_begin: np.ndarray  # int32 [S]
    step_end: np.ndarray  # int32 [S]
    beside: np.ndarray  # int32, nodes of marks outside their thread's sequence
    first_host: int
    first_device: int
    resources: tuple[str, ...]
    resource_is_device: np.ndarray  # bool

    def __len__(self) -> int:
        return len(self.kind)


def columns(rows: Rows, links: Links, host: HostNodes, marks: Marks, device_kind: np.ndarray, op: np.ndarray, unit: np.ndarray) -> Nodes:
    """Put every node of a recording into one set of columns.

    Parameters
    ----------
    device_kind : int8 [D]
    op, unit : int32 [E]
        Row of the table and priced unit of each event (-1: none).
    """
    threads, count = len(rows.threads), len(marks.number)
    dev = rows.device
    beside = np.flatnonzero(host.beside)
    time = np.concatenate([marks.begin, marks.end])[beside]
    at = np.concatenate([marks.thread, marks.thread])[beside]
    mark_kind = np.where(beside < count, int(NodeKind.STEP_BEGIN), int(NodeKind.STEP_END))
    first_beside = 1 + len(host.kind)
    first_device = first_beside + len(beside)
    recording = threads + len(rows.lanes)
    kind = np.concatenate([[int(NodeKind.ROOT)], host.kind, mark_kind, device_kind]).astype(np.int8)
    start = np.concatenate([[0], host.start, time, dev.start])
    end = np.concatenate([[0], host.end, time, dev.end])
    event = np.concatenate([[-1], host.event, marks.event[beside % max(count, 1)], dev.event]).astype(np.int32)
    resource = np.concatenate([[recording], host.thread, np.where(at >= 0, at, recording), threads + dev.lane]).astype(np.int32)
    rank = np.concatenate([[-1], rows.thread_rank[host.thread], marks.rank[beside % max(count, 1)], rows.lane_rank[dev.lane]]).astype(
        np.int32
    )
    device = np.concatenate([np.full(first_device, -1), np.maximum(rows.lane_device[dev.lane], 0)]).astype(np.int32)
    step = windows(marks, start, rank)
    step[first_device:] = device_steps(marks, rows, links)
    begins, ends = _mark_nodes(host, beside, count, first_beside)
    step[begins], step[ends] = np.arange(count), np.arange(count)
    step[0] = -1
    event[begins], event[ends] = marks.event, marks.event
    row, group, share = _pricing(kind, start, end, event, op, unit, first_device)
    names = (*rows.threads, *rows.lanes, "recording")
    is_device = np.arange(len(names)) >= threads
    is_device[-1] = False
    return Nodes(
        kind,
        start,
        end,
        event,
        resource,
        step,
        device,
        rank,
        row,
        group,
        share,
        np.zeros(len(kind), dtype=np.int64),
        begins,
        ends,
        np.arange(first_beside, first_device),
        1,
        first_device,
        names,
        is_device,
    )


def device_kinds(category: np.ndarray, comm: np.ndarray, op: np.ndarray, table: OpTable) -> np.ndarray:
    """Int8 [D], NodeKind of device work: a kernel computes, whatever it computes (layout changes and fills included).

    Parameters
    ----------
    category : int8 [D], Category
        As recorded.
    comm : bool [D]
        Kernels that communicate by argument or name.
    op : int32 [D]
        Row of ``table`` each is priced by: work of a collective communicates too.
    table : OpTable
    """
    out = np.where(np.isin(category, (Category.MEMCPY, Category.MEMSET)), int(NodeKind.COPY), int(NodeKind.COMPUTE)).astype(np.int8)
    out[comm | np.isin(table.kind[op] if len(op) else op, COLLECTIVES)] = NodeKind.COMMUNICATION
    return out


def _mark_nodes(host: HostNodes, beside: np.ndarray, count: int, first_beside: int) -> tuple[np.ndarray, np.ndarray]:
    begins, ends = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.int32)
    for target, wanted, base in ((begins, NodeKind.STEP_BEGIN, 0), (ends, NodeKind.STEP_END, count)):
        at = np.flatnonzero(host.kind == wanted)
        target[-2 - host.call[at]] = 1 + at
        mine = np.flatnonzero((beside >= base) & (beside < base + count))
        target[beside[mine] - base] = first_beside + mine
    return begins, ends


def _pricing(
    kind: np.ndarray, start: np.ndarray, end: np.ndarray, event: np.ndarray, op: np.ndarray, unit: np.ndarray, first_device: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, unit and share of each node; shares follow the node's cleaned durations and sum to 1 over a unit."""
    n = len(kind)
    row = np.full(n, ROW_HOST, dtype=np.int32)
    row[np.isin(kind, (NodeKind.ROOT, NodeKind.STEP_BEGIN, NodeKind.STEP_END))] = ROW_FIXED
    group = np.full(n, -1, dtype=np.int32)
    share = np.ones(n)
    priced = np.arange(n) >= first_device
    if first_device == n:
        priced = (kind == NodeKind.HOST_WORK) & (op[event] >= 0)
    row[priced] = op[event[priced]]
    group[priced] = unit[event[priced]]
    at = np.flatnonzero(group >= 0)
    if len(at):
        total = np.bincount(group[at], weights=(end - start)[at])
        members = np.bincount(group[at])
        whole = total[group[at]]
        share[at] = np.where(whole > 0, (end - start)[at] / np.maximum(whole, 1), 1.0 / members[group[at]])
    return row, group, share
