"""Operator tables made by hand for tests of the cost room."""

from __future__ import annotations

import numpy as np

from workbench.operators.table import ITEMSIZE, MAX_DIMS, Dtype, Kind, OpTable

Row = tuple[Kind, Dtype, tuple[int, ...]]


def table(rows: list[Row], measured_s: list[float] | None = None, flops: list[float] | None = None) -> OpTable:
    """Build a table; GEMM FLOPs and bytes by definition, other kinds one operation an element, one read and one write."""
    count = len(rows)
    dims = np.zeros((count, MAX_DIMS), dtype=np.int64)
    work, read, written = np.zeros(count), np.zeros(count), np.zeros(count)
    for i, (kind, dtype, extents) in enumerate(rows):
        dims[i, : len(extents)] = extents
        size = ITEMSIZE[dtype]
        if kind in (Kind.GEMM, Kind.BATCHED_GEMM):
            b, m, n, k = extents
            work[i], read[i], written[i] = 2.0 * b * m * n * k, b * (m * k + k * n) * size, b * m * n * size
        else:
            elements = float(np.prod(extents[:2])) if len(extents) > 1 and kind != Kind.COPY else float(extents[0] if extents else 0)
            work[i], read[i], written[i] = elements, elements * size, elements * size
    return OpTable(
        name=tuple(f"op{i}" for i in range(count)),
        signature=tuple(f"{kind.name}|{dtype.name}|{extents}" for kind, dtype, extents in rows),
        kind=np.array([row[0] for row in rows], dtype=np.int8),
        dtype=np.array([row[1] for row in rows], dtype=np.int8),
        dims=dims,
        flops=work if flops is None else np.array(flops, dtype=float),
        bytes_read=read,
        bytes_written=written,
        measured_s=np.full(count, np.nan) if measured_s is None else np.array(measured_s, dtype=float),
        count=np.ones(count, dtype=np.int64),
        has_shapes=np.ones(count, dtype=bool),
    )
