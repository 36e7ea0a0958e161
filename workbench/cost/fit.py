"""Three scalars a card and dtype (compute share, memory share, launch), fitted on measured operators of all kinds together.

Every kind of operator has an error of its own size, and families of kinds count alike, however many rows they have (`lattice`):
many rows of one kind, or kinds the model knows badly, do not outvote the rest. Products and streams, which the scalars are about,
count more than kinds composed of them. Rows are split by a hash of operator, dtype and shape, so that one shape never stands on
both sides (design.md, section 7); what is said of a row's error comes from a fit without its fold. Many rows are thinned to a
hashed sample a kind for the fit; all rows are scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from workbench.cost.errors import groups_of
from workbench.cost.lattice import LEAST, MOST, STEPS, Lattice, Point, best_start, point_of, scalars_of
from workbench.cost.predictors import Predictor
from workbench.hardware.schema import ERROR_GROUPS
from workbench.operators.rows import take
from workbench.operators.table import DIMS, Dtype, Kind, OpTable

FOLDS = 5
SAMPLE = 300
"""Rows a kind that the fit looks at: the scalars of 300 rows with 15 % error are known to 1 %."""
COARSE = 60
"""Rows a kind that the choice of a start looks at."""
SCALARS = ("compute", "memory", "launch")
MOVE = 20  # grains by which a scalar is moved to see whether any row feels it
FELT = 0.1  # elasticity from which a row feels a scalar
FEELING = 3  # rows that must feel a scalar for it to be determined
FAMILY: Mapping[str, str] = MappingProxyType(
    {
        "gemm": "products", "batched_gemm": "products", "grouped_gemm": "products", "rnn": "recurrent",
        **{name: name.split("_")[0] for name in ERROR_GROUPS if name.startswith(("attention", "conv"))},
    }
)  # fmt: skip
"""Family of a kind of operator; all others stream."""
COMPOSED, COMPOSED_WEIGHT = ("attention", "conv", "recurrent"), 0.25
"""Families made of products and streams, and their weight where products or streams are there too: a card's sustained compute,
bandwidth and overhead are what these show; kinds composed of them add assumptions of their own, and settle only what is left."""
Make = Callable[[OpTable], Predictor]


@dataclass(frozen=True)
class Fit:
    """Scalars fitted on all rows, and what fits without a row's fold say of it.

    ``determined`` tells of each scalar whether enough rows feel it; ``limits`` names those that ended at a limit.
    """

    scalars: np.ndarray  # [3]
    determined: tuple[bool, bool, bool]
    limits: tuple[str, ...]
    sampled: int  # rows the fit looked at
    seconds: np.ndarray  # [U] [s], of the fit on all rows
    left_out_s: np.ndarray  # [U] [s], of the fits without the row's fold


def hashes(table: OpTable) -> np.ndarray:
    """Return a hash of operator, dtype and shape of every row, uint8 [U, 32]: one shape has one hash, whatever its version or time."""
    out = np.empty((len(table), 32), dtype=np.uint8)
    for row, (name, dtype, kind) in enumerate(zip(table.name, table.dtype.tolist(), table.kind.tolist(), strict=True)):
        shape = "x".join(map(str, table.dims[row, : len(DIMS[Kind(kind)])].tolist()))
        digest = hashlib.sha256(f"{name}|{Dtype(dtype).name.lower()}|{shape}".encode()).digest()
        out[row] = np.frombuffer(digest, dtype=np.uint8)
    return out


def sample(group: np.ndarray, hashed: np.ndarray, most: int) -> np.ndarray:
    """Return the rows of a sample: at most so many a group, those with the smallest hash, in their order; int64 [N]."""
    order = np.lexsort(hashed[:, 8:0:-1].T)
    kept = [order[group[order] == code][:most] for code in np.unique(group)]
    return np.sort(np.concatenate(kept)) if kept else np.zeros(0, dtype=np.int64)


def fit_scalars(make: Make, table: OpTable, own: np.ndarray, *, folds: int = FOLDS, most: int = SAMPLE) -> Fit:
    """Fit the scalars of a predictor on all rows of a table, and anew without each fold.

    Parameters
    ----------
    make : callable
        Table to predictor: `predictors.modelled` or `predictors.roofline` of a card.
    table : OpTable
        U measured operators of one dtype.
    own : ndarray, shape (3,)
        What the card states: one of the starts, and the value of scalars that no row determines.
    folds : int
        Parts of the rows that are left out in turn; 1 leaves none out (``left_out_s`` is then that of the whole fit).
    most : int
        Rows a kind that the fit looks at.
    """
    group, hashed = groups_of(table), hashes(table)
    few = sample(group, hashed, COARSE)
    weight = family_weights(group)
    first = Lattice(make(take(table, few)), table.measured_s[few], group[few], weight)
    start = best_start(first, np.ones(len(few), dtype=bool), own)
    rows = sample(group, hashed, most)
    lattice = Lattice(make(take(table, rows)), table.measured_s[rows], group[rows], weight)
    every = np.ones(len(rows), dtype=bool)
    best, _ = lattice.search(start, every, STEPS[1:])
    determined = _determined(lattice, best)
    fold = hashed[:, 0] % folds
    points = [best]
    if folds > 1:
        points += [lattice.search(best, fold[rows] != left, STEPS[3:])[0] for left in range(folds)]
    scalars = np.array([_kept(point, determined, own) for point in points])
    distinct, which = np.unique(scalars, axis=0, return_inverse=True)
    seconds = make(table)(distinct)[:, which.ravel()]
    left_out = seconds[np.arange(len(table)), 1 + fold] if folds > 1 else seconds[:, 0]
    return Fit(scalars[0], determined, _limits(best, determined), len(rows), seconds[:, 0], left_out)


def family_weights(group: np.ndarray) -> dict[int, float]:
    """Return the weight of every group code that occurs: groups of a family count alike, and families but for `COMPOSED`."""
    family = {int(code): FAMILY.get(ERROR_GROUPS[code], "streams") for code in np.unique(group)}
    light = COMPOSED_WEIGHT if set(family.values()) - set(COMPOSED) else 1.0
    weight = {name: light if name in COMPOSED else 1.0 for name in family.values()}
    return {code: weight[name] / sum(other == name for other in family.values()) for code, name in family.items()}


def _determined(lattice: Lattice, best: Point) -> tuple[bool, bool, bool]:
    """Return of each scalar whether moving it moves enough rows."""
    moved = []
    for axis in range(3):
        step = MOVE if best[axis] + MOVE <= MOST[axis] else -MOVE
        there = (best[0] + step * (axis == 0), best[1] + step * (axis == 1), best[2] + step * (axis == 2))
        here, other = lattice.misses([best, there])
        moved.append(int((np.abs(other - here) > FELT * abs(step) * 0.01).sum()) >= min(FEELING, len(here)))
    return moved[0], moved[1], moved[2]


def _kept(point: Point, determined: tuple[bool, bool, bool], own: np.ndarray) -> np.ndarray:
    return np.where(determined, scalars_of(point), own)


def _limits(best: Point, determined: tuple[bool, bool, bool]) -> tuple[str, ...]:
    ends = zip(SCALARS, best, determined, LEAST, MOST, strict=True)
    return tuple(name for name, at, known, low, high in ends if known and at in (low, high))


def start_of(scalars: tuple[float, float, float]) -> np.ndarray:
    """Return what a card states as a start inside the limits, float64 [3]."""
    return scalars_of(point_of(np.array(scalars)))
