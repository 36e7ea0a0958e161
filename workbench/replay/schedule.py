"""Replay of a pipeline schedule: orders of operations, their times and the links between stages -> when everything runs.

A stage does one operation after another, in its fixed order. The result of an operation that another stage waits for is a message over
the directed link between the two stages: it leaves when the link is free, keeps it busy for its *occupancy* (bytes over bandwidth) and
arrives its *latency* later. Sending runs beside computation, or holds the sender until the message has arrived (``blocking``).
No overlap and no bubble is put in: both come out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Refused
from workbench.replay import kernels_schedule as kernels

LANES = 16
"""Scenarios that run side by side."""


@dataclass(frozen=True)
class StageOrders:
    """Orders of operations made ready to run; arrays of length N, stage after stage (see `stage_orders`)."""

    ptr: np.ndarray  # int64 [p + 1]
    stage: np.ndarray  # int32 [N]
    source: np.ndarray  # int32 [N]
    link: np.ndarray  # int32 [N], from * p + to (-1: nothing is sent)
    order: np.ndarray  # int32 [N], rows in an order in which they may run

    @property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return len(self.ptr) - 1


@dataclass(frozen=True)
class Run:
    """A schedule in time, seconds since the first operation may start; operations [N], stages [p]."""

    start_s: np.ndarray
    finish_s: np.ndarray
    arrival_s: np.ndarray  # when the result is where it is needed
    critical: np.ndarray  # bool [N], the chain of operations that sets the end
    critical_message_s: float  # what messages take of that chain
    busy_s: np.ndarray  # float64 [p]
    sending_s: np.ndarray  # float64 [p], held by its own messages (blocking sends only)
    begin_s: np.ndarray  # float64 [p], start of the first operation
    end_s: np.ndarray  # float64 [p], finish of the last operation
    makespan_s: float

    @property
    def bubble_s(self) -> np.ndarray:
        """Float64 [p] [s]: what a stage does not work, of the whole schedule."""
        return self.makespan_s - self.busy_s

    @property
    def waiting_s(self) -> np.ndarray:
        """Float64 [p] [s]: what a stage waits for messages, from the begin to its last operation."""
        return np.maximum(self.end_s - self.busy_s - self.sending_s, 0.0)

    @property
    def period_s(self) -> float:
        """Longest span from the first to the last operation of a stage [s].

        This is the time of a step where the next one starts on every stage as soon as that stage is done: what ZB-H2 aims at, with an
        optimizer that does not wait for all stages (Qi et al., arXiv 2401.10241, section 4).
        """
        return float((self.end_s - self.begin_s).max())


def stage_orders(ptr: np.ndarray, source: np.ndarray) -> StageOrders:
    """Make orders of operations ready to run.

    Parameters
    ----------
    ptr : int64 [p + 1]
        Stage s owns rows ``ptr[s]:ptr[s + 1]``, in its order.
    source : int32 [N]
        Row of the operation whose result a row waits for, -1: none.

    Returns
    -------
    StageOrders

    Raises
    ------
    Refused
        Operations that wait for each other in a circle, or for rows that do not exist.
    """
    ptr, source = np.ascontiguousarray(ptr, dtype=np.int64), np.ascontiguousarray(source, dtype=np.int32)
    count, stages = len(source), len(ptr) - 1
    if stages < 1 or ptr[0] != 0 or ptr[-1] != count or (np.diff(ptr) < 0).any() or (source >= count).any():
        raise Refused("pipeline schedule", "rows of stages or messages lie outside the operations", "pass ptr and source of one schedule")
    order, able = kernels.topological(ptr, source)
    if able < count:
        stuck = int(np.setdiff1d(np.arange(count), order[:able])[0])
        raise Refused(
            f"pipeline schedule, row {stuck}",
            f"{count - able} of {count} operations wait for each other",
            "correct the orders of the stages",
        )
    stage = np.repeat(np.arange(stages, dtype=np.int32), np.diff(ptr))
    waits = np.flatnonzero(source >= 0)
    away = waits[stage[waits] != stage[source[waits]]]
    if len(np.unique(source[away])) < len(away):
        raise Refused("pipeline schedule", "two operations wait for one message", "send a result to one other stage only")
    link = np.full(count, -1, dtype=np.int32)
    link[source[away]] = stage[source[away]] * stages + stage[away]
    return StageOrders(ptr, stage, source, link, order)


def replay_schedule(
    orders: StageOrders,
    op_s: np.ndarray,
    latency_s: np.ndarray | float = 0.0,
    occupancy_s: np.ndarray | float = 0.0,
    *,
    blocking: bool = False,
) -> Run:
    """Run a schedule.

    Parameters
    ----------
    orders : StageOrders
    op_s : float64 [N]
        Time of every operation [s].
    latency_s, occupancy_s : float or float64 [p, p]
        Of a message from a stage to another [s].
    blocking : bool
        Whether a stage that sends waits until its message has arrived.

    Returns
    -------
    Run

    Raises
    ------
    Refused
        Times of the wrong shape, negative or not finite.
    """
    op_s = _checked(op_s, (len(orders.stage),), "times of operations")
    latency, occupancy = (_links(orders, value, (), word) for value, word in ((latency_s, "latency"), (occupancy_s, "occupancy")))
    start, finish, arrival, waits, behind = kernels.run(
        orders.order, orders.stage, orders.source, orders.link, op_s, latency, occupancy, blocking, orders.stages
    )
    rows = np.arange(len(op_s))
    critical, message = kernels.critical_path(rows == orders.ptr[orders.stage], orders.source, waits, behind, start, finish, arrival)
    some = np.diff(orders.ptr) > 0
    begin, end = np.zeros(orders.stages), np.zeros(orders.stages)
    begin[some], end[some] = start[orders.ptr[:-1][some]], finish[orders.ptr[1:][some] - 1]
    busy = np.bincount(orders.stage, weights=op_s, minlength=orders.stages)
    last = np.append(orders.stage[1:] != orders.stage[:-1], True)  # the message of its last operation holds a stage from nothing
    held = np.where(blocking & ~last & (orders.link >= 0), arrival - finish, 0.0)
    sending = np.bincount(orders.stage, weights=held, minlength=orders.stages)
    for column in (start, finish, arrival, critical, busy, sending, begin, end):
        column.setflags(write=False)
    return Run(start, finish, arrival, critical, float(message), busy, sending, begin, end, float(finish.max(initial=0.0)))


def stage_ends(
    orders: StageOrders,
    row: np.ndarray,
    value: np.ndarray,
    latency_s: np.ndarray | float = 0.0,
    occupancy_s: np.ndarray | float = 0.0,
    *,
    blocking: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Run a schedule in many scenarios: operation i lasts ``value[row[i], c]`` in scenario c.

    Parameters
    ----------
    orders : StageOrders
    row : int [N]
        Row of ``value`` of every operation: scenarios that differ by stage, by chunk or by microbatch (jitter) need that many rows.
    value : float64 [R, C]
        Times [s].
    latency_s, occupancy_s : float, float64 [C] or float64 [p, p, C]
        Of a message from a stage to another [s].
    blocking : bool
        As in `replay_schedule`.

    Returns
    -------
    begin_s, end_s : float64 [p, C]
        Start of the first and finish of the last operation of every stage [s]; ``end_s.max(axis=0)`` is the makespan.

    Raises
    ------
    Refused
        Times of the wrong shape, negative or not finite; rows outside the table.
    """
    row = np.ascontiguousarray(row, dtype=np.int32)
    value = _checked(value, (len(value), np.shape(value)[-1]), "the table of times")
    if row.shape != orders.stage.shape or (len(row) and not (row.min() >= 0 and row.max() < len(value))):
        raise Refused("pipeline schedule", "rows of the table of times do not fit the operations", "pass one row of the table an operation")
    count = value.shape[1]
    latency, occupancy = (_links(orders, v, (count,), word) for v, word in ((latency_s, "latency"), (occupancy_s, "occupancy")))
    begin, end = np.zeros((orders.stages, count)), np.zeros((orders.stages, count))
    for first in range(0, count, LANES):
        part = slice(first, min(first + LANES, count))
        inside = [np.ascontiguousarray(table[:, part]) for table in (value, latency, occupancy)]
        out = np.zeros((orders.stages, inside[0].shape[1])), np.zeros((orders.stages, inside[0].shape[1]))
        kernels.block(orders.order, orders.stage, orders.source, orders.link, row, *inside, blocking, *out)
        begin[:, part], end[:, part] = out
    return begin, end


def _links(orders: StageOrders, value: np.ndarray | float, tail: tuple[int, ...], word: str) -> np.ndarray:
    """Return a property of messages for every directed link, float64 [p p, *tail]."""
    given = np.asarray(value, dtype=np.float64)
    shape = (orders.stages, orders.stages, *tail)
    if given.ndim > len(tail) and given.shape != shape:
        raise Refused(
            "pipeline schedule", f"{word} has shape {given.shape}, not {shape}", "pass one number, or one for every pair of stages"
        )
    whole = np.ascontiguousarray(np.broadcast_to(given, shape))
    return _checked(whole, shape, f"the {word} of messages").reshape(-1, *tail)


def _checked(numbers: np.ndarray, shape: tuple[int, ...], word: str) -> np.ndarray:
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    if numbers.shape != shape:
        raise Refused("pipeline schedule", f"{word} have shape {numbers.shape}, the schedule needs {shape}", "pass one number an operation")
    if numbers.size and not (np.isfinite(numbers).all() and numbers.min() >= 0):
        raise Refused("pipeline schedule", f"{word} must be finite and not negative", "check the costs for missing rows")
    return numbers
