"""Work of grouped products: rows in groups, each group times a matrix of its own (the experts of a mixture).

Conventions of `workbench.operators.formulas`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workbench.operators.formulas import Work, _f, _work


def active_groups(groups: ArrayLike, rows: ArrayLike, busiest: ArrayLike = 0) -> np.ndarray:
    """Groups that have a row, at most: ``min(groups, rows)``; where the largest takes ``busiest`` rows, the others share the rest."""
    groups, rows, busiest = _f(groups), _f(rows), _f(busiest)
    others = np.minimum(groups - 1.0, np.maximum(rows - busiest, 0.0))
    return np.where(rows > 0, np.where(busiest > 0, 1.0 + others, np.minimum(groups, rows)), 0.0)


def grouped_gemm(
    groups: ArrayLike,
    rows: ArrayLike,
    busiest: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    size_in: ArrayLike,
    size_out: ArrayLike,
    size_b: ArrayLike | None = None,
) -> Work:
    """Products of groups of rows with a matrix each (mixture of experts, Shazeer et al., arXiv:1701.06538): every row meets one matrix.

    Parameters
    ----------
    groups, rows, busiest : array_like
        Matrices, rows of all groups together, and rows of the largest group (0: all alike).
    n, k : array_like
        Extents of each matrix, k x n.
    size_in, size_out, size_b : array_like
        As in `gemm`.

    Returns
    -------
    Work
        2 rows n k FLOPs; reads every row and the matrix of every group that has one (`active_groups`), writes rows n elements.
    """
    rows, n, k = _f(rows), _f(n), _f(k)
    second = _f(size_in if size_b is None else size_b)
    weights = active_groups(groups, rows, busiest) * k * n * second
    return _work(2.0 * rows * n * k, rows * k * _f(size_in) + weights, rows * n * _f(size_out))
