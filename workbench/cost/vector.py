"""Operators of the vector unit and the memory: elementwise, softmax, norms, reductions, gathers, copies, optimizer steps.

One equation for all, after Williams et al., Roofline (CACM 2009), with a floor:
``t = launch + latency + max(bytes read and written again as often as needed / sustained bandwidth, operations / vector rate,
special functions / their rate)``.
"""

from __future__ import annotations

import numpy as np

from workbench.cost import kernels
from workbench.cost.choices import COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced, empty
from workbench.cost.pack import Cards
from workbench.operators.table import Kind

SPECIAL = {Kind.SOFTMAX: 1.0, Kind.NORM: 0.0}
"""Special functions (exp) an element; a norm needs one a row only."""
SORT_PASSES = 8.0  # radix sort of 32-bit keys, 4 bits a pass (Merrill and Grimshaw 2011); 64-bit keys take twice as many
HOST_EFFICIENCY = 0.8  # sustained share of a PCIe link's bandwidth for pinned memory


def streams(
    kind: np.ndarray,
    elements: np.ndarray,
    row_bytes: np.ndarray,
    flops: np.ndarray,
    read: np.ndarray,
    written: np.ndarray,
    column: np.ndarray,
    cards: Cards,
    copies: Copies = COLD,
) -> Priced:
    """Price operators that stream their operands past the vector unit.

    Parameters
    ----------
    kind : ndarray of int, shape (U,)
        `Kind` of each row.
    elements : ndarray, shape (U,)
        Elements worked on (special functions are counted by them).
    row_bytes : ndarray, shape (U,)
        Bytes of one row of a softmax or norm [B]; rows longer than a kernel can hold are read twice.
    flops, read, written : ndarray, shape (U,)
        Operations, compulsory bytes [B].
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    copies : Copies
        What is warm, see `workbench.cost.choices`: operands that fit the shared level so many times do not come from outside.

    Returns
    -------
    Priced
    """
    out = empty(len(kind), len(cards.specs))
    long = np.where((kind == Kind.NORM)[:, None], row_bytes[:, None] > cards.norm_room, row_bytes[:, None] > cards.row_room)
    reads = np.where(np.isin(kind, (Kind.SOFTMAX, Kind.NORM))[:, None] & long, 2.0, 1.0)
    passes = np.where(kind == Kind.SORT, SORT_PASSES, 1.0)[:, None]
    traffic = passes * (reads * read[:, None] + written[:, None])
    special = np.zeros(len(kind))
    for which, count in SPECIAL.items():
        special[kind == which] = count
    vector = flops[:, None] / cards.vector_rate[:, column].T
    vector = np.maximum(vector, (special * elements)[:, None] / cards.special_rate)
    memory = traffic / cards.memory_rate[:, column].T
    warm = (read + written)[:, None] * copies[0] <= cards.matrix[:, column, kernels.SHARED].T
    memory = np.where(warm, 0.0, memory)
    shared = traffic / cards.shared_rate
    overhead = cards.launch[:, column].T + cards.latency
    out.resource[..., Bound.VECTOR] = vector
    out.resource[..., Bound.SHARED] = shared
    out.resource[..., Bound.MEMORY] = memory
    out.resource[..., Bound.LAUNCH] = overhead
    out.detail[..., 0], out.detail[..., 1] = cards.launch[:, column].T, cards.latency
    out.level[..., 1] = traffic
    out.level[..., 2] = np.where(warm, 0.0, traffic)
    out.seconds[:] = overhead + np.maximum(np.maximum(vector, memory), shared)
    return out


def host_copies(bytes_: np.ndarray, column: np.ndarray, cards: Cards) -> Priced:
    """Price copies over the host link: ``t = latency + bytes / (0.8 bandwidth)``; nan where a card has no ``host`` link.

    Parameters
    ----------
    bytes_ : ndarray, shape (U,)
        Bytes moved [B].
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    """
    out = empty(len(bytes_), len(cards.specs))
    moving = bytes_[:, None] / (cards.host_rate * HOST_EFFICIENCY)
    overhead = cards.launch[:, column].T + cards.host_latency
    out.resource[..., Bound.NETWORK] = moving
    out.resource[..., Bound.LAUNCH] = overhead
    out.detail[..., 0], out.detail[..., 1] = cards.launch[:, column].T, cards.host_latency
    out.level[..., 2] = bytes_[:, None]
    out.seconds[:] = moving + overhead
    return out
