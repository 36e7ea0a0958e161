"""Bytes that the recorded tensors of an operator move: each at its own size and type, not all at those of the largest.

A scalar or a row that is broadcast, a cast to a wider type and a mask of bits move what they are. Kinds that stream every operand are
told so; the others know their bytes from their dimensions.
"""

from __future__ import annotations

from math import prod

from workbench.operators.cells import shapes
from workbench.operators.table import ITEMSIZE, Dtype, Kind
from workbench.operators.words import element_type

STREAMS = frozenset((Kind.ELEMENTWISE, Kind.COPY, Kind.SET, Kind.OPTIMIZER))


def moved(kind: Kind, inputs: str, outputs: str, types: str, results: str) -> tuple[float, float] | None:
    """Return the bytes read and written [B], None where shapes or types do not settle them.

    Parameters
    ----------
    kind : Kind
        What the operator is.
    inputs, outputs : str
        Lists of shapes, see `workbench.operators.cells.shapes`; one without extents is a scalar.
    types, results : str
        Element types of the inputs and of the outputs, in the same order; one alone is that of all. Without types of the outputs
        these are as the first input.

    Returns
    -------
    tuple of float or None
        Of an input that is larger than all outputs (a slice, a strided view) only as many elements are read as are written; a fill
        reads nothing.
    """
    if kind not in STREAMS or not inputs or not outputs:
        return None
    into, out = [prod(shape) for shape in shapes(inputs)], [prod(shape) for shape in shapes(outputs)]
    widths, written = _sizes(types, len(into)), _sizes(results or types.partition(";")[0], len(out))
    if widths is None or written is None or max(out) < 1:
        return None
    most = float("inf") if kind == Kind.OPTIMIZER else sum(out)
    read = 0.0 if kind == Kind.SET else sum(min(count, most) * size for count, size in zip(into, widths, strict=True))
    return read, float(sum(count * size for count, size in zip(out, written, strict=True)))


def _sizes(types: str, count: int) -> list[float] | None:
    """Return bytes an element of ``count`` tensors; None where a type is unknown or they are not as many."""
    found = [element_type(part) for part in types.strip("[]()\"'").split(";")]
    known = [ITEMSIZE[of[0]] for of in found if of is not None and of[0] != Dtype.UNKNOWN]
    if len(known) != len(found) or len(known) not in (1, count):
        return None
    return known * count if len(known) == 1 else known
