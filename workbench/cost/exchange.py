"""Attention on cards whose matrix and vector cores exchange tiles through a level of the chip (``vector.exchange``).

Scores leave the matrix core in fp32 for the softmax and come back as weights of the operands' width; partial results go the same
way to be rescaled. Backward hands over scores and their gradients, there and back. Tiles are what fits the vector unit's buffer
twice (double buffering) beside `QUERIES` rows. Pipeline: `handover`; tiling after Dao, FlashAttention-2 (arXiv 2307.08691).
"""

from __future__ import annotations

import numpy as np

from workbench.cost.cost import Bound
from workbench.cost.handover import DEPTH, handover
from workbench.cost.matrix import Priced
from workbench.cost.pack import Cards
from workbench.operators.table import DIMS, Kind, OpTable

ATTENTION = (Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD)
QUERIES = 128.0  # rows of a tile of scores
SCORE = 4.0  # bytes of a score, and of a partial result


def exchange_tiles(out: Priced, table: OpTable, size: np.ndarray, cards: Cards) -> None:
    """Add, in place, what handing tiles over costs attention; nothing on cards whose units share a buffer.

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
    apart = np.isfinite(cards.side.exchange)
    rows = np.flatnonzero(np.isin(table.kind, ATTENTION) & (table.flops > 0))
    if not apart.any() or not len(rows):
        return
    names = DIMS[Kind.ATTENTION_FORWARD]
    d = {name: np.maximum(table.dims[rows, names.index(name)], 1).astype(np.float64)[:, None] for name in names[:7]}
    back = (table.kind[rows] == Kind.ATTENTION_BACKWARD)[:, None]
    each, group = size[rows][:, None], d["heads"] / d["kv_heads"]
    lines = np.minimum(QUERIES, np.where(d["queries"] > 1, d["queries"], group))
    columns = np.maximum(cards.side.flight / (DEPTH * SCORE * lines), 1.0)
    pairs = table.flops[rows][:, None] / (np.where(back, 4.0, 2.0) * (d["head_dim"] + d["value_dim"]))
    tiles = np.maximum(pairs / (lines * np.minimum(columns, d["keys"])), 1.0)
    per = np.maximum(tiles / cards.cores, 1.0)
    scores = lines * np.minimum(columns, d["keys"]) * (SCORE + each) * np.where(back, 2.0, 1.0)
    moved = scores + np.where(back, 0.0, SCORE * lines * d["value_dim"])
    turns = np.where(back, 4.0, 3.0)
    working = np.minimum(tiles, cards.cores)
    matrix, vector = out.resource[rows, :, Bound.MATRIX], out.resource[rows, :, Bound.VECTOR]
    rate = np.where(apart, cards.side.exchange, 1.0)
    found = handover(matrix, vector, per, moved / turns, working, rate, np.where(apart, cards.side.exchange_latency, 0.0), turns=turns)
    body = np.maximum(out.seconds[rows] - out.detail[rows, :, 0] - out.detail[rows, :, 1], 0.0)
    paced = np.maximum(matrix, vector) + found.stall
    both = (found.moved / 2.0 + out.level[rows, :, 1]) / rate  # the level hands out operands and tiles
    stall = np.where(apart, np.maximum(np.maximum(paced, both) - body, 0.0) + found.fill, 0.0)  # other waiting overlaps with it
    out.seconds[rows] += stall
    out.resource[rows, :, Bound.HANDOVER] += stall
    out.level[rows, :, 1] += np.where(apart, found.moved, 0.0)
