"""Calibration of a card for one dtype: scalars fitted on all kinds together, and the interval of every kind.

See `fit` for the method. `accuracy` defines the figures by which predictions are compared.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from workbench.cost.errors import FEWEST, groups_of, quantiles
from workbench.cost.fit import FOLDS, SAMPLE, Fit, Make, fit_scalars
from workbench.cost.harness import Harness
from workbench.cost.pack import calibration
from workbench.cost.predictors import PLAIN, modelled
from workbench.hardware.parts import Calibration
from workbench.hardware.schema import ERROR_GROUPS
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import OpTable

CARDS_OWN = 0.5
"""Part of what a harness shows that may be the host's in rows that tell of the card's error."""


@dataclass(frozen=True)
class Calibrated:
    """The scalars of one dtype as a card states them, and the fit behind them."""

    stated: Calibration
    fit: Fit


def fold(op: str, dtype: str, shape: tuple[int, ...], folds: int = 2) -> int:
    """Return the fold of a row from its operator, dtype and shape alone (`fit.hashes` does so for a table)."""
    text = f"{op}|{dtype}|{'x'.join(str(int(extent)) for extent in shape)}"
    return hashlib.sha256(text.encode()).digest()[0] % folds


def calibrate(
    spec: NpuSpec, dtype: str, table: OpTable, source: str, *, harness: Harness = PLAIN, make: Make | None = None, most: int = SAMPLE
) -> Calibrated:
    """Fit a card's scalars for one dtype, with the errors of rows left out of the fit.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    dtype : str
        Dtype whose scalars are fitted.
    table : OpTable
        U measured operators that run as it.
    source : str
        Where the measurements come from.
    harness : Harness
        What it left warm, and its clock; of one that times the host the third scalar is no property of the card, which then
        states its own kernel overhead.
    make : callable, optional
        Table to predictor where the rows hold more than the operators: ``predictors.modelled`` and what else was timed.
    most : int
        Rows a kind that the fit looks at.

    Returns
    -------
    Calibrated
        Fitted on all rows; errors are cross-validated (five folds by shape) by kind, for kinds with enough rows. Where the
        harness times the host, the intervals by kind are of the card's own time, from rows it makes up at least half of.
    """
    own = np.array(calibration(spec, dtype)[:3])
    found = fit_scalars(make or (lambda rows: modelled(spec, dtype, rows, harness)), table, own, folds=FOLDS, most=most)
    group, beside = groups_of(table), beside_card(spec, dtype, table, harness, found.scalars, found.seconds)
    errors = {}
    for code in np.unique(group):
        rows = (group == code) & (beside < CARDS_OWN * found.seconds) & (np.minimum(found.left_out_s, table.measured_s) > beside)
        if rows.sum() >= FEWEST:
            low, high = quantiles((found.left_out_s - beside)[rows], (table.measured_s - beside)[rows])
            errors[ERROR_GROUPS[code]] = (round(low, 3), round(high, 3))
    miss = np.abs(np.log(found.left_out_s / table.measured_s))
    error = float(f"{np.expm1(np.quantile(miss, 0.8)):.2g}")
    compute, memory, overhead = (float(f"{value:.3g}") for value in found.scalars)
    return Calibrated(
        Calibration(compute, memory, spec.runtime.launch_overhead if harness.times_host else overhead, error, source, errors), found
    )


def beside_card(spec: NpuSpec, dtype: str, table: OpTable, harness: Harness, scalars: np.ndarray, shown_s: np.ndarray) -> np.ndarray:
    """Return what a harness shows of each row beside the card's own time [U] [s]: 0 unless it times the host.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    dtype : str
        Dtype of the scalars.
    table : OpTable
        U operators.
    harness : Harness
        The harness.
    scalars : ndarray, shape (3,)
        Of a fit to what it shows.
    shown_s : ndarray, shape (U,)
        What that fit says it shows [s].
    """
    if not harness.times_host:
        return np.zeros(len(table))
    own = np.array([scalars[0], scalars[1], spec.runtime.launch_overhead])
    return np.asarray(shown_s - modelled(spec, dtype, table, Harness(harness.copies))(own[None])[:, 0])


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


def skill(ours_s: np.ndarray, theirs_s: np.ndarray, measured_s: np.ndarray, draws: int = 1000) -> tuple[float, float, float]:
    """Return 1 - MAPE of ours / MAPE of theirs: 5 %, 50 % and 95 % of a bootstrap over rows (Efron, Annals of Statistics 1979)."""
    ours, theirs = (np.abs(seconds / measured_s - 1.0) for seconds in (ours_s, theirs_s))
    random, found = np.random.default_rng(0), np.empty(draws)
    for draw in range(draws):
        rows = random.integers(0, len(ours), len(ours))
        found[draw] = 1.0 - ours[rows].mean() / max(float(theirs[rows].mean()), 1e-12)
    low, middle, high = np.quantile(found, [0.05, 0.5, 0.95])
    return float(low), float(middle), float(high)
