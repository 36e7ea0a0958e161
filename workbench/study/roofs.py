"""The roofs of a card: the most bytes and operations a second its levels and units allow, whatever runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from workbench.errors import Refused
from workbench.hardware.npu import NpuSpec
from workbench.operators.table import Dtype
from workbench.study.prediction import Prediction

LEVELS = ("outermost", "shared")
"""Levels an intensity can be taken at, and the column of ``OpCost.level_bytes`` that counts their traffic."""
_COLUMN = {"outermost": 2, "shared": 1}


@dataclass(frozen=True)
class Roof:
    """One limit of a card: a bandwidth [B/s] of a level, or a peak [FLOP/s] of a unit at a dtype."""

    name: str
    level: str  # of LEVELS for a bandwidth, else ""
    unit: str  # "matrix" or "vector" for a peak, else ""
    value: float


def roofs(spec: NpuSpec) -> tuple[Roof, ...]:
    """Return the bandwidth roofs of the outermost and the shared level and the peaks by unit and dtype.

    Parameters
    ----------
    spec : NpuSpec

    Returns
    -------
    tuple of Roof
        Dense peaks; a vector peak counts a multiply-add as two operations. A card without a shared level has no roof there.
    """
    names = list(spec.memory)
    found = [Roof(names[-1].upper(), "outermost", "", spec.bandwidth(names[-1]))]
    shared = next((n for n in reversed(names[:-1]) if spec.memory[n].scope == "chip" and isfinite(spec.bandwidth(n))), None)
    if shared is not None:
        both = spec.bandwidth(shared, True) if spec.memory[shared].write_bandwidth is not None else 0.0  # ways of their own
        found.append(Roof(shared.upper(), "shared", "", spec.bandwidth(shared) + both))
    units = (("matrix", spec.matrix.rate), ("vector", spec.vector.rate))
    found += [Roof(f"{unit} {dtype}", "", unit, spec.unit_peak(unit, dtype)) for unit, rates in units for dtype in rates]
    return tuple(found)


@dataclass(frozen=True)
class Points:
    """Operators with work, traffic and time, as points under a roofline; arrays of length P."""

    row: np.ndarray  # int64, row of the OpTable
    intensity: np.ndarray  # float64 [FLOP/B] with the level
    rate: np.ndarray  # float64 [FLOP/s] predicted
    measured_rate: np.ndarray  # float64 [FLOP/s] recorded (nan without)


def points(prediction: Prediction, level: str = "outermost") -> Points:
    """Return the operators as points at one level of memory.

    Parameters
    ----------
    prediction : Prediction
    level : str
        ``"outermost"`` or ``"shared"``; traffic is what the model moves through that level, and the compulsory traffic
        where no model counted it (vendor times, scaled measurements).
    """
    if level not in _COLUMN:
        raise Refused("level", f"{level!r} is no level of a roofline", f"use one of {', '.join(_COLUMN)}")
    table, cost = prediction.table, prediction.cost
    counted = cost.level_bytes[:, 0, _COLUMN[level]]
    moved = np.where(counted > 0, counted, table.bytes_read + table.bytes_written)
    seconds = cost.seconds[:, 0]
    rows = np.flatnonzero((table.flops > 0) & (moved > 0) & (seconds > 0) & np.isfinite(seconds))
    work, before = table.flops[rows], table.measured_s[rows]
    measured = np.divide(work, before, out=np.full(len(rows), np.nan), where=before > 0)
    return Points(rows, work / moved[rows], work / seconds[rows], measured)


def dtype_peaks(spec: NpuSpec, dtypes: np.ndarray) -> tuple[Roof, ...]:
    """Return the matrix peaks of the dtypes that occur (`Dtype` codes), and the highest matrix peak where none of them is stated."""
    matrix = [roof for roof in roofs(spec) if roof.unit == "matrix"]
    used = {f"matrix {Dtype(code).name.lower()}" for code in np.unique(dtypes)}
    return tuple(roof for roof in matrix if roof.name in used) or tuple(sorted(matrix, key=lambda roof: roof.value)[-1:])
