"""How closely rows of several library versions can be met at all: the same card, operator and shape, timed by two versions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tests.anchors.series import Series
from workbench.cost.fit import hashes


@dataclass(frozen=True)
class Floor:
    """``share`` of rows whose shape another version ran too; ``differ`` mean and ``median`` |t1 / t2 - 1| of two versions;
    ``best`` MAPE of the best single time for each shape, which no model of the shape can beat, over all rows."""

    share: float
    differ: float
    median: float
    best: float


def floor(series: Series) -> Floor | None:
    """Return the floor of the rows of a series, None where fewer than ten shapes were timed twice."""
    same: dict[bytes, list[tuple[str, float]]] = defaultdict(list)
    for key, version, seconds in zip(hashes(series.table), series.version.tolist(), series.table.measured_s.tolist(), strict=True):
        same[key.tobytes()].append((version, seconds))
    differ, best, twice = [], 0.0, 0
    for found in same.values():
        times = np.array([seconds for _, seconds in found])
        if len(times) > 1:
            twice += len(times)
            best += _best(times)
            differ += [abs(a / b - 1.0) for v, a in found for w, b in found if v != w]
    if len(differ) < 20:
        return None
    size = len(series.table)
    return Floor(twice / size, float(np.mean(differ)), float(np.median(differ)), best / size)


def _best(times: np.ndarray) -> float:
    """Return the least sum of relative errors that one time for all can have: it is one of them."""
    return float(min(np.abs(guess / times - 1.0).sum() for guess in times))
