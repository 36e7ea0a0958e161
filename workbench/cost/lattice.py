"""Fitting three scalars by compass search on a lattice of their logarithms; every point is priced once for all starts and folds.

Method: pattern search after Hooke and Jeeves, "Direct Search" Solution of Numerical and Statistical Problems (JACM 1961); the
model has kinks (a tile changes), so no gradient is asked for. The loss of a row is between |log error| and |relative error|,
so that over- and underestimates weigh alike. A group of rows (a kind of operator) counts by the logarithm of its mean loss:
the likelihood of Laplace errors whose scale is the group's own and unknown, so that groups the model knows well decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from workbench.cost.predictors import Predictor

GRAIN = 0.01  # of the logarithm: 1 % steps
LOWER, UPPER = np.array([0.05, 0.05, 2e-7]), np.array([1.0, 1.0, 1e-3])
"""Limits of compute share, memory share and launch [s]."""
STARTS = np.array([(c, m, t) for c in (0.35, 0.8) for m in (0.35, 0.8) for t in (2e-6, 1e-5, 4e-5)])
STEPS = (32, 16, 8, 4, 2, 1)
FAR = 1.1  # natural logarithm beyond which (a factor 3) an overestimate weighs no more than an underestimate: outliers do not decide
FLOOR = 0.01  # error below which a fit is as good as exact
Point = tuple[int, int, int]
LEAST = tuple(int(np.ceil(x)) for x in np.log(LOWER) / GRAIN)
MOST = tuple(int(np.floor(x)) for x in np.log(UPPER) / GRAIN)


def scalars_of(point: Point) -> np.ndarray:
    """Return the scalars at a lattice point, float64 [3]."""
    return np.asarray(np.exp(np.asarray(point, dtype=np.float64) * GRAIN))


def point_of(scalars: np.ndarray) -> Point:
    """Return the lattice point nearest to scalars, within the limits."""
    index = np.round(np.log(np.clip(scalars, LOWER, UPPER)) / GRAIN).astype(int)
    return _inside(tuple(index.tolist()))


def _inside(point: Sequence[int]) -> Point:
    first, second, third = (min(max(index, low), high) for index, low, high in zip(point, LEAST, MOST, strict=True))
    return first, second, third


class Lattice:
    """Misses log(predicted / measured) of U rows, computed once a point.

    Parameters
    ----------
    predict : Predictor
        Scalars to seconds.
    measured_s : ndarray, shape (U,)
        Measured times [s].
    group : ndarray of int, shape (U,)
        Kind of operator of every row.
    weight : mapping of int to float, optional
        Weight of each group; 1 where it is not given.
    """

    def __init__(
        self, predict: Predictor, measured_s: np.ndarray, group: np.ndarray, weight: Mapping[int, float] = MappingProxyType({})
    ) -> None:
        self.predict, self.measured_s = predict, measured_s
        self.groups = [(group == code, weight.get(int(code), 1.0)) for code in np.unique(group)]
        self.known: dict[Point, np.ndarray] = {}

    def misses(self, points: Sequence[Point]) -> list[np.ndarray]:
        """Return the misses of every row at some points, each float64 [U]."""
        new = [point for point in dict.fromkeys(points) if point not in self.known]
        if new:
            seconds = self.predict(np.array([scalars_of(point) for point in new]))
            logs = np.log(np.maximum(seconds, 1e-12) / self.measured_s[:, None])
            self.known.update({point: logs[:, at] for at, point in enumerate(new)})
        return [self.known[point] for point in points]

    def losses(self, points: Sequence[Point], rows: np.ndarray) -> np.ndarray:
        """Return the loss at some points, of the rows of a mask [U]."""
        return np.array([self._loss(miss, rows) for miss in self.misses(points)])

    def _loss(self, miss: np.ndarray, rows: np.ndarray) -> float:
        weight = (np.abs(np.expm1(np.clip(miss, -FAR, FAR))) + np.abs(miss)) / 2.0
        total = 0.0
        for group, share in self.groups:
            own = group & rows
            if own.any():
                total += share * float(np.log(FLOOR + weight[own].mean()))
        return total

    def search(self, start: Point, rows: np.ndarray, steps: Sequence[int] = STEPS) -> tuple[Point, float]:
        """Return the best point near a start and its loss, of the rows of a mask.

        Parameters
        ----------
        start : Point
            Lattice point.
        rows : ndarray of bool, shape (U,)
            Rows that count.
        steps : sequence of int
            Sizes of the steps, coarse to fine.
        """
        best, value = start, float(self.losses([start], rows)[0])
        for step in steps:
            move: tuple[int, ...] = (0, 0, 0)
            while True:
                around = [_inside([x + (axis == at) * sign * step for at, x in enumerate(best)]) for axis in range(3) for sign in (1, -1)]
                ahead = _inside([x + dx for x, dx in zip(best, move, strict=True)])
                points = [point for point in dict.fromkeys((*around, ahead)) if point != best]
                found = self.losses(points, rows)
                at = int(np.argmin(found))
                if found[at] >= value - 1e-9:
                    break
                move = tuple(new - old for new, old in zip(points[at], best, strict=True))
                best, value = points[at], float(found[at])
        return best, value


def best_start(lattice: Lattice, rows: np.ndarray, own: np.ndarray) -> Point:
    """Return the best of three searches with coarse steps, from the best of `STARTS` and what the card states [3]."""
    points = list(dict.fromkeys([point_of(own), *map(point_of, STARTS)]))
    order = np.argsort(lattice.losses(points, rows), kind="stable")[:3]
    found = [lattice.search(points[at], rows, STEPS[:3]) for at in order]
    return min(found, key=lambda pair: pair[1])[0]
