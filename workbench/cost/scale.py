"""Operators without a formula: the measurement, moved to another card by ratios of what the cards can do."""

from __future__ import annotations

import numpy as np

from workbench.cost import kernels
from workbench.cost.pack import Cards

NO_SOURCE = 4.0  # without a source card nothing is known of the ratio: this factor either way


def scaled_measurement(
    measured_s: np.ndarray, cards: Cards, source: Cards | None, column: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Scale measured times.

    The part of a time that is kernel overhead moves with the overhead, the rest with some resource nobody recorded: memory,
    matrix or vector unit. The slowest and the fastest of these ratios bound it, their geometric middle is the nominal time.

    Parameters
    ----------
    measured_s : ndarray, shape (U,)
        Recorded time [s], nan where there is none.
    cards : Cards
        S candidate cards.
    source : Cards or None
        The recording's card (one), with the same dtypes.
    column : ndarray of int, shape (U,)
        Dtype columns.

    Returns
    -------
    nominal, low, high : ndarray, shape (U, S)
        [s]; equal to the measurement on the source card itself.
    reason : str
        For the note.
    """
    measured = np.repeat(measured_s[:, None], len(cards.specs), axis=1)
    if source is None:
        why = "no formula and no source card: the recorded time is kept, nothing is known of this card's"
        return measured, measured / NO_SOURCE, measured * NO_SOURCE, why

    def rates(of: Cards) -> np.ndarray:
        peak = of.mac_rate * of.matrix[..., kernels.ETA_COMPUTE]
        return np.stack((of.memory_rate, of.vector_rate, np.maximum(peak, 1.0)))[..., column].transpose(0, 2, 1)

    ratio = rates(source) / rates(cards)
    least, most = ratio.min(axis=0), ratio.max(axis=0)
    floor, target = source.launch[:, column].T, cards.launch[:, column].T
    fixed = np.minimum(measured, floor)
    moved = fixed * np.divide(target, floor, out=np.ones_like(target), where=floor > 0)
    rest = measured - fixed
    why = "no formula: measured time scaled by the geometric middle of the ratios of bandwidth, vector and matrix rate, which bound it"
    return moved + rest * np.sqrt(least * most), moved + rest * least, moved + rest * most, why
