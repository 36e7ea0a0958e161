"""How much of a recording's time has shapes, and how much of that a formula."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.operators.table import Kind, OpTable


@dataclass(frozen=True, slots=True)
class Unpriced:
    """An operator without a formula: ``signature``, its total time [s], executions, whether shapes were recorded."""

    signature: str
    seconds: float
    count: int
    has_shapes: bool


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of measured time (1 is all); nan where there is nothing to share."""

    total_s: float
    with_shapes: float
    formula_of_shaped: float
    formula: float
    unpriced: tuple[Unpriced, ...]


def coverage(table: OpTable) -> Coverage:
    """Return the share of measured time (a) with recorded shapes and (b) of that with a formula-bearing kind.

    Parameters
    ----------
    table : OpTable
        With measurements; rows without one count as 0 s.

    Returns
    -------
    Coverage
        ``unpriced`` lists rows of kind UNKNOWN, longest first.
    """
    seconds = np.nan_to_num(table.measured_s) * table.count
    formula = table.kind != Kind.UNKNOWN
    total, shaped = float(seconds.sum()), float(seconds[table.has_shapes].sum())
    order = np.flatnonzero(~formula)
    order = order[np.argsort(-seconds[order], kind="stable")]
    rest = tuple(Unpriced(table.signature[i], float(seconds[i]), int(table.count[i]), bool(table.has_shapes[i])) for i in order)
    both = float(seconds[formula & table.has_shapes].sum())
    return Coverage(total, _share(shaped, total), _share(both, shaped), _share(float(seconds[formula].sum()), total), rest)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")


def implied_rates(table: OpTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the rates the measurements imply, (FLOP/s, B/s) by row; nan where a row took no time.

    A rate above a card's roof is no error of the card: transform convolutions execute fewer FLOPs than direct ones, a warm
    shared memory level moves bytes faster than the outermost one. Whoever shows such a row must say so.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        time = np.where(table.measured_s > 0, table.measured_s, np.nan)
        return table.flops / time, (table.bytes_read + table.bytes_written) / time
