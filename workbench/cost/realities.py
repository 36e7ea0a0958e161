"""What happens around operators on cards that say so: conversion of the operands' layout, operators on the control processors.

Both are optional parts of a card's description (``matrix.layout``, ``fallback``); other cards are priced as if this were not here.
Sources: Huawei, Ascend C operator development guide, data formats (ND, FRACTAL_NZ, NC1HWC0), and Ascend transformer boost
library, TransdataOperation, for padded sizes; msprof-analyze, AICPU operator replacement examples, for what falls back.
"""

from __future__ import annotations

import numpy as np

from workbench.cost import exchange, vector
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced
from workbench.cost.pack import Cards
from workbench.operators.formulas import output_extent
from workbench.operators.layouts import Layout
from workbench.operators.table import COLLECTIVES, DIMS, Dtype, Kind, OpTable

FALLBACK_ERROR = 3.0  # factor: nobody published how fast control processors are; judgement
PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM)
WEIGHT_GRADIENTS = (Kind.CONV_BACKWARD_WEIGHT, Kind.CONV_BACKWARD)
CONVOLUTIONS = (Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, *WEIGHT_GRADIENTS)


def fractal_elements(batch: np.ndarray, rows: np.ndarray, cols: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return elements of matrices in blocks: both extents are padded, [8, 100, 30] in blocks of 16 x 16 to 8 x 112 x 32.

    Parameters
    ----------
    batch, rows, cols : ndarray
        Matrices and their extents.
    block : ndarray, shape (..., 2)
        Rows and columns of a block.
    """
    return np.asarray(batch * np.ceil(rows / block[..., 0]) * block[..., 0] * np.ceil(cols / block[..., 1]) * block[..., 1])


def convert(out: Priced, table: OpTable, size: np.ndarray, column: np.ndarray, cards: Cards) -> None:
    """Add, in place, an operator of its own for every input and result of products whose layout the matrix unit does not take.

    Weights of linear layers and convolutions are kept converted; both operands of batched products are activations.

    Parameters
    ----------
    out : Priced
        Times of U operators on S cards.
    table : OpTable
        U operators.
    size : ndarray, shape (U,)
        Bytes an element [B].
    column : ndarray of int, shape (U,)
        Dtype columns.
    cards : Cards
        S cards.
    """
    if not cards.side.converts.any():
        return
    block = cards.side.block[np.argmax(cards.side.converts)]
    rows = np.flatnonzero(np.isin(table.kind, (*PRODUCTS, *CONVOLUTIONS)) & (table.flops > 0))
    for plain, padded in _tensors(table, rows, block):
        some = np.flatnonzero(plain > 0)
        at, none = rows[some], np.zeros(len(some))
        of = vector.maps(plain[some], none, plain[some] * size[at], padded[some] * size[at], column[at])
        moved = vector.streams(of, cards)
        on = cards.side.converts[None, :]
        out.seconds[at] += np.where(on, moved.seconds, 0.0)
        out.resource[at, :, Bound.CONVERSION] += np.where(on, moved.seconds, 0.0)
        out.level[at] += np.where(on[..., None], moved.level, 0.0)


def _tensors(table: OpTable, rows: np.ndarray, block: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return elements as they are and in blocks of each converted tensor, one array an input or result; 0 where there is none."""
    kind, dims = table.kind[rows], np.maximum(table.dims[rows], 0).astype(np.float64)
    b, m, n, k = dims[:, :4].T
    product, batched = np.isin(kind, PRODUCTS), kind == Kind.BATCHED_GEMM
    found = [
        (np.where(where, b * high * wide, 0.0), fractal_elements(b, high, wide, np.array(pair)))
        for where, high, wide, pair in (
            (product, m, k, (block[0], block[2])), (batched, k, n, (block[2], block[1])), (product, m, n, (block[0], block[1])),
        )
    ]  # fmt: skip
    d = dict(zip(DIMS[Kind.CONV_FORWARD], dims.T, strict=False))
    p, q = (
        output_extent(d[a], d[r], np.maximum(d[f"stride_{a}"], 1.0), d[f"pad_{a}"], np.maximum(d[f"dilation_{a}"], 1.0))
        for a, r in (("h", "r"), ("w", "s"))
    )
    deep, one = np.maximum(d["depth"], 1.0), np.ones((len(rows), 2)) * (1.0, block[2])
    images = ((d["n"] * d["h"] * d["w"] * deep, d["c"]), (d["n"] * p * q * np.maximum(d["depth"] - d["t"] + 1.0, 1.0), d["k"]))
    weights = (d["k"] * d["r"] * d["s"] * np.maximum(d["t"], 1.0), d["c"] / np.maximum(d["groups"], 1.0))
    layers = np.isin(kind, CONVOLUTIONS) & (d["layout"] != Layout.NC1HWC0)  # stated so, images are in blocks already
    for places, channels, where in ((*images[0], layers), (*images[1], layers), (*weights, np.isin(kind, WEIGHT_GRADIENTS))):
        found.append((np.where(where, places * channels, 0.0), fractal_elements(np.ones(len(rows)), places, channels, one)))
    return found


def falls_back(table: OpTable, cards: Cards) -> np.ndarray:
    """Return which operators run on the control processors of which card, bool [U, S]."""
    out = np.zeros((len(table), len(cards.specs)), dtype=bool)
    lists: dict[tuple[str, ...], list[int]] = {}
    for s, spec in enumerate(cards.specs):
        if spec.fallback and spec.fallback.operators:
            lists.setdefault(spec.fallback.operators, []).append(s)
    known = ~np.isin(table.kind, (Kind.UNKNOWN, *COLLECTIVES))
    for operators, where in lists.items():
        any_of = np.zeros(len(table), dtype=bool)
        for name in operators:
            kind, _, dtype = name.rpartition(":")
            if not kind and dtype.upper() not in Dtype.__members__:
                kind, dtype = dtype, ""
            match = known.copy()
            if kind:
                match &= table.kind == Kind[kind.upper()] if kind.upper() in Kind.__members__ else False
            if dtype:
                match &= table.dtype == Dtype[dtype.upper()]
            any_of |= match
        out[:, where] = any_of[:, None]
    return out


def fall_back(out: Priced, table: OpTable, cards: Cards) -> np.ndarray:
    """Price, in place, operators that run on the control processors: ``t = launch + max(operations / rate, bytes / bandwidth)``.

    Returns
    -------
    ndarray of bool, shape (U, S)
        Which.
    """
    where = falls_back(table, cards)
    if not where.any():
        return where
    side, moved = cards.side, (table.bytes_read + table.bytes_written)[:, None]
    body = np.maximum(table.flops[:, None] / side.fallback_rate, moved / side.fallback_bandwidth)
    launch = np.broadcast_to(side.fallback_launch, body.shape)
    for array in (out.resource, out.level, out.detail):
        array[where] = 0.0
    out.seconds[where] = (launch + body)[where]
    out.resource[..., Bound.FALLBACK][where] = body[where]
    out.resource[..., Bound.LAUNCH][where] = launch[where]
    out.detail[..., 0][where] = launch[where]
    out.level[..., 1][where] = out.level[..., 2][where] = np.broadcast_to(moved, body.shape)[where]
    return where


def widened(least: np.ndarray, most: np.ndarray, table: OpTable, cards: Cards) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors of low and high times, at least `FALLBACK_ERROR` wide where operators fall back.

    Parameters
    ----------
    least, most : ndarray, shape (U, S)
        Factors of a time's interval.
    table : OpTable
        U operators.
    cards : Cards
        S cards.
    """
    back = falls_back(table, cards)
    if not back.any():
        return least, most
    return np.where(back, np.minimum(least, 1.0 / FALLBACK_ERROR), least), np.where(back, np.maximum(most, FALLBACK_ERROR), most)


def describe(table: OpTable, cards: Cards, note_code: np.ndarray, reasons: list[str]) -> None:
    """Say, in place, of operators which of these realities their times hold; earlier notes are kept in front."""
    back = falls_back(table, cards)
    converted = np.isin(table.kind, (*PRODUCTS, *CONVOLUTIONS)) & cards.side.converts.any() & ~back.all(axis=1)
    apart: np.ndarray = np.isfinite(cards.side.exchange)
    handed = np.isin(table.kind, exchange.ATTENTION) | (np.isin(table.kind, exchange.PRODUCTS) & np.isin(table.dtype, exchange.NARROW))
    handed &= apart.any() & (table.flops > 0) & ~back.all(axis=1)
    for rows, text in (
        (back.any(axis=1), f"runs on the control processors of {_named(cards, np.asarray(back.any(axis=0)))}"),
        (converted, f"with conversion of inputs and results to the blocks of {_named(cards, cards.side.converts)}"),
        (handed, f"with tiles handed over between the separate cores of {_named(cards, apart)}"),
    ):
        for code in np.unique(note_code[rows]):
            here = rows & (note_code == code)
            note_code[here] = len(reasons)
            reasons.append(f"{reasons[code]}; {text}" if reasons[code] else text)


def _named(cards: Cards, which: np.ndarray) -> str:
    names = sorted({spec.name for spec, yes in zip(cards.specs, which.tolist(), strict=True) if yes})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
