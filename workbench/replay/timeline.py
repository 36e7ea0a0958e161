"""Timeline: when every node of a graph runs, and what it is waiting for."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class Timeline:
    """Result of one replay; node arrays have length V (topological order of the Graph), read-only.

    ``critical[v]`` marks the nodes of one critical path of every step (the chain that ends last) and
    ``binding[v]`` is the edge (index into ``Graph.edge_from``) that set the start of v (-1: none).
    ``slack_s`` is how much longer a node could take without moving the end of any step.
    """

    start_s: np.ndarray  # float64 [s]
    finish_s: np.ndarray  # float64 [s]
    slack_s: np.ndarray  # float64 [s]
    critical: np.ndarray  # bool
    binding: np.ndarray  # int64
    step_s: np.ndarray  # float64 [S] [s], per step
    makespan_s: float


@dataclass(frozen=True)
class Account:
    """Where each step's time went; arrays of length S that add up to ``step_s`` exactly.

    Device time has precedence in this order: compute, then communication not hidden behind compute,
    then copies not hidden behind either; what is left with the device idle is split by what the host
    was doing: working, waiting (blocked on a call), or idle (unexplained). Collectives that wait for recorded peers count as waiting,
    before the host's work.
    """

    compute_s: np.ndarray
    exposed_communication_s: np.ndarray
    exposed_copy_s: np.ndarray
    host_s: np.ndarray
    waiting_s: np.ndarray
    idle_s: np.ndarray
    step_s: np.ndarray
    communication_s: np.ndarray  # union of communication, hidden or not (not part of the sum)
    device_busy_s: np.ndarray  # union over all device work (not part of the sum)

    def mean(self, steps: np.ndarray) -> dict[str, float]:
        """Return the mean of every field over chosen steps [s]; ``steps`` is bool [S]."""
        return {field.name: float(getattr(self, field.name)[steps].mean()) for field in fields(self)}
