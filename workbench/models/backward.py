"""The backward pass from the forward one: one rule a kind of operator, mirrored order, messages in their mirrored places.

Of ``Y = X W``: ``dX = dY W^T`` (input gradient) and ``dW = X^T dY`` (weight gradient), each as many products as the forward one
(Rumelhart, Hinton, Williams, Nature 323, 1986). Narayanan et al., arXiv 2104.04473, section 3.1, count the backward pass as twice the
forward one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from workbench.models.part import Forward
from workbench.operators.blocks import BlockMessage, BlockOp, Phase
from workbench.operators.table import Kind

_INPUT, _SECOND = MappingProxyType({"n": "k", "k": "n"}), MappingProxyType({"m": "k", "k": "m"})
"""Extents of the two products of a backward pass: new name -> name in the forward product."""


def backward(steps: tuple[Forward | BlockMessage, ...]) -> tuple[BlockOp | BlockMessage, ...]:
    """Return the backward pass of a block: its last step first; messages keep their role, their phase is that of input gradients."""
    out: list[BlockOp | BlockMessage] = []
    for step in reversed(steps):
        if isinstance(step, BlockMessage):
            out.append(replace(step, phase=Phase.INPUT))
        else:
            out += _of(step)
    return tuple(out)


def _of(step: Forward) -> list[BlockOp]:
    op = step.op
    if op.kind in (Kind.GEMM, Kind.BATCHED_GEMM):
        return _product(step)
    if op.kind == Kind.GROUPED_GEMM:
        mirrored = _renamed(op, {"groups": "groups", "rows": "rows", "busiest": "busiest", "n": "k", "k": "n"})
        return [_phased(mirrored, Phase.INPUT), _phased(op, Phase.WEIGHT)]
    if op.kind == Kind.CONV_FORWARD:
        data = [] if step.first else [_phased(replace(op, kind=Kind.CONV_BACKWARD_DATA), Phase.INPUT)]
        return [*data, _phased(replace(op, kind=Kind.CONV_BACKWARD_WEIGHT), Phase.WEIGHT)]
    if op.kind == Kind.ATTENTION_FORWARD:
        return [_phased(replace(op, kind=Kind.ATTENTION_BACKWARD), Phase.INPUT)]
    if op.kind == Kind.EMBEDDING:
        return [_phased(op, Phase.WEIGHT)]
    if step.back is not None:
        return [_phased(_elementwise(op, *step.back), Phase.INPUT)]
    return [_phased(op, Phase.INPUT)]  # norm, softmax: `Word.backward` is set from the phase


def _product(step: Forward) -> list[BlockOp]:
    op = step.op
    second = Phase.WEIGHT if step.weight else Phase.INPUT
    out = [] if step.first else [_phased(_renamed(op, _INPUT), Phase.INPUT)]
    out.append(_phased(_renamed(op, _SECOND), second))
    if step.bias:
        rows = {"rows": op.dims["m"], "cols": step.bias}
        by = {to: op.divided[of] for to, of in (("rows", "m"), ("cols", "n")) if of in op.divided}
        out.append(replace(op, name=f"{op.name} bias", kind=Kind.REDUCTION, dims=MappingProxyType(rows), divided=MappingProxyType(by),
                           phase=Phase.WEIGHT))  # fmt: skip
    return out


def _renamed(op: BlockOp, names: Mapping[str, str]) -> BlockOp:
    """Return a product with extents exchanged: ``names[new] = old``; extents not named stay."""
    full = {name: names.get(name, name) for name in op.dims}
    dims = {new: op.dims[old] for new, old in full.items()}
    by = {new: op.divided[old] for new, old in full.items() if old in op.divided}
    return replace(op, dims=MappingProxyType(dims), divided=MappingProxyType(by))


def _elementwise(op: BlockOp, reads: float, writes: float) -> BlockOp:
    """Return the element-wise backward pass of an element-wise operator, or of a pooling."""
    dims = MappingProxyType({"elements": op.dims["elements"]})
    return replace(op, kind=Kind.ELEMENTWISE, dims=dims, reads=reads, writes=writes)


def _phased(op: BlockOp, phase: Phase) -> BlockOp:
    return replace(op, phase=phase, selective=False)
