"""Rows of operator tables: some of one, all of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from workbench.operators.table import OpTable


def take(table: OpTable, rows: np.ndarray) -> OpTable:
    """Return some rows of a table.

    Parameters
    ----------
    table : OpTable
        U operators.
    rows : ndarray
        Indices, or a mask [U].
    """
    chosen = np.flatnonzero(rows) if rows.dtype == bool else rows
    columns: dict[str, Any] = {}
    for field in fields(table):
        value = getattr(table, field.name)
        columns[field.name] = value[chosen] if isinstance(value, np.ndarray) else tuple(value[row] for row in chosen.tolist())
    return OpTable(**columns)


def join(tables: Sequence[OpTable]) -> OpTable:
    """Return the rows of several tables, one after the other."""
    if len(tables) == 1:
        return tables[0]
    columns: dict[str, Any] = {}
    for field in fields(OpTable):
        values = [getattr(table, field.name) for table in tables]
        if isinstance(values[0], np.ndarray):
            columns[field.name] = np.concatenate(values)
        else:
            columns[field.name] = tuple(part for value in values for part in value)
    return OpTable(**columns)
