"""Intervals of cards without a fit, measured by leaving each card's own fit out: what ``data/errors/operators.yaml`` states.

Rows of one card err alike, so that a new card errs unlike all rows of the others: quantiles of pooled rows are too narrow for it
(Dunn, Wasserman and Ramdas, Distribution-Free Prediction Sets for Two-Layer Hierarchical Models, JASA 2023, arXiv 1809.07441, whose
pooled distribution of groups is the start here). The distances of the pooled quantiles from the pooled median, in logarithms of
measured / predicted, are therefore scaled until the interval of the other cards holds 80 % of a left-out card's rows on average.
The median, which is what cards err by in common, is not scaled. A scale that is judged on the cards it was chosen on flatters
itself: coverage is stated nested, of each card by a scale that the others alone chose (two cards: by none).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import yaml

from tests.anchors.scored import Scored
from workbench.cost.calibrate import CARDS_OWN, beside_card
from workbench.cost.errors import COVER, NARROW, NEAREST, Interval
from workbench.cost.fit import hashes, sample
from workbench.cost.sustained import compute_share, outer_share
from workbench.hardware.schema import ERROR_GROUPS

DTYPES = ("bf16", "fp16", "fp32")
NARROW_STATED = ("fp8", "int8", "int8_wo")
HOST_LIKE = ("NeuSight", "DeepBench")  # their overhead is the harness's: taken as known
FEWEST, MOST = 30, 300  # rows a card and kind; most, so that cards weigh alike
SCALES = np.linspace(0.5, 3.0, 51)
SOURCE = (
    "left-out errors of cards priced without any fit, against public measurements (vidur, NeuSight, DeepBench, aiconfigurator); quantiles "
    "of all cards pooled, their distance from the median scaled so that the interval of the others holds 80 % of a left-out card's rows "
    "on average; "
    "written by `python3 run.py accuracy`"
)


@dataclass(frozen=True)
class General:
    """The interval of a kind, from so many cards and rows; ``inside``: nested coverage of cards left out, by card."""

    kind: str
    cards: int
    rows: int
    interval: Interval
    scale: float
    inside: tuple[float, ...]


def generals(found: Sequence[Scored]) -> list[General]:
    """Return the interval of every kind that two cards or more were measured on."""
    misses: dict[str, dict[str, list[np.ndarray]]] = {}
    for one in found:
        if one.series.dtype not in (*DTYPES, *NARROW_STATED):
            continue
        ending = NARROW if one.series.dtype in NARROW_STATED else ""
        for kind, miss in _misses(one).items():
            misses.setdefault(kind + ending, {}).setdefault(one.series.spec.name.split("-")[0], []).append(miss)
    out = []
    for kind in [*ERROR_GROUPS, *(f"{name}{NARROW}" for name in ERROR_GROUPS)]:
        of = {card: np.concatenate(parts) for card, parts in misses.get(kind, {}).items()}
        if len(of) > 1:
            scale = widening(of)
            rows = sum(map(len, of.values()))
            out.append(General(kind, len(of), rows, wide(list(of.values()), scale), scale, nested(of)))
    return out


def _misses(one: Scored) -> dict[str, np.ndarray]:
    """Return measured / predicted time of a card without a fit, by kind; a sample of each kind, without what the host adds."""
    series = one.series
    spec = replace(series.spec, calibration={})
    third = one.fit.scalars[2] if series.source in HOST_LIKE else spec.runtime.launch_overhead
    rows = sample(series.group, hashes(series.table), MOST)
    part = series.take(rows)
    scalars = np.array([compute_share(spec), outer_share(spec), third])
    seconds = series.make(spec)(part.table)(scalars[None])[:, 0]
    beside = beside_card(spec, series.runs, part.table, series.harness, scalars, seconds)
    own = (beside < CARDS_OWN * seconds) & (part.table.measured_s > beside)
    ratio, group = (part.table.measured_s - beside)[own] / (seconds - beside)[own], part.group[own]
    return {ERROR_GROUPS[code]: ratio[group == code] for code in np.unique(group) if (group == code).sum() >= FEWEST}


def widening(of: Mapping[str, np.ndarray]) -> float:
    """Return the scale by which the interval of the other cards holds 80 % of a left-out card's rows on average; 1 of a single card."""
    if len(of) < 2:
        return 1.0
    off = [abs(float(np.mean([_held(of, card, scale) for card in of])) - COVER) for scale in SCALES]
    return float(SCALES[int(np.argmin(off))])


def wide(ratios: Sequence[np.ndarray], scale: float) -> Interval:
    """Return the interval of measured / predicted of some cards: median, and scaled distances of the 10 and 90 % quantiles.

    Parameters
    ----------
    ratios : sequence of ndarray
        Measured / predicted of each card.
    scale : float
        On the distances, in logarithms.

    Returns
    -------
    low, high : float
        Relative errors; the predicted time itself is inside by `NEAREST` at least.
    """
    miss = np.log(np.concatenate(ratios))
    low, middle, high = np.quantile(miss, ((1.0 - COVER) / 2.0, 0.5, (1.0 + COVER) / 2.0), method="weibull")
    ends = np.expm1((middle - scale * (middle - low), middle + scale * (high - middle)))
    return min(float(ends[0]), -NEAREST), max(float(ends[1]), NEAREST)


def nested(of: Mapping[str, np.ndarray]) -> tuple[float, ...]:
    """Return of every card how many of its rows the interval of the others holds, by the scale that the others choose."""
    return tuple(_held(of, card, widening(_others(of, card))) for card in of)


def _others(of: Mapping[str, np.ndarray], card: str) -> dict[str, np.ndarray]:
    return {name: ratio for name, ratio in of.items() if name != card}


def _held(of: Mapping[str, np.ndarray], card: str, scale: float) -> float:
    """Return the share of a card's rows inside the interval of the others."""
    low, high = wide(list(_others(of, card).values()), scale)
    return float(np.mean((of[card] >= 1.0 + low) & (of[card] <= 1.0 + high)))


def write(found: Sequence[General], path: Path, date: str, digest: str) -> None:
    """Write the intervals into the data file, keeping what is judged."""
    old = yaml.safe_load(path.read_text(encoding="utf-8"))
    lines = [
        "# 80 % intervals of operators on cards without a fit: predicted x (1 + low) to predicted x (1 + high).",
        f'source: "{SOURCE}"',
        f'written: "{date}"',
        f'measurements: "{digest}"',
        "measured:",
    ]
    for of in found:
        low, high = of.interval
        lines.append(f"  {of.kind}: {{low: {low:.3f}, high: {high:.3f}, cards: {of.cards}, rows: {of.rows}, widened: {of.scale:.2f}}}")
    lines.append("judged:  # by the errors of their relatives; used where nothing was measured")
    lines += [f"  {kind}: [{pair[0]}, {pair[1]}]" for kind, pair in old["judged"].items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
