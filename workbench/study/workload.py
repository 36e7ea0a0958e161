"""Workload: a recording together with what is derived from it once and shared by every scenario."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from workbench.graph.build import build_graph
from workbench.graph.graph import Graph
from workbench.graph.host_kinds import host_kinds
from workbench.graph.stages import Stages, stages
from workbench.operators.table import OpTable
from workbench.replay.account import account
from workbench.replay.replay import replay
from workbench.replay.timeline import Account, Timeline
from workbench.trace.trace import Trace


@dataclass(frozen=True)
class Workload:
    """A trace, its graph, its operators and its identity replay (each made on first use, then kept).

    ``given`` is the graph and the table where they are not simply those of the trace: without the profiler's cost, of which
    ``unprofiled_step_s`` and ``event_s`` [s] say how much it was (see `workbench.study.unprofiled`).
    """

    trace: Trace = field(repr=False)
    given: tuple[Graph, OpTable] | None = field(default=None, repr=False)
    unprofiled_step_s: float | None = None
    event_s: float = 0.0

    @cached_property
    def _built(self) -> tuple[Graph, OpTable]:
        return build_graph(self.trace) if self.given is None else self.given

    @property
    def graph(self) -> Graph:
        """Dependency graph of the recording."""
        return self._built[0]

    @property
    def table(self) -> OpTable:
        """Unique operators of the recording."""
        return self._built[1]

    @cached_property
    def measured_timeline(self) -> Timeline:
        """Identity replay: measured times on the recorded graph."""
        return replay(self.graph, self.graph.measured_s)

    @cached_property
    def measured_account(self) -> Account:
        """Account of the identity replay."""
        return account(self.graph, self.measured_timeline)

    @cached_property
    def stages(self) -> Stages:
        """Phase, microbatch and layer of every event."""
        return stages(self.trace)

    @cached_property
    def host_kinds(self) -> np.ndarray:
        """Kind of host work of every node, int8 [V] (see `workbench.graph.host_kinds`)."""
        return host_kinds(self.graph, self.trace)

    @property
    def estimated(self) -> np.ndarray:
        """Bool [U]: operators whose measured time is an estimate (of edited recordings only)."""
        return np.zeros(len(self.table), dtype=bool)

    @property
    def digest(self) -> str:
        """Digest of the recording."""
        return self.trace.digest

    @property
    def path(self) -> str:
        """Where the recording came from."""
        return ", ".join(rank.path for rank in self.trace.ranks) or "recording"
