"""Fitting a fabric to measured collectives: at most four scalars, with the error on messages that were left out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.network.curve import curve
from workbench.network.groups import strided
from workbench.study.collective_messages import Message

LEAST_ROWS = 8
"""Measured messages a fit needs."""
LIMITS = (0.2, 5.0)
"""Range of the factors on launches and steps; shares of bandwidths lie between 0.01 and 1."""


@dataclass(frozen=True)
class FabricFit:
    """A cluster with fitted scalars; errors are of messages left out of the fit they are scored with."""

    cluster: ClusterSpec
    median: float
    mean: float
    bias: float
    before: float  # median error without the fit
    rows: int
    fitted: dict[str, float]


def fold(message: Message) -> int:
    """Return the half a message belongs to, by hash of collective, cards and size: repetitions of one message stay together."""
    return zlib.crc32(f"{message.kind.name} {message.cards} {message.bytes:.0f}".encode()) & 1


def fit_fabric(cluster: ClusterSpec, messages: Sequence[Message]) -> FabricFit:
    """Fit launch factor, step factor, and the usable share of the innermost and of the outermost tier that the messages cross.

    The mean absolute logarithm of predicted over measured is least (coordinate descent); every half is scored by the fit of the other.

    Parameters
    ----------
    cluster : ClusterSpec
    messages : sequence of Message
        Those with a measured time are used.

    Returns
    -------
    FabricFit

    Raises
    ------
    Refused
        Fewer than `LEAST_ROWS` measured messages, or all in one half.
    """
    rows = [message for message in messages if np.isfinite(message.measured_s) and message.measured_s > 0 and message.cards > 1]
    halves = [[row for row in rows if fold(row) == half] for half in (0, 1)]
    if len(rows) < LEAST_ROWS or not all(halves):
        raise Refused(
            cluster.name, f"{len(rows)} measured messages are too few for a fit", f"measure at least {LEAST_ROWS} sizes and groups"
        )
    ratios = np.concatenate([_ratios(_fitted(cluster, halves[half]), halves[1 - half]) for half in (0, 1)])
    errors = np.abs(ratios - 1.0)
    best = _fitted(cluster, rows)
    scalars = {"launch_factor": best.launch_factor, "step_factor": best.step_factor}
    scalars |= {f"tiers.{best.tiers[t].name}.efficiency": best.tiers[t].efficiency for t in _fitted_tiers(cluster, rows)}
    median = float(np.median(errors))
    return FabricFit(
        cluster=replace(best, error=median),
        median=median,
        mean=float(errors.mean()),
        bias=float(ratios.mean() - 1.0),
        before=float(np.median(np.abs(_ratios(cluster, rows) - 1.0))),
        rows=len(rows),
        fitted=scalars,
    )


def _fitted_tiers(cluster: ClusterSpec, rows: Sequence[Message]) -> list[int]:
    """Innermost and outermost tier that messages cross."""
    crossed = sorted({t for row in rows for t, n in enumerate(strided(cluster, row.cards, row.stride).counts) if n > 1})
    return sorted({crossed[0], crossed[-1]})


def _with(cluster: ClusterSpec, tiers: Sequence[int], values: np.ndarray) -> ClusterSpec:
    changed = list(cluster.tiers)
    for t, share in zip(tiers, values[2:], strict=True):
        changed[t] = replace(changed[t], efficiency=float(np.exp(share)))
    return replace(cluster, tiers=tuple(changed), launch_factor=float(np.exp(values[0])), step_factor=float(np.exp(values[1])))


def _fitted(cluster: ClusterSpec, rows: Sequence[Message]) -> ClusterSpec:
    """Return the cluster whose scalars fit the rows best: coordinate descent on logarithms with steps that shrink to half a percent."""
    tiers = _fitted_tiers(cluster, rows)
    at = np.log([cluster.launch_factor, cluster.step_factor, *(cluster.tiers[t].efficiency for t in tiers)])
    low = np.log([LIMITS[0]] * 2 + [0.01] * len(tiers))
    high = np.log([LIMITS[1]] * 2 + [1.0] * len(tiers))

    def loss(values: np.ndarray) -> float:
        return float(np.abs(np.log(_ratios(_with(cluster, tiers, values), rows))).mean())

    best, step = loss(at), 0.3
    while step > 0.005:
        moved = False
        for k in range(len(at)):
            for way in (step, -step):
                tried = at.copy()
                tried[k] = np.clip(tried[k] + way, low[k], high[k])
                found = loss(tried)
                if found < best - 1e-12:
                    at, best, moved = tried, found, True
        step = step if moved else step / 2
    return _with(cluster, tiers, at)


def _ratios(cluster: ClusterSpec, rows: Sequence[Message]) -> np.ndarray:
    """Predicted over measured."""
    out = np.empty(len(rows))
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault((row.kind, row.cards, row.stride), []).append(i)
    for members in groups.values():
        first = rows[members[0]]
        sizes = np.array([rows[i].bytes for i in members])
        seconds = curve(cluster, first.kind, strided(cluster, first.cards, first.stride)).seconds(sizes)
        out[members] = seconds / np.array([rows[i].measured_s for i in members])
    return out
