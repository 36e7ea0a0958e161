"""Host time that goes with an operator: its launch calls, and the work of the operators that do nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.graph.graph import NodeKind
from workbench.graph.rewrite_draft import Draft
from workbench.graph.rewrite_view import View
from workbench.trace.trace import Category


class Host:
    """The host side of a view."""

    def __init__(self, of: View) -> None:
        self.of = of
        graph, events = of.graph, of.trace.events
        self.by_thread = {}
        host = np.flatnonzero(~graph.resource_is_device[graph.resource] & (graph.rank >= 0))
        for thread in np.unique(graph.resource[host]).tolist():
            self.by_thread[thread] = host[graph.resource[host] == thread]
        self.under = self._count(np.flatnonzero(of.launch >= 0))
        self._events = events

    def _count(self, device: np.ndarray) -> np.ndarray:
        """Int64 [E]: device nodes launched inside each event."""
        events, out = self.of.trace.events, np.zeros(len(self.of.trace.events), dtype=np.int64)
        at = self.of.graph.event[self.of.launch[device]].astype(np.int64)
        while (at >= 0).any():
            np.add.at(out, at[at >= 0], 1)
            at = np.where(at >= 0, events.parent[at], -1)
        return out

    def remove(self, draft: Draft, units: Sequence[int]) -> None:
        """Take out device work, the calls that launched nothing else, and the operators that did nothing else."""
        nodes = np.concatenate([self.of.nodes(unit) for unit in units])
        draft.remove(nodes.tolist())
        gone = self._count(nodes[self.of.launch[nodes] >= 0])
        launches = np.unique(self.of.launch[nodes][self.of.launch[nodes] >= 0])
        idle = {int(v) for v in launches if gone[self.of.graph.event[v]] == self.under[self.of.graph.event[v]]}
        self._quiet_calls(draft, idle)
        outer = {self._outermost(int(self.of.operator[unit]), gone): int(calls[0]) for unit in units if len(calls := self.of.calls(unit))}
        for event, call in outer.items():
            if event >= 0:
                self._shorten(draft, event, call)

    def _quiet_calls(self, draft: Draft, launches: set[int]) -> None:
        graph = self.of.graph
        for node in launches:
            same = self.by_thread[int(graph.resource[node])]
            draft.quiet(
                same[
                    (graph.event[same] == graph.event[node]) & np.isin(graph.kind[same], (NodeKind.LAUNCH, NodeKind.LAUNCH_RETURN))
                ].tolist()
            )

    def _outermost(self, event: int, gone: np.ndarray) -> int:
        """Return the outermost operator around an event that launches only what goes (-1: none)."""
        found, at = -1, event
        while at >= 0 and gone[at] == self.under[at]:
            if self._events.category[at] == Category.CPU_OP:
                found = at
            at = int(self._events.parent[at])
        return found

    def span(self, event: int, near: int) -> tuple[float, float]:
        """Return begin and end of an event in seconds of the graph; ``near`` is a node with an event of the same clock."""
        graph, events = self.of.graph, self._events
        first = float(graph.recorded_start_s[near]) + int(events.start_ns[event] - events.start_ns[graph.event[near]]) / 1e9
        return first, first + float(max(events.dur_ns[event], 0)) / 1e9

    def covered(self, event: int, near: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes of work of an event's thread that it covers, and for how long [s]."""
        graph = self.of.graph
        same = self.by_thread[int(graph.resource[near])]
        begin = graph.recorded_start_s[same]
        low, high = self.span(event, near)
        inside = np.minimum(begin + graph.measured_s[same], high) - np.maximum(begin, low)
        mine = (inside > 0) & np.isin(graph.kind[same], (NodeKind.HOST_WORK, NodeKind.HOST_CALL)) & (graph.op[same] < 0)
        return same[mine], inside[mine]

    def _shorten(self, draft: Draft, event: int, near: int) -> None:
        nodes, inside = self.covered(event, near)
        left = draft.column["measured_s"][nodes] - inside
        draft.column["measured_s"][nodes] = np.where(left < 1e-9, 0.0, left)
