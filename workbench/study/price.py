"""From operators to node durations: which evidence prices which node, shared by one prediction and every cell of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from workbench.cost.cost import LEVELS, Bound, Evidence, OpCost
from workbench.cost.estimate import estimate
from workbench.cost.host import HostFactors, host_factors
from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS, ROW_FIXED, ROW_HOST
from workbench.hardware.host import KINDS
from workbench.hardware.npu import NpuSpec
from workbench.operators.table import COLLECTIVES, OpTable
from workbench.study.messages import MessageTimes, message_times, with_messages
from workbench.study.scenario import Scenario

PER_UNIT = (Evidence.VENDOR, Evidence.INTERPOLATED, Evidence.MODEL, Evidence.EXTRAPOLATED)
"""Evidence that prices a whole unit; its seconds are spread over the unit's recorded kernels."""
HOST_ROWS = len(KINDS)
"""Rows of host time among the values: one a kind of host work (`workbench.hardware.host.KINDS`)."""


@dataclass(frozen=True)
class Pricing:
    """Node v lasts ``weight[v] * value[row[v], cell]`` seconds.

    Rows of ``value``: the U operators, the kinds of host work, the constant 1, then one row a re-priced communication node.
    ``low`` and ``high`` are ``value`` at the ends of the 80 % interval; ``owner`` is the operator of each row (-1: none).
    """

    cost: OpCost
    weight: np.ndarray  # float64 [V]
    row: np.ndarray  # int32 [V]
    value: np.ndarray  # float64 [R, C]
    low: np.ndarray  # float64 [R, C]
    high: np.ndarray  # float64 [R, C]
    owner: np.ndarray  # int64 [R]
    host: tuple[np.ndarray, np.ndarray, np.ndarray]  # float64 [K, C] each: host time over that recorded, nominal, low and high

    def node_seconds(self, cell: int = 0) -> np.ndarray:
        """Return the duration of every node in one cell, float64 [V] [s]."""
        return self.weight * self.value[self.row, cell]

    def operator_totals(self, nodes: np.ndarray | None = None) -> np.ndarray:
        """Return the total predicted time of each operator over the recording, or over some nodes (bool [V]), float64 [U, C] [s]."""
        weight = self.weight if nodes is None else np.where(nodes, self.weight, 0.0)
        each = np.bincount(self.row, weights=weight, minlength=len(self.value))[:, None] * self.value
        totals = np.zeros(self.cost.seconds.shape)
        rows = self.owner >= 0
        np.add.at(totals, self.owner[rows], each[rows])
        return totals

    def at_cells(self, cells: Sequence[int], hosts: np.ndarray) -> Pricing:
        """Return the pricing of chosen (maybe repeated) cells with other host factors.

        Parameters
        ----------
        cells : sequence of int, length C
        hosts : ndarray, shape (C,)
        """
        at = list(cells)
        names = ("seconds", "low_s", "high_s", "resource_s", "level_bytes", "bound", "energy_j")
        cost = replace(
            self.cost,
            **{name: getattr(self.cost, name)[:, at] for name in names},
            idle_w=self.cost.idle_w[at],
            energy_why=tuple(self.cost.energy_why[cell] for cell in at),
        )
        columns = {name: getattr(self, name)[:, at] for name in ("value", "low", "high")}
        nominal, low, high = (end[:, at] for end in self.host)
        for array, end in zip(columns.values(), (nominal, low, high), strict=True):
            array[len(cost.evidence) : len(cost.evidence) + HOST_ROWS] = end * hosts
        return replace(self, cost=cost, host=(nominal, low, high), **columns)


def price(scenario: Scenario, specs: Sequence[NpuSpec], host_factor: np.ndarray | None = None) -> Pricing:
    """Price the scenario's workload on every spec.

    Parameters
    ----------
    scenario : Scenario
        Gives workload, source card, vendor times and the anchoring choice; its ``npu`` is not used.
    specs : sequence of NpuSpec, length C
        Candidate cards, one a cell.
    host_factor : ndarray, shape (C,), optional
        Overrides the scenario's host factor cell by cell.

    Returns
    -------
    Pricing
    """
    graph, table = scenario.workload.graph, scenario.workload.table
    cost = estimate(table, specs, source=scenario.source, vendor=scenario.vendor, anchored=bool(scenario.anchored))
    messages = _unstated(message_times(graph, table, specs, scenario.source), cost)
    cost = with_messages(_recorded_collectives(table, cost), messages)
    factor = np.full(len(specs), scenario.host_factor) if host_factor is None else host_factor
    home = scenario.source.name if scenario.source is not None else ""
    hosts = [host_factors(scenario.source_host, scenario.host, moved=spec.name != home) for spec in specs]
    return _pricing(scenario, cost, factor, messages, hosts)


def price_recorded(scenario: Scenario) -> Pricing:
    """Price every node as recorded, but for the operators a vendor table names (identity without one)."""
    table = scenario.workload.table
    size = len(table)
    seconds = table.measured_s.copy()
    evidence = np.where(scenario.workload.estimated, Evidence.SCALED, Evidence.MEASURED).astype(np.int8)
    if scenario.vendor is not None:
        stated = scenario.vendor.lookup(table)
        seconds = np.where(np.isnan(stated), seconds, stated)
        evidence[~np.isnan(stated)] = Evidence.VENDOR
    cost = OpCost(
        seconds=seconds[:, None],
        low_s=seconds[:, None],
        high_s=seconds[:, None],
        resource_s=np.zeros((size, 1, len(Bound))),
        level_bytes=np.zeros((size, 1, len(LEVELS))),
        bound=np.zeros((size, 1), dtype=np.int8),
        evidence=evidence,
        note_code=np.zeros(size, dtype=np.int32),
        reasons=("",),
        energy_j=np.full((size, 1), np.nan),
        idle_w=np.full(1, np.nan),
        energy_why=("no card is chosen",),
        algorithm=np.zeros((size, 1), dtype=np.int8),
        tile=np.zeros((size, 1, 3), dtype=np.int32),
    )
    hosts = [host_factors(scenario.source_host, scenario.host, moved=False)]
    return _pricing(scenario, cost, np.array([scenario.host_factor]), None, hosts)


def at_bounds(pricing: Pricing, cell: int = 0) -> np.ndarray:
    """Return ``value`` [R, 2] with every operator and the host at their low and at their high ends."""
    return np.stack((pricing.low[:, cell], pricing.high[:, cell]), axis=1)


def _unstated(messages: MessageTimes, cost: OpCost) -> MessageTimes:
    """Leave out the messages whose operator a vendor time prices."""
    keep = cost.evidence[messages.row] != Evidence.VENDOR
    names = ("node", "row", "seconds", "low_s", "high_s", "transfer_s", "known", "met")
    return MessageTimes(*(getattr(messages, name)[keep] for name in names))


def _recorded_collectives(table: OpTable, cost: OpCost) -> OpCost:
    """Collective rows without a communication node (a recording without devices) keep their recorded time."""
    rows = np.isin(table.kind, COLLECTIVES) & (cost.evidence != Evidence.VENDOR)
    seconds, low, high = (np.where(rows[:, None], table.measured_s[:, None], array) for array in (cost.seconds, cost.low_s, cost.high_s))
    return replace(cost, seconds=seconds, low_s=low, high_s=high)


def _pricing(
    scenario: Scenario, cost: OpCost, host_factor: np.ndarray, messages: MessageTimes | None, hosts: Sequence[HostFactors]
) -> Pricing:
    graph, table = scenario.workload.graph, scenario.workload.table
    size = len(table)
    per_unit = np.isin(cost.evidence, PER_UNIT)
    on_row = graph.op >= 0
    shared = np.zeros(len(graph), dtype=bool)
    shared[on_row] = per_unit[graph.op[on_row]]
    weight = np.where(shared, graph.share, graph.measured_s)
    constant = size + HOST_ROWS
    row = np.where(
        graph.op == ROW_HOST, size + scenario.workload.host_kinds.astype(np.int32), np.where(graph.op == ROW_FIXED, constant, graph.op)
    )
    row = row.astype(np.int32)
    owner = np.concatenate((np.arange(size), np.full(HOST_ROWS + 1, -1)))
    host = tuple(np.stack([getattr(one, end) for one in hosts], axis=1) for end in ("nominal", "low", "high"))
    ends = zip((cost.seconds, cost.low_s, cost.high_s), host, strict=True)
    values = [_rows(table, per_unit, seconds, end * host_factor) for seconds, end in ends]
    if messages is not None and len(messages.node):
        weight[messages.node] = 1.0
        row[messages.node] = constant + 1 + np.arange(len(messages.node))
        owner = np.concatenate((owner, messages.row))
        extra = (messages.seconds, messages.low_s, messages.high_s)
        values = [np.concatenate(pair) for pair in zip(values, extra, strict=True)]
    made = Pricing(cost, weight, row, values[0], values[1], values[2], owner, (host[0], host[1], host[2]))
    return _scaled(made, node_factors(scenario)) if scenario.scale else made


def _scaled(pricing: Pricing, factor: np.ndarray) -> Pricing:
    """Return the pricing with a factor on every node, and each operator's own times as the mean of its nodes."""
    out = replace(pricing, weight=pricing.weight * factor)
    before, after = pricing.operator_totals(), out.operator_totals()
    mean = np.divide(after, before, out=np.ones_like(after), where=before > 0)
    cost = pricing.cost
    return replace(out, cost=replace(cost, seconds=cost.seconds * mean, low_s=cost.low_s * mean, high_s=cost.high_s * mean))


def _rows(table: OpTable, per_unit: np.ndarray, seconds: np.ndarray, host: np.ndarray) -> np.ndarray:
    """Return the value rows of operators, host [K, C] and constant for one end of the interval, float64 [U + K + 1, C]."""
    measured = table.measured_s[:, None]
    ratio = np.divide(seconds, measured, out=np.ones_like(seconds), where=measured > 0)
    return np.concatenate((np.where(per_unit[:, None], seconds, ratio), host, np.ones((1, seconds.shape[1]))))


def node_factors(scenario: Scenario) -> np.ndarray:
    """Return the user's factor on every node's time, float64 [V] (1 where no pattern of ``scenario.scale`` matches).

    A pattern is matched against the operator's name and signature and against the kernel's own name.
    """
    graph, table, trace = scenario.workload.graph, scenario.workload.table, scenario.workload.trace
    out = np.ones(len(graph))
    device = np.isin(graph.kind, DEVICE_KINDS) | (graph.op >= 0)
    for pattern, factor in scenario.scale:
        named = zip(table.name, table.signature, strict=True)
        rows = np.array([fnmatchcase(name, pattern) or fnmatchcase(signature, pattern) for name, signature in named] or [False])
        used = np.unique(trace.events.name[graph.event[device & (graph.event >= 0)]])
        kernels = np.array([name for name in used if fnmatchcase(trace.strings[name], pattern)], dtype=np.int64)
        hit = device & (graph.op >= 0) & rows[np.maximum(graph.op, 0)]
        hit |= device & (graph.event >= 0) & np.isin(trace.events.name[np.maximum(graph.event, 0)], kernels)
        if not hit.any():
            near = [name for name in dict.fromkeys(table.name) if pattern.strip("*").lower() in name.lower()]
            longest = near or list(dict.fromkeys(table.name[row] for row in np.argsort(-table.measured_s, kind="stable")))
            fix = f"use * as a wildcard; the recording has {', '.join(name[:72] for name in longest[:4]) or 'none'}"
            raise Refused(pattern, "no operator or kernel of the recording has that name", fix)
        out[hit] *= factor
    return out
