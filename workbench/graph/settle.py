"""Lags: what of a recorded start each edge explains.

The edge whose source finished last set the start, so it carries the whole recorded lag. Any other edge of the node was met
earlier; it carries what such an edge typically costs (never more than its recorded slack), so that it takes over
sensibly when the first one's source ends sooner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.graph.graph import EdgeKind

INSTANT = (EdgeKind.PROGRAM, EdgeKind.HANDOVER, EdgeKind.SYNC, EdgeKind.SYNC_INFERRED, EdgeKind.QUEUE)
"""Kinds that cost nothing by themselves: what follows them on the host is a node of its own."""
UNEXPLAINED = (EdgeKind.ROOT, EdgeKind.FALLBACK)
"""Kinds whose lag is never known."""


Part = tuple[np.ndarray, np.ndarray, int | np.ndarray]
"""Sources, targets and kind of some edges."""


@dataclass(frozen=True)
class Edges:
    """Edges as parallel arrays."""

    source: np.ndarray  # int32 [L]
    target: np.ndarray  # int32 [L]
    kind: np.ndarray  # int8 [L]

    @staticmethod
    def join(parts: list[Part]) -> Edges:
        """Concatenate (source, target, kind) parts."""
        source = np.concatenate([np.asarray(p[0], dtype=np.int32) for p in parts])
        target = np.concatenate([np.asarray(p[1], dtype=np.int32) for p in parts])
        kind = np.concatenate([np.broadcast_to(np.asarray(p[2], dtype=np.int8), len(p[0])) for p in parts])
        return Edges(source, target, kind)

    def where(self, mask: np.ndarray) -> Edges:
        """Return the edges of a mask or an order."""
        return Edges(self.source[mask], self.target[mask], self.kind[mask])


def settle(edges: Edges, start: np.ndarray, end: np.ndarray, device: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (lag, known) of edges sorted by target, int64 [L] [ns].

    Parameters
    ----------
    edges : Edges
        Sorted by target; a source that outlasts the recorded start of its target has a negative lag.
    start, end : int64 [V] [ns]
    device : int32 [V]
        Device of a node, -1 on the host: what is typical is typical of a device.
    """
    slack = start[edges.target] - end[edges.source]
    binds = binding(edges, slack)
    where = device[edges.target]
    typical = np.zeros(len(slack), dtype=np.int64)
    for kind in EdgeKind:
        if kind in INSTANT or kind in UNEXPLAINED:
            continue
        for d in np.unique(where[edges.kind == kind]):
            mine = (edges.kind == kind) & (where == d)
            sample = slack[mine & binds]
            typical[mine] = int(np.median(sample)) if len(sample) else int(slack[mine].min())
    usual = np.minimum(slack, typical)
    return np.where(binds, slack, usual), usual


def binding(edges: Edges, slack: np.ndarray) -> np.ndarray:
    """Bool [L]: the one edge of each target whose source finished last (ties: program order, then launch, stream, ...)."""
    order = np.lexsort((edges.kind, slack, edges.target))
    first = np.ones(len(order), dtype=bool)
    first[1:] = edges.target[order][1:] != edges.target[order][:-1]
    out = np.zeros(len(order), dtype=bool)
    out[order[first]] = True
    return out
