"""Messages between ranks: what one rank reads and writes in its own memory, whatever the algorithm.

References
----------
.. [1] NVIDIA nccl-tests, doc/PERFORMANCE.md: size of a collective.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workbench.operators.formulas import Work


def traffic(kind: str, message: ArrayLike, group: ArrayLike) -> Work:
    """Traffic of one rank of a collective with its own memory, whatever the algorithm.

    Parameters
    ----------
    kind : str
        ``ALL_REDUCE``, ``ALL_GATHER``, ``REDUCE_SCATTER``, ``ALL_TO_ALL``, ``BROADCAST``, ``SEND_RECV`` or ``BARRIER``.
    message : array_like
        Size of the collective [B]: the larger of one rank's input and output buffer [1]_.
    group : array_like
        Ranks in the group.

    Returns
    -------
    Work
        Input buffer read once, output buffer written once. FLOPs are 0: the element type is not known here.
    """
    whole, ranks = np.broadcast_arrays(np.asarray(message, dtype=np.float64), np.maximum(np.asarray(group, dtype=np.float64), 1.0))
    part, zero = whole / ranks, np.zeros(whole.shape)
    if kind == "ALL_GATHER":
        return Work(zero, part, whole)
    if kind == "REDUCE_SCATTER":
        return Work(zero, whole, part)
    if kind == "BARRIER":
        return Work(zero, zero, zero)
    return Work(zero, whole, whole)
