"""Figures of two hosts from recordings of the same programs on both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.cost.host import FEWEST, LEAST_SPREAD, NORMAL, UNKNOWN, HostTimes
from workbench.hardware.host import CALLS, KINDS, WORK, HostSpec

Pair = tuple[HostTimes, HostTimes]


def fit_hosts(pairs: Sequence[Pair], names: tuple[str, str]) -> tuple[HostSpec, HostSpec]:
    """Return the figures of two hosts.

    A kind's log ratio on program i is x_i = mu + e_i with mu ~ N(0, tau^2), tau from `UNKNOWN`, and e_i ~ N(0, sigma^2), sigma from the
    scatter of the programs. The figure is the mean of mu given n programs, n tau^2 / (n tau^2 + sigma^2) times their mean: few or
    scattered programs move it less. The spread is that of the next program (Gelman et al., Bayesian Data Analysis, 2.5).

    Parameters
    ----------
    pairs : sequence of (HostTimes, HostTimes)
        Of one program each, on the first and on the second host.
    names : (str, str)

    Returns
    -------
    reference, other : HostSpec
        Work: total times of the second over the first. Calls: the median call of each. Kinds of which fewer than `FEWEST` pieces are
        recorded on a side are not stated. Where one program alone tells, sigma is that of the other kinds of its sort, and the spread
        at least `UNKNOWN`.
    """
    told = {kind: _logs(pairs, kind) for kind in KINDS}
    takes: dict[str, float] = {}
    calls: tuple[dict[str, float], dict[str, float]] = ({}, {})
    spread: dict[str, float] = {}
    for kind, logs in told.items():
        if not len(logs):
            continue
        sort = WORK if kind in WORK else CALLS
        ratio = logs[:, 1] - logs[:, 0]
        variance = _scatter(ratio) if len(ratio) > 1 else _pooled([told[other] for other in sort])
        prior = (np.log1p(UNKNOWN[kind]) / NORMAL) ** 2
        whole = len(ratio) * prior + variance
        mean = float(ratio.mean() * len(ratio) * prior / whole)
        next_one = float(np.expm1(NORMAL * np.sqrt(variance + prior * variance / whole)))
        spread[kind] = next_one if len(ratio) > 1 else max(next_one, UNKNOWN[kind])
        if kind in CALLS:
            middle = float(logs.mean())
            calls[0][kind], calls[1][kind] = float(np.exp(middle - mean / 2)), float(np.exp(middle + mean / 2))
        else:
            takes[kind] = float(np.exp(mean))
    return HostSpec(names[0], dict.fromkeys(takes, 1.0), calls[0], spread), HostSpec(names[1], takes, calls[1], spread)


def _logs(pairs: Sequence[Pair], kind: str) -> np.ndarray:
    """Float64 [n, 2]: log of the figures of a kind on both hosts, a row a program that shows it."""
    k = KINDS.index(kind)
    shown = [(a, b) for a, b in pairs if min(a.count[k], b.count[k]) >= FEWEST]
    figures = [(a.figure(kind), b.figure(kind)) for a, b in shown]
    return np.log(np.maximum(np.array(figures, dtype=np.float64).reshape(-1, 2), 1e-12))


def _scatter(ratio: np.ndarray) -> float:
    """Variance of log ratios between programs, not below that of `LEAST_SPREAD`."""
    return max(float(ratio.var(ddof=1)), float(np.log1p(LEAST_SPREAD) / NORMAL) ** 2)


def _pooled(kinds: Sequence[np.ndarray]) -> float:
    """Mean variance of the kinds that several programs show (none does: that of `LEAST_SPREAD`)."""
    known = [_scatter(logs[:, 1] - logs[:, 0]) for logs in kinds if len(logs) > 1]
    return float(np.mean(known)) if known else float(np.log1p(LEAST_SPREAD) / NORMAL) ** 2
