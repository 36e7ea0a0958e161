"""Utilisation: what an operator achieves of its unit's dense peak and of the outermost bandwidth.

Source: Williams, Waterman, Patterson, Roofline (CACM 52(4), 2009): achieved operations and bytes a second, over the stated ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.cost.cost import OpCost
from workbench.cost.models import ON_MATRIX, PRODUCTS
from workbench.cost.pack import dtype_name, resolve
from workbench.cost.sparsity import KEPT
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import OpTable


@dataclass(frozen=True)
class Utilisation:
    """Of U operators on S cards.

    ``compute``, ``memory`` [U, S]: shares of the peak and of the bandwidth, nan where an operator takes no time or nothing prices
    it. ``matrix`` [U, S]: whether the peak is that of the matrix unit, else of the vector unit.
    """

    compute: np.ndarray
    memory: np.ndarray
    matrix: np.ndarray


def utilisation(table: OpTable, cost: OpCost, specs: Sequence[NpuSpec], *, sparse: bool = False) -> Utilisation:
    """Return how far operators use a card.

    Products (attention and convolutions too) count against the dense peak of the dtype they run as, on the unit that has it; all
    else against the vector unit's, two operations a multiply-add. Operations are those of the direct algorithm: a convolution that
    runs by Winograd or Fourier does fewer, so that its share may exceed 1. Pruned products count what they execute.

    Parameters
    ----------
    table : OpTable
        U operators.
    cost : OpCost
        Their times.
    specs : sequence of NpuSpec, length S
        The cards they were priced on.
    sparse : bool
        Products were priced with pruned weights.

    Returns
    -------
    Utilisation
    """
    shape = (len(table), len(specs))
    peak, matrix = np.zeros(shape), np.zeros(shape, dtype=bool)
    products = table.among(ON_MATRIX)
    for s, spec in enumerate(specs):
        for code in np.unique(table.dtype).tolist():
            name, of = dtype_name(code), table.dtype == code
            runs = resolve(spec, name)
            unit = "matrix" if runs in spec.matrix.rate else "vector"
            peak[of & products, s] = spec.unit_peak(unit, runs)
            matrix[of & products, s] = unit == "matrix"
            peak[of & ~products, s] = spec.unit_peak("vector", name) or spec.unit_peak("vector", "fp32")
    flops = np.where(table.among(PRODUCTS), table.flops * KEPT, table.flops) if sparse else table.flops
    bandwidth = np.array([spec.bandwidth(list(spec.memory)[-1]) for spec in specs])
    moved = cost.level_bytes[..., cost.levels.index("memory")]
    with np.errstate(divide="ignore", invalid="ignore"):
        compute = np.where((cost.seconds > 0.0) & (peak > 0.0), flops[:, None] / cost.seconds / peak, np.nan)
        memory = np.where(cost.seconds > 0.0, moved / cost.seconds / bandwidth, np.nan)
    return Utilisation(compute, memory, matrix)
