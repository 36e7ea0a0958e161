"""Operators of the vector unit and the memory: elementwise, softmax, norms, reductions, gathers, copies, sorts, optimizer steps.

One equation for all, after Williams et al., Roofline (CACM 2009), with what keeps small and odd operators below it:
``t = launch + latency + |vector, shared, memory, trips|`` where the bars are the fourth-power norm of `kernels.evaluate`:
operations over the sustained vector rate (its share of the peak is that of products), bytes over the sustained bandwidth of each
level, and the time in which a core's bytes on the way bound it (Little's law; `rowwise` for operators that work row by row).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.cost.choices import COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.kernels import ETA_COMPUTE
from workbench.cost.matrix import Priced, empty
from workbench.cost.pack import Cards
from workbench.cost.rowwise import KINDS, missed, rowwise
from workbench.operators.table import Kind

SORT_PASSES = 8.0  # radix sort of 32-bit keys, 4 bits a pass (Merrill and Grimshaw 2011); 64-bit keys take twice as many
HOST_EFFICIENCY = 0.8  # sustained share of a PCIe link's bandwidth for pinned memory
CELLS = 1 << 14  # operators x cards worked on at once: their arrays stay in a processor's cache
TENSORS = 36.0  # that one launch of a fused optimizer takes: PyTorch (BSD-3), MultiTensorApply.cuh, lists of four


@dataclass(frozen=True)
class Stream:
    """U operators that stream operands past the vector unit; arrays of shape (U,).

    ``kind`` is a `Kind`; ``elements`` how many are worked on; ``rows`` and ``cols`` the shape of operators that work by rows or
    gather them (``cols`` the tensors of an optimizer step); ``size`` bytes an element [B]; ``flops`` plain operations; ``work``
    instructions of a lane an element beyond them (a function made of many); ``special`` hardware functions an element;
    ``read`` and ``written`` compulsory bytes [B]; ``column`` the index into ``Cards.dtypes``;
    ``narrow`` whether the kernel fetches element by element where lanes are threads; ``kernels`` launched one after the other.
    """

    kind: np.ndarray
    elements: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    size: np.ndarray
    flops: np.ndarray
    work: np.ndarray
    special: np.ndarray
    read: np.ndarray
    written: np.ndarray
    column: np.ndarray
    narrow: np.ndarray
    kernels: np.ndarray


def maps(elements: np.ndarray, flops: np.ndarray, read: np.ndarray, written: np.ndarray, column: np.ndarray) -> Stream:
    """Return operators that map elements, or windows of them, by plain arithmetic (pooling, depthwise convolution).

    Parameters
    ----------
    elements, flops, read, written, column : ndarray, shape (U,)
        As in `Stream`.
    """
    none, kind = np.zeros(len(elements)), np.full(len(elements), Kind.ELEMENTWISE)
    return Stream(kind, elements, elements, none, none + 4.0, flops, none, none, read, written, column, none > 0, none + 1.0)


def streams(of: Stream, cards: Cards, copies: Copies = COLD) -> Priced:
    """Price operators that stream their operands past the vector unit.

    Parameters
    ----------
    of : Stream
        U operators.
    cards : Cards
        S packed cards.
    copies : Copies
        What is warm, see `workbench.cost.choices`: operands that fit the shared level so many times do not come from outside.

    Returns
    -------
    Priced
    """
    out = empty(len(of.kind), cards)
    step = max(CELLS // max(len(cards.specs), 1), 1)
    for begin in range(0, len(of.kind), step):
        rows = slice(begin, begin + step)
        part = Stream(*(array[rows] for array in vars(of).values()))
        _price(part, cards, copies, Priced(**{name: array[rows] for name, array in vars(out).items()}))
    return out


def _price(of: Stream, cards: Cards, copies: Copies, out: Priced) -> None:
    elements = of.elements[:, None]
    copied = copies[0] * (of.read + of.written)[:, None]
    cold = missed(copied, cards) if np.isfinite(copies[0]) else np.ones(out.seconds.shape)
    reads, outside, trips, work, kernels = _accesses(of, cold, cards)
    passes = np.where(of.kind == Kind.SORT, SORT_PASSES * np.maximum(of.size, 1.0) / 4.0, 1.0)[:, None]
    shared_bytes = passes * (reads * of.read[:, None] + of.written[:, None])
    memory_bytes = passes * (outside * of.read[:, None] + cold * of.written[:, None])
    flown = shared_bytes / cards.cores / cards.side.flight * (cards.side.near + cold * cards.side.far)
    trips = np.where(np.isnan(trips), flown, trips)
    vector = np.maximum(of.flops[:, None] / cards.vector_rate[:, of.column].T, work / cards.softmax_rate)
    vector = np.maximum(vector, of.special[:, None] * elements / cards.special_rate) / cards.matrix[:, of.column, ETA_COMPUTE].T
    shared, memory = shared_bytes / cards.shared_rate, memory_bytes / cards.memory_rate[:, of.column].T
    launch, fill = cards.launch[:, of.column].T * kernels, cards.latency * kernels
    for bound, part in ((Bound.VECTOR, vector), (Bound.SHARED, shared), (Bound.MEMORY, memory)):
        out.resource[..., bound] = part
    out.resource[..., Bound.LAUNCH] = launch + fill + trips
    out.detail[..., 0], out.detail[..., 1] = launch, fill
    out.level[..., 1], out.level[..., 2] = shared_bytes, memory_bytes
    out.seconds[:] = launch + fill + joined(vector, shared, memory, trips)


def joined(*parts: np.ndarray) -> np.ndarray:
    """Return the fourth-power norm of resources that overlap, as `kernels.evaluate` has it [s]; no quotient overflows."""
    most = parts[0].copy()
    for part in parts[1:]:
        np.maximum(most, part, out=most)
    scale = 1.0 / np.maximum(most, np.finfo(float).tiny)
    total = np.zeros_like(most)
    for part in parts:
        ratio = part * scale
        ratio *= ratio
        ratio *= ratio
        total += ratio
    return np.asarray(most * np.sqrt(np.sqrt(total)))


def _accesses(of: Stream, cold: np.ndarray, cards: Cards) -> tuple[np.ndarray, ...]:
    """Return [U, S]: reads of the operands at the shared level and outside, trips [s] (nan: by bytes on the way), work, kernels."""
    reads, outside, trips, work = (
        np.ones(cold.shape),
        cold.copy(),
        np.full(cold.shape, np.nan),
        (of.work * of.elements)[:, None] + np.zeros(cold.shape),
    )
    tensors = np.where(of.kind == Kind.OPTIMIZER, np.ceil(np.maximum(of.cols, 1.0) / TENSORS), of.kernels)[:, None]
    kernels = np.broadcast_to(tensors, cold.shape).copy()
    at = np.flatnonzero(np.isin(of.kind, KINDS))
    if len(at):
        found = rowwise(of.kind[at], of.rows[at], of.cols[at], of.size[at], of.narrow[at], cold[at], cards)
        reads[at], outside[at], trips[at] = found.passes, cold[at] + found.again, found.trips
        work[at], kernels[at] = found.work, np.maximum(found.kernels, kernels[at])
    at = np.flatnonzero(of.kind == Kind.REDUCTION)
    if len(at):  # every core sums its part, however few results there are; then parts meet: written and read again
        flown = of.read[at][:, None] / cards.cores / cards.side.flight * (cards.side.near + cold[at] * cards.side.far)
        trips[at] = flown + 2.0 * cards.side.near
    at = np.flatnonzero(of.kind == Kind.EMBEDDING)
    if len(at):  # rows from anywhere: whole accesses, however short the row
        row = np.maximum(of.cols[at] * of.size[at], 1.0)[:, None]
        outside[at] *= np.ceil(row / cards.side.granule) * cards.side.granule / row
        work[at] *= cards.side.simt  # a DMA engine works out no addresses
    return reads, outside, trips, work, kernels


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
    out = empty(len(bytes_), cards)
    moving = bytes_[:, None] / (cards.host_rate * HOST_EFFICIENCY)
    overhead = cards.launch[:, column].T + cards.host_latency
    out.resource[..., Bound.NETWORK] = moving
    out.resource[..., Bound.LAUNCH] = overhead
    out.detail[..., 0], out.detail[..., 1] = cards.launch[:, column].T, cards.host_latency
    out.level[..., 2] = bytes_[:, None]
    out.seconds[:] = moving + overhead
    return out
