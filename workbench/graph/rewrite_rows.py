"""New rows of an operator table, and what their measured times come from until a model has priced them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.operators.table import ITEMSIZE, MAX_DIMS, Dtype, Kind, OpTable

Parts = tuple[tuple[int, float], ...]
"""Recorded rows something is made of, each with the share of it that takes part (1 / p of an operator split in p)."""


@dataclass(frozen=True, slots=True)
class Made:
    """Where the measured time of a made row comes from.

    Its time is the sum of its ``parts``' recorded times (by their shares) times what a model makes of it:
    model(row) / sum of model(part). ``ratio`` stands for the models' where there are none (nan: then nothing is known).
    Without parts (an added cast) the time is the model's, else that of moving its bytes at the recording's own pace.
    """

    parts: Parts
    ratio: float


@dataclass(frozen=True, slots=True)
class NewRow:
    """What a made row needs."""

    name: str
    signature: str
    kind: Kind
    dtype: Dtype
    dims: tuple[int, ...]
    flops: float
    bytes_read: float
    bytes_written: float
    made: Made


class Rows:
    """A table to which rows are added; equal signatures of equal parts share a row."""

    def __init__(self, table: OpTable, made: Mapping[int, Made]) -> None:
        self.table = table
        self.made = dict(made)
        self._new: list[NewRow] = []
        self._known: dict[tuple[str, Parts], int] = {}

    def base(self, row: int) -> Parts:
        """Return the recorded rows a row is made of (itself, where it was recorded)."""
        return self.made[row].parts if row in self.made else ((row, 1.0),)

    def parts(self, members: Sequence[int], share: float = 1.0) -> Parts:
        """Return the recorded rows some rows are made of, in order, each by its share times ``share``."""
        return tuple((part, own * share) for member in members for part, own in self.base(member))

    def ratio(self, members: Sequence[int]) -> float:
        """Return what stands for the models of some rows together, by their recorded times (1: all are as recorded)."""
        weights = [sum(self.table.measured_s[part] * share for part, share in self.base(member)) for member in members]
        ratios = [self.made[member].ratio if member in self.made else 1.0 for member in members]
        total = sum(weights)
        return float(sum(w * r for w, r in zip(weights, ratios, strict=True)) / total) if total > 0 else 1.0

    def add(self, new: NewRow) -> int:
        """Return the number of a row, added where it is new."""
        key = (new.signature, new.made.parts)
        if key not in self._known:
            self._known[key] = len(self.table) + len(self._new)
            self.made[self._known[key]] = new.made
            self._new.append(new)
        return self._known[key]

    def freeze(self) -> tuple[OpTable, Mapping[int, Made]]:
        """Return the longer table and the origin of its made rows; measured times of made rows are those of their parts as they stand."""
        new, table = self._new, self.table
        if not new:
            return table, MappingProxyType(self.made)
        dims = np.zeros((len(new), MAX_DIMS), dtype=np.int64)
        for i, row in enumerate(new):
            dims[i, : len(row.dims)] = row.dims
        more: dict[str, Any] = {
            "name": tuple(row.name for row in new),
            "signature": tuple(row.signature for row in new),
            "kind": np.array([row.kind for row in new], dtype=np.int8),
            "dtype": np.array([row.dtype for row in new], dtype=np.int8),
            "dims": dims,
            "flops": np.array([row.flops for row in new], dtype=np.float64),
            "bytes_read": np.array([row.bytes_read for row in new], dtype=np.float64),
            "bytes_written": np.array([row.bytes_written for row in new], dtype=np.float64),
            "measured_s": np.array([sum(table.measured_s[part] * share for part, share in row.made.parts) for row in new]),
            "count": np.zeros(len(new), dtype=np.int64),
            "has_shapes": np.ones(len(new), dtype=bool),
        }
        columns: dict[str, Any] = {}
        for field in fields(OpTable):
            old = getattr(table, field.name)
            columns[field.name] = np.concatenate([old, more[field.name]]) if isinstance(old, np.ndarray) else old + more[field.name]
            if isinstance(old, np.ndarray):
                columns[field.name].setflags(write=False)
        return OpTable(**columns), MappingProxyType(self.made)


def row_of(table: OpTable, row: int, made: Made, **changes: Any) -> NewRow:
    """Return a new row that is like another but for some fields."""
    old: dict[str, Any] = {
        "name": table.name[row],
        "signature": table.signature[row],
        "kind": Kind(table.kind[row]),
        "dtype": Dtype(table.dtype[row]),
        "dims": tuple(table.dims[row].tolist()),
        "flops": float(table.flops[row]),
        "bytes_read": float(table.bytes_read[row]),
        "bytes_written": float(table.bytes_written[row]),
    }
    return NewRow(**(old | changes), made=made)


def cast_row(elements: int, source: Dtype, to: Dtype) -> NewRow:
    """Return a conversion of ``elements`` from one type to another."""
    name = f"cast {source.name.lower()} to {to.name.lower()}"
    read, written = elements * ITEMSIZE[source], elements * ITEMSIZE[to]
    return NewRow(name, f"{name}|{to.name.lower()}|[{elements}]", Kind.COPY, to, (elements, 0), 0.0, read, written, Made((), float("nan")))
