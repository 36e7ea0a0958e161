"""From operators to node durations: which evidence prices which row, shared by one prediction and every cell of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from workbench.cost.cost import Bound, Evidence, OpCost
from workbench.cost.estimate import estimate
from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS, ROW_FIXED, ROW_HOST, Graph
from workbench.hardware.npu import NpuSpec
from workbench.network.collectives import transfer_s
from workbench.network.recorded import reprice_recorded
from workbench.operators.table import COLLECTIVES, Kind, OpTable
from workbench.study.scenario import Scenario

PER_UNIT = (Evidence.VENDOR, Evidence.INTERPOLATED, Evidence.MODEL, Evidence.EXTRAPOLATED)
"""Evidence that prices a whole unit; its seconds are spread over the unit's recorded kernels."""


@dataclass(frozen=True)
class Pricing:
    """Node v lasts ``weight[v] * value[row(v), cell]`` seconds (rows: operators, then host factor, then 1)."""

    cost: OpCost
    weight: np.ndarray  # float64 [V]
    value: np.ndarray  # float64 [U + 2, C]


def node_rows(graph: Graph, table: OpTable) -> np.ndarray:
    """Return the row of ``Pricing.value`` that prices each node, int64 [V]."""
    rows = graph.op.astype(np.int64)
    rows[graph.op == ROW_HOST] = len(table)
    rows[graph.op == ROW_FIXED] = len(table) + 1
    return rows


def node_seconds(graph: Graph, table: OpTable, pricing: Pricing, cell: int = 0) -> np.ndarray:
    """Return the duration of every node in one cell, float64 [V] [s]."""
    return pricing.weight * pricing.value[node_rows(graph, table), cell]


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
    table = scenario.workload.table
    cost = estimate(table, specs, source=scenario.source, vendor=scenario.vendor, anchored=scenario.anchored)
    cost = with_collectives(table, cost, specs, scenario.source)
    factor = np.full(len(specs), scenario.host_factor) if host_factor is None else host_factor
    return _pricing(scenario, cost, factor)


def price_recorded(scenario: Scenario) -> Pricing:
    """Price every node as recorded, but for the operators a vendor table names (identity without one)."""
    table = scenario.workload.table
    size = len(table)
    seconds, evidence = table.measured_s.copy(), np.full(size, Evidence.MEASURED, dtype=np.int8)
    if scenario.vendor is not None:
        stated = scenario.vendor.lookup(table)
        seconds = np.where(np.isnan(stated), seconds, stated)
        evidence[~np.isnan(stated)] = Evidence.VENDOR
    cost = OpCost(
        seconds=seconds[:, None],
        low_s=seconds[:, None],
        high_s=seconds[:, None],
        resource_s=np.zeros((size, 1, len(Bound))),
        level_bytes=np.zeros((size, 1, 3)),
        bound=np.zeros((size, 1), dtype=np.int8),
        evidence=evidence,
        note_code=np.zeros(size, dtype=np.int32),
        reasons=("",),
    )
    return _pricing(scenario, cost, np.array([scenario.host_factor]))


def at_bounds(pricing: Pricing, graph: Graph, table: OpTable, cell: int = 0) -> np.ndarray:
    """Return ``value`` [U + 2, 2] with every operator at its low and at its high end (host rows unchanged)."""
    ends = np.repeat(pricing.value[:, cell : cell + 1], 2, axis=1)
    seconds = pricing.cost.seconds[:, cell]
    for column, bound in enumerate((pricing.cost.low_s[:, cell], pricing.cost.high_s[:, cell])):
        ends[: len(table), column] *= np.divide(bound, seconds, out=np.ones_like(seconds), where=seconds > 0)
    return ends


def with_collectives(table: OpTable, cost: OpCost, specs: Sequence[NpuSpec], source: NpuSpec | None) -> OpCost:
    """Fill the collective rows that no vendor time covers from the network model (see `reprice_recorded`)."""
    rows = np.flatnonzero(np.isin(table.kind, COLLECTIVES) & (cost.evidence != Evidence.VENDOR))
    if not len(rows):
        return cost
    seconds, low, high = (a.copy() for a in (cost.seconds, cost.low_s, cost.high_s))
    bound, evidence, resource = cost.bound.copy(), cost.evidence.copy(), cost.resource_s.copy()
    measured = table.measured_s[rows]
    base = _transfers(table, rows, source)
    known = np.isfinite(base)
    for cell, spec in enumerate(specs):
        target = _transfers(table, rows, spec)
        both = known & np.isfinite(target)
        nominal, least, most = reprice_recorded(measured, np.where(both, base, 1.0), np.where(both, target, 1.0))
        seconds[rows, cell] = np.where(both, nominal, measured)
        low[rows, cell] = np.where(both, least, np.fmin(measured, target))
        high[rows, cell] = np.where(both, most, measured)
        resource[rows, cell, :] = 0.0
        resource[rows, cell, Bound.NETWORK] = np.nan_to_num(target)
        known &= both
    bound[rows] = Bound.NETWORK
    evidence[rows] = np.where(known, Evidence.MODEL, Evidence.SCALED)
    return replace(cost, seconds=seconds, low_s=low, high_s=high, bound=bound, evidence=evidence, resource_s=resource)


def _transfers(table: OpTable, rows: np.ndarray, spec: NpuSpec | None) -> np.ndarray:
    """Modelled transfer [s] of collective rows; nan without a stated link, size or group."""
    out = np.full(len(rows), np.nan)
    if spec is None or spec.link is None:
        return out
    size, group = table.dim("bytes")[rows], table.dim("group_size")[rows]
    for i in np.flatnonzero((size > 0) & (group > 1)):
        out[i] = transfer_s(Kind(table.kind[rows[i]]), float(size[i]), int(group[i]), spec.link.bandwidth, spec.link.latency)
    return out


def _pricing(scenario: Scenario, cost: OpCost, host_factor: np.ndarray) -> Pricing:
    graph, table = scenario.workload.graph, scenario.workload.table
    per_unit = np.isin(cost.evidence, PER_UNIT)
    on_row = graph.op >= 0
    spread = np.zeros(len(graph), dtype=bool)
    spread[on_row] = per_unit[graph.op[on_row]]
    weight = np.where(spread, graph.share, graph.measured_s)
    ratio = np.divide(cost.seconds, table.measured_s[:, None], out=np.ones_like(cost.seconds), where=table.measured_s[:, None] > 0)
    value = np.ones((len(table) + 2, cost.seconds.shape[1]))
    value[: len(table)] = np.where(per_unit[:, None], cost.seconds, ratio)
    value[len(table)] = host_factor
    return Pricing(cost, weight * node_factors(scenario), value)


def node_factors(scenario: Scenario) -> np.ndarray:
    """Return the user's factor on every node's time, float64 [V] (1 where no pattern of ``scenario.scale`` matches).

    A pattern is matched against the operator's name and signature and against the kernel's own name.
    """
    graph, table, trace = scenario.workload.graph, scenario.workload.table, scenario.workload.trace
    out = np.ones(len(graph))
    device = np.isin(graph.kind, DEVICE_KINDS) | (graph.op >= 0)
    for pattern, factor in scenario.scale:
        rows = np.array(
            [fnmatchcase(n, pattern) or fnmatchcase(s, pattern) for n, s in zip(table.name, table.signature, strict=True)] or [False]
        )
        used = np.unique(trace.events.name[graph.event[device & (graph.event >= 0)]])
        kernels = np.array([name for name in used if fnmatchcase(trace.strings[name], pattern)], dtype=np.int64)
        hit = device & (graph.op >= 0) & rows[np.maximum(graph.op, 0)]
        hit |= device & (graph.event >= 0) & np.isin(trace.events.name[np.maximum(graph.event, 0)], kernels)
        if not hit.any():
            raise Refused(
                pattern, "no operator or kernel of the recording has that name", "use * as a wildcard; workbench inspect lists names"
            )
        out[hit] *= factor
    return out
