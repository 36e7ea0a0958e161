"""A model divided for a plan: the operators that one card runs for one microbatch, block by block, and the messages between.

Extents are divided over the product of the degrees of their axes, in whole units, rounded up: the card with the largest share is shown.
Layers do not depend on dp, pp and the schedule: one share serves all plans that agree in `key`.

Context parallelism divides the queries of causal attention into 2 cp pieces, and gives every card one from the front and one from the
back, so that all have the same work (Grattafiori et al., arXiv 2407.21783, section 3.3.2): queries / cp, each meeting
(keys + keys / cp) / 2 keys on average, by which it is shown here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from workbench.network.expert import busiest_card
from workbench.operators.attention import FULL
from workbench.operators.blocks import Axis, Block, BlockMessage, BlockOp, Divided, Model, Phase
from workbench.operators.listed import Listed, operator_list
from workbench.operators.table import DIMS, Kind, OpTable
from workbench.operators.words import Word
from workbench.scale.insert import collectives
from workbench.scale.plan import ParallelPlan


class Pass(IntEnum):
    """When an entry runs. ``AGAIN``: the forward operators that recomputation repeats before the backward pass."""

    FORWARD = 0
    AGAIN = 1
    INPUT = 2
    WEIGHT = 3


PASSES = {Phase.FORWARD: Pass.FORWARD, Phase.INPUT: Pass.INPUT, Phase.WEIGHT: Pass.WEIGHT}


@dataclass(frozen=True)
class Share:
    """What one card runs of every block for one microbatch.

    Operators: arrays of length E, ``row`` of ``table`` (shared by all shares made together). Messages: arrays of length M. ``runs`` is how
    often one pass over one such block has them. By block: weights that this card holds (of experts apart), what it keeps for the backward
    pass by recomputation, what it hands to the next block. `workbench.scale.held` says what a stage holds of them.
    """

    table: OpTable
    row: np.ndarray  # int32 [E]
    block: np.ndarray  # int16 [E]
    when: np.ndarray  # int8 [E], Pass
    runs: np.ndarray  # float64 [E]
    message_kind: np.ndarray  # int8 [M], Kind
    message_axis: tuple[Axis, ...]  # [M]
    message_bytes: np.ndarray  # float64 [M] [B]
    message_block: np.ndarray  # int16 [M]
    message_when: np.ndarray  # int8 [M], Pass
    message_beside: np.ndarray  # bool [M]
    weights: np.ndarray  # float64 [B], parameters but those of experts
    experts: np.ndarray  # float64 [B], parameters of experts
    tied: np.ndarray  # float64 [T, B], of ``weights`` every one that several blocks share, by its name
    kept: np.ndarray  # float64 [3, B] [B]: without recomputation, selective, full
    cache: np.ndarray  # float64 [B] [B], keys and values
    handed: np.ndarray  # float64 [B] [B]


def key(plan: ParallelPlan) -> tuple[object, ...]:
    """Return what a share depends on, of a model built for the plan's microbatch."""
    return (plan.tp, plan.sequence_parallel, plan.cp, plan.ep, plan.recompute, plan.dp if plan.dp == 1 else 2, plan.microbatch)


def share(model: Model, plan: ParallelPlan) -> Share:
    """Return what one card runs of a model; see `shares` for many at once."""
    return shares([(model, plan)])[0]


def shares(asked: Sequence[tuple[Model, ParallelPlan]]) -> tuple[Share, ...]:
    """Divide models for plans.

    Parameters
    ----------
    asked : sequence of (Model, ParallelPlan)
        Every model built for the microbatch of its plan.

    Returns
    -------
    tuple of Share
        One each; all have the same ``table``, of the operators that any of them runs.
    """
    rows: dict[tuple[object, ...], int] = {}
    found: list[Listed] = []
    parts = [_entries(model, plan, rows, found) for model, plan in asked]
    table = operator_list(found)
    return tuple(Share(table, *columns) for columns in parts)


def part_of(units: Sequence[tuple[int, int]], degree: int) -> float:
    """Return the largest share of an extent in whole units [1]: ``sum of ceil(count / degree) width`` over the extent."""
    if degree == 1 or not units:
        return 1.0 / degree
    return sum(math.ceil(count / degree) * width for count, width in units) / sum(count * width for count, width in units)


def fraction(axes: Iterable[Axis], units: Sequence[tuple[int, int]], plan: ParallelPlan) -> float:
    """Return the share of a tensor that one card holds; units divide along tensor parallelism."""
    out = 1.0
    for axis in axes:
        degree = plan.degree(axis)
        out *= part_of(units if axis == Axis.TP else (), degree)
    return out


def _extent(extent: int, divided: Divided, plan: ParallelPlan) -> int:
    degree = math.prod(plan.degree(axis) for axis in divided.axes)
    if degree == 1:
        return extent
    if not divided.units:
        return -(-extent // degree)
    return sum(-(-count // degree) * width for count, width in divided.units)


def _dims(op: BlockOp, plan: ParallelPlan) -> tuple[int, ...]:
    dims = {name: _extent(value, op.divided[name], plan) if name in op.divided else value for name, value in op.dims.items()}
    if plan.cp > 1 and op.kind in (Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD) and dims["causal"]:
        dims["keys"], dims["causal"] = (op.dims["keys"] + dims["queries"]) // 2, FULL
    if op.kind == Kind.GROUPED_GEMM and plan.ep > 1 and op.dims["busiest"]:
        groups, rows = op.dims["groups"], op.dims["rows"]
        dims["rows"] = round(dims["rows"] * float(busiest_card(groups, op.dims["busiest"] * groups / rows, plan.ep)))
    return tuple(
        dims.get(name, 0) for name in DIMS[op.kind] if name in dims or name not in ("kv_bits", "page", "splits", "portable", "layout")
    )


def _word(op: BlockOp) -> Word:
    return Word(op.kind, op.reads, op.writes, op.operations, backward=op.phase != Phase.FORWARD)


def _entries(model: Model, plan: ParallelPlan, rows: dict[tuple[object, ...], int], found: list[Listed]) -> tuple[Any, ...]:
    """Return the columns of a share but its table; new rows are added."""
    operators: list[tuple[int, int, int, float]] = []
    messages: list[tuple[int, Axis, float, int, int, bool]] = []
    for b, block in enumerate(model.blocks):
        for step, when in _steps(block, plan, model.training):
            if isinstance(step, BlockOp):
                operators.append((_row(step, plan, rows, found), b, when, float(step.passes)))
            else:
                divide = fraction(step.divided, step.units, plan)
                messages += [(sent.kind, sent.axis, sent.bytes, b, when, sent.beside) for sent in collectives(step, plan, divide)]
    row, at, when_, runs = zip(*operators, strict=True) if operators else ((), (), (), ())
    kind, axis, size, of, during, beside = zip(*messages, strict=True) if messages else ((), (), (), (), (), ())
    columns = (
        np.array(row, dtype=np.int32), np.array(at, dtype=np.int16), np.array(when_, dtype=np.int8), np.array(runs, dtype=np.float64),
        np.array(kind, dtype=np.int8), axis, np.array(size, dtype=np.float64), np.array(of, dtype=np.int16),
        np.array(during, dtype=np.int8), np.array(beside, dtype=bool), *_held(model, plan),
    )  # fmt: skip
    for column in columns:
        if isinstance(column, np.ndarray):
            column.setflags(write=False)
    return columns


def _steps(block: Block, plan: ParallelPlan, training: bool) -> Iterable[tuple[BlockOp | BlockMessage, Pass]]:
    for step in block.steps:
        yield step, Pass.FORWARD
    if training and block.layer and plan.recompute != "none":
        for step in block.steps:
            if plan.recompute == "full" or (isinstance(step, BlockOp) and step.selective):
                yield step, Pass.AGAIN
    for step in block.backward:
        yield step, PASSES[step.phase]


def _row(op: BlockOp, plan: ParallelPlan, rows: dict[tuple[object, ...], int], found: list[Listed]) -> int:
    dims, backward = _dims(op, plan), op.phase != Phase.FORWARD
    name = (op.kind, op.dtype, dims, op.reads, op.writes, op.operations, backward)
    at = rows.setdefault(name, len(found))
    if at == len(found):
        found.append(Listed(op.name, op.dtype, dims, _word(op)))
    return at


def _held(model: Model, plan: ParallelPlan) -> tuple[np.ndarray, ...]:
    """Return weights, experts [B]; tied [T, B]; kept [3, B]; cache and handed [B]."""
    count = len(model.blocks)
    weights, experts, cache, handed = (np.zeros(count) for _ in range(4))
    names = sorted({weight.tied for block in model.blocks for weight in block.weights if weight.tied})
    tied = np.zeros((len(names), count))
    kept = np.zeros((3, count))
    for b, block in enumerate(model.blocks):
        for weight in block.weights:
            held = weight.elements * fraction(weight.divided, weight.units, plan)
            (experts if Axis.EP in weight.divided else weights)[b] += held
            if weight.tied:
                tied[names.index(weight.tied), b] += held
        for saved in block.saved:
            size = saved.bytes * fraction(saved.divided, saved.units, plan)
            kept[0, b] += size
            kept[1, b] += 0.0 if saved.selective else size
        cache[b] = sum(part.bytes * fraction(part.divided, part.units, plan) for part in block.cache)
        handed[b] = block.handed * fraction(block.handed_divided, (), plan)
    for b, block in enumerate(model.blocks):  # full recomputation keeps what enters a layer; embedding and head are not repeated
        kept[2, b] = handed[max(b - 1, 0)] if block.layer else kept[0, b]
        kept[1, b] = kept[1, b] if block.layer else kept[0, b]
    return weights, experts, tied, kept, cache, handed


def times(share_: Share, seconds: np.ndarray) -> np.ndarray:
    """Return the time of the operators of every block and pass, float64 [4, B] [s].

    Parameters
    ----------
    share_ : Share
        Of B blocks.
    seconds : float64 [U]
        Of every row of its table [s].
    """
    blocks = len(share_.weights)
    index = share_.when.astype(np.int64) * blocks + share_.block
    return np.bincount(index, weights=seconds[share_.row] * share_.runs, minlength=4 * blocks).reshape(4, blocks)
