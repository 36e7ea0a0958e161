"""Lags: what of a recorded start each edge explains.

The edge that was met last, its usual lag included, set the start, so it carries the whole recorded lag. Any other edge of the
node was met earlier; it carries what such an edge usually costs (never more than its recorded slack), so that it takes over
sensibly when the first one's source ends sooner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.graph.graph import EdgeKind

IDLE = 4.0
"""A launch onto an idle stream: whatever else the work waits for was over this many times as long before as the launch."""
DEEP = 4.0
"""A launch long past, so that something else must have held the work back: this many usual launch latencies ago ..."""
DEEP_NS = 20_000
"""... and at least this long [ns]."""
UNSEEN_NS = 1_000
"""Gap between two pieces of work of a stream where the recording never shows one queued behind another: about what cards need [ns]."""
MOST_NS = 50_000
"""No latency is usual above this: the rest is unexplained [ns]."""
FEW = 5
"""With fewer samples the smallest counts instead of the median."""
FAR = np.int64(2**62)


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


def settle(edges: Edges, start: np.ndarray, end: np.ndarray, device: np.ndarray, peer_lag: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (lag, known) of edges sorted by target, int64 [L] [ns].

    Parameters
    ----------
    edges : Edges
        Sorted by target; a source that outlasts the recorded start of its target has a negative lag.
    start, end : int64 [V] [ns]
    device : int64 [V]
        Device of a node, -1 on the host: what is typical is typical of a device.
    peer_lag : int64 [V] [ns]
        Lag of the edges between a member of a message and the meeting of all.
    """
    slack = start[edges.target] - end[edges.source]
    typical = usual_lags(edges, slack, device)
    usual = np.minimum(slack, typical)
    lag = np.where(binding(edges, slack - typical), slack, usual)
    for kind, known in ((EdgeKind.ARRIVAL, 0), (EdgeKind.PEER, peer_lag[edges.source] + peer_lag[edges.target])):
        lag, usual = np.where(edges.kind == kind, known, lag), np.where(edges.kind == kind, known, usual)
    return lag, usual


def usual_lags(edges: Edges, slack: np.ndarray, device: np.ndarray) -> np.ndarray:
    """Int64 [L] [ns]: what an edge of this kind costs on this device; 0 for kinds that cost nothing or whose lag is never known.

    Launch latency is the median where the stream was idle; the gaps after stream predecessors and awaited events are the medians
    where the launch was long past. What follows a node on the host is a node of its own, so host edges cost nothing.
    """
    out = np.zeros(len(slack), dtype=np.int64)
    count = len(device)
    launch, stream, event = (_smallest(edges, slack, kinds, count) for kinds in ((EdgeKind.LAUNCH,), (EdgeKind.STREAM,), EVENTS))
    where = device[edges.target]
    for d in np.unique(device[device >= 0]).tolist():
        mine = device == d
        asked = mine & (launch < FAR)
        other = np.minimum(stream, event)
        latency = _median(launch[asked & (other > IDLE * launch + UNSEEN_NS)], launch[asked])
        deep = mine & (launch > max(DEEP * latency, DEEP_NS))
        gap = _median(stream[deep & (stream <= event) & (stream < FAR)], np.minimum(stream[mine & (stream < FAR)], UNSEEN_NS))
        wait = _median(event[deep & (event < stream) & (event < FAR)], np.array([gap]))
        for kinds, value in (((EdgeKind.LAUNCH,), latency), ((EdgeKind.STREAM,), gap), (EVENTS, wait)):
            out[(where == d) & np.isin(edges.kind, kinds)] = max(value, 0)
    return out


EVENTS = (EdgeKind.EVENT, EdgeKind.EVENT_INFERRED)


def _median(sample: np.ndarray, bound: np.ndarray) -> int:
    """Median of a sample (a small one: its smallest); where it is empty, the smallest of what bounds it from above (0 without any)."""
    if not len(sample):
        sample = bound
    value = (np.median(sample) if len(sample) >= FEW and sample is not bound else sample.min()) if len(sample) else 0
    return int(min(value, MOST_NS))


def _smallest(edges: Edges, slack: np.ndarray, kinds: tuple[EdgeKind, ...], count: int) -> np.ndarray:
    """Int64 [V] [ns]: smallest slack of a node's edges of some kinds (`FAR`: none)."""
    out = np.full(count, FAR)
    mine = np.isin(edges.kind, kinds)
    np.minimum.at(out, edges.target[mine], slack[mine])
    return out


def binding(edges: Edges, excess: np.ndarray) -> np.ndarray:
    """Bool [L]: the one edge of each target whose slack exceeds its usual lag least (ties: the lower kind)."""
    order = np.lexsort((edges.kind, excess, edges.target))
    first = np.ones(len(order), dtype=bool)
    first[1:] = edges.target[order][1:] != edges.target[order][:-1]
    out = np.zeros(len(order), dtype=bool)
    out[order[first]] = True
    return out
