"""Rows of an estimate: columns of all operators are made at once, a row only picks its cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.cost.convolution import algorithm_names
from workbench.cost.cost import Bound, Evidence, OpCost
from workbench.cost.models import PRODUCTS
from workbench.cost.stack import FASTER, PARTS, Stack
from workbench.cost.utilisation import Utilisation
from workbench.operators.table import Dtype, Kind
from workbench.study.documents_operators import TimeDocument
from workbench.study.operators_csv import Operators

UNPRICED = "no model of this kind or dtype on this card"


def time_documents(
    operators: Operators, cost: OpCost, found: Stack, used: Utilisation, rows: Sequence[int], clock: float
) -> Iterator[TimeDocument]:
    """Yield the documents of some operators.

    Parameters
    ----------
    operators : Operators
        U operators.
    cost, found, used : OpCost, Stack, Utilisation
        Of these operators on one card.
    rows : sequence of int
        Which operators, in the order wanted.
    clock : float
        Of the cores, for cycles [Hz].

    Notes
    -----
    Cells come from arrays, whose types are known, so they are not validated one by one: that took longer than pricing.
    """
    at = np.asarray(rows, dtype=np.int64)
    columns = {**_texts(operators, cost, found, at), **_numbers(operators, cost, used, at, clock), **_groups(cost, found, at)}
    names = tuple(TimeDocument.model_fields)
    for cells in zip(*(columns[name] for name in names), strict=True):
        yield TimeDocument.model_construct(**dict(zip(names, cells, strict=True)))


def _modelled(cost: OpCost, at: np.ndarray) -> np.ndarray:
    return np.asarray((cost.evidence[at] == Evidence.MODEL) & np.isfinite(cost.seconds[at, 0]))


def _texts(operators: Operators, cost: OpCost, found: Stack, at: np.ndarray) -> dict[str, Sequence[Any]]:
    """Return names: of codes through a table of names, where ``keep`` says so, else None."""
    table, modelled, priced = operators.table, _modelled(cost, at), np.isfinite(cost.seconds[at, 0])
    every = np.ones(len(at), dtype=bool)
    bound, second = np.where(found.bound[at] != 0, found.bound[at], cost.bound[at, 0]), found.second[at]
    reasons = (*cost.reasons, UNPRICED)
    return {
        "line": [operators.sheet.line[row] for row in operators.row[at].tolist()],
        "name": [table.name[u] for u in at.tolist()],
        "kind": _named(table.kind[at], {code.value: code.name.lower() for code in Kind}, every),
        "dtype": _named(table.dtype[at], {code.value: code.name.lower() for code in Dtype}, every),
        "signature": [table.signature[u] for u in at.tolist()],
        "bound": _named(bound, {code.value: code.name.lower() for code in Bound}, modelled),
        "next_bound": _named(second, {code.value: code.name.lower() for code in Bound}, modelled & (second != 0)),
        "algorithm": _named(cost.algorithm[at, 0], dict(enumerate(name or None for name in algorithm_names())), modelled),
        "tile": _tiles(cost.tile[at, 0], modelled & np.isin(table.kind[at], PRODUCTS)),
        "evidence": _named(cost.evidence[at], {code.value: code.name.lower() for code in Evidence}, priced),
        "note": _named(np.where(priced, cost.note_code[at], len(reasons) - 1), dict(enumerate(reasons)), every),
    }


def _numbers(operators: Operators, cost: OpCost, used: Utilisation, at: np.ndarray, clock: float) -> dict[str, Sequence[Any]]:
    table, modelled, every = operators.table, _modelled(cost, at), np.ones(len(at), dtype=bool)
    seconds, joules, measured = cost.seconds[at, 0], cost.energy_j[at, 0], table.measured_s[at]
    priced = np.isfinite(seconds)
    with np.errstate(divide="ignore", invalid="ignore"):
        power, error = joules / seconds, seconds / measured - 1.0
    return {
        "seconds": _finite(seconds, every),
        "low_s": _finite(cost.low_s[at, 0], every),
        "high_s": _finite(cost.high_s[at, 0], every),
        "cycles": _finite(seconds * clock, every),
        "unit": _named(used.matrix[at, 0].astype(np.int8), {0: "vector", 1: "matrix"}, priced),
        "utilisation": _finite(used.compute[at, 0], every),
        "bandwidth_share": _finite(used.memory[at, 0], modelled),
        "flops": table.flops[at].tolist(),
        "energy_j": _finite(joules, every),
        "power_w": _finite(power, seconds > 0),
        "measured_s": _finite(measured, every),
        "error": _finite(error, priced & (measured > 0)),
    }


def _groups(cost: OpCost, found: Stack, at: np.ndarray) -> dict[str, Sequence[Any]]:
    """Return the cells that hold a number a part, a level or a thing made infinitely fast; and the margin of the bound."""
    modelled = _modelled(cost, at)
    share, without, moved = found.share[at], found.without_s[at], cost.level_bytes[at, 0]
    return {
        "margin": _finite(found.margin[at], modelled),
        "stack": _dicts(PARTS, share.tolist(), modelled & ~np.isnan(share).any(axis=1)),
        "without_s": _dicts(FASTER, _blanked(without), modelled),
        "bytes": _dicts(cost.levels, moved.tolist(), modelled),
    }


def _named(codes: np.ndarray, names: Mapping[int, str | None], keep: np.ndarray) -> list[str | None]:
    return [names[code] if kept else None for code, kept in zip(codes.tolist(), keep.tolist(), strict=True)]


def _finite(values: np.ndarray, keep: np.ndarray) -> list[float | None]:
    """Return numbers as Python's own, None where there is none or it is not kept."""
    out: list[float | None] = values.tolist()
    for row in np.flatnonzero(~(keep & np.isfinite(values))).tolist():
        out[row] = None
    return out


def _blanked(values: np.ndarray) -> list[list[float | None]]:
    out: list[list[float | None]] = values.tolist()
    for row, column in np.argwhere(~np.isfinite(values)).tolist():
        out[row][column] = None
    return out


def _dicts(names: Sequence[str], rows: Sequence[Sequence[Any]], keep: np.ndarray) -> list[dict[str, Any] | None]:
    return [dict(zip(names, row, strict=True)) if kept else None for row, kept in zip(rows, keep.tolist(), strict=True)]


def _tiles(tile: np.ndarray, keep: np.ndarray) -> list[str | None]:
    """Return the tiles a search chose as ``128x256`` (results), with parts of K ``128x256x4``; None without tiles."""
    shown = zip(tile.tolist(), keep.tolist(), strict=True)
    return [f"{m}x{n}{f'x{parts}' if parts > 1 else ''}" if kept and m else None for (m, n, parts), kept in shown]
