"""What can be wrong with measured times before a fit believes them, and with a fit before a person does."""

from __future__ import annotations

import numpy as np

from workbench.cost.fit import SCALARS, Fit, hashes
from workbench.cost.harness import Harness
from workbench.cost.predictors import NAIVE, modelled, roofline
from workbench.errors import Note
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import OpTable

FEWEST_ROWS, FEWEST_SHAPES = 20, 8
"""What three scalars and their error need."""
BEYOND = 0.8  # of the time with every resource at its peak and no overhead: faster is not this card
MOST_BEYOND = 0.5
SPREAD, FLAT = 8.0, 1.1  # work that spreads so far, in times that do not
OUTLIER = 5.0  # factor between a row and the fit
SLOW = 2.0  # median factor that is left between times and model with a scalar at its limit
POOR = 0.5
UNIT = "check the unit of the time column, the card and the dtype"


def why_not(spec: NpuSpec, dtype: str, table: OpTable, harness: Harness) -> tuple[str, str]:
    """Return why rows cannot calibrate a card, and what to do; two empty texts where they can.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    dtype : str
        Dtype they run as.
    table : OpTable
        Rows with a measured time.
    harness : Harness
        What it left warm, and its clock.
    """
    rows, more = len(table), f"give at least {FEWEST_ROWS} operators of at least {FEWEST_SHAPES} shapes"
    if rows < FEWEST_ROWS:
        return f"{rows} rows are too few to fit {dtype}", more
    shapes = len(np.unique(hashes(table), axis=0))
    if shapes < FEWEST_SHAPES:
        return f"{rows} rows of {dtype} have only {shapes} shapes: three scalars cannot be told from them", more
    fastest = modelled(spec, dtype, table, harness)(NAIVE[None])[:, 0]
    beyond = float(np.mean(table.measured_s < BEYOND * fastest))
    if beyond > MOST_BEYOND:
        median = float(np.median(fastest / table.measured_s))
        return f"{100 * beyond:.0f} % of the {dtype} rows are faster than {spec.name} can be, by {median:.3g} times at the median", UNIT
    low, high = np.quantile(roofline(spec, table)(NAIVE[None])[:, 0], [0.1, 1.0])
    short, long = np.quantile(table.measured_s, [0.1, 0.9])
    if high > SPREAD * low and long < FLAT * short and high > long / 2.0:
        return f"the times of {dtype} do not depend on the work: 80 % lie within a factor {long / short:.3g}", "give measured times"
    return "", ""


def too_slow(fit: Fit, table: OpTable, dtype: str) -> str:
    """Return why a fit cannot be believed ("": it can): a scalar at its limit, and times still far from it."""
    factor = float(np.median(table.measured_s / fit.seconds))
    if fit.limits and factor > SLOW:
        return f"times of {dtype} are {factor:.3g} times longer than any scalars explain ({', '.join(fit.limits)} at the limit)"
    return ""


def doubts(spec: NpuSpec, dtype: str, table: OpTable, harness: Harness, fit: Fit, places: np.ndarray, path: str) -> list[Note]:
    """Return what a person should know before using a fit.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    dtype : str
        Dtype.
    table : OpTable
        U rows.
    harness : Harness
        What it left warm, and its clock.
    fit : Fit
        Their fit.
    places : ndarray of str, shape (U,)
        Where they stand: ``file:line``.
    path : str
        Files.
    """
    notes = []
    fastest = modelled(spec, dtype, table, harness)(NAIVE[None])[:, 0]
    beyond = np.flatnonzero(table.measured_s < BEYOND * fastest)
    if len(beyond):
        notes.append(
            Note("faster-than-peak", _at(places[beyond]), len(beyond), f"rows faster than {spec.name} at its peak, by its model", UNIT)
        )
    factor = np.abs(np.log(table.measured_s / fit.left_out_s))
    far = np.flatnonzero(factor > np.log(OUTLIER))
    if len(far):
        text = f"rows more than {OUTLIER:g} times off the fit; they hardly move it, but they are in its errors"
        notes.append(Note("outliers", _at(places[far]), len(far), text, "check them"))
    for name, known in zip(SCALARS, fit.determined, strict=True):
        if not known:
            text = f"no row of {dtype} depends on {name}: it stays what the card stated"
            notes.append(Note("scalar-not-determined", path, 1, text, "add larger (compute, memory) or smaller (launch) operators"))
    for name in fit.limits:
        notes.append(Note("scalar-at-limit", path, 1, f"{name} of {dtype} ended at the limit of what is possible", UNIT))
    median = float(np.median(np.abs(fit.left_out_s / table.measured_s - 1.0)))
    if median > POOR:
        notes.append(Note("poor-fit", path, len(table), f"half of the {dtype} rows miss by more than {100 * median:.0f} %", UNIT))
    return notes


def _at(places: np.ndarray) -> str:
    """Return the first places, the file once: ``a.csv:3, 7, 9 ...``."""
    out: list[str] = []
    last = ""
    for place in places[:6].tolist():
        file, _, line = place.rpartition(":")
        out.append(line if file == last else place)
        last = file
    return ", ".join(out) + (" ..." if len(places) > 6 else "")
