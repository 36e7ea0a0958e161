"""Between a vendor's operator times: in the logarithm of work, from neighbours of the same kind and dtype, with a stated error.

A neighbour agrees in what changes the algorithm (window of a convolution, head size, mask; a single row or query or many, depthwise or
not, heads a key-value head) and lies within a factor `REACH` in every other dimension. Between the nearest neighbour with less and the
nearest with more work, log time is linear in log work. With neighbours on one side only the time is extrapolated, and refused where the
work differs by more than a factor `BEYOND`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.cost.vendor import VendorTimes, labels
from workbench.errors import Note
from workbench.operators.listed import Listed, work
from workbench.operators.table import COLLECTIVES, DIMS, Dtype, Kind, OpTable
from workbench.operators.words import Word, word

REACH = 4.0
BEYOND = 2.0
FEWEST = 5  # neighbours left out in turn from which an error can be stated
ASSUMED_ERROR = 0.5  # where there are fewer
MOST_CHECKED = 200  # entries left out in turn
_SCALABLE = ("batch", "m", "n", "k", "c", "h", "w", "heads", "kv_heads", "queries", "keys", "rows", "cols", "elements", "hidden",
             "timesteps", "bytes", "tensors")  # fmt: skip
"""Dimensions that interpolation may change; all others must agree."""
_PRODUCT = {Kind.GEMM: Kind.GEMM, Kind.BATCHED_GEMM: Kind.GEMM}


@dataclass(frozen=True)
class Between:
    """Times between a vendor's, by row of an operator table; nan where refused. ``beyond`` marks the extrapolated ones.

    ``error`` is e for the interval [t / (1 + e), t (1 + e)] that held 80 % of the table's own entries, each left out in turn.
    """

    seconds: np.ndarray
    error: np.ndarray
    beyond: np.ndarray


@dataclass(frozen=True)
class _Group:
    """Entries of one kind, name and dtype: log extents [n, F], the rest of the dims [n, R], log work [n], log seconds [n]."""

    extent: np.ndarray
    fixed: np.ndarray
    work: np.ndarray
    seconds: np.ndarray

    def without(self, row: int) -> _Group:
        return _Group(*(np.delete(array, row, axis=0) for array in (self.extent, self.fixed, self.work, self.seconds)))


def between(vendor: VendorTimes, table: OpTable, rows: np.ndarray) -> Between:
    """Interpolate chosen rows of an operator table.

    Parameters
    ----------
    vendor : VendorTimes
        Stated times.
    table : OpTable
        U operators.
    rows : ndarray of int
        Rows that have no stated time of their own.

    Returns
    -------
    Between
        Arrays of length ``len(rows)``.
    """
    seconds, error, beyond = np.full(len(rows), np.nan), np.full(len(rows), np.nan), np.zeros(len(rows), dtype=bool)
    groups = _groups(vendor)
    errors: dict[tuple[str, str, Kind], float] = {}
    for at, row in enumerate(rows.tolist()):
        kind = Kind(table.kind[row])
        if not DIMS[kind] or kind in COLLECTIVES:
            continue
        dtype = Dtype(table.dtype[row])
        dims = tuple(table.dims[row, : len(DIMS[kind])].tolist())
        for label in labels(kind, table.name[row], dims):
            key = (label, dtype.name.lower(), _PRODUCT.get(kind, kind))
            if key not in groups:
                continue
            found = _place(kind, dtype, dims)
            answer = _time(groups[key], *found) if found is not None else None
            if answer is not None:
                if key not in errors:
                    errors[key] = _left_out(groups[key])
                log, ratio = answer
                seconds[at], beyond[at] = np.exp(log), ratio > 0
                error[at] = np.expm1(np.log1p(errors[key]) + ratio)
                break
    return Between(seconds, error, beyond)


def _place(kind: Kind, dtype: Dtype, dims: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return log extents, the other dims and log work of an operator; None where an extent is 0."""
    names = DIMS[kind]
    extents = [extent for name, extent in zip(names, dims, strict=True) if _scales(kind, name)]
    if min(extents) <= 0:
        return None
    done = work(Listed("", dtype, dims, word(kind.name) or Word(kind)))
    amount = float(done.flops) if done.flops > 0 else float(done.read + done.written)
    depthwise = "stride_h" in names and dims[names.index("groups")] == dims[names.index("c")] > 1
    fixed = [
        0 if depthwise and name == "groups" else extent for name, extent in zip(names, dims, strict=True) if not _scales(kind, name)
    ] + _regime(kind, dims)
    return (np.log(extents), np.array(fixed, dtype=np.int64), float(np.log(amount))) if amount > 0 else None


def _regime(kind: Kind, dims: tuple[int, ...]) -> list[int]:
    """Return what selects another algorithm: vector instead of matrix products, decode instead of prefill, groups of heads or channels."""
    named = dict(zip(DIMS[kind], dims, strict=True))
    if kind in _PRODUCT:
        return [int(min(named["m"], named["n"]) == 1)]
    if "queries" in named:
        return [int(named["queries"] == 1), named["heads"] * 1000 // max(named["kv_heads"], 1)]
    if "stride_h" in named:
        return [int(named["groups"] == named["c"] > 1)]
    return []


def _scales(kind: Kind, name: str) -> bool:
    return name in _SCALABLE or (name == "n" and "stride_h" in DIMS[kind])


def _groups(vendor: VendorTimes) -> Mapping[tuple[str, str, Kind], _Group]:
    """Sort a vendor's entries by label, dtype and kind."""
    found: dict[tuple[str, str, Kind], list[tuple[np.ndarray, np.ndarray, float, float]]] = {}
    for (label, dtype, dims), seconds in vendor.exact.items():
        known = word(label)
        kinds = [known.kind] if known is not None else [kind for kind, names in DIMS.items() if len(names) == len(dims) and names]
        for kind in kinds:
            if kind in COLLECTIVES or len(DIMS[kind]) != len(dims):
                continue
            place = _place(kind, Dtype[dtype.upper()], dims)
            if place is not None:
                found.setdefault((label, dtype, _PRODUCT.get(kind, kind)), []).append((*place, float(np.log(seconds))))
    return {key: _Group(*(np.array(column) for column in zip(*entries, strict=True))) for key, entries in found.items()}


def _time(group: _Group, extent: np.ndarray, fixed: np.ndarray, amount: float) -> tuple[float, float] | None:
    """Return log seconds and how far beyond the neighbours the work lies (log factor, 0: between); None: refused."""
    apart = np.abs(group.extent - extent)
    near = np.flatnonzero((apart <= np.log(REACH) + 1e-9).all(axis=1) & (group.fixed == fixed).all(axis=1))
    if not len(near):
        return None
    near = near[np.argsort(apart[near].sum(axis=1), kind="stable")]
    step = group.work[near] - amount
    below, above = near[step <= 1e-12], near[step >= -1e-12]
    if len(below) and len(above):
        low, high = below[0], above[0]
        span = group.work[high] - group.work[low]
        part = (amount - group.work[low]) / span if span > 1e-12 else 0.5
        return float(group.seconds[low] + part * (group.seconds[high] - group.seconds[low])), 0.0
    beyond = float(abs(step[0]))
    if beyond > np.log(BEYOND) + 1e-9:
        return None
    slope = 1.0
    others = near[np.abs(group.work[near] - group.work[near[0]]) > 1e-9]
    if not len(others):  # the next entry is too far to lie between, but not to say how time grows on the way there
        alike = np.flatnonzero((group.fixed == fixed).all(axis=1) & (np.abs(group.work - group.work[near[0]]) > 1e-9))
        others = alike[np.argsort(np.abs(group.extent[alike] - extent).sum(axis=1), kind="stable")]
    if len(others):
        slope = (group.seconds[others[0]] - group.seconds[near[0]]) / (group.work[others[0]] - group.work[near[0]])
    return float(group.seconds[near[0]] - step[0] * min(max(slope, 0.0), 1.0)), beyond


def _left_out(group: _Group) -> float:
    """Return the error that held 80 % of the entries when each was left out in turn."""
    count = len(group.work)
    misses = []
    for row in np.unique(np.linspace(0, count - 1, min(count, MOST_CHECKED)).astype(int)).tolist():
        answer = _time(group.without(row), group.extent[row], group.fixed[row], float(group.work[row]))
        if answer is not None and answer[1] == 0.0:
            misses.append(abs(answer[0] - group.seconds[row]))
    return float(np.expm1(np.quantile(misses, 0.8))) if len(misses) >= FEWEST else ASSUMED_ERROR


def unmatched(vendor: VendorTimes, table: OpTable) -> tuple[str, ...]:
    """Return the vendor's entries that no operator of a table has, as readable text."""
    kinds = table.kind.tolist()
    present = set(table.signature)
    for row, kind in enumerate(kinds):
        dims = tuple(table.dims[row, : len(DIMS[Kind(kind)])].tolist())
        dtype = Dtype(table.dtype[row]).name.lower()
        present |= {f"{label}|{dtype}|{dims}" for label in labels(Kind(kind), table.name[row], dims)}
    text = {key: f"{key[0]}|{key[1]}|{key[2]}" for key in vendor.exact}
    found = {vendor.same.get(key, key) for key in vendor.exact if text[key] in present}
    rest = (text[key] for key in vendor.exact if key not in vendor.same and key not in found)
    return (*rest, *(signature for signature in vendor.signed if signature not in present))


def unmatched_notes(vendor: VendorTimes, table: OpTable) -> tuple[Note, ...]:
    """Return a note that lists the vendor's entries no operator has, where there are any."""
    rest = unmatched(vendor, table)
    if not rest:
        return ()
    some = "; ".join(rest[:5]) + ("; ..." if len(rest) > 5 else "")
    text = f"{len(rest)} of {len(vendor)} rows are of no operator here: {some}"
    return (Note("vendor-rows-unmatched", vendor.path, len(rest), text, "compare names, dtypes and dimensions"),)
