"""Rows of priced units -> the table of unique operators, and each event's place in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.operators.described import Described
from workbench.operators.table import MAX_DIMS, OpTable


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table before counting."""

    name: str
    signature: str
    described: Described
    has_shapes: bool


def tabulate(
    length: int, events: np.ndarray, unit: np.ndarray, rows: list[Row], duration: np.ndarray
) -> tuple[OpTable, np.ndarray, np.ndarray, np.ndarray]:
    """Deduplicate rows by signature, count units, and spread the result over events.

    Parameters
    ----------
    length : int
        Number of events of the trace, E.
    events, unit : int64 [N]
        Priced events and the unit of each.
    rows : list of Row
        One a unit.
    duration : int64 [E] [ns]

    Returns
    -------
    table, op, unit, share
        As `workbench.graph.units.price_units`.
    """
    ordered, of_unit = _distinct(rows)
    time = duration[events]
    total = np.bincount(unit, weights=time, minlength=len(rows)).astype(np.int64) if len(rows) else np.zeros(0, dtype=np.int64)
    members = np.bincount(unit, minlength=len(rows))
    count = np.bincount(of_unit, minlength=len(ordered))
    measured = np.bincount(of_unit, weights=total, minlength=len(ordered)) / np.maximum(count, 1) / 1e9
    op, units, share = np.full(length, -1, dtype=np.int32), np.full(length, -1, dtype=np.int32), np.zeros(length)
    if len(events):
        op[events], units[events] = of_unit[unit], unit
        whole = total[unit]
        share[events] = np.where(whole > 0, time / np.maximum(whole, 1), 1.0 / np.maximum(members[unit], 1))
    table = _table(ordered, measured, count)
    for array in (op, units, share):
        array.setflags(write=False)
    return table, op, units, share


def _distinct(rows: list[Row]) -> tuple[list[Row], np.ndarray]:
    """Return the rows that differ, by first appearance, and the number of each row among them (units share most row objects)."""
    _, first, which = np.unique(np.fromiter(map(id, rows), dtype=np.int64, count=len(rows)), return_index=True, return_inverse=True)
    unique: dict[tuple[str, Described], int] = {}
    number = np.zeros(len(first), dtype=np.int64)
    ordered: list[Row] = []
    for k in np.argsort(first).tolist():
        row = rows[first[k]]
        number[k] = unique.setdefault((row.signature, row.described), len(unique))
        if number[k] == len(ordered):
            ordered.append(row)
    return ordered, number[which]


def _table(rows: list[Row], measured: np.ndarray, count: np.ndarray) -> OpTable:
    dims = np.zeros((len(rows), MAX_DIMS), dtype=np.int64)
    for i, row in enumerate(rows):
        dims[i, : len(row.described.dims)] = row.described.dims
    taken: dict[str, int] = {}
    names = []
    for row in rows:  # the same text for different work is told apart
        seen = taken.get(row.signature, 0)
        taken[row.signature] = seen + 1
        names.append(replace(row, signature=f"{row.signature} #{seen + 1}" if seen else row.signature))
    arrays: dict[str, np.ndarray] = {
        "kind": np.array([int(r.described.kind) for r in rows], dtype=np.int8),
        "dtype": np.array([int(r.described.dtype) for r in rows], dtype=np.int8),
        "dims": dims,
        "flops": np.array([r.described.flops for r in rows], dtype=np.float64),
        "bytes_read": np.array([r.described.bytes_read for r in rows], dtype=np.float64),
        "bytes_written": np.array([r.described.bytes_written for r in rows], dtype=np.float64),
        "measured_s": measured.astype(np.float64),
        "count": count.astype(np.int64),
        "has_shapes": np.array([r.has_shapes for r in rows], dtype=bool),
    }
    for array in arrays.values():
        array.setflags(write=False)
    return OpTable(tuple(r.name for r in names), tuple(r.signature for r in names), **arrays)
