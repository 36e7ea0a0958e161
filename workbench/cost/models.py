"""Which model prices which kind of operator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.cost import attention, convolution, exchange, grouped, matrix, power, realities, recurrent, vector
from workbench.cost.choices import FREE, Choices, Copies
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced, plus
from workbench.cost.pack import Cards, dtype_name
from workbench.cost.sparsity import pruned
from workbench.cost.tiles import stepping
from workbench.operators.instructions import instructions, kernels, narrow
from workbench.operators.table import DIMS, ITEMSIZE, WEIGHT_SIZE, Dtype, Kind, OpTable

PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM)
ATTENTION = (Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD)
ROWWISE = (Kind.SOFTMAX, Kind.NORM, Kind.REDUCTION, Kind.EMBEDDING, Kind.SORT)
STREAMS = (*ROWWISE, Kind.ELEMENTWISE, Kind.POOLING, Kind.COPY, Kind.SET, Kind.OPTIMIZER)
ON_MATRIX = (*PRODUCTS, Kind.GROUPED_GEMM, *ATTENTION, *convolution.PASSES, Kind.RNN)


def dtype_names(table: OpTable) -> tuple[str, ...]:
    """Return the dtypes that occur in a table, by code."""
    return tuple(dtype_name(code) for code in sorted(set(table.dtype.tolist()))) or ("fp32",)


def dtype_columns(table: OpTable, cards: Cards) -> np.ndarray:
    """Return the index into ``cards.dtypes`` of every row, int64 [U]."""
    lookup = np.zeros(len(Dtype), dtype=np.int64)
    for index, name in enumerate(cards.dtypes):
        lookup[Dtype[name.upper()]] = index
    return lookup[table.dtype]


def item_sizes(table: OpTable) -> np.ndarray:
    """Return the bytes an element of every row, float64 [U] [B]."""
    return np.array([ITEMSIZE[Dtype(code)] for code in range(len(Dtype))])[table.dtype]


def operand_sizes(dtype: np.ndarray) -> np.ndarray:
    """Return the bytes an element of A, B and C of products, float64 [U, 3] [B]: narrow weights, 8-bit products write 16-bit results."""
    sizes = np.array([(ITEMSIZE[Dtype(code)], WEIGHT_SIZE[Dtype(code)], max(ITEMSIZE[Dtype(code)], 2.0)) for code in range(len(Dtype))])
    found: np.ndarray = sizes[dtype]
    return found


def model(table: OpTable, cards: Cards, column: np.ndarray, choices: Choices = FREE) -> Priced:
    """Price rows by the analytical model of their kind; nan where there is none (unknown kind, or a dtype the card cannot run).

    Parameters
    ----------
    table : OpTable
        U operators.
    cards : Cards
        S packed cards.
    column : ndarray of int, shape (U,)
        Dtype columns.
    choices : Choices
        What is fixed instead of chosen, and what is warm.
    """
    out = matrix.empty(len(table), cards)
    out.seconds[:] = np.nan
    size = item_sizes(table)
    kinds = set(table.kind.tolist())
    alone = (Kind.GROUPED_GEMM, *ATTENTION, Kind.RNN, *convolution.PASSES)
    for group in (PRODUCTS, *((kind,) for kind in alone)):
        if kinds.isdisjoint(group):
            continue
        rows = np.flatnonzero(table.among(group))
        _put(out, rows, _matrix_group(table, group[0], rows, size, column, cards, choices))
    if not kinds.isdisjoint(STREAMS):
        rows = np.flatnonzero(table.among(STREAMS))
        _put(out, rows, _stream_group(table, rows, size, column, cards, choices.copies))
    unable = np.array([[not name for name in names] for names in cards.runs_as], dtype=bool).reshape(len(cards.specs), len(cards.dtypes))
    on_matrix = table.among(ON_MATRIX)
    out.seconds[on_matrix[:, None] & unable[:, column].T] = np.nan
    power.throttled(out, table.flops, on_matrix, column, cards)
    exchange.exchange_tiles(out, table, size, cards)
    matrix.pass_between(out, cards)
    realities.convert(out, table, size, column, cards)
    realities.fall_back(out, table, cards)
    _tell_waiting(out)
    return out


def _tell_waiting(out: Priced) -> None:
    """Count what the models leave with the launch beyond launch and fill as latency: cores that wait for data in flight."""
    launch = out.resource[..., Bound.LAUNCH]
    own = out.detail[..., 0] + out.detail[..., 1]
    np.maximum(launch - own, 0.0, out=out.resource[..., Bound.LATENCY])
    np.minimum(launch, own, out=launch)


def _put(out: Priced, rows: np.ndarray, part: Priced) -> None:
    for name in ("seconds", "resource", "level", "detail", "algorithm", "tile"):
        getattr(out, name)[rows] = getattr(part, name)


def _matrix_group(
    table: OpTable,
    kind: Kind,
    rows: np.ndarray,
    size: np.ndarray,
    column: np.ndarray,
    cards: Cards,
    choices: Choices,
) -> Priced:
    dims, sizes, columns = table.dims[rows], size[rows], column[rows]
    if kind == Kind.GROUPED_GEMM:
        return grouped.grouped(dims, operand_sizes(table.dtype[rows]), columns, cards, choices.copies)
    if kind in PRODUCTS:
        operand = operand_sizes(table.dtype[rows])
        if choices.sparse:
            cards, operand = pruned(cards, operand, columns)
        if choices.tile is not None:
            tile = choices.tile
            fixed = (tile.tm, tile.tn, tile.split)
            return matrix.products(dims[:, :4], operand, columns, stepping(cards, tile), copies=choices.copies, tile=fixed)[0]
        return matrix.products(dims[:, :4], operand, columns, cards, copies=choices.copies)[0]
    if kind in ATTENTION:
        return attention.attention(
            dims, table.flops[rows], sizes, kind == Kind.ATTENTION_BACKWARD, columns, cards, choices.attention_copies
        )
    if kind == Kind.RNN:
        moved = table.bytes_read[rows] - table.bytes_written[rows]
        return recurrent.recurrent(dims, table.flops[rows], moved, sizes, columns, cards, choices.copies, choices.persistent)
    passes = convolution.PASSES[kind]
    flops = table.flops[rows] / len(passes)
    first, *rest = (
        convolution.convolution(dims, flops, which, sizes, columns, cards, choices.algorithm, choices.copies) for which in passes
    )
    for other in rest:
        code = convolution.both(first.algorithm, other.algorithm)
        first = replace(plus(first, other), algorithm=code)
    return first


def _stream_group(table: OpTable, rows: np.ndarray, size: np.ndarray, column: np.ndarray, cards: Cards, copies: Copies) -> Priced:
    kind, dims = table.kind[rows], table.dims[rows, :2].astype(np.float64)
    read, written = table.bytes_read[rows], table.bytes_written[rows]
    elements = np.where(np.isin(kind, ROWWISE), dims[:, 0] * np.maximum(dims[:, 1], 1.0), dims[:, 0])
    work, special = np.array([instructions(table.name[row]) for row in rows.tolist()]).reshape(-1, 2).T
    work, special = (np.where(np.isin(kind, (Kind.ELEMENTWISE, Kind.EMBEDDING)), each, 0.0) for each in (work, special))
    special = np.where(kind == Kind.SOFTMAX, 1.0, special)
    of = vector.Stream(
        kind,
        elements,
        dims[:, 0],
        dims[:, 1],
        size[rows],
        table.flops[rows],
        work,
        special,
        read,
        written,
        column[rows],
        np.array([narrow(table.name[row]) for row in rows.tolist()]),
        np.array([float(kernels(table.name[row])) for row in rows.tolist()]),
    )
    out = vector.streams(of, cards, copies)
    across = (kind == Kind.COPY) & (dims[:, DIMS[Kind.COPY].index("direction")] > 0)
    if across.any():
        _put(out, np.flatnonzero(across), vector.host_copies(np.maximum(read, written)[across], column[rows][across], cards))
    return out
