"""Pipeline schedules: what every stage does, in which order, and which message it waits for.

A schedule is a fixed order of operations on every stage. Nothing here takes time: `workbench.replay.schedule` runs the orders.

An operation is one microbatch through one *chunk* (the layers that a stage holds in one place of the pipeline): its forward pass, its
backward pass, or the two halves of the backward pass. Every operation waits for the one before it on its stage, and for at most one
message: the activation of the chunk before, or the gradient of the chunk after.

Orders: GPipe (Huang et al., arXiv 1811.06965); 1F1B (Narayanan et al., PipeDream-Flush, arXiv 2006.09503); interleaved 1F1B (Narayanan
et al., arXiv 2104.04473, the order of Megatron-LM); ZB-H1 and ZB-H2 (Qi et al., arXiv 2401.10241); ZB-V (Qi et al., arXiv 2405.15362).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from workbench.errors import InvalidSpec
from workbench.scale import orders
from workbench.scale.plan import SCHEDULES


class What(IntEnum):
    """What an operation does. A schedule uses either ``BACKWARD``, or ``INPUT`` and ``WEIGHT``, its halves."""

    FORWARD = orders.FORWARD
    BACKWARD = orders.BACKWARD
    INPUT = orders.INPUT  # gradient of the input: what the stage before waits for
    WEIGHT = orders.WEIGHT  # gradient of the weights: nobody waits for it but the optimizer


@dataclass(frozen=True)
class Schedule:
    """The operations of all stages; arrays of length N, stage after stage, each in the order of its stage (read-only).

    Stage s owns rows ``ptr[s]:ptr[s + 1]``.
    """

    name: str
    stages: int
    microbatches: int
    virtual: int  # chunks a stage holds
    ptr: np.ndarray  # int64 [p + 1]
    stage: np.ndarray  # int32 [N]
    chunk: np.ndarray  # int32 [N], 0..v-1 within the stage
    microbatch: np.ndarray  # int32 [N]
    what: np.ndarray  # uint8 [N], `What`
    source: np.ndarray  # int32 [N], row of the operation whose result this one waits for (-1: none but its stage's order)

    def __len__(self) -> int:
        return len(self.stage)

    @property
    def splits_backward(self) -> bool:
        """Whether the backward pass runs in two halves."""
        return bool((self.what == What.INPUT).any())


def place(name: str, stages: int, stage: np.ndarray, chunk: np.ndarray) -> np.ndarray:
    """Return where a chunk stands in the pipeline, 0..p v-1: round after round, or there and back again (ZB-V)."""
    there = chunk * stages + stage
    return np.where(chunk == 1, 2 * stages - 1 - stage, there) if name == "zb-v" else there


def schedule(name: str, stages: int, microbatches: int, virtual: int = 1) -> Schedule:
    """Return the schedule of a name.

    Parameters
    ----------
    name : str
        One of `workbench.scale.plan.SCHEDULES`.
    stages, microbatches : int
        Both >= 1, in any relation.
    virtual : int
        Chunks a stage holds: >= 2 interleaved, 2 for zb-v, else 1. An interleaved order whose microbatches do not fill the
        last round of the pipeline is that of the next full round, without the missing ones.

    Returns
    -------
    Schedule

    Raises
    ------
    InvalidSpec
        An unknown name, or numbers that this schedule cannot have.
    """
    _check(name, stages, microbatches, virtual)
    make = {"interleaved": orders.interleaved, "zb-v": orders.there_and_back}.get(name)
    if make is not None:
        stage, chunk, microbatch, what = make(stages, microbatches, virtual)
    else:
        stage, chunk, microbatch, what = orders.plain(name, stages, microbatches)
    ptr = np.searchsorted(stage, np.arange(stages + 1)).astype(np.int64)
    source = _sources(what, place(name, stages, stage, chunk), microbatch, stages * virtual, microbatches)
    columns = (ptr, stage.astype(np.int32), chunk.astype(np.int32), microbatch.astype(np.int32), what.astype(np.uint8), source)
    for column in columns:
        column.setflags(write=False)
    return Schedule(name, stages, microbatches, virtual, *columns)


def seconds(forward_s: np.ndarray | float, input_s: np.ndarray | float, weight_s: np.ndarray | float, shape: tuple[int, ...]) -> np.ndarray:
    """Return the table of times ``[What, stage, chunk(, microbatch)]`` [s] of one chunk; a whole backward pass is the sum of its halves.

    ``shape`` is (p, v) or (p, v, m); the three times are numbers or arrays that broadcast to it.
    """
    parts = (forward_s, np.add(input_s, weight_s), input_s, weight_s)
    return np.stack([np.broadcast_to(np.asarray(part, dtype=np.float64), shape) for part in parts])


def times(order: Schedule, table: np.ndarray) -> np.ndarray:
    """Return the time of every operation [N] [s] out of a table ``[What, stage, chunk(, microbatch)]``."""
    if table.ndim == 4:
        return table[order.what, order.stage, order.chunk, order.microbatch]
    return table[order.what, order.stage, order.chunk]


def in_flight(order: Schedule) -> np.ndarray:
    """Return int64 [p]: the most activations of (microbatch, chunk) a stage keeps at once, from forward to the end of backward."""
    change = np.select([order.what == What.FORWARD, order.what == What.INPUT], [1, 0], -1)
    kept = np.cumsum(change)
    before = np.concatenate([[0], kept])[order.ptr[:-1]]
    return np.maximum.reduceat(kept, order.ptr[:-1]) - before


def _sources(what: np.ndarray, where: np.ndarray, microbatch: np.ndarray, places: int, microbatches: int) -> np.ndarray:
    """Rows of the messages: a forward pass waits for the place before, a (whole or input) backward pass for the place after."""
    row = np.full((2, places + 2, microbatches), -1, dtype=np.int32)  # a rim of -1: the first and the last wait for nobody
    backward = (what == What.BACKWARD) | (what == What.INPUT)
    forward = what == What.FORWARD
    rows = np.arange(len(what))
    row[0, where[forward] + 1, microbatch[forward]] = rows[forward]
    row[1, where[backward] + 1, microbatch[backward]] = rows[backward]
    return np.select([forward, backward], [row[0, where, microbatch], row[1, where + 2, microbatch]], -1).astype(np.int32)


def _check(name: str, stages: int, microbatches: int, virtual: int) -> None:
    if name not in SCHEDULES:
        raise InvalidSpec("schedule", f"{name!r} is no schedule", f"choose one of {', '.join(SCHEDULES)}")
    for word, number in (("stages", stages), ("microbatches", microbatches), ("virtual stages", virtual)):
        if int(number) != number or number < 1:
            raise InvalidSpec(f"schedule {name}", f"{word} are {number}", "give a whole number of at least 1")
    if name == "interleaved" and virtual < 2:
        raise InvalidSpec("schedule interleaved", "a stage holds one chunk only", "give 2 or more virtual stages, or choose 1f1b")
    if name == "zb-v" and virtual != 2:
        raise InvalidSpec("schedule zb-v", f"a stage holds {virtual} chunks", "a V has two arms: give 2 virtual stages")
    if name not in ("interleaved", "zb-v") and virtual != 1:
        raise InvalidSpec(f"schedule {name}", f"a stage holds {virtual} chunks", "give 1 virtual stage, or choose interleaved")
