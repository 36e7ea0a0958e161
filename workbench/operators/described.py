"""What one operator call comes to, and the small helpers its rules share."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from workbench.operators.call import Call, Tensor
from workbench.operators.formulas import Work
from workbench.operators.table import ITEMSIZE, Dtype, Kind

_RANK = {
    Dtype.UNKNOWN: 0,
    Dtype.BOOL: 1,
    Dtype.UINT8: 2,
    Dtype.INT4: 2,
    Dtype.INT8: 3,
    Dtype.INT16: 4,
    Dtype.INT32: 5,
    Dtype.INT64: 6,
    Dtype.FP8: 7,
    Dtype.FP16: 8,
    Dtype.BF16: 8,
    Dtype.TF32: 9,
    Dtype.FP32: 9,
    Dtype.FP64: 10,
    Dtype.COMPLEX64: 11,
    Dtype.INT8_WO: 8,
    Dtype.INT4_WO: 8,
}

MATRIX_KINDS = (
    Kind.GEMM,
    Kind.BATCHED_GEMM,
    Kind.GROUPED_GEMM,
    Kind.CONV_FORWARD,
    Kind.CONV_BACKWARD_DATA,
    Kind.CONV_BACKWARD_WEIGHT,
    Kind.CONV_BACKWARD,
    Kind.ATTENTION_FORWARD,
    Kind.ATTENTION_BACKWARD,
    Kind.RNN,
)
"""Kinds whose time is that of a matrix unit: a wrapper of one of them is the same work as what it wraps."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What the names of an operator's device kernels say.

    ``dtype`` of the longest kernel (UNKNOWN: silent), ``itemsize`` [B] of opaque copies (0: silent), ``direction`` as
    ``DIMS[Kind.COPY]``, ``kind`` the kernel name suggests, ``fp16_accumulate`` when products add up in half precision,
    ``transform`` when a convolution ran in a transformed domain (Winograd, FFT) and so executed fewer FLOPs than counted.
    """

    dtype: Dtype = Dtype.UNKNOWN
    itemsize: float = 0.0
    direction: int = 0
    kind: Kind = Kind.UNKNOWN
    fp16_accumulate: bool = False
    transform: bool = False


@dataclass(frozen=True, slots=True)
class Described:
    """Kind, type, dimensions and work of one call; ``detail`` is what a signature must show beside the shapes."""

    kind: Kind
    dtype: Dtype
    dims: tuple[int, ...]
    flops: float
    bytes_read: float
    bytes_written: float
    detail: str = ""


def described(kind: Kind, dtype: Dtype, dims: tuple[int, ...], work: Work, detail: str = "") -> Described:
    """Pack a formula's result.

    Parameters
    ----------
    kind, dtype, dims
        As in the operator table.
    work : Work
        Scalars of one operator.
    detail : str
        What a signature must show beside the shapes.
    """
    return Described(kind, dtype, dims, float(work.flops), float(work.read), float(work.written), detail)


def ran_dtype(base: Dtype, ran: Ran) -> Dtype:
    """Return the element type that ran: the recorded one unless the kernel's name knows better (TF32, FP8, autocast)."""
    if base == Dtype.UNKNOWN:
        return ran.dtype
    if base == Dtype.FP32 and ran.dtype in (Dtype.TF32, Dtype.FP16, Dtype.BF16, Dtype.FP8):
        return ran.dtype
    if base in (Dtype.FP16, Dtype.BF16) and ran.dtype == Dtype.FP8:
        return ran.dtype
    return base


def promote(tensors: tuple[Tensor, ...]) -> Dtype:
    """Return the type an elementwise result has: tensors with dimensions decide before bare numbers do."""
    wide = [t.dtype for t in tensors if t.shape] or [t.dtype for t in tensors]
    return max(wide, key=_RANK.__getitem__, default=Dtype.UNKNOWN)


def itemsize(dtype: Dtype, ran: Ran) -> float:
    """Bytes an element [B]; an opaque copy's own width where the type was not recorded."""
    return ran.itemsize if dtype == Dtype.UNKNOWN and ran.itemsize else ITEMSIZE[dtype]


def nbytes(tensors: tuple[Tensor, ...], ran: Ran, fallback: Dtype = Dtype.UNKNOWN) -> float:
    """Size of tensors together [B]; elements of unrecorded type count as ``fallback``, else as the kernel's name says."""
    return sum(t.numel * itemsize(t.dtype if t.dtype != Dtype.UNKNOWN else fallback, ran) for t in tensors)


def broadcast(tensors: tuple[Tensor, ...]) -> tuple[int, ...] | None:
    """Return the broadcast shape, or None when shapes do not broadcast (then they are no elementwise operands)."""
    out: list[int] = []
    for tensor in tensors:
        shape = tensor.shape
        out = [1] * (len(shape) - len(out)) + out
        for i in range(1, len(shape) + 1):
            extent = shape[-i]
            if extent != 1 and out[-i] not in (1, extent):
                return None
            out[-i] = extent if extent != 1 else out[-i]
    return tuple(out)


def axes(call: Call, ndim: int, start: int = 1) -> tuple[int, ...] | None:
    """Return the reduced axes from the first concrete integer or list after ``start``; None when nothing was recorded.

    An empty list, and no integer at all among recorded arguments, mean all axes.
    """
    if not call.concrete or all(value is None for value in call.concrete):
        return None if not call.concrete else tuple(range(ndim))
    for position in range(start, len(call.concrete)):
        value = call.integers(position)
        if value is not None:
            inside = tuple(sorted({axis % ndim for axis in value if -ndim <= axis < ndim})) if ndim else ()
            return inside or tuple(range(ndim))
    return tuple(range(ndim))


def split(shape: tuple[int, ...], reduced: tuple[int, ...]) -> tuple[int, int]:
    """Return (rows, cols): elements kept and elements reduced."""
    cols = prod(shape[axis] for axis in reduced)
    return prod(shape) // cols if cols else 0, cols
