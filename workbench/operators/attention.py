"""Attention: exact (query, key) pair counts, and FLOPs and bytes that follow from them.

Two numbers are kept apart. *Model* FLOPs count the pairs the mask keeps and nothing else, and twice the forward work in
backward: the figure utilisation is stated in. *Executed* FLOPs count what a tiled kernel computes: every pair of a tile that
is not wholly masked, and the recomputed scores in backward.

References
----------
.. [1] T. Dao, "FlashAttention-2", arXiv:2307.08691: tiles, causal skipping, five products in backward.
.. [2] J. Ainslie et al., "GQA", arXiv:2305.13245: grouped heads share keys and values, not FLOPs.
.. [3] A. Chowdhery et al., "PaLM", arXiv:2204.02311, appendix B: model FLOPs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workbench.operators.formulas import Work

FULL, BOTTOM_RIGHT, TOP_LEFT = 0, 1, 2
"""Values of the dimension ``causal``: no mask; query i sees keys up to i + keys - queries; query i sees keys up to i."""


def _range_sum(low: np.ndarray, high: np.ndarray, first: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """Sum over i = low .. high - 1 of clip(first + i, 0, cap), exactly in int64."""
    start = np.clip(-first, low, high)  # from here on the term is >= 0
    full = np.clip(cap - first, start, high)  # from here on it is capped
    ramp = full - start
    return ramp * (first + start) + ramp * (ramp - 1) // 2 + (high - full) * cap


def pairs(queries: ArrayLike, keys: ArrayLike, causal: ArrayLike = FULL, window: ArrayLike = 0) -> np.ndarray:
    """Count the (query, key) pairs a mask keeps, exactly.

    Parameters
    ----------
    queries, keys : array_like of int
        Lengths of one sequence.
    causal : array_like of int
        `FULL`, `BOTTOM_RIGHT` or `TOP_LEFT`.
    window : array_like of int
        Sliding window; 0 is none. Causal: keys a query sees, itself included. Full: keys from ``i - window//2`` to
        ``i + (window - 1)//2`` around the query's (bottom-right aligned) position.

    Returns
    -------
    numpy.ndarray
        int64 pairs of one head and one sequence.
    """
    q, k = np.asarray(queries, dtype=np.int64), np.asarray(keys, dtype=np.int64)
    mode, w = np.asarray(causal, dtype=np.int64), np.asarray(window, dtype=np.int64)
    q, k, mode, w = np.broadcast_arrays(q, k, mode, w)
    zero = np.zeros_like(q)
    offset = np.where(mode == TOP_LEFT, zero, k - q)
    ahead = np.where(mode == FULL, np.where(w > 0, (w - 1) // 2, k + q), zero)
    behind = np.where(w > 0, np.where(mode == FULL, w // 2, w - 1), k + q)
    # key range of query i: [max(0, i + offset - behind), min(keys, i + offset + ahead + 1))
    upper = _range_sum(zero, q, offset + ahead + 1, k)
    lower = _range_sum(zero, q, offset - behind, k)
    return upper - lower


def seen(queries: ArrayLike, keys: ArrayLike, causal: ArrayLike = FULL, window: ArrayLike = 0) -> np.ndarray:
    """Count the keys that at least one query sees: what a kernel must read of keys and values.

    Parameters
    ----------
    queries, keys, causal, window : array_like of int
        As in `pairs`.

    Returns
    -------
    numpy.ndarray
        int64, of one sequence: from the first key of the first query that sees any to the last of the last.
    """
    q, k, mode, w = np.broadcast_arrays(*(np.asarray(a, dtype=np.int64) for a in (queries, keys, causal, window)))
    offset = np.where(mode == TOP_LEFT, 0, k - q)
    ahead = np.where(mode == FULL, np.where(w > 0, (w - 1) // 2, k + q), 0)
    behind = np.where(w > 0, np.where(mode == FULL, w // 2, w - 1), k + q)
    first = np.clip(offset - behind, 0, k)
    last = np.clip(q - 1 + offset + ahead + 1, 0, k)
    return np.where(q > 0, np.maximum(last - first, 0), 0)


def executed_pairs(queries: ArrayLike, keys: ArrayLike, causal: ArrayLike = FULL, window: ArrayLike = 0, tile: int = 128) -> np.ndarray:
    """Count the pairs a tiled kernel computes: all pairs of ``tile`` x ``tile`` tiles that keep at least one pair.

    Counted tile row by tile row from the key range its queries see together [1]_.

    Parameters
    ----------
    queries, keys, causal, window : array_like of int
        As in `pairs`.
    tile : int
        Rows and columns of a tile; 128 in the published kernels.

    Returns
    -------
    numpy.ndarray
        int64, never below `pairs`, never above queries x keys.
    """
    q, k, mode, w = np.broadcast_arrays(*(np.asarray(a, dtype=np.int64) for a in (queries, keys, causal, window)))
    out = np.zeros(q.shape, dtype=np.int64)
    for at in np.ndindex(q.shape):
        nq, nk, kind, width = int(q[at]), int(k[at]), int(mode[at]), int(w[at])
        first = np.arange(0, nq, tile, dtype=np.int64)
        last = np.minimum(first + tile, nq) - 1
        offset = 0 if kind == TOP_LEFT else nk - nq
        ahead = 0 if kind else ((width - 1) // 2 if width else nk + nq)
        behind = (width - 1 if kind else width // 2) if width else nk + nq
        high = np.clip(last + offset + ahead + 1, 0, nk)
        low = np.clip(first + offset - behind, 0, nk)
        columns = np.minimum(-(-high // tile) * tile, nk) - low // tile * tile
        out[at] = int(np.sum(np.where(high > low, (last - first + 1) * columns, 0)))
    return out


def _float(*values: ArrayLike) -> list[np.ndarray]:
    return [np.asarray(value, dtype=np.float64) for value in values]


def model_flops(
    batch: ArrayLike, heads: ArrayLike, count: ArrayLike, head_dim: ArrayLike, value_dim: ArrayLike, backward: bool = False
) -> np.ndarray:
    """Model FLOPs: 2 batch heads pairs (head_dim + value_dim), twice that in backward [3]_; grouped heads do not lower them [2]_.

    Parameters
    ----------
    batch, heads, head_dim, value_dim : array_like
        Sequences, query heads, and sizes of a head.
    count : array_like
        Pairs of one head and sequence, see `pairs`.
    backward : bool
        The gradients instead.
    """
    b, h, p, d, v = _float(batch, heads, count, head_dim, value_dim)
    return (4.0 if backward else 2.0) * b * h * p * (d + v)


def executed_flops(
    batch: ArrayLike, heads: ArrayLike, count: ArrayLike, head_dim: ArrayLike, value_dim: ArrayLike, backward: bool = False
) -> np.ndarray:
    """Executed FLOPs over executed pairs: Q K^T and P V forward; backward Q K^T again, dV, dP, dQ and dK [1]_.

    Parameters
    ----------
    batch, heads, head_dim, value_dim, backward
        As in `model_flops`.
    count : array_like
        Pairs of one head and sequence, see `executed_pairs`.
    """
    b, h, p, d, v = _float(batch, heads, count, head_dim, value_dim)
    return 2.0 * b * h * p * (3.0 * d + 2.0 * v) if backward else 2.0 * b * h * p * (d + v)


def attention(
    batch: ArrayLike,
    heads: ArrayLike,
    kv_heads: ArrayLike,
    queries: ArrayLike,
    keys: ArrayLike,
    head_dim: ArrayLike,
    value_dim: ArrayLike,
    causal: ArrayLike,
    window: ArrayLike,
    size: ArrayLike,
    backward: bool = False,
    kv_bits: ArrayLike = 0,
    page: ArrayLike = 0,
) -> Work:
    """Fused attention: model FLOPs, and each operand once.

    Parameters
    ----------
    batch, heads, kv_heads, queries, keys, head_dim, value_dim, causal, window : array_like
        As ``DIMS[Kind.ATTENTION_FORWARD]``.
    size : array_like
        Bytes an element [B]; the fp32 log-sum-exp is counted with 4 B a query and head.
    backward : bool
        Reads q, k, v, o, do and writes dq, dk, dv.
    kv_bits : array_like
        Width of a cache's elements [bit]: the new keys and values (as many as queries) are read once more and written to it;
        0: no cache.
    page : array_like
        Tokens of a page of the cache: one index of 4 B a page is read; 0: none.
    """
    flops = model_flops(batch, heads, pairs(queries, keys, causal, window), head_dim, value_dim, backward)
    b, h, g, s, t, d, v, e, bits, leaf = _float(batch, heads, kv_heads, queries, keys, head_dim, value_dim, size, kv_bits, page)
    cache = np.where(bits > 0, bits / 8.0, e)
    q, o, lse = b * h * s * d * e, b * h * s * v * e, b * h * s * 4.0
    kv = b * g * seen(queries, keys, causal, window) * (d + v) * cache
    new = np.where(bits > 0, b * g * np.minimum(s, t) * (d + v), 0.0)
    index = np.where(leaf > 0, 4.0 * b * np.ceil(t / np.maximum(leaf, 1.0)), 0.0)
    if backward:
        read, written = q + kv + 2.0 * o + lse, q + b * g * t * (d + v) * e
    else:
        read, written = q + kv + new * e + index, o + lse + new * cache
    return Work(*np.broadcast_arrays(flops, read, written))
