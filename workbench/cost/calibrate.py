"""Three scalars a card and dtype (sustained compute, sustained bandwidth, kernel overhead), fitted on measured products.

Rows are split by a hash of (op, dtype, shape), so that one shape never stands on both sides (design.md, section 7).
The calibrated roofline, ``t0 + max(flops / (eta_c peak), bytes / (eta_m bandwidth))``, is fitted the same way as the yardstick.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from workbench.cost import kernels, matrix
from workbench.cost.pack import pack
from workbench.hardware.parts import Calibration
from workbench.hardware.spec import NpuSpec

Predict = Callable[[np.ndarray], np.ndarray]
START = np.array([0.8, 0.8, 3e-6])
LOWER, UPPER = np.array([0.05, 0.05, 2e-7]), np.array([1.0, 1.0, 1e-4])
FOLDS = 5


@dataclass(frozen=True)
class Products:
    """Measured matrix products of one device, source and dtype.

    ``shape`` [U, 4] is batch, m, n, k; ``operand`` [U, 3] bytes an element [B]; ``measured_s`` [U] [s]; ``copies`` how many
    working sets and outputs the measuring harness cycled through (what stays in the shared level between two runs).
    """

    shape: np.ndarray
    operand: np.ndarray
    measured_s: np.ndarray
    copies: tuple[float, float] = (1.0, 1.0)

    def take(self, rows: np.ndarray) -> Products:
        """Return some rows."""
        return replace(self, shape=self.shape[rows], operand=self.operand[rows], measured_s=self.measured_s[rows])


def fold(op: str, dtype: str, shape: tuple[int, ...], folds: int = 2) -> int:
    """Return the fold of a row from its operator, dtype and shape alone."""
    text = f"{op}|{dtype}|{'x'.join(str(int(extent)) for extent in shape)}"
    return hashlib.sha256(text.encode()).digest()[0] % folds


def tile_model(spec: NpuSpec, dtype: str, rows: Products) -> Predict:
    """Return seconds of the tile model as a function of the three scalars."""
    column = np.zeros(len(rows.shape), dtype=np.int64)
    packed = pack([spec], [dtype])

    def predict(scalars: np.ndarray) -> np.ndarray:
        card = packed.matrix.copy()
        card[0, 0, [kernels.ETA_COMPUTE, kernels.ETA_MEMORY, kernels.LAUNCH]] = scalars
        return matrix.products(rows.shape, rows.operand, column, replace(packed, matrix=card), copies=rows.copies)[0].seconds[:, 0]

    return predict


def roofline(spec: NpuSpec, dtype: str, rows: Products) -> Predict:
    """Return seconds of the calibrated roofline as a function of the three scalars."""
    cards = pack([spec], [dtype])
    batch, m, n, k = rows.shape.T
    compute = batch * m * n * k / cards.mac_rate[0, 0]
    bytes_ = (np.stack((batch * m * k, batch * k * n, batch * m * n), axis=1) * rows.operand).sum(axis=1)
    memory = bytes_ / cards.matrix[0, 0, kernels.RATE_MEMORY]
    return lambda scalars: scalars[2] + np.maximum(compute / scalars[0], memory / scalars[1])


def fit(predict: Predict, measured_s: np.ndarray, start: np.ndarray = START) -> np.ndarray:
    """Fit the three scalars by compass search in their logarithms.

    Minimises the mean of |t / measured - 1| and |log(t / measured)|, which weighs over- and underestimates alike.

    Parameters
    ----------
    predict : callable
        Scalars (compute, memory, launch [s]) to seconds [U].
    measured_s : ndarray, shape (U,)
        Measured times [s].
    start : ndarray, shape (3,)
        First guess.

    Returns
    -------
    ndarray, shape (3,)
    """

    def loss(point: np.ndarray) -> float:
        log = np.log(predict(np.clip(np.exp(point), LOWER, UPPER)) / measured_s)
        return float(np.mean(np.abs(np.expm1(log)) + np.abs(log)) / 2.0)

    point, step = np.log(start), np.array([0.25, 0.25, 0.5])
    best = loss(point)
    while step.max() > 0.01:
        moved = False
        for axis in range(3):
            for sign in (1.0, -1.0):
                trial = point.copy()
                trial[axis] = np.clip(trial[axis] + sign * step[axis], np.log(LOWER[axis]), np.log(UPPER[axis]))
                value = loss(trial)
                if value < best:
                    best, point, moved = value, trial, True
                    break
        if not moved:
            step = step / 2.0
    return np.exp(point)


def calibrate(spec: NpuSpec, dtype: str, rows: Products, folds: np.ndarray, source: str) -> Calibration:
    """Fit a card's scalars for one dtype, with the error of rows left out of the fit.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    dtype : str
        Dtype name.
    rows : Products
        Measurements.
    folds : ndarray of int, shape (U,)
        Fold of every row, see `fold`.
    source : str
        Where the measurements come from.

    Returns
    -------
    Calibration
        Fitted on all rows; ``error`` is e such that 80 % of left-out rows lie within a factor 1 + e.
    """
    scalars = fit(tile_model(spec, dtype, rows), rows.measured_s)
    miss = np.empty(len(folds))
    for left in np.unique(folds):
        out = folds == left
        fitted = fit(tile_model(spec, dtype, rows.take(~out)), rows.measured_s[~out], scalars)
        miss[out] = np.abs(np.log(tile_model(spec, dtype, rows.take(out))(fitted) / rows.measured_s[out]))
    error = float(np.expm1(np.quantile(miss, 0.8)))
    compute, memory, launch = (float(f"{value:.3g}") for value in scalars)
    return Calibration(compute, memory, launch, float(f"{error:.2g}"), source)


def accuracy(predicted_s: np.ndarray, measured_s: np.ndarray) -> dict[str, float]:
    """Return MAPE, median, P90, signed bias and time-weighted error of predictions (fractions)."""
    miss = predicted_s / measured_s - 1.0
    return {
        "mape": float(np.mean(np.abs(miss))),
        "median": float(np.median(np.abs(miss))),
        "p90": float(np.quantile(np.abs(miss), 0.9)),
        "bias": float(np.mean(miss)),
        "time_weighted": float(np.sum(np.abs(predicted_s - measured_s)) / np.sum(measured_s)),
    }
