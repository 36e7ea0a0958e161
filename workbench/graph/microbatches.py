"""Microbatches of a step: one a call of the backward pass."""

from __future__ import annotations

import numpy as np

from workbench.graph.kernels_units import nearest
from workbench.trace.trace import HOST_CALLS, Category, Trace


def microbatches_of(trace: Trace, rank: np.ndarray, forward: np.ndarray, functions: np.ndarray, sequence: np.ndarray) -> np.ndarray:
    """Return the microbatch of each host event of the forward and backward passes, counted within its step, int32 [E] (-1: unknown).

    A backward pass works its functions off from the number of its root downwards: a function with a larger number than the root of the
    pass under way is the root of the next one. Every number up to a root, and above the root before it, is of that root's microbatch.
    Where the passes are called in another order than the forwards this finds fewer, larger microbatches, never a wrong border.

    Parameters
    ----------
    trace : Trace
    rank : int64 [E]
    forward, functions : bool [E]
        Events of the forward pass, and functions of the backward pass.
    sequence : int64 [E]
        ``Sequence number`` (-1: none).
    """
    e = trace.events
    out = np.full(len(e), -1, dtype=np.int32)
    op = e.category == Category.CPU_OP
    numbered = np.zeros(len(e), dtype=bool)
    numbered[op & (sequence >= 0) & (forward | functions)] = True
    for r in np.unique(rank[numbered]):
        called = np.flatnonzero(numbered & functions & (rank == r))
        if not len(called):
            continue
        called = called[np.argsort(e.start_ns[called], kind="stable")]
        highest = np.maximum.accumulate(sequence[called])
        is_root = np.append(True, highest[1:] > highest[:-1])
        roots, begun = sequence[called[is_root]], e.start_ns[called[is_root]]
        mine = np.flatnonzero((rank == r) & np.isin(e.category, (Category.CPU_OP, *HOST_CALLS)))
        own = nearest(e.parent, numbered, mine.astype(np.int32))
        found = np.where(own >= 0, np.searchsorted(roots, sequence[np.maximum(own, 0)]), len(roots))
        rows, index = mine[found < len(roots)], found[found < len(roots)]
        marks = np.sort(trace.steps.start_ns[trace.steps.rank == r])
        step = np.searchsorted(marks, begun, "right")
        within = np.arange(len(roots)) - np.searchsorted(step, step, "left")
        out[rows] = within[index]
    return out
