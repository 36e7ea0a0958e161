"""Rows of a table of operators that give none: what part of the measured time they are, and how far the total could move."""

from __future__ import annotations

import math

import numpy as np

from workbench.errors import WorkbenchError
from workbench.operators.columns import columns_of, time_of
from workbench.study.documents_vendor import LeftOutDocument
from workbench.study.operators_csv import Operators

FEWEST = 3  # rows with a measured and a predicted time from which a ratio can be taken
ENDS = (0.1, 0.9)


def left_out_document(operators: Operators, seconds: np.ndarray) -> LeftOutDocument | None:
    """Describe the rows that give no operator; None where every row gives one.

    Parameters
    ----------
    operators : Operators
        What `workbench.study.operators_csv.read_operators` returns.
    seconds : ndarray, shape (U,)
        Predicted seconds of the operators, nan where not priced [s].
    """
    if not operators.left_out:
        return None
    columns = columns_of(operators.sheet)
    times = []
    for left in operators.left_out:
        try:
            times.append(time_of(operators.sheet, columns, left.row))
        except WorkbenchError:
            times.append(math.nan)
    known = np.array([time for time in times if not math.isnan(time)])
    table = operators.table
    measured = np.where(table.measured_s > 0, table.measured_s, 0.0)
    whole = float((measured * table.count).sum() + known.sum())
    both = (measured > 0) & (seconds > 0)
    ends = np.quantile(seconds[both] / measured[both], ENDS) * known.sum() if both.sum() >= FEWEST and len(known) else (math.nan, math.nan)
    unnamed = sum("no rule knows" in left.why or "nothing says" in left.why for left in operators.left_out)
    return LeftOutDocument(
        rows=len(operators.left_out),
        without_shape=len(operators.left_out) - unnamed,
        unnamed=unnamed,
        measured_s=float(known.sum()),
        without_time=len(times) - len(known),
        share=float(known.sum()) / whole if whole > 0 and len(known) else None,
        low_s=float(ends[0]),
        high_s=float(ends[1]),
    )
