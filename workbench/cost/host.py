"""Host time on another host: a factor a kind of host work, from the figures of both hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.hardware.host import KINDS, RECORDED, WORK, HostSpec

UNKNOWN = {"interpreter": 0.2, "operators": 0.2, "library": 0.2, "compute": 2.0, "launch": 0.5, "copy": 1.0, "call": 0.5}
"""Relative uncertainty [1] of host time on a host nothing is known of.

Three public programs, each recorded on two machines of other makers, differ by 0.80 to 0.87 (interpreter), 0.82 to 0.96 (operators),
1.09 (library) and 0.78 to 1.24 (launches); operators that compute on few processors' threads differed by 16, which no interval can hold
that is to say anything. The rest are judgements.
"""
FEWEST = 5
"""Pieces of a kind that a recording must have for its time to say something of the host."""
NORMAL = 1.2816
"""Standard deviations of a normal distribution either way that hold 80 %."""
LEAST_SPREAD = 0.1
"""Programs are never taken to scatter less than this about a host's figure [1]: two that agree may do so by chance."""


@dataclass(frozen=True)
class HostFactors:
    """Host time on another host over that recorded, by kind of `workbench.hardware.host.KINDS`, float64 [K] [1]."""

    nominal: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @staticmethod
    def same() -> HostFactors:
        """Return the factors of the recording's own host."""
        one = np.ones(len(KINDS))
        return HostFactors(one, one, one)


def host_factors(source: HostSpec | None, target: HostSpec | None, *, moved: bool) -> HostFactors:
    """Return the factors from one host to another.

    Parameters
    ----------
    source : HostSpec or None
        Host of the recording; None: not known.
    target : HostSpec or None
        Host asked for; None: not known. `workbench.hardware.host.RECORDED`: that of the recording.
    moved : bool
        Whether the host may be another where ``target`` is not stated: a card in another machine comes with its host.

    Returns
    -------
    HostFactors
        ``figure(target) / figure(source)`` where both state a kind, else 1 with the uncertainty `UNKNOWN`; low and high are an 80 %
        interval, in ratio symmetric: f / (1 + s) and f (1 + s), s the larger spread of the two.
    """
    known = {spec.digest for spec in (source, RECORDED) if spec is not None}
    if (target is None and not moved) or (target is not None and target.digest in known):
        return HostFactors.same()
    nominal, spread = np.ones(len(KINDS)), np.array([UNKNOWN[kind] for kind in KINDS])
    for k, kind in enumerate(KINDS):
        here, there = (None if spec is None else spec.figure(kind) for spec in (source, target))
        if source is not None and target is not None and here is not None and there is not None:
            nominal[k] = there / here
            spread[k] = max(spec.spread.get(kind, UNKNOWN[kind]) for spec in (source, target))
    return HostFactors(nominal, nominal / (1.0 + spread), nominal * (1.0 + spread))


@dataclass(frozen=True)
class HostTimes:
    """Host time of a recording by kind, arrays [K]: ``total_s`` [s], ``count``, and ``median_s`` of one piece [s]."""

    total_s: np.ndarray
    count: np.ndarray
    median_s: np.ndarray

    def figure(self, kind: str) -> float:
        """Return what two recordings of one program are compared by [s]: all of a kind of work, the median of a kind of call."""
        return float((self.total_s if kind in WORK else self.median_s)[KINDS.index(kind)])


def host_times(kind: np.ndarray, seconds: np.ndarray) -> HostTimes:
    """Sum host time by kind.

    Parameters
    ----------
    kind : int [N]
        Index into `workbench.hardware.host.KINDS` (-1: no host work).
    seconds : float64 [N] [s]
    """
    each = [seconds[kind == k] for k in range(len(KINDS))]
    median = np.array([float(np.median(part)) if len(part) else np.nan for part in each])
    return HostTimes(np.array([part.sum() for part in each]), np.array([len(part) for part in each]), median)
