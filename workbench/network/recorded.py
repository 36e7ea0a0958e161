"""Re-pricing a collective that was recorded on one rank only."""

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
