"""Seconds of a collective over one tier of equal links: rings, and direct exchange. The one-tier case of `workbench.network.traffic`.

NVIDIA nccl-tests, doc/PERFORMANCE.md, for what "size" means.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec, Library, Tier
from workbench.network.groups import Group
from workbench.network.traffic import Site, algorithms
from workbench.operators.table import COLLECTIVES, Kind

ALGORITHM = {Kind.ALL_TO_ALL: "direct", Kind.SEND_RECV: "direct", Kind.BARRIER: "tree"}
"""What does a collective where no library is known; a ring does all others."""


@lru_cache(maxsize=4096)
def _moved(kind: Kind, members: int) -> tuple[float, float]:
    """Return the steps of a collective, and the bytes over a member's link for a byte of the message [1]."""
    tier = Tier(
        name="link", size=members, topology="switch", bandwidth_per_direction=1.0, ports=1.0, latency=0.0, shape="", leaf=None,
        oversubscription=1.0, in_network_reduction=False, medium=None, efficiency=1.0,
    )  # fmt: skip
    library = Library("none", algorithms=(), message_launch=0.0, copy=0.0, chunks=1, protocols=(), sources=(), weak=())
    cluster = ClusterSpec(
        "link", npu="", tiers=(tier,), library=library, launch_factor=1.0, step_factor=1.0, error=None, confidence="", sources=(), weak=()
    )
    group = Group(members, (members,), (members,), (1,), (1,), True)
    wanted = ALGORITHM.get(kind, "ring")
    found = next(traffic for traffic in algorithms(kind, Site(cluster, group)) if traffic.algorithm == wanted)
    return found.steps[0], found.out[0]


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
    asked, back = np.unique(np.stack((kinds.ravel(), members.ravel())), axis=1, return_inverse=True)
    for code in asked[0]:
        if code not in COLLECTIVES:
            raise Refused("collective", f"kind {int(code)} is no collective", "price it with the cost model")
    moved = np.array([_moved(Kind(int(code)), int(n)) if n > 1 else (0.0, 0.0) for code, n in asked.T]).reshape(-1, 2)
    steps, share = moved[back.ravel()].T.reshape(2, *kinds.shape)
    return np.asarray(steps * step + share * size / rate)
