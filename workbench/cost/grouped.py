"""Grouped products: rows in groups, each group times a matrix of its own (the experts of a mixture)."""

from __future__ import annotations

import numpy as np

from workbench.cost.choices import COLD, Copies
from workbench.cost.matrix import Priced, products
from workbench.cost.pack import Cards
from workbench.operators.grouped import active_groups


def grouped(dims: np.ndarray, operand: np.ndarray, column: np.ndarray, cards: Cards, copies: Copies = COLD) -> Priced:
    """Price grouped products in one kernel whose tiles, of whatever group, are spread over the cores.

    Groups without rows cost nothing, the others read their matrix once; each group's last tile may be ragged, which counts as in a
    batched product of equal groups (work is conserved: MegaBlocks, Gale et al., arXiv:2211.15841; CUTLASS grouped kernels). No
    less time than the largest group takes alone.

    Parameters
    ----------
    dims : ndarray, shape (U, >= 5)
        Groups, rows of all groups, rows of the largest (0: all alike), n, k.
    operand : ndarray, shape (U, 3)
        Bytes an element of rows, matrices and results [B].
    column : ndarray of int, shape (U,)
        Dtype columns.
    cards : Cards
        S packed cards.
    copies : Copies
        What is warm.

    Returns
    -------
    Priced
    """
    groups, rows, busiest, n, k = dims[:, :5].T.astype(np.float64)
    active = active_groups(groups, rows, busiest)
    each = rows / np.maximum(active, 1.0)
    out, _ = products(np.stack((active, each, n, k), axis=1), operand, column, cards, copies=copies)
    uneven = np.flatnonzero(busiest > each)
    if len(uneven):
        one = np.stack((np.ones(len(uneven)), busiest[uneven], n[uneven], k[uneven]), axis=1)
        alone, _ = products(one, operand[uneven], column[uneven], cards, copies=copies)
        longer = alone.seconds > out.seconds[uneven]
        for name in ("seconds", "resource", "detail"):
            whole, part = getattr(out, name), getattr(alone, name)
            whole[uneven] = np.where(longer.reshape(longer.shape + (1,) * (part.ndim - 2)), part, whole[uneven])
    return out
