"""Re-pricing a recorded collective: of one rank alone, or with its waiting told apart from its transfer."""

from __future__ import annotations

import numpy as np


def reprice_recorded(measured_s: np.ndarray, source_s: np.ndarray, target_s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Move a recorded collective to another fabric without knowing how long it waited for its peers.

    One rank's recording is waiting plus transfer and cannot be split by itself. The transfer is taken as what the
    source fabric's model needs (at most all of the recording) and is re-priced; the rest is waiting and is kept.

    Parameters
    ----------
    measured_s : ndarray, shape (U,)
        Recorded duration [s].
    source_s, target_s : ndarray, shape (U,)
        Modelled transfer on the source and the target fabric [s].

    Returns
    -------
    nominal_s, low_s, high_s : ndarray, shape (U,)
        Predicted duration [s]; the transfer alone (peers never late) [s]; recorded waiting plus transfer [s].
        ``nominal_s`` equals ``measured_s`` where the fabrics are the same.
    """
    ratio = np.divide(target_s, source_s, out=np.ones_like(target_s), where=source_s > 0)
    transfer = np.minimum(measured_s, source_s) * ratio
    nominal = np.maximum(measured_s - source_s, 0.0) + transfer
    return nominal, np.minimum(transfer, nominal), nominal


def reprice_transfer(transfer_s: np.ndarray, source_s: np.ndarray, target_s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Move the transfer of a collective, whose waiting is known from all its members, to another fabric.

    Parameters
    ----------
    transfer_s : ndarray, shape (U,)
        Recorded from the arrival of the last member to the end [s].
    source_s, target_s : ndarray, shape (U,)
        Modelled transfer on the source and the target fabric [s].

    Returns
    -------
    nominal_s, low_s, high_s : ndarray, shape (U,)
        The recorded transfer times the ratio of the models [s] (as recorded where the fabrics are the same); the ends of the interval are
        that and what the target's model says alone.
    """
    nominal = transfer_s * np.divide(target_s, source_s, out=np.ones_like(target_s), where=source_s > 0)
    same = source_s == target_s
    other = np.where(same, nominal, target_s)
    return nominal, np.minimum(nominal, other), np.maximum(nominal, other)
