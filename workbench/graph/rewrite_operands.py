"""What every part of a divided operator reads whole: operands that do not run along the dimension that is cut.

A part of a map reads its part of what is as large as the result. A bias, a row of weights or a mask that is broadcast along the cut
dimension is read by each part as it is. Broadcasting aligns extents at the right end (NumPy, "Broadcasting"; PyTorch, the same rules).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from workbench.operators.call import Call
from workbench.operators.table import ITEMSIZE, Dtype, Kind

LISTED = (Kind.ELEMENTWISE, Kind.NORM, Kind.SOFTMAX, Kind.REDUCTION)
"""Kinds whose recorded operands are all read."""


def cuts(shape: Sequence[int], parts: int) -> tuple[int, ...]:
    """Return into how many pieces each extent is cut, the outermost first; their product is ``parts`` where that divides the elements.

    Parameters
    ----------
    shape : sequence of int
        Extents of the result.
    parts : int
        Equal parts.
    """
    out, left = [], parts
    for extent in shape:
        out.append(gcd(left, extent))
        left //= out[-1]
    return tuple(out)


def read_by_part(shape: Sequence[int], operand: Sequence[int], parts: int) -> float:
    """Return the share of an operand that one of some equal parts of the result reads, 1 / parts to 1 [1].

    Parameters
    ----------
    shape : sequence of int
        Extents of the result.
    operand : sequence of int
        Extents of an input; one that does not broadcast to the result (weights of channels) is read whole.
    parts : int
        Equal parts.
    """
    aligned = (1,) * (len(shape) - len(operand)) + tuple(operand)
    if len(aligned) != len(shape) or any(mine not in (1, whole) for mine, whole in zip(aligned, shape, strict=True)):
        return 1.0
    return 1.0 / prod(cut for cut, mine in zip(cuts(shape, parts), aligned, strict=True) if mine > 1)


def read_whole(call: Call | None, kind: Kind, dtype: Dtype, parts: int) -> float:
    """Return the bytes that each of some equal parts reads beyond its share of the operator's reads [B].

    Parameters
    ----------
    call : Call, optional
        Recorded operands; without them nothing is known, and nothing is added.
    kind : Kind
        One of `LISTED`; others read no operand whole that is seen here.
    dtype : Dtype
        Of operands that do not state theirs.
    parts : int
        Equal parts.
    """
    if call is None or kind not in LISTED or not call.flat or any(len(group) > 1 for group in call.tensors):
        return 0.0
    shape = max((tensor.shape for tensor in call.flat), key=prod)
    more = 0.0
    for tensor in call.flat:
        size = ITEMSIZE[dtype if tensor.dtype == Dtype.UNKNOWN else tensor.dtype]
        more += tensor.numel * size * (read_by_part(shape, tensor.shape, parts) - 1.0 / parts)
    return more
