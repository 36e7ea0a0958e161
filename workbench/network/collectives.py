"""Seconds of a collective on one tier of equal links: ring algorithms and direct exchange.

Sources: Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (IJHPCA 2005): a ring
all-reduce takes 2 (n - 1) steps and moves 2 (n - 1) / n of the message over every link, its halves one all-gather and one
reduce-scatter; NVIDIA nccl-tests, doc/PERFORMANCE.md, for what "size" means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import Refused
from workbench.operators.table import Kind

RING_STEPS = {Kind.ALL_REDUCE: 2.0, Kind.ALL_GATHER: 1.0, Kind.REDUCE_SCATTER: 1.0}
"""Ring passes: each takes n - 1 steps and moves (n - 1) / n of the message over every link."""


def transfer_s(kind: ArrayLike, bytes: ArrayLike, group_size: ArrayLike, bandwidth: ArrayLike, latency: ArrayLike) -> np.ndarray:
    """Return the transfer time of collectives once every member has arrived.

    ``t = steps latency + share bytes / bandwidth`` with (steps, share) = (2 (n-1), 2 (n-1)/n) for all-reduce, (n-1, (n-1)/n) for
    all-gather and reduce-scatter, (1, (n-1)/n) for all-to-all (direct), (n-1, 1) for a pipelined ring broadcast,
    (1, 1) for send/recv, (2 ceil(log2 n), 0) for a barrier.

    Parameters
    ----------
    kind : array_like of int
        `Kind` of a collective.
    bytes : array_like
        Size of the whole message of one member: the reduced vector, the gathered output, the scattered input, what one
        member sends to all [B].
    group_size : array_like
        Members n; 1 moves nothing and costs nothing.
    bandwidth : array_like
        Usable bandwidth per direction of a member's link [B/s].
    latency : array_like
        Time of one step [s].

    Returns
    -------
    ndarray of float64
        [s]; never negative, never falling with bytes, the latency floor for zero bytes.

    Raises
    ------
    Refused
        Negative or unknown sizes, a bandwidth that is not positive, or a kind that is no collective.
    """
    kinds, size, members, rate, step = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (kind, bytes, group_size, bandwidth, latency))
    )
    if np.any(~(size >= 0)) or np.any(~(members >= 1)) or np.any(~(rate > 0)) or np.any(~(step >= 0)):
        raise Refused("collective", "a negative or unknown size, group, bandwidth or latency", "mend the message or the link")
    steps, share = np.zeros(kinds.shape), np.zeros(kinds.shape)
    known = np.zeros(kinds.shape, dtype=bool)
    around = (members - 1.0) / members
    rules = {
        Kind.ALL_TO_ALL: (np.ones_like(around), around),
        Kind.BROADCAST: (members - 1.0, np.ones_like(around)),
        Kind.SEND_RECV: (np.ones_like(around), np.ones_like(around)),
        Kind.BARRIER: (2.0 * np.ceil(np.log2(members)), np.zeros_like(around)),
    } | {which: (passes * (members - 1.0), passes * around) for which, passes in RING_STEPS.items()}
    for which, (count, part) in rules.items():
        rows = kinds == which
        known |= rows
        steps, share = np.where(rows, count, steps), np.where(rows, part, share)
    if not known.all():
        raise Refused("collective", f"kind {int(kinds[~known].flat[0])} is no collective", "price it with the cost model")
    return np.where(members > 1.0, steps * step + share * size / rate, 0.0)
