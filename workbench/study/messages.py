"""Communication nodes: the transfer of a message moves to another fabric; waiting is kept, or follows from the arrival of its peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.cost.cost import Bound, Evidence, OpCost
from workbench.cost.scale import NO_SOURCE
from workbench.graph.graph import EdgeKind, Graph, NodeKind
from workbench.hardware.npu import NpuSpec
from workbench.network.collectives import transfer_s
from workbench.network.recorded import reprice_recorded, reprice_transfer
from workbench.operators.table import Kind, OpTable

SPLIT = "one rank's recording cannot tell waiting from transfer: the modelled transfer is re-priced, the rest is kept"
MET = "all members are recorded: the transfer is scaled by the ratio of the network models, waiting follows from their arrivals"
NO_SIZE = "message without a recorded size, group or link: the recorded time is kept"


@dataclass(frozen=True)
class MessageTimes:
    """Predicted seconds of N communication nodes on C cards."""

    node: np.ndarray  # int64 [N], node of the graph
    row: np.ndarray  # int64 [N], its operator
    seconds: np.ndarray  # float64 [N, C] [s]
    low_s: np.ndarray  # float64 [N, C] [s]
    high_s: np.ndarray  # float64 [N, C] [s]
    transfer_s: np.ndarray  # float64 [N, C] [s], modelled; nan where size, group or link is not known
    known: np.ndarray  # bool [N], the transfer is known on source and cards
    met: np.ndarray  # bool [N], the node is the transfer alone: its peers are recorded


def message_times(graph: Graph, table: OpTable, specs: Sequence[NpuSpec], source: NpuSpec | None) -> MessageTimes:
    """Price every communication node: of one rank alone see `reprice_recorded`, with all its members `reprice_transfer`.

    Parameters
    ----------
    graph : Graph
    table : OpTable
    specs : sequence of NpuSpec, length C
    source : NpuSpec or None
        The recording's card.

    Returns
    -------
    MessageTimes
        A message whose size, group or link is not known keeps its recorded time; the ratio of the links bounds it, and
        `workbench.cost.scale.NO_SOURCE` either way where a link is not stated.
    """
    node = np.flatnonzero((graph.kind == NodeKind.COMMUNICATION) & (graph.op >= 0))
    row = graph.op[node].astype(np.int64)
    measured = graph.measured_s[node]
    used, back = np.unique(row, return_inverse=True)
    base = _transfers(table, used, source)[back]
    met = np.zeros(len(graph), dtype=bool)
    met[np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))[graph.edge_kind == EdgeKind.ARRIVAL]] = True
    met = met[node]
    shape = (len(node), len(specs))
    seconds, low, high, transfer = (np.empty(shape) for _ in range(4))
    known = np.isfinite(base)
    for cell, spec in enumerate(specs):
        target = _transfers(table, used, spec)[back]
        both = np.isfinite(base) & np.isfinite(target)
        models = np.where(both, base, 1.0), np.where(both, target, 1.0)
        ends = zip(reprice_recorded(measured, *models), reprice_transfer(measured, *models), strict=True)
        nominal, least, most = (np.where(met, together, alone) for alone, together in ends)
        shorter, longer = _link_ratios(source, spec)
        seconds[:, cell] = np.where(both, nominal, measured)
        low[:, cell] = np.where(both, least, measured * shorter)
        high[:, cell] = np.where(both, most, measured * longer)
        transfer[:, cell] = target
        known &= both
    return MessageTimes(node, row, seconds, low, high, transfer, known, met)


def with_messages(cost: OpCost, messages: MessageTimes) -> OpCost:
    """Return the cost with the rows of communication nodes set to the means of their nodes.

    Parameters
    ----------
    cost : OpCost
    messages : MessageTimes
        Only nodes that no vendor time prices.
    """
    if not len(messages.node):
        return cost
    seconds, low, high = (array.copy() for array in (cost.seconds, cost.low_s, cost.high_s))
    bound, evidence, resource, code = cost.bound.copy(), cost.evidence.copy(), cost.resource_s.copy(), cost.note_code.copy()
    for row in np.unique(messages.row):
        mine = messages.row == row
        seconds[row], low[row], high[row] = (array[mine].mean(axis=0) for array in (messages.seconds, messages.low_s, messages.high_s))
        known, met = bool(messages.known[mine].all()), bool(messages.met[mine].all())
        resource[row] = 0.0
        resource[row, :, Bound.NETWORK] = np.nan_to_num(messages.transfer_s[mine][0])
        bound[row] = Bound.NETWORK
        evidence[row] = Evidence.MODEL if known else Evidence.SCALED
        code[row] = len(cost.reasons) + (1 if not known else 2 if met else 0)
    return replace(
        cost,
        seconds=seconds,
        low_s=low,
        high_s=high,
        bound=bound,
        evidence=evidence,
        resource_s=resource,
        note_code=code,
        reasons=(*cost.reasons, SPLIT, NO_SIZE, MET),
    )


def _link_ratios(source: NpuSpec | None, spec: NpuSpec) -> tuple[float, float]:
    """Bound what a message of unknown size takes on the candidate, as factors on its recorded time: by the ratio of the links."""
    if source == spec:
        return 1.0, 1.0
    if source is None or source.link is None or spec.link is None:
        return 1.0 / NO_SOURCE, NO_SOURCE
    ratio = source.link.bandwidth / spec.link.bandwidth
    return min(ratio, 1.0), max(ratio, 1.0)


def _transfers(table: OpTable, rows: np.ndarray, spec: NpuSpec | None) -> np.ndarray:
    """Modelled transfer [s] of collective rows; nan without a stated link, size or group."""
    out = np.full(len(rows), np.nan)
    if spec is None or spec.link is None:
        return out
    size, group = table.dim("bytes")[rows], table.dim("group_size")[rows]
    for i in np.flatnonzero((size > 0) & (group > 1)):
        out[i] = transfer_s(Kind(table.kind[rows[i]]), float(size[i]), int(group[i]), spec.link.bandwidth, spec.link.latency)
    return out
