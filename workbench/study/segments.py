"""Time of the mean step by phase, layer and operator."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from workbench.graph.graph import DEVICE_KINDS, NodeKind
from workbench.graph.stages import PROVEN, Phase, Stages
from workbench.operators.table import COLLECTIVES, Dtype, Kind
from workbench.study.documents_inspect import LayerDocument, PhaseDocument, TopDocument
from workbench.study.health_device import outer_bandwidth, peaks
from workbench.study.seen import Seen

MOSTLY = 0.98
"""An operator that spends this share of its time in one phase is said to be of that phase alone [1]."""


def rated(seen: Seen) -> np.ndarray:
    """Return the nodes whose time is told apart, int64 [N]: device work, or operators of the host where none is recorded."""
    graph = seen.graph
    return seen.device if len(seen.device) else np.flatnonzero((graph.op >= 0) & (graph.event >= 0))


def phase_rows(seen: Seen) -> list[PhaseDocument]:
    """Return the time of each phase that occurs, in the order of a step."""
    graph, stages, nodes = seen.graph, seen.stages, rated(seen)
    steps, time, phase = max(len(graph.step_numbers), 1), graph.measured_s[nodes], stages.phase[graph.event[nodes]]
    proven = np.isin(stages.phase_basis[graph.event[nodes]], PROVEN)
    kind = graph.kind[nodes]
    total = time.sum()
    out = []
    for one in (Phase.INPUT, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.UNKNOWN):
        mine = phase == one
        if not mine.any():
            continue
        own = float(time[mine].sum())

        def part(wanted: NodeKind, mine: np.ndarray = mine) -> float:
            return float(time[mine & (kind == wanted)].sum()) / steps

        messages, copies = part(NodeKind.COMMUNICATION), part(NodeKind.COPY)
        out.append(
            PhaseDocument(
                phase=one.name.lower(),
                seconds=own / steps,
                share=own / total if total > 0 else 0.0,
                compute_s=max(own / steps - messages - copies, 0.0),
                communication_s=messages,
                copy_s=copies,
                pieces=int(mine.sum()) / steps,
                proven=float(time[mine & proven].sum()) / own if own > 0 else 0.0,
            )
        )
    return out


def layer_rows(seen: Seen) -> list[LayerDocument]:
    """Return the time of each family of layers, the largest first."""
    graph, stages, nodes = seen.graph, seen.stages, rated(seen)
    layer = stages.layer[graph.event[nodes]]
    time, phase, steps = graph.measured_s[nodes], stages.phase[graph.event[nodes]], max(len(graph.step_numbers), 1)
    names = stages.layers.names
    if not names or not (layer >= 0).any():
        return []
    inside = layer >= 0
    of_layer = np.bincount(layer[inside], weights=time[inside], minlength=len(names))
    families: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        families[name.rsplit("_", 1)[0] if stages.layers.by_module else name.rstrip("0123456789")].append(i)
    out = []
    for family, members in families.items():
        mine = inside & np.isin(layer, members)
        own, typical = of_layer[members], float(np.median(of_layer[members]))
        slowest = members[int(np.argmax(own))]
        out.append(
            LayerDocument(
                family=family,
                layers=len(members),
                basis="module" if stages.layers.by_module else "repetition",
                seconds=float(own.sum()) / steps,
                share=float(own.sum() / time.sum()) if time.sum() > 0 else 0.0,
                forward_s=float(time[mine & (phase == Phase.FORWARD)].sum()) / steps,
                backward_s=float(time[mine & (phase == Phase.BACKWARD)].sum()) / steps,
                slowest=f"{names[slowest]}: {of_layer[slowest] / typical - 1:+.1%}" if typical > 0 else "",
            )
        )
    return sorted(out, key=lambda row: (-row.seconds, row.family))


def microbatch_count(seen: Seen) -> int | None:
    """Return the most microbatches a step has, or None where no backward pass is recorded."""
    found = int(seen.stages.microbatch.max(initial=-1)) + 1
    return found or None


def top_rows(seen: Seen) -> list[TopDocument]:
    """Return the unique operators, the largest total first."""
    graph, table, nodes = seen.graph, seen.table, rated(seen)
    nodes = nodes[graph.op[nodes] >= 0]
    steps = max(len(graph.step_numbers), 1)
    total = np.bincount(graph.op[nodes], weights=graph.measured_s[nodes], minlength=len(table))
    if not len(nodes):
        return []
    whole, roof = float(total.sum()), _roof(seen)
    stage = stage_names(seen.stages, graph.op[nodes], graph.event[nodes], graph.measured_s[nodes], len(table))
    rows = [int(row) for row in np.lexsort((np.arange(len(table)), -total)) if table.count[row] > 0]
    return [
        TopDocument(
            name=table.name[row],
            signature=table.signature[row],
            kind=Kind(table.kind[row]).name.lower(),
            dtype=Dtype(table.dtype[row]).name.lower(),
            stage=stage[row],
            count=float(table.count[row]) / steps,
            seconds=float(total[row]) / steps,
            share=float(total[row]) / whole if whole > 0 else 0.0,
            of_roof=float(roof[row]),
        )
        for row in rows
    ]


def stage_names(stages: Stages, op: np.ndarray, event: np.ndarray, time_s: np.ndarray, size: int) -> list[str]:
    """Return the phase of each operator row, ``forward 60 %`` where others have a part in it; ``unknown`` where nothing proves one.

    Parameters
    ----------
    stages : Stages
    op, event : int [N]
        Row and event of each piece of priced work.
    time_s : float64 [N] [s]
    size : int
        Rows of the table.
    """
    by_phase = np.zeros((size, len(Phase)))
    np.add.at(by_phase, (op, stages.phase[event]), time_s + 1e-15)  # work without length counts too
    most = by_phase.argmax(axis=1)
    share = np.divide(by_phase.max(axis=1), by_phase.sum(axis=1), out=np.zeros(size), where=by_phase.sum(axis=1) > 0)
    return [
        Phase(p).name.lower() + ("" if s >= MOSTLY or s == 0 else f" {s:.0%}") for p, s in zip(most.tolist(), share.tolist(), strict=True)
    ]


def _roof(seen: Seen) -> np.ndarray:
    """Time the card's roofs allow over the recorded time of each row (nan: not known)."""
    table, card = seen.table, seen.card
    if card is None or not np.isin(seen.graph.kind, DEVICE_KINDS).any():
        return np.full(len(table), np.nan)
    least = np.maximum(table.flops / peaks(seen, card), (table.bytes_read + table.bytes_written) / outer_bandwidth(card))
    known = ~np.isin(table.kind, (*COLLECTIVES, Kind.UNKNOWN, Kind.COPY)) & table.has_shapes & (table.measured_s > 0) & (least > 0)
    return np.divide(least, table.measured_s, out=np.full(len(table), np.nan), where=known)
