"""Operators on empty tensors: frameworks return before a launch, so they take no time on any card.

Source: PyTorch (BSD-3): kernels return where ``iter.numel() == 0``, products and convolutions where an extent is 0; a product over no
terms fills its result, which is counted as nothing too.
"""

from __future__ import annotations

import numpy as np

from workbench.cost.choices import FREE, Choices
from workbench.cost.matrix import Priced
from workbench.cost.models import model
from workbench.cost.pack import Cards
from workbench.operators.rows import take
from workbench.operators.table import COLLECTIVES, Kind, OpTable

WHY = "no elements: frameworks return without a launch"
_TERMS = (Kind.GEMM, Kind.BATCHED_GEMM, Kind.GROUPED_GEMM, Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT,
          Kind.CONV_BACKWARD, Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD, Kind.RNN)  # fmt: skip
"""Kinds that do nothing without FLOPs; the others without a result."""


def empty_rows(table: OpTable) -> np.ndarray:
    """Return which operators work on nothing, bool [U]; one that was recorded with a time did work."""
    idle = np.where(table.among(_TERMS), table.flops <= 0, (table.flops <= 0) & (table.bytes_written <= 0))
    return np.asarray(idle & table.has_shapes & ~table.among((Kind.UNKNOWN, *COLLECTIVES)) & ~(table.measured_s > 0))


def price(table: OpTable, cards: Cards, column: np.ndarray, choices: Choices = FREE) -> Priced:
    """Price rows by `workbench.cost.models.model`; those on nothing take no time and move nothing."""
    idle = empty_rows(table)
    if not idle.any():
        return model(table, cards, column, choices)
    rows = np.flatnonzero(~idle)
    some = model(take(table, rows), cards, column[rows], choices)
    parts = {}
    for name, part in vars(some).items():
        parts[name] = np.zeros((len(table), *part.shape[1:]), dtype=part.dtype)
        parts[name][rows] = part
    return Priced(**parts)
