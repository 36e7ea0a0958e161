"""Graph: the dependencies of one recording as CSR arrays over nodes in topological order.

A node is a piece of work on one resource; an edge says *may not start before that one finished, plus a lag*.
The only time rule is ``start[v] = max over edges (finish[u] + lag)`` and ``finish = start + duration``;
a node keeps no absolute recorded time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from workbench.errors import Note


class NodeKind(IntEnum):
    """What a node stands for."""

    ROOT = 0  # start of the recording, duration 0
    HOST_WORK = 1  # self time of framework operators on a host thread
    HOST_CALL = 2  # a runtime call that neither launches nor waits
    LAUNCH = 3  # issue part of a launch call
    LAUNCH_RETURN = 4  # rest of a launch call after its kernel may start
    SYNC = 5  # what is left of a waiting call once the awaited work has ended
    GAP = 6  # host time between events that no record explains (Python, untraced code)
    COMPUTE = 7  # device kernel
    COMMUNICATION = 8  # device kernel of a collective or point-to-point message
    COPY = 9  # device copy or set
    STEP_BEGIN = 10  # step mark, duration 0
    STEP_END = 11
    ARRIVAL = 12  # a member of a matched message is ready for its peers, duration 0; its COMMUNICATION is the transfer alone
    MEETING = 13  # all members a message waits for have arrived, duration 0


DEVICE_KINDS = (NodeKind.COMPUTE, NodeKind.COMMUNICATION, NodeKind.COPY)


class EdgeKind(IntEnum):
    """Why one node waits for another."""

    ROOT = 0  # no cause known but the start of the recording (flagged)
    PROGRAM = 1  # order on a host thread
    HANDOVER = 2  # between host threads
    LAUNCH = 3  # launch call -> device node
    STREAM = 4  # order on a device stream
    EVENT = 5  # event record -> wait, from records
    EVENT_INFERRED = 6  # the same, inferred
    SYNC = 7  # device -> waiting host call, from records
    SYNC_INFERRED = 8  # the same, inferred
    QUEUE = 9  # a full launch queue: the device node that freed the slot -> launch
    FALLBACK = 10  # a node whose cause is not recorded, hung on its latest predecessor (flagged)
    ARRIVAL = 11  # arrival of a member -> its own transfer
    PEER = 12  # arrival of a member -> meeting -> transfers of those that wait; the lags are what clocks differ by


ROW_HOST = -1  # duration scales with the host factor
ROW_FIXED = -2  # duration never scales


@dataclass(frozen=True)
class Graph:
    """Dependency graph of one or several ranks; node arrays have length V, in topological order; read-only.

    ``op`` is the row of the OpTable that prices a device node, or ROW_HOST / ROW_FIXED.
    ``unit`` groups device nodes that are priced together (-1: none); ``share`` is the node's part of
    its unit's recorded time (sums to 1 over a unit).
    ``measured_s`` of a matched message is its transfer: what it waited for its peers follows from their arrivals.
    ``edge_lag_s`` is the whole recorded lag of an edge; ``edge_known_s`` <= ``edge_lag_s`` is the part
    typical of edges of that kind, so the difference is what the ledger lists as unexplained.
    """

    kind: np.ndarray  # int8, NodeKind
    op: np.ndarray  # int32
    unit: np.ndarray  # int32
    share: np.ndarray  # float64
    resource: np.ndarray  # int32, index into resources
    rank: np.ndarray  # int32, rank of the node (-1: none, or several)
    step: np.ndarray  # int32, index into steps (-1: outside every step)
    event: np.ndarray  # int32, row in Trace.events (-1: none)
    measured_s: np.ndarray  # float64 [s], recorded duration of the node
    recorded_start_s: np.ndarray  # float64 [s] since the root; for display and tests only, never used by replay
    edge_ptr: np.ndarray  # int64 [V + 1]; edges into node v are edge_ptr[v]:edge_ptr[v + 1]
    edge_from: np.ndarray  # int32 [L]
    edge_kind: np.ndarray  # int8 [L], EdgeKind
    edge_lag_s: np.ndarray  # float64 [L] [s]
    edge_known_s: np.ndarray  # float64 [L] [s]
    resources: tuple[str, ...]  # "rank 0 thread 123", "rank 0 device 0 stream 7", ...
    resource_is_device: np.ndarray  # bool
    step_numbers: np.ndarray  # int64 [S], the producer's step numbers (one step, number -1, when there are no marks)
    step_begin: np.ndarray  # int32 [S], node of each STEP_BEGIN
    step_end: np.ndarray  # int32 [S], node of each STEP_END
    measured_step_s: np.ndarray  # float64 [S] [s], as recorded: host window plus device work launched in it
    step_complete: np.ndarray  # bool [S]; False: launches without device work (left out of averages, named in notes)
    notes: tuple[Note, ...]

    def __len__(self) -> int:
        return len(self.kind)
