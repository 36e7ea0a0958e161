"""Scores of one series: the card as shipped, three scalars fitted on one half of the shapes and scored on the other, rooflines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.anchors.floor import Floor, floor
from tests.anchors.series import Series
from workbench.cost.calibrate import CARDS_OWN, accuracy, skill
from workbench.cost.choices import Choices
from workbench.cost.errors import FEWEST as FEWEST_ERRORS
from workbench.cost.errors import quantiles
from workbench.cost.estimate import estimate
from workbench.cost.fit import Fit, Make, fit_scalars
from workbench.cost.harness import host_work, observed
from workbench.cost.predictors import NAIVE, roofline
from workbench.hardware.schema import ERROR_GROUPS
from workbench.operators.rows import take
from workbench.operators.table import Kind, OpTable

LARGE = 512
START, ROOF_START = np.array([0.8, 0.8, 3e-6]), np.array([0.7, 0.7, 5e-6])
FEWEST = 12  # held rows of a line
Figures = dict[str, float]


@dataclass(frozen=True)
class Line:
    """One kind of one series, on the held half of its shapes; ``large``: of products with M, N, K >= 512 (None: too few)."""

    kind: str
    rows: int
    shipped: Figures
    joint: Figures
    alone: Figures
    roof: Figures
    roof_alone: Figures
    naive: Figures
    skill: tuple[float, float, float]  # joint over roofline, fitted the same way
    skill_alone: tuple[float, float, float]
    inside: float  # of the fitted half's intervals
    inside_shipped: float
    floor: Floor | None
    large: tuple[int, Figures, Figures, Figures] | None  # rows; joint, alone and roofline alone


@dataclass(frozen=True)
class Scored:
    """A series scored: its fit on the fitted half, a line a kind, and what the fit says of every row."""

    series: Series
    fit: Fit
    lines: tuple[Line, ...]
    inside: float
    seconds: np.ndarray  # [U] [s] of the joint fit, all rows


def score(series: Series) -> Scored:
    """Fit on the half of the shapes whose hash is even, score on the other."""
    held, group = series.held, series.group
    rest, scored = take(series.table, ~held), take(series.table, held)
    make, roof = series.make(), (lambda rows: roofline(series.spec, rows))
    fit = fit_scalars(make, rest, START)
    seconds = make(series.table)(fit.scalars[None])[:, 0]
    roof_joint = roof(scored)(fit_scalars(roof, rest, ROOF_START, folds=1).scalars[None])[:, 0]
    naive = roof(scored)(NAIVE[None])[:, 0]
    shipped, tells = _shipped(series, scored, fit.scalars[2])
    lines, hits, count = [], 0, 0
    for code in np.unique(group[held]):
        one, two = group[~held] == code, group[held] == code
        if two.sum() < FEWEST or one.sum() < FEWEST_ERRORS:
            continue
        part, left = take(scored, two), take(rest, one)
        measured, joint = part.measured_s, seconds[held][two]
        alone, roof_alone = (_fitted(which, left, part, start) for which, start in ((make, START), (roof, ROOF_START)))
        low, high = quantiles(fit.left_out_s[one], left.measured_s)
        inside = (measured >= joint * (1.0 + low)) & (measured <= joint * (1.0 + high))
        hits, count = hits + int(inside.sum()), count + len(part)
        lines.append(
            Line(
                ERROR_GROUPS[code],
                len(part),
                accuracy(shipped[1][two], measured),
                accuracy(joint, measured),
                accuracy(alone, measured),
                accuracy(roof_joint[two], measured),
                accuracy(roof_alone, measured),
                accuracy(naive[two], measured),
                skill(joint, roof_joint[two], measured),
                skill(alone, roof_alone, measured),
                float(inside.mean()),
                float(((measured >= shipped[0][two]) & (measured <= shipped[2][two]))[tells[two]].mean()),
                floor(series.take(group == code)),
                _large(part, joint, alone, roof_alone),
            )
        )
    return Scored(series, fit, tuple(lines), hits / max(count, 1), seconds)


def _shipped(series: Series, scored: OpTable, host_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what the harness shows of low, nominal and high seconds of `estimate`, [3, U], and which rows tell of the card [U]."""
    of = series.harness
    cost = estimate(scored, [series.spec], choices=Choices(copies=of.copies, attention=of.attention))
    relative = np.array([host_work(name) for name in scored.name])
    own = np.stack((cost.low_s[:, 0], cost.seconds[:, 0], cost.high_s[:, 0]))
    shown = observed(own, host_s, of.clock, relative)
    return shown, shown[1] - own[1] < CARDS_OWN * shown[1]


def _fitted(make: Make, rest: OpTable, scored: OpTable, start: np.ndarray) -> np.ndarray:
    """Return seconds of the scored rows by scalars fitted on the rest."""
    return np.asarray(make(scored)(fit_scalars(make, rest, start, folds=1).scalars[None])[:, 0])


def _large(part: OpTable, *ways: np.ndarray) -> tuple[int, Figures, Figures, Figures] | None:
    if part.kind[0] not in (Kind.GEMM, Kind.BATCHED_GEMM):
        return None
    rows = part.dims[:, 1:4].min(axis=1) >= LARGE
    if rows.sum() < FEWEST:
        return None
    first, second, third = (accuracy(way[rows], part.measured_s[rows]) for way in ways)
    return int(rows.sum()), first, second, third
