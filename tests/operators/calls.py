"""Operator calls written by hand, for tests."""

from __future__ import annotations

from workbench.operators.call import Call, Tensor
from workbench.operators.described import Described, Ran
from workbench.operators.kinds import describe
from workbench.operators.table import Dtype


def call(name: str, *arguments: object) -> Call:
    """A call from pairs (type, shape), lists of such pairs, and bare values for scalars."""
    tensors, concrete = [], []
    for a in arguments:
        if isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], Dtype):
            tensors.append((Tensor(tuple(a[1]), a[0]),))
            concrete.append(None)
        elif isinstance(a, list) and a and isinstance(a[0], tuple):
            tensors.append(tuple(Tensor(tuple(shape), dtype) for dtype, shape in a))
            concrete.append(None)
        else:
            tensors.append(())
            concrete.append(a)
    return Call(name, tuple(tensors), tuple(concrete))


def must(c: Call, ran: Ran | None = None) -> Described:
    found = describe(c, ran)
    assert found is not None, c
    return found


F32, BF16, I64, I32 = Dtype.FP32, Dtype.BF16, Dtype.INT64, Dtype.INT32
