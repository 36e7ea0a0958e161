"""Gradients gathered into buckets that are sent together, in the order they become ready.

A bucket closes with the gradient that brings it to its limit; the first one has a limit of its own, so that communication begins early.
Source: PyTorch, torch/csrc/distributed/c10d/reducer.cpp, ``compute_bucket_assignment_by_size`` and ``kDefaultFirstBucketBytes``; Li et
al., PyTorch Distributed (VLDB 2020), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Refused
from workbench.graph.gradients import Gradients

FIRST_BYTES = float(1 << 20)
"""Limit of the first bucket [B]: ``kDefaultFirstBucketBytes``."""
BUCKET_BYTES = 25.0 * (1 << 20)
"""Limit of all others [B]: ``bucket_cap_mb=25`` of DistributedDataParallel."""


@dataclass(frozen=True)
class Buckets:
    """B buckets in the order they are sent, by rank and step; arrays of length B, read-only.

    Gradients of bucket b are ``gradient[ptr[b]:ptr[b + 1]]``, indices of `Gradients`.
    """

    rank: np.ndarray  # int32
    step: np.ndarray  # int32
    bytes: np.ndarray  # float64 [B]
    ptr: np.ndarray  # int64 [B + 1]

    def __len__(self) -> int:
        return len(self.bytes)


def buckets(found: Gradients, limit: float = BUCKET_BYTES, first: float = FIRST_BYTES, itemsize: float | None = None) -> Buckets:
    """Gather gradients into buckets.

    Parameters
    ----------
    found : Gradients
        In the order they become ready, step by step.
    limit, first : float
        Size at which a bucket, and the first of a step, closes [B]; infinite: one bucket, sent after the last gradient, so that nothing
        is hidden behind the backward pass.
    itemsize : float, optional
        Bytes of an element as sent [B]; default: as recorded.

    Returns
    -------
    Buckets

    Raises
    ------
    Refused
        A limit that is not positive.
    """
    if not (limit > 0 and first > 0):
        raise Refused("bucket", f"a limit of {min(limit, first):g} B", "give a size above 0, e.g. 25 MiB; inf: all gradients in one")
    size = found.bytes if itemsize is None else found.elements * itemsize
    key = found.rank.astype(np.int64) * (int(found.step.max(initial=0)) + 1) + found.step
    ptr = [0]
    filled, most = 0.0, min(first, limit)
    for i, nbytes in enumerate(size.tolist()):
        if i and key[i] != key[i - 1]:
            if ptr[-1] < i:
                ptr.append(i)
            filled, most = 0.0, min(first, limit)
        filled += nbytes
        if filled >= most:
            ptr.append(i + 1)
            filled, most = 0.0, limit
    if ptr[-1] < len(size):
        ptr.append(len(size))
    edges = np.array(ptr, dtype=np.int64)
    heads = edges[:-1]
    columns = (found.rank[heads], found.step[heads], np.add.reduceat(size, heads) if len(size) else size, edges)
    for column in columns:
        column.setflags(write=False)
    return Buckets(*columns)
