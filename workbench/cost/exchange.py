"""Operators on cards whose matrix and vector cores exchange tiles through a level of the chip (``vector.exchange``).

Attention: scores leave the matrix core in fp32 for the softmax and come back as weights of the operands' width; partial results go
the same way to be rescaled. Backward hands over scores and their gradients, there and back. Products with narrow weights: the
vector cores widen them and hand them to the matrix core. Tiles are what fits the vector unit's buffer twice (double buffering).
Pipeline: `handover`; tiling after Dao, FlashAttention-2 (arXiv 2307.08691).
"""

from __future__ import annotations

import numpy as np

from workbench.cost.cost import Bound
from workbench.cost.handover import DEPTH, Handover, handover
from workbench.cost.matrix import Priced
from workbench.cost.pack import Cards
from workbench.operators.table import DIMS, Dtype, Kind, OpTable

ATTENTION = (Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD)
PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM)
NARROW = tuple(code for code in Dtype if code.name.endswith("_WO"))
"""Types of products whose weights alone are narrow."""
QUERIES = 128.0  # rows of a tile of scores
SCORE = 4.0  # bytes of a score, and of a partial result
WIDE = 2.0  # bytes of a widened weight
WIDEN = 4.0  # vector operations a weight: unpack, convert, subtract the zero, scale


def exchange_tiles(out: Priced, table: OpTable, size: np.ndarray, cards: Cards) -> None:
    """Add, in place, what handing tiles over costs attention and products of narrow weights; nothing where units share a buffer.

    Parameters
    ----------
    out : Priced
        Times of U operators on S cards.
    table : OpTable
        U operators.
    size : ndarray, shape (U,)
        Bytes an element [B].
    cards : Cards
        S cards.
    """
    if not np.isfinite(cards.side.exchange).any():
        return
    rows = np.flatnonzero(np.isin(table.kind, ATTENTION) & (table.flops > 0))
    if len(rows):
        _attention(out, table, rows, size[rows][:, None], cards)
    rows = np.flatnonzero(np.isin(table.kind, PRODUCTS) & np.isin(table.dtype, NARROW) & (table.flops > 0))
    if len(rows):
        _weights(out, table, rows, cards)


def _attention(out: Priced, table: OpTable, rows: np.ndarray, size: np.ndarray, cards: Cards) -> None:
    names = DIMS[Kind.ATTENTION_FORWARD]
    d = {name: np.maximum(table.dims[rows, names.index(name)], 1).astype(np.float64)[:, None] for name in names[:7]}
    back = (table.kind[rows] == Kind.ATTENTION_BACKWARD)[:, None]
    lines = np.minimum(QUERIES, np.where(d["queries"] > 1, d["queries"], d["heads"] / d["kv_heads"]))
    columns = np.minimum(np.maximum(cards.side.flight / (DEPTH * SCORE * lines), 1.0), d["keys"])
    pairs = table.flops[rows][:, None] / (np.where(back, 4.0, 2.0) * (d["head_dim"] + d["value_dim"]))
    tiles = np.maximum(pairs / (lines * columns), 1.0)
    scores = lines * columns * (SCORE + size) * np.where(back, 2.0, 1.0)
    moved = scores + np.where(back, 0.0, SCORE * lines * d["value_dim"])
    _hand_over(out, rows, tiles, moved, np.where(back, 4.0, 3.0), out.resource[rows, :, Bound.VECTOR], cards)


def _weights(out: Priced, table: OpTable, rows: np.ndarray, cards: Cards) -> None:
    batch, _, n, k = np.maximum(table.dims[rows, :4], 1).T.astype(np.float64)[:, :, None]
    weights = batch * n * k
    tile = np.minimum(np.maximum(cards.side.flight / (DEPTH * WIDE), 1.0), weights)
    widening = weights * WIDEN / cards.softmax_rate
    _hand_over(out, rows, weights / tile, tile * WIDE, np.ones_like(weights), widening, cards)


def _hand_over(
    out: Priced, rows: np.ndarray, tiles: np.ndarray, moved: np.ndarray, turns: np.ndarray, vector: np.ndarray, cards: Cards
) -> None:
    """Lengthen rows by their hand-over: ``tiles`` of all cores, ``moved`` bytes of each on all its ``turns``, ``vector`` work [s]."""
    apart = np.isfinite(cards.side.exchange)
    rate, latency = (np.where(apart, of, 1.0) for of in (cards.side.exchange, cards.side.exchange_latency))
    matrix, working = out.resource[rows, :, Bound.MATRIX], np.minimum(tiles, cards.cores)
    per = np.maximum(tiles / cards.cores, 1.0)
    found: Handover = handover(matrix, vector, per, moved / turns, working, rate, latency, turns=turns)
    body = np.maximum(out.seconds[rows] - out.detail[rows, :, 0] - out.detail[rows, :, 1], 0.0)
    paced = np.maximum(matrix, vector) + found.stall
    both = (found.moved / 2.0 + out.level[rows, :, 1]) / rate  # the level hands out operands and tiles
    stall = np.where(apart, np.maximum(np.maximum(paced, both) - body, 0.0) + found.fill, 0.0)  # other waiting overlaps with it
    out.seconds[rows] += stall
    out.resource[rows, :, Bound.HANDOVER] += stall
    out.level[rows, :, 1] += np.where(apart, found.moved, 0.0)
