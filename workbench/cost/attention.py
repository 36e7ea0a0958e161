"""Attention as one fused kernel: tiles of queries against streamed keys and values, with online softmax.

Sources: Dao et al., FlashAttention (NeurIPS 2022), FlashAttention-2 (arXiv 2307.08691): 128-row query tiles, one pass over
keys and values a tile; Flash-Decoding (split keys) for few queries. Pair counts come exact with the operator's FLOPs.
"""

from __future__ import annotations

import numpy as np

from workbench.cost import kernels
from workbench.cost.choices import COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced, empty
from workbench.cost.pack import Cards

QUERY_TILE = 128.0
VECTOR_PER_PAIR = 6.0  # scale, mask, maximum, subtract, sum, rescale: vector operations a (query, key) pair
POWER = 4.0  # norm that joins overlapping resources, as in `kernels.evaluate`
SERIAL = 0.5  # part of the softmax that no product hides (one tile a core at a time)
SPLIT_KEYS = 256.0  # fewest keys a part of a split gets
FEW_QUERIES = 16.0  # up to here keys are split among cores
TILE_TRIPS = 8.0  # dependent trips to memory of a tile: start, queries, keys, values, ..., write (no two tiles overlap on a core)


def attention(
    dims: np.ndarray, flops: np.ndarray, size: np.ndarray, backward: bool, column: np.ndarray, cards: Cards, copies: Copies = COLD
) -> Priced:
    """Price fused attention.

    Parameters
    ----------
    dims : ndarray, shape (U, >= 9)
        batch, heads, kv_heads, queries, keys, head_dim, value_dim, causal, window.
    flops : ndarray, shape (U,)
        Model FLOPs as in `workbench.operators.attention`, pairs counted exactly [FLOP].
    size : ndarray, shape (U,)
        Bytes an element [B].
    backward : bool
        Recomputes scores: five products instead of two, and three gradients written.
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    copies : Copies
        What is warm, see `workbench.cost.choices`.

    Returns
    -------
    Priced
    """
    batch, heads, kv_heads, queries, keys, head, value, causal, window = np.maximum(dims[:, :9], 0).astype(np.float64).T[:, :, None]
    size, width = size[:, None], np.maximum(head + value, 1.0)
    card = {name: cards.matrix[:, column, index].T for name, index in _COLUMNS.items()}
    few = queries <= FEW_QUERIES
    lines = np.maximum(batch * heads * queries, 1.0)
    pairs = np.maximum(flops[:, None] / ((4.0 if backward else 2.0) * width), 1.0)
    visible = pairs / lines  # keys a query sees on average
    pairs = pairs + np.where((causal > 0) & ~few, lines * np.minimum(QUERY_TILE, queries) / 2.0, 0.0)  # masked half of diagonal tiles
    units, split, padding = _tiles(batch, heads, kv_heads, queries, keys, card)
    waves = np.ceil(units / card["cores"])
    tile_share = np.minimum(np.where(few, 0.0, np.minimum(QUERY_TILE, queries) * keys / pairs), 1.0)
    share = np.maximum(waves / np.maximum(units, 1.0), tile_share)  # of the work on the busiest core; at least the longest tile
    products = pairs * padding * (3.0 * head + 2.0 * value if backward else width)
    matrix = products / (card["macs"] * card["clock"] * card["eta"]) * share
    special = pairs * (1.0 / cards.special_rate + VECTOR_PER_PAIR / cards.softmax_rate) * cards.cores * share
    seen = np.minimum(keys, np.where(window > 0, window + queries, keys))  # keys that some query of a sequence sees
    own = (heads * queries + kv_heads * seen) * width * batch * size * (2.0 if backward else 1.0)
    streamed = np.where(few, own, units * np.minimum(visible, seen) * width * size)
    memory, shared = own / cards.memory_rate[:, column].T, streamed / cards.shared_rate
    stall = waves * (streamed / np.maximum(units, 1.0) * cards.latency / card["staging"] + TILE_TRIPS * cards.latency)
    overhead = card["launch"] + cards.latency * (1.0 + np.where(split, kernels.SPLIT_LATENCY / 2.0, 0.0))
    parts = np.stack((matrix + SERIAL * special, special, shared, memory, stall))
    out = empty(len(flops), len(cards.specs))
    out.resource[..., Bound.MATRIX], out.resource[..., Bound.VECTOR] = matrix, special
    out.resource[..., Bound.SHARED], out.resource[..., Bound.MEMORY] = shared, memory
    out.resource[..., Bound.LAUNCH] = overhead + stall
    out.level[..., 1], out.level[..., 2] = streamed, own
    body = np.sum(parts**POWER, axis=0) ** (1.0 / POWER)
    own = (parts[[0, 1, 4]] ** POWER).sum(axis=0) / np.maximum((parts**POWER).sum(axis=0), np.finfo(float).tiny)
    out.detail[..., 0], out.detail[..., 1] = card["launch"], overhead - card["launch"]
    out.detail[..., 2] = body * own * np.maximum(1.0 - 1.0 / (card["cores"] * share), 0.0)
    out.seconds[:] = overhead + body
    return out


def _tiles(
    batch: np.ndarray, heads: np.ndarray, kv_heads: np.ndarray, queries: np.ndarray, keys: np.ndarray, card: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return independent tiles, whether keys are split, and the factor by which ragged query tiles inflate the products."""
    few = queries <= FEW_QUERIES
    rows = np.where(few, queries * heads / np.maximum(kv_heads, 1.0), np.minimum(QUERY_TILE, queries))
    rows = np.maximum(rows, 1.0)  # grouped heads share a tile when queries are few
    whole = np.ceil(queries / QUERY_TILE)
    tiles = np.where(few, batch * kv_heads, batch * heads * whole)
    units = np.where(few, np.maximum(tiles, np.minimum(card["cores"], tiles * np.ceil(keys / SPLIT_KEYS))), tiles)
    padding = np.where(queries > QUERY_TILE, whole * QUERY_TILE / np.maximum(queries, 1.0), np.ceil(rows / card["qm"]) * card["qm"] / rows)
    return units, units > tiles, padding


_COLUMNS = {
    "cores": kernels.CORES, "clock": kernels.CLOCK, "macs": kernels.MACS, "qm": kernels.QM,
    "eta": kernels.ETA_COMPUTE, "staging": kernels.STAGING, "launch": kernels.LAUNCH,
}  # fmt: skip
