"""What checks of a recording look at: its device work, its steps and when the device was idle, all in seconds on the graph's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.graph.callers import event_ranks, launch_calls
from workbench.graph.graph import DEVICE_KINDS, Graph, NodeKind
from workbench.graph.stages import Stages
from workbench.hardware.npu import NpuSpec, detect
from workbench.operators.table import OpTable
from workbench.study.workload import Workload
from workbench.trace import kernels
from workbench.trace.storages import Life, has_tensors, lives
from workbench.trace.trace import HOST_CALLS, Trace

NS = 1e9


@dataclass(frozen=True)
class Seen:
    """One recording as the checks see it. Times are seconds since the root of its graph.

    Parameters
    ----------
    workload : Workload
    card : NpuSpec or None
        The card it was recorded on, where known.
    """

    workload: Workload
    card: NpuSpec | None = None

    @property
    def trace(self) -> Trace:
        """The recording, raw."""
        return self.workload.trace

    @property
    def graph(self) -> Graph:
        """Its dependency graph."""
        return self.workload.graph

    @property
    def table(self) -> OpTable:
        """Its unique operators."""
        return self.workload.table

    @cached_property
    def device(self) -> np.ndarray:
        """Nodes of device work by rank, then start, int64 [D]."""
        graph = self.graph
        nodes = np.flatnonzero(np.isin(graph.kind, DEVICE_KINDS) & (graph.event >= 0))
        return nodes[np.lexsort((graph.recorded_start_s[nodes], graph.rank[nodes]))]

    @cached_property
    def calls(self) -> np.ndarray:
        """Event of the call that launched each device event, int32 [E] (-1: none)."""
        return launch_calls(self.trace)

    @cached_property
    def device_times(self) -> tuple[np.ndarray, np.ndarray]:
        """Start and end of device work as recorded, float64 [V] [s] (host nodes as in the graph).

        The graph keeps of a matched message its transfer alone; here it lasts, with what it waits for its peers, as the device did it.
        """
        graph = self.graph
        start, end = graph.recorded_start_s.copy(), graph.recorded_start_s + graph.measured_s
        messages = self.device[graph.kind[self.device] == NodeKind.COMMUNICATION]
        start[messages] = np.minimum(self.begins(graph.event[messages]), start[messages])
        return start, end

    @cached_property
    def lives(self) -> list[Life]:
        """Lives of the storages that execution traces name; none without them."""
        return lives(self.trace) if has_tensors(self.trace) else []

    @property
    def stages(self) -> Stages:
        """Phase, microbatch and layer of each event."""
        return self.workload.stages

    @cached_property
    def host_calls(self) -> np.ndarray:
        """Events that are calls of a runtime or driver, int64 [C]."""
        return np.flatnonzero(np.isin(self.trace.events.category, HOST_CALLS))

    @cached_property
    def rank_of_event(self) -> np.ndarray:
        """Rank of each event, int64 [E]."""
        return event_ranks(self.trace)

    @cached_property
    def _origin(self) -> dict[int, int]:
        """Recorded time of the graph's root on the clock of each rank [ns]."""
        graph, e = self.graph, self.trace.events
        timed = np.flatnonzero((graph.event >= 0) & (graph.rank >= 0))
        out = {}
        for rank in np.unique(graph.rank[timed]):
            mine = timed[graph.rank[timed] == rank]
            shift = e.start_ns[graph.event[mine]] - np.rint(graph.recorded_start_s[mine] * NS).astype(np.int64)
            out[int(rank)] = int(np.median(shift))
        return out

    def begins(self, events: np.ndarray) -> np.ndarray:
        """Return the start of events on the graph's clock, float64 [N] [s]."""
        origin = np.array([self._origin.get(int(r), 0) for r in self.rank_of_event[events]], dtype=np.int64)
        return np.asarray((self.trace.events.start_ns[events] - origin) / NS)

    def lengths(self, events: np.ndarray) -> np.ndarray:
        """Return the duration of events, at least 0, float64 [N] [s]."""
        return np.asarray(np.maximum(self.trace.events.dur_ns[events], 0) / NS)

    @cached_property
    def window_rank(self) -> np.ndarray:
        """Rank of each step, int32 [S]."""
        return np.asarray(self.graph.rank[self.graph.step_begin])

    @cached_property
    def windows(self) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end of each step, float64 [S] [s]."""
        begin = self.graph.recorded_start_s[self.graph.step_begin]
        return begin, begin + self.graph.measured_step_s

    @cached_property
    def steps_s(self) -> float:
        """Time of all steps that count [s]; what shares refer to."""
        return float(self.graph.measured_step_s.sum())

    @cached_property
    def _busy(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Disjoint times in which the device of a rank works [ns]."""
        rank = self.graph.rank[self.device]
        return {int(r): self._union(self.device[rank == r]) for r in np.unique(rank)}

    def busy(self, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Return when the device of a rank works: disjoint, ascending, int64 [ns]."""
        empty = np.empty(0, np.int64)
        return self._busy.get(rank, (empty, empty))

    def idle_within(self, events: np.ndarray) -> float:
        """Return how long the device of the same rank is idle while any of some host events lasts, inside steps [s].

        Without device work this is the time the events last: the host is what there is to wait for.
        """
        begin, length = self.begins(events), self.lengths(events)
        return sum(
            self.idle_between(int(rank), begin[rows], begin[rows] + length[rows])
            for rank in np.unique(self.rank_of_event[events])
            for rows in [np.flatnonzero(self.rank_of_event[events] == rank)]
        )

    def idle_between(self, rank: int, begin: np.ndarray, end: np.ndarray) -> float:
        """Return how long the device of a rank is idle in the union of some intervals [s], inside its steps [s]."""
        order = np.argsort(begin, kind="stable")
        asked = kernels.merged(*(np.rint(x[order] * NS).astype(np.int64) for x in (begin, end)))
        inside = self.inside(asked, rank)
        length = int((inside[1] - inside[0]).sum())
        return (length - int(kernels.overlap_ns(*inside, *self.busy(rank)))) / NS

    def uncovered(self, nodes: np.ndarray, others: np.ndarray) -> float:
        """Return how long some device work runs while none of some other work does [s]."""
        mine, rest = self._union(nodes), self._union(others)
        return (int((mine[1] - mine[0]).sum()) - int(kernels.overlap_ns(*mine, *rest))) / NS

    def _union(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        start, end = (np.rint(times[nodes] * NS).astype(np.int64) for times in self.device_times)
        order = np.argsort(start, kind="stable")
        return kernels.merged(start[order], end[order])

    def inside(self, asked: tuple[np.ndarray, np.ndarray], rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the part of disjoint ascending intervals [ns] that lies in steps of a rank."""
        mine = self.window_rank == rank
        low, high = (np.rint(x[mine] * NS).astype(np.int64) for x in self.windows)
        order = np.argsort(low, kind="stable")
        return intersection(asked, kernels.merged(low[order], high[order]))

    @cached_property
    def gaps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Times in which the device of a rank is idle between two pieces of work: begin, end [s], rank, and the node that ends each."""
        starts, ends = self.device_times
        rank = self.graph.rank[self.device]
        order = np.lexsort((starts[self.device], rank))
        nodes, rank = self.device[order], rank[order]
        start, end = starts[nodes], ends[nodes]
        begin = np.empty_like(end)
        for r in np.unique(rank):
            mine = rank == r
            begin[mine] = np.maximum.accumulate(end[mine])
        rows = np.flatnonzero((rank[1:] == rank[:-1]) & (start[1:] > begin[:-1])) + 1
        return begin[rows - 1], start[rows], rank[rows], nodes[rows]

    def name(self, event: int) -> str:
        """Return the name of an event."""
        return self.trace.name_of(event)


def intersection(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return what two lists of disjoint ascending intervals have in common, int64 [ns]."""
    if not len(a[0]) or not len(b[0]):
        return a[0][:0], a[0][:0]
    first = np.searchsorted(b[1], a[0], "right")
    last = np.searchsorted(b[0], a[1], "left")
    count = np.maximum(last - first, 0)
    left = np.repeat(np.arange(len(count)), count)
    right = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    return np.maximum(a[0][left], b[0][right]), np.minimum(a[1][left], b[1][right])


def card_of(trace: Trace) -> NpuSpec | None:
    """Return the catalogue's card for the first device name of a recording that is recognised, or None."""
    names: Sequence[str] = [name for rank in trace.ranks for name in rank.devices]
    return next((spec for spec in map(detect, dict.fromkeys(names)) if spec is not None), None)
