"""The edges of a graph: one function a rule."""

from __future__ import annotations

import itertools

import numpy as np

from workbench.errors import Note
from workbench.graph import kernels
from workbench.graph.blocking import Queue
from workbench.graph.events import EventEdges
from workbench.graph.graph import EdgeKind
from workbench.graph.host import HostNodes
from workbench.graph.links import Links
from workbench.graph.nodes import Nodes
from workbench.graph.rows import Rows
from workbench.graph.settle import Edges, Part
from workbench.graph.steps import Marks
from workbench.graph.waits import HostWaits

ROOT = 0


class Latest:
    """The host node of a rank (or of one thread) that finished last by a moment."""

    def __init__(self, host: HostNodes, rows: Rows) -> None:
        self.host = host
        self.by_rank = {}
        rank = rows.thread_rank[host.thread]
        for r in np.unique(rank).tolist():
            mine = np.flatnonzero(rank == r)
            self.by_rank[r] = mine[np.lexsort((mine, host.end[mine]))]

    def of_rank(self, rank: int, moment: np.ndarray) -> np.ndarray:
        """Host node of a rank by each moment (-1: none)."""
        mine = self.by_rank.get(rank)
        if mine is None:
            return np.full(len(moment), -1)
        k = np.searchsorted(self.host.end[mine], moment, "right") - 1
        return np.where(k >= 0, mine[np.maximum(k, 0)], -1)

    def of_thread(self, thread: int, moment: int) -> int:
        """Host node of a thread by a moment (-1: none)."""
        low, high = self.host.ptr[thread], self.host.ptr[thread + 1]
        k = int(np.searchsorted(self.host.end[low:high], moment, "right")) - 1
        return int(low) + k if k >= 0 else -1


def collect(
    rows: Rows, links: Links, queue: Queue, waits: HostWaits, events: EventEdges, host: HostNodes, marks: Marks, nodes: Nodes
) -> tuple[Edges, list[Note]]:
    """Return the edges of every rule that the recorded times do not contradict, in building order of nodes.

    Parameters
    ----------
    rows, links, queue, waits, events, host, marks
        What the rules before this one found.
    nodes : Nodes
        All nodes, in the order the edges refer to.
    """
    latest = Latest(host, rows)
    launch, notes = _launch_edges(links, host, nodes, rows, latest)
    dev = nodes.first_device
    parts = [
        program_edges(host, nodes),
        opening_edges(rows, host, latest),
        handover_edges(host),
        launch,
        stream_edges(rows, nodes),
        (events.source + dev, events.target + dev, events.kind),
        (waits.device + dev, host.wait_node[waits.call] + nodes.first_host, waits.kind),
        queue_edges(rows, queue, host, nodes),
        orphan_edges(rows, links, nodes, latest),
        _mark_edges(host, marks, nodes, latest, rows),
    ]
    edges = Edges.join(parts)
    # negative lags: work that outlasts, by the noise of the clocks, a call known to wait for it; overlaps on a stream
    noisy = np.isin(edges.kind, (EdgeKind.SYNC, EdgeKind.SYNC_INFERRED, EdgeKind.STREAM))
    noisy &= nodes.start[edges.source] < nodes.start[edges.target]
    fits = ((nodes.end[edges.source] <= nodes.start[edges.target]) | noisy) & (edges.source != edges.target)
    if not fits.all():
        notes.append(
            Note(
                "edge-contradicted", "graph", int((~fits).sum()), "dependencies whose source ends after their target starts were set aside"
            )
        )
    return edges.where(fits), notes


def program_edges(host: HostNodes, nodes: Nodes) -> Part:
    """Order on a thread."""
    same = np.flatnonzero(host.thread[1:] == host.thread[:-1]) + nodes.first_host
    return same, same + 1, EdgeKind.PROGRAM


def opening_edges(rows: Rows, host: HostNodes, latest: Latest) -> Part:
    """A thread's first node: from the thread that handed over to it, else from the latest host activity before it (flagged)."""
    opened = set(host.handovers.waiter[host.handovers.begin < 0].tolist())
    source, target = [], []
    for t in range(len(rows.threads)):
        if t in opened or host.ptr[t] == host.ptr[t + 1]:
            continue
        node = int(host.ptr[t])
        before = int(latest.of_rank(int(rows.thread_rank[t]), host.start[node : node + 1])[0])
        if before >= 0 and host.thread[before] != t and host.end[before] > 0:
            source.append(before + 1)
            target.append(node + 1)
    return np.array(source, dtype=np.int32), np.array(target, dtype=np.int32), EdgeKind.FALLBACK


def handover_edges(host: HostNodes) -> Part:
    """From the node the giver finished with to what the waiter does next."""
    given, source, target = host.handovers, [], []
    for waiter, giver, end in zip(given.waiter.tolist(), given.giver.tolist(), given.end.tolist(), strict=True):
        low, high = int(host.ptr[waiter]), int(host.ptr[waiter + 1])
        nxt = low + int(np.searchsorted(host.start[low:high], end, "left"))
        done = int(host.ptr[giver]) + int(np.searchsorted(host.end[host.ptr[giver] : host.ptr[giver + 1]], end, "right")) - 1
        if nxt < high and done >= host.ptr[giver]:
            source.append(done + 1)
            target.append(nxt + 1)
    return np.array(source, dtype=np.int32), np.array(target, dtype=np.int32), EdgeKind.HANDOVER


def _launch_edges(links: Links, host: HostNodes, nodes: Nodes, rows: Rows, latest: Latest) -> tuple[Part, list[Note]]:
    """Launch call to device work; work that starts before its call hangs on what the thread had finished by then."""
    linked = np.flatnonzero(links.call >= 0)
    source = host.launch_node[links.call[linked]] + nodes.first_host
    early = np.flatnonzero(nodes.end[source] > rows.device.start[linked])
    for i in early:
        thread = int(rows.calls.thread[links.call[linked[i]]])
        source[i] = latest.of_thread(thread, int(rows.device.start[linked[i]])) + nodes.first_host
    skewed = int((rows.device.start[linked] < rows.calls.start[links.call[linked]]).sum())
    notes = []
    if skewed:
        notes.append(
            Note(
                "kernel-before-launch",
                "device streams",
                skewed,
                "device work that starts before its launch call (clock skew): launch lag read as zero",
            )
        )
    return (source, linked + nodes.first_device, EdgeKind.LAUNCH), notes


def stream_edges(rows: Rows, nodes: Nodes) -> Part:
    """Order on a stream: after the work before, and after earlier work that outlasts it.

    Work that overlaps the first half of its predecessor does not follow it, but the latest work that had ended.
    """
    dev = rows.device
    row = np.arange(len(dev.lane))
    before = np.where(np.concatenate([[False], dev.lane[1:] == dev.lane[:-1]]), row - 1, -1) if len(row) else row
    longest = kernels.outlasting(dev.lane, dev.end)
    source = np.concatenate([before, longest])
    target = np.concatenate([row, row])
    have = source >= 0
    source, target = source[have], target[have]
    beside = np.flatnonzero(dev.end[source] - dev.start[target] > (dev.end - dev.start)[source] // 2)
    source[beside] = kernels.latest_ended(dev.ptr[dev.lane[target[beside]]], target[beside], dev.end, dev.start[target[beside]])
    have = source >= 0
    return source[have] + nodes.first_device, target[have] + nodes.first_device, EdgeKind.STREAM


def queue_edges(rows: Rows, queue: Queue, host: HostNodes, nodes: Nodes) -> Part:
    """Work whose end frees a slot of the launch queue to the call that needs it, held back by it or not."""
    call = np.flatnonzero((queue.freed >= 0) & (host.launch_node >= 0))
    call = call[rows.device.end[queue.freed[call]] <= host.start[host.launch_node[call]]]
    return queue.freed[call] + nodes.first_device, host.launch_node[call] + nodes.first_host, EdgeKind.QUEUE


def orphan_edges(rows: Rows, links: Links, nodes: Nodes, latest: Latest) -> Part:
    """Work without a launch that does not follow its stream predecessor as closely as usual: from the latest host activity."""
    dev = rows.device
    loose = links.call < 0
    follows = np.zeros(len(loose), dtype=bool)
    follows[1:] = dev.lane[1:] == dev.lane[:-1]
    lag = np.zeros(len(loose), dtype=np.int64)
    lag[1:] = dev.start[1:] - dev.end[:-1]
    wanted = np.zeros(len(loose), dtype=bool)
    for lane in range(len(rows.lanes)):
        part = slice(dev.ptr[lane], dev.ptr[lane + 1])
        known = lag[part][follows[part]]
        usual = np.median(known) if len(known) else 0
        wanted[part] = loose[part] & (~follows[part] | (lag[part] > usual))
    source, target = [], []
    for rank in np.unique(rows.lane_rank).tolist():
        mine = np.flatnonzero(wanted & (rows.lane_rank[dev.lane] == rank))
        found = latest.of_rank(rank, dev.start[mine])
        source.append(found[found >= 0] + nodes.first_host)
        target.append(mine[found >= 0] + nodes.first_device)
    if not source:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), EdgeKind.FALLBACK
    return np.concatenate(source), np.concatenate(target), EdgeKind.FALLBACK


def _mark_edges(host: HostNodes, marks: Marks, nodes: Nodes, latest: Latest, rows: Rows) -> Part:
    """Marks outside their thread's sequence: after what the thread, or failing that the device, had finished by then.

    Without marks the one step ends with the last node of every thread and lane.
    """
    source: list[int] = []
    target: list[int] = []
    kind: list[int] = []
    closing = set(nodes.step_end[marks.event < 0].tolist())
    for node in nodes.beside.tolist():
        if node in closing:
            rank = nodes.rank[node]
            threads = host.ptr[1:][(np.diff(host.ptr) > 0) & (rows.thread_rank == rank)] - 1 + nodes.first_host
            bounds = zip(itertools.pairwise(rows.device.ptr.tolist()), rows.lane_rank.tolist(), strict=True)
            lanes = [int(a + np.argmax(rows.device.end[a:b])) for (a, b), of in bounds if b > a and of == rank]
            ends = np.concatenate([threads, np.array(lanes, dtype=np.int64) + nodes.first_device])
            source += ends.tolist()
            target += [node] * len(ends)
            kind += [int(EdgeKind.PROGRAM)] * len(ends)
            continue
        thread = int(nodes.resource[node])
        found = latest.of_thread(thread, int(nodes.start[node])) if thread < len(rows.threads) else -1
        if found >= 0:
            source.append(found + nodes.first_host)
        elif len(rows.device.end) and (rows.device.end <= nodes.start[node]).any():
            done = np.flatnonzero(rows.device.end <= nodes.start[node])
            source.append(int(done[np.lexsort((done, rows.device.end[done]))[-1]]) + nodes.first_device)
        else:
            continue
        target.append(node)
        kind.append(int(EdgeKind.PROGRAM if found >= 0 else EdgeKind.FALLBACK))
    return np.array(source, dtype=np.int32), np.array(target, dtype=np.int32), np.array(kind, dtype=np.int8)
