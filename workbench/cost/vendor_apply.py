"""A vendor's times in place of the model's: stated, interpolated, else (without a model) extrapolated; moved to the asked conditions.

A contract that says how the times were taken acts on them. Times without launch get the card's launch overhead. Times at another
clock than the card's are multiplied by model(card) / model(card at that clock): the part that computes moves with the clock, the part
that memory bounds does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench import units
from workbench.cost.choices import Choices
from workbench.cost.cost import Evidence, OpCost
from workbench.cost.interpolate import BEYOND, REACH, between
from workbench.cost.models import ON_MATRIX, model
from workbench.cost.pack import Cards, pack
from workbench.cost.vendor import VendorTimes
from workbench.errors import Note
from workbench.operators.table import COLLECTIVES, OpTable

FAR = 100.0
"""Times the model's, or a part of it, from which a stated time is doubted: a unit is a thousand off, a model hardly ever ten."""
FASTEST = 4.0  # less work than stated that a transform algorithm (Winograd F(4x4, 3x3)) or structured sparsity may need
TOO_FAST = "stated faster than the card's peak allows: check the unit and the shapes"
FAR_OFF = f"stated more than {FAR:g} times off the model's time: check the unit and the shapes"
SAME_CLOCK = 0.005  # [1], relative difference of clocks that are one and the same


def state(
    table: OpTable,
    vendor: VendorTimes,
    cards: Cards,
    column: np.ndarray,
    modelled_s: np.ndarray,
    arrays: Sequence[np.ndarray],
    evidence: np.ndarray,
    note_code: np.ndarray,
    reasons: list[str],
    choices: Choices,
) -> None:
    """Put a vendor's times into the results of an estimate, in place.

    Parameters
    ----------
    table : OpTable
        U operators.
    vendor : VendorTimes
        Stated times and what they mean.
    cards : Cards
        S packed cards.
    column : ndarray of int, shape (U,)
        Dtype columns.
    modelled_s : ndarray, shape (U, S)
        The model's seconds; nan where there is no model.
    arrays : sequence of three ndarrays, shape (U, S)
        Nominal, low and high seconds, changed in the rows the vendor prices.
    evidence, note_code : ndarray, shape (U,)
        Changed in these rows.
    reasons : list of str
        Texts ``note_code`` indexes; extended.
    choices : Choices
        As in `workbench.cost.estimate.estimate`.
    """
    factor, extra, how = _conditions(table, vendor, cards, column, modelled_s, choices)
    stated = vendor.lookup(table)
    rows = np.flatnonzero(~np.isnan(stated))
    for array in arrays:
        array[rows] = stated[rows, None] * factor[rows] + extra[rows]
    _note(rows, Evidence.VENDOR, how, evidence, note_code, reasons)
    _doubt(table, cards, column, modelled_s, arrays[0], rows, note_code, reasons)
    rest = np.flatnonzero(np.isnan(stated))
    found = between(vendor, table, rest)
    use = ~np.isnan(found.seconds) & (~found.beyond | ~np.isin(evidence[rest], (Evidence.MODEL, Evidence.ANCHORED)))
    for array, wide in zip(arrays, (1.0, 1.0 / (1.0 + found.error), 1.0 + found.error), strict=True):
        array[rest[use]] = (found.seconds * wide)[use, None] * factor[rest[use]] + extra[rest[use]]
    for beyond, which, text in (
        (False, Evidence.INTERPOLATED, f"between the vendor's times of {REACH:g} times smaller to larger operators of its kind and dtype"),
        (True, Evidence.EXTRAPOLATED, f"beyond the vendor's times, by at most a factor {BEYOND:g} in work"),
    ):
        _note(rest[use & (found.beyond == beyond)], which, "; ".join(filter(None, (text, how))), evidence, note_code, reasons)


def _doubt(
    table: OpTable,
    cards: Cards,
    column: np.ndarray,
    modelled_s: np.ndarray,
    seconds: np.ndarray,
    rows: np.ndarray,
    note_code: np.ndarray,
    reasons: list[str],
) -> None:
    """Say of stated times that no card could reach, or that lie far off the model, that they are doubtful; they are used all the same."""
    least = np.where(table.among(ON_MATRIX)[rows, None], table.flops[rows, None] / (2.0 * FASTEST * cards.mac_rate[:, column[rows]].T), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = seconds[rows] / modelled_s[rows]
    fast = (seconds[rows] < least).any(axis=1)
    off = ((ratio > FAR) | (ratio < 1.0 / FAR)).any(axis=1) & ~fast
    for doubtful, text in ((fast, TOO_FAST), (off, FAR_OFF)):
        if doubtful.any():
            note_code[rows[doubtful]] = len(reasons)
            reasons.append(text)


def doubt_notes(cost: OpCost, where: str) -> tuple[Note, ...]:
    """Return a note for each way in which stated times are doubtful.

    Parameters
    ----------
    cost : OpCost
        From `workbench.cost.estimate.estimate`.
    where : str
        The table's file.
    """
    texts = [(code, text) for code, text in enumerate(cost.reasons) if text in (TOO_FAST, FAR_OFF)]
    return tuple(Note("vendor-time-doubtful", where, int((cost.note_code == code).sum()), text) for code, text in texts)


def _note(rows: np.ndarray, which: Evidence, text: str, evidence: np.ndarray, note_code: np.ndarray, reasons: list[str]) -> None:
    if len(rows):
        evidence[rows] = which
        note_code[rows] = len(reasons) if text else 0
        reasons += [text] if text else []


def _conditions(
    table: OpTable, vendor: VendorTimes, cards: Cards, column: np.ndarray, modelled_s: np.ndarray, choices: Choices
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return factor [U, S] and launch [U, S] [s] that bring stated times to the asked conditions, and what was done in words."""
    factor, extra = np.ones(modelled_s.shape), np.zeros(modelled_s.shape)
    how = []
    clock = vendor.contract.clock
    if clock and any(abs(spec.clock / clock - 1.0) > SAME_CLOCK for spec in cards.specs):
        there = [spec.with_({"clock": f"{clock:.0f} Hz"}) for spec in cards.specs]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = modelled_s / model(table, pack(there, cards.dtypes), column, choices).seconds
        factor = np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0)
        how.append(f"stated at {units.format(clock, 'Hz', 4)}, moved to the card's clock by the ratio of the model's times")
    if vendor.contract.launch is False:
        own = ~np.isin(table.kind, COLLECTIVES)
        extra[own] = cards.launch[:, column[own]].T
        how.append("stated without launch: the card's launch is added")
    return factor, extra, "; ".join(how)
