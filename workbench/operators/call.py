"""One recorded operator call: shapes, element types and concrete arguments, parsed once a distinct text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from workbench.operators.table import ITEMSIZE, Dtype

_DTYPES = {
    "double": Dtype.FP64,
    "float": Dtype.FP32,
    "half": Dtype.FP16,
    "bfloat16": Dtype.BF16,
    "long": Dtype.INT64,
    "long int": Dtype.INT64,
    "int": Dtype.INT32,
    "short": Dtype.INT16,
    "short int": Dtype.INT16,
    "char": Dtype.INT8,
    "signed char": Dtype.INT8,
    "byte": Dtype.UINT8,
    "unsigned char": Dtype.UINT8,
    "bool": Dtype.BOOL,
    "complex<float>": Dtype.COMPLEX64,
}
"""Spellings of element types of tensors; scalars are spelt ``Scalar``, ``Int``, ``Double``, ``Bool``, ``GenericList`` ..."""


_LARGEST = 2**50
"""No tensor has more elements: a larger shape is damage, and no shape."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape and element type of one tensor argument."""

    shape: tuple[int, ...]
    dtype: Dtype

    @property
    def numel(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> float:
        """Size [B]."""
        return prod(self.shape) * ITEMSIZE[self.dtype]


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its recorded arguments, by position.

    ``tensors[i]`` holds the tensors of argument i (one, or several for a list; empty for anything else),
    ``concrete[i]`` its recorded value (int, float, bool, str, list; None when not recorded).
    ``facts`` carries named arguments of messages (``Collective name``, ``In msg nelems``, ``Group size`` ...) and
    shapes learnt from neighbouring records (``output``, ``input``, ``weight``).
    """

    name: str
    tensors: tuple[tuple[Tensor, ...], ...]
    concrete: tuple[object, ...]
    facts: tuple[tuple[str, object], ...] = ()

    @property
    def has_shapes(self) -> bool:
        """Whether any tensor's shape was recorded."""
        return any(self.tensors)

    @property
    def flat(self) -> tuple[Tensor, ...]:
        """All tensors in order of arguments."""
        return tuple(tensor for group in self.tensors for tensor in group)

    def tensor(self, position: int | None) -> Tensor | None:
        """Return the single tensor at a position, or None."""
        if position is None or position >= len(self.tensors) or len(self.tensors[position]) != 1:
            return None
        return self.tensors[position][0]

    def group(self, position: int) -> tuple[Tensor, ...]:
        """Return the tensors at a position (empty where there are none)."""
        return self.tensors[position] if position < len(self.tensors) else ()

    def value(self, position: int | None) -> object:
        """Return a concrete argument, or None where it was not recorded."""
        return self.concrete[position] if position is not None and position < len(self.concrete) else None

    def integers(self, position: int | None) -> tuple[int, ...] | None:
        """Return a concrete list of integers (a bare integer counts as a list of one), or None."""
        value = self.value(position)
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, int):
            return (value,)
        if isinstance(value, list) and all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            return tuple(value)
        return None

    def fact(self, key: str, default: object = None) -> object:
        """Return a named fact."""
        for name, value in self.facts:
            if name == key:
                return value
        return default


def dtype_of(text: str) -> Dtype | None:
    """Return the element type a spelling stands for; None for anything that is not a tensor."""
    bare = text.removeprefix("c10::").removeprefix("at::")
    if bare.startswith(("Float8", "float8")):
        return Dtype.FP8
    if bare in ("Half", "BFloat16"):
        return _DTYPES[bare.lower()]
    return _DTYPES.get(bare)


def message_dtype(text: str) -> Dtype:
    """Return the element type of a message as collectives spell it (``Float``, ``BFloat16``, ``Byte`` ...)."""
    return dtype_of(text) or dtype_of(text.lower()) or Dtype.UNKNOWN


def parse_call(name: str, dims: str, types: str, concrete: str) -> Call:
    """Parse the three texts a profiler records for a call.

    Parameters
    ----------
    name : str
        Operator name, e.g. ``aten::mm``.
    dims, types, concrete : str
        JSON text of ``Input Dims``, ``Input type`` and ``Concrete Inputs``; empty where absent.

    Returns
    -------
    Call
        Without tensors where the texts are absent or not of the recorded form (an unreadable shape is no shape).
    """
    return Call(name, _all_tensors(dims, types), tuple(_concrete(value) for value in _json_list(concrete)))


@lru_cache(8192)
def _all_tensors(dims: str, types: str) -> tuple[tuple[Tensor, ...], ...]:
    shapes, kinds = _json_list(dims), _json_list(types)
    return tuple(_tensors(shape, kinds[i] if i < len(kinds) else "") for i, shape in enumerate(shapes))


def _json_list(text: str) -> list:
    if not text:
        return []
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _is_shape(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in value):
        return False
    return prod(value) <= _LARGEST


def _tensors(shape: object, kind: object) -> tuple[Tensor, ...]:
    text = kind if isinstance(kind, str) else ""
    dtype = dtype_of(text)
    if _is_shape(shape) and isinstance(shape, list):
        if dtype is not None:
            return (Tensor(tuple(shape), dtype),)
        return (Tensor(tuple(shape), Dtype.UNKNOWN),) if shape and text not in ("Scalar", "ScalarList") else ()
    if isinstance(shape, list) and shape and all(_is_shape(item) for item in shape):
        return tuple(Tensor(tuple(item), dtype or Dtype.UNKNOWN) for item in shape)
    return ()


def _concrete(value: object) -> object:
    return _concrete_text(value) if isinstance(value, str) else value


@lru_cache(8192)
def _concrete_text(value: str) -> object:
    if value in ("", "None"):
        return None
    try:
        return json.loads(value.replace("True", "true").replace("False", "false"))
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return value
