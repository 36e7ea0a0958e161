"""Operators listed by kind, type and dimensions -> an operator table; FLOPs and bytes by the formulas of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.operators import formulas
from workbench.operators.attention import attention
from workbench.operators.formulas import Work
from workbench.operators.grouped import grouped_gemm
from workbench.operators.messages import traffic
from workbench.operators.table import COLLECTIVES, DIMS, ITEMSIZE, MAX_DIMS, WEIGHT_SIZE, Dtype, Kind, OpTable
from workbench.operators.words import Word

Dims = tuple[int, ...]
OPTIONAL = ("kv_bits", "page", "splits", "portable", "layout")
"""Last dimensions of attention and convolution, 0 unless given; a signature names them only then."""
_PASSES = {Kind.CONV_FORWARD: "forward", Kind.CONV_BACKWARD_DATA: "data", Kind.CONV_BACKWARD_WEIGHT: "weight", Kind.CONV_BACKWARD: "both"}


@dataclass(frozen=True)
class Listed:
    """One operator: dims as `DIMS` names them, measured time [s] or nan, bytes ``moved`` where its tensors say them [B]."""

    name: str
    dtype: Dtype
    dims: Dims
    word: Word
    measured_s: float = nan
    count: int = 1
    moved: tuple[float, float] | None = None


def operator_list(rows: Sequence[Listed]) -> OpTable:
    """Make an operator table, one row an entry (equal entries are kept apart).

    Parameters
    ----------
    rows : sequence of Listed

    Returns
    -------
    OpTable
    """
    dims = np.zeros((len(rows), MAX_DIMS), dtype=np.int64)
    once = {id(row): (work(row), signature(row)) for row in {id(row): row for row in rows}.values()}
    done = [once[id(row)][0] for row in rows]
    for at, row in enumerate(rows):
        dims[at, : len(row.dims)] = row.dims
    columns: dict[str, np.ndarray] = {
        "kind": np.array([row.word.kind for row in rows], dtype=np.int8),
        "dtype": np.array([row.dtype for row in rows], dtype=np.int8),
        "dims": dims,
        "flops": np.array([float(found.flops) for found in done]),
        "bytes_read": np.array([float(found.read) for found in done]),
        "bytes_written": np.array([float(found.written) for found in done]),
        "measured_s": np.array([row.measured_s for row in rows], dtype=np.float64),
        "count": np.array([row.count for row in rows], dtype=np.int64),
        "has_shapes": np.ones(len(rows), dtype=bool),
    }
    for array in columns.values():
        array.setflags(write=False)
    names, keys = tuple(row.name for row in rows), tuple(once[id(row)][1] for row in rows)
    return OpTable(names, keys, **columns)


def signature(row: Listed) -> str:
    """Return a readable key: name, dtype, dimensions by name."""
    given = [f"{name}={extent}" for name, extent in _named(row).items() if extent or name not in OPTIONAL]
    return f"{row.name}|{row.dtype.name.lower()}|" + ",".join(given)


def work(row: Listed) -> Work:
    """Return the work of an entry."""
    kind, size = row.word.kind, ITEMSIZE[row.dtype]
    if kind in COLLECTIVES:
        return traffic(kind.name, *row.dims)
    found = _WORK[kind](row, size)
    return found if row.moved is None else found.moving(*row.moved)


def _named(row: Listed) -> dict[str, Any]:
    names = DIMS[row.word.kind]
    return dict(zip(names, row.dims + (0,) * sum(name in OPTIONAL for name in names[len(row.dims) :]), strict=True))


def _gemm(row: Listed, size: float) -> Work:
    product = grouped_gemm if row.word.kind == Kind.GROUPED_GEMM else formulas.gemm
    return product(**_named(row), size_in=size, size_out=max(size, 2.0), size_b=WEIGHT_SIZE[row.dtype])


def _convolution(row: Listed, size: float) -> Work:
    d = _named(row)
    p, q = (formulas.output_extent(d[a], d[r], d[f"stride_{a}"], d[f"pad_{a}"], d[f"dilation_{a}"]) for a, r in (("h", "r"), ("w", "s")))
    deep = max(d["depth"] - d["t"] + 1, 1)
    window, inputs = d["r"] * d["s"] * d["t"], d["h"] * d["w"] * d["depth"]
    return formulas.convolution(d["n"], d["c"], d["k"], window, inputs, p * q * deep, d["groups"], size, _PASSES[row.word.kind])


def _attention(row: Listed, size: float) -> Work:
    given = {name: extent for name, extent in _named(row).items() if name not in ("splits", "portable")}
    return attention(**given, size=size, backward=row.word.kind == Kind.ATTENTION_BACKWARD)


def _map(row: Listed, size: float) -> Work:
    n, of = row.dims[0], row.word
    if min(of.reads, of.writes) == 0.5:
        size = max(size, 2.0)  # quantisation between 16 and 8 bits, whichever of the two the row names
    return formulas.elementwise(n, of.reads * n * size, of.writes * n * size, of.operations)


def _norm(row: Listed, size: float) -> Work:
    return formulas.norm(**_named(row), parameters=2 * row.dims[1], size=size, size_parameter=size, backward=row.word.backward)


def _rnn(row: Listed, size: float) -> Work:
    hidden, batch, steps = row.dims
    weights = 2 * row.word.gates * hidden * hidden  # of the input and of the state
    return formulas.recurrent(steps, batch, weights, size, 2 * steps * batch * hidden, row.word.backward)


_WORK: Mapping[Kind, Callable[[Listed, float], Work]] = MappingProxyType(
    {
        Kind.GEMM: _gemm,
        Kind.BATCHED_GEMM: _gemm,
        Kind.GROUPED_GEMM: _gemm,
        **dict.fromkeys(_PASSES, _convolution),
        Kind.ATTENTION_FORWARD: _attention,
        Kind.ATTENTION_BACKWARD: _attention,
        Kind.ELEMENTWISE: _map,
        Kind.OPTIMIZER: _map,
        Kind.REDUCTION: lambda row, size: formulas.reduction(**_named(row), size_in=size, size_out=size),
        Kind.SOFTMAX: lambda row, size: formulas.softmax(**_named(row), size_in=size, size_out=size, backward=row.word.backward),
        Kind.NORM: _norm,
        Kind.EMBEDDING: lambda row, size: formulas.gather(**_named(row), size=size, size_index=8.0, indices=row.dims[0]),
        Kind.POOLING: lambda row, size: formulas.pooling(row.dims[0], row.dims[1], row.dims[0] * row.dims[1] * size, row.dims[0] * size),
        Kind.COPY: lambda row, size: formulas.copy(row.dims[0], size, size),
        Kind.SET: lambda row, size: formulas.elementwise(row.dims[0], 0.0, row.dims[0] * size, row.word.operations),
        Kind.RNN: _rnn,
        Kind.SORT: lambda row, size: formulas.sort(**_named(row), size_in=size, written=row.dims[0] * row.dims[1] * size),
    }
)
