"""Structured sparsity: two of every four weights along K are zero and left out.

Source: Mishra et al., Accelerating Sparse Deep Neural Networks (arXiv 2104.08378): the array multiplies at twice the rate, the
weights take half their bytes and 2 bits of index for each that is kept; the other operand is read in full.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.cost import kernels
from workbench.cost.pack import Cards
from workbench.errors import Refused

KEPT = 0.5
INDEX = KEPT * 2.0 / 8.0  # [B] a weight


def pruned(cards: Cards, operand: np.ndarray, column: np.ndarray) -> tuple[Cards, np.ndarray]:
    """Return cards that multiply pruned weights, and the bytes an element of pruned operands.

    Parameters
    ----------
    cards : Cards
        S packed cards.
    operand : ndarray, shape (U, 3)
        Bytes an element of A, B and C [B].
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.

    Returns
    -------
    Cards, ndarray of shape (U, 3)

    Raises
    ------
    Refused
        A card that states no ``matrix.sparse`` for a dtype that occurs.
    """
    matrix: np.ndarray = cards.matrix.copy()
    for d in np.unique(column):
        for s, spec in enumerate(cards.specs):
            factor = spec.matrix.sparse.get(cards.runs_as[s][d])
            if factor is None:
                what = f"{spec.name} states no structured sparsity of {cards.dtypes[d]}"
                raise Refused("sparse", what, f"price it dense, or state matrix.sparse.{cards.dtypes[d]}")
            matrix[s, d, kernels.MACS] *= factor
    bytes_: np.ndarray = operand.copy()
    bytes_[:, 1] = operand[:, 1] * KEPT + INDEX
    return replace(cards, matrix=matrix), bytes_
