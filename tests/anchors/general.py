"""Intervals of cards without a fit, measured by leaving each card's own fit out: what ``data/errors/operators.yaml`` states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import yaml

from tests.anchors.scored import Scored
from workbench.cost.calibrate import CARDS_OWN, beside_card
from workbench.cost.errors import COVER, NARROW, Interval, quantiles
from workbench.cost.fit import hashes, sample
from workbench.cost.sustained import compute_share, outer_share
from workbench.hardware.schema import ERROR_GROUPS

DTYPES = ("bf16", "fp16", "fp32")
NARROW_STATED = ("fp8", "int8", "int8_wo")
HOST_LIKE = ("NeuSight", "DeepBench")  # their overhead is the harness's: taken as known
FEWEST, MOST = 30, 300  # rows a card and kind; most, so that cards weigh alike
POWERS = np.linspace(1.0, 3.0, 41)
SOURCE = (
    "left-out errors of cards priced without any fit, against public measurements (vidur, NeuSight, DeepBench, aiconfigurator); quantiles "
    "of all cards pooled, widened so that the quantiles of the others hold 80 % of a left-out card's rows on average; "
    "written by `python3 run.py accuracy`"
)


@dataclass(frozen=True)
class General:
    """The interval of a kind, from so many cards and rows; ``inside``: coverage of cards left out, by card."""

    kind: str
    cards: int
    rows: int
    interval: Interval
    power: float
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
            power = widening(of)
            low, high = wide(np.concatenate(list(of.values())), power)
            rows = sum(map(len, of.values()))
            out.append(General(kind, len(of), rows, (low, high), power, tuple(_inside(of, power))))
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
    """Return the power by which the interval of the other cards holds 80 % of a left-out card's rows on average."""
    return float(POWERS[int(np.argmin([abs(np.mean(_inside(of, power)) - COVER) for power in POWERS]))])


def wide(ratio: np.ndarray, power: float) -> Interval:
    """Return the interval of measured / predicted, widened: (1 + low) and (1 + high) to a power."""
    low, high = quantiles(np.ones(len(ratio)), ratio)
    return (1.0 + low) ** power - 1.0, (1.0 + high) ** power - 1.0


def _inside(of: Mapping[str, np.ndarray], power: float) -> list[float]:
    """Return of every card how many of its rows the interval of the others holds."""
    out = []
    for card, ratio in of.items():
        low, high = wide(np.concatenate([other for name, other in of.items() if name != card]), power)
        out.append(float(np.mean((ratio >= 1.0 + low) & (ratio <= 1.0 + high))))
    return out


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
        lines.append(f"  {of.kind}: {{low: {low:.3f}, high: {high:.3f}, cards: {of.cards}, rows: {of.rows}, widened: {of.power:.2f}}}")
    lines.append("judged:  # by the errors of their relatives; used where nothing was measured")
    lines += [f"  {kind}: [{pair[0]}, {pair[1]}]" for kind, pair in old["judged"].items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
