"""Attention as one fused kernel: tiles of queries against streamed keys and values, with online softmax.

Sources: Dao et al., FlashAttention (NeurIPS 2022), FlashAttention-2 (arXiv 2307.08691): 128-row query tiles, one pass over
keys and values a tile; Flash-Decoding (split keys) for few queries. Pair counts come exact with the operator's FLOPs.
"""

from __future__ import annotations

import numpy as np

from workbench.cost import kernels
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced, empty
from workbench.cost.pack import Cards

QUERY_TILE = 128.0
VECTOR_PER_PAIR = 6.0  # scale, mask, maximum, subtract, sum, rescale: vector operations a (query, key) pair
FEW_QUERIES = 16.0  # up to here keys are split among cores


def attention(dims: np.ndarray, flops: np.ndarray, size: np.ndarray, backward: bool, column: np.ndarray, cards: Cards) -> Priced:
    """Price fused attention.

    Parameters
    ----------
    dims : ndarray, shape (U, 9)
        batch, heads, kv_heads, queries, keys, head_dim, value_dim, causal, window.
    flops : ndarray, shape (U,)
        Executed FLOPs, pairs counted exactly.
    size : ndarray, shape (U,)
        Bytes an element [B].
    backward : bool
        Recomputes scores: 5 products instead of 2, and three gradients written.
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.

    Returns
    -------
    Priced
    """
    batch, heads, kv_heads, queries, keys, head, value = dims[:, :7].astype(np.float64).T[:, :, None]
    size = size[:, None]
    work = np.maximum(flops[:, None], 1.0)
    pairs = work / (2.0 * (3.0 * head + 2.0 * value) if backward else 2.0 * (head + value))
    card = {name: cards.matrix[:, column, index].T for name, index in _COLUMNS.items()}
    few = queries <= FEW_QUERIES
    rows = np.where(few, np.maximum(queries * heads / np.maximum(kv_heads, 1.0), 1.0), np.minimum(QUERY_TILE, queries))
    tiles = np.where(few, batch * kv_heads, batch * heads * np.ceil(queries / QUERY_TILE))
    padded = np.ceil(rows / card["qm"]) * card["qm"] / rows
    padded = np.where(queries > QUERY_TILE, np.ceil(queries / QUERY_TILE) * QUERY_TILE / np.maximum(queries, 1.0), padded)
    units = np.where(few, np.maximum(tiles, np.minimum(card["cores"], tiles * np.ceil(keys / 256.0))), tiles)
    busy = units / (np.ceil(units / card["cores"]) * card["cores"])  # share of cores at work over whole waves
    longest = np.minimum(1.0, np.maximum(1.0 / np.maximum(units, 1.0), _longest(pairs, batch * heads, queries, keys)))
    spread = np.maximum(1.0 / (card["cores"] * np.maximum(busy, 1e-9)), longest)  # share of the work on the busiest core
    matrix = work * padded / 2.0 / (card["macs"] * card["clock"] * card["eta"]) * spread
    special = (
        np.maximum(pairs / (cards.special_rate / card["cores"]), VECTOR_PER_PAIR * pairs / (cards.vector_rate[:, column].T / card["cores"]))
        * spread
    )
    own = (heads * queries * (head + value) + kv_heads * keys * (head + value)) * batch * size * (2.0 if backward else 1.0)
    streamed = units * np.minimum(pairs / np.maximum(batch * heads * queries, 1.0), keys) * (head + value) * size
    streamed = np.where(few, own, streamed)
    memory = own / cards.memory_rate[:, column].T
    shared = streamed / cards.shared_rate
    stall = streamed / units * np.ceil(units / card["cores"]) * cards.latency / card["staging"]
    overhead = card["launch"] + cards.latency * np.where(few & (units > tiles), 1.0 + kernels.SPLIT_LATENCY / 2.0, 1.0)
    parts = (matrix + special * 0.5, special, shared, memory, stall)
    out = empty(len(flops), len(cards.specs))
    out.resource[..., Bound.MATRIX], out.resource[..., Bound.VECTOR] = matrix, special
    out.resource[..., Bound.SHARED], out.resource[..., Bound.MEMORY] = shared, memory
    out.resource[..., Bound.LAUNCH] = overhead + stall
    out.level[..., 1], out.level[..., 2] = streamed, own
    out.seconds[:] = overhead + np.sum(np.stack(parts) ** 4, axis=0) ** 0.25
    return out


_COLUMNS = {
    "cores": kernels.CORES, "clock": kernels.CLOCK, "macs": kernels.MACS, "qm": kernels.QM,
    "eta": kernels.ETA_COMPUTE, "staging": kernels.STAGING, "launch": kernels.LAUNCH,
}  # fmt: skip


def _longest(pairs: np.ndarray, heads: np.ndarray, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Share of all pairs in the longest query tile: makespan is never below it (the last rows of a causal mask see every key)."""
    per_head = np.maximum(pairs / np.maximum(heads, 1.0), 1.0)
    tile = np.minimum(np.minimum(QUERY_TILE, queries) * keys, per_head)
    return np.where(queries <= FEW_QUERIES, 0.0, tile / (per_head * np.maximum(heads, 1.0)))
