"""How slow the slowest of many cards is: one straggler, and compute that differs from card to card and step to step.

A synchronous step waits for the slowest card. Where the compute of a step is normal with mean 1 and a coefficient of variation v on
every card, independently, the slowest of N takes ``1 + v m(N)`` on average, with ``m(N) = integral of 1 - Phi(x)^N - Phi(-x)^N over
x > 0``, the expected largest of N standard normals (David and Nagaraja, Order Statistics, 3rd ed. 2003, equation 3.1.10 and section
3.2): m(2) = 0.5642, m(8) = 1.4236, m(128) = 2.5946, m(1024) = 3.2482. It is an estimate: compute of real cards is skewed, and correlated.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from workbench.errors import Refused

WIDTH, POINTS = 12.0, 4801
MOST = 0.5


def slowest(cards: int, jitter: float, straggler: float = 1.0) -> float:
    """Return the expected compute time of the slowest card, over that of a card on average [1].

    Parameters
    ----------
    cards : int
        Cards that wait for each other, N.
    jitter : float
        Coefficient of variation of a card's compute from step to step, v [1].
    straggler : float
        Compute of one of them over that of the others [1]; its coefficient of variation is the same.

    Returns
    -------
    float
        ``E max(X_1 .. X_{N-1}, f X_N)`` with X normal (1, v): the integral over x of ``1 - Phi((x - 1) / v)^(N - 1) Phi((x - f) / (f v))``.

    Raises
    ------
    Refused
        No card, a jitter outside [0, 0.5], or a factor that is not positive.
    """
    if cards < 1 or not 0 <= jitter <= MOST or not 0 < straggler < math.inf:
        what = f"{cards} cards, jitter {jitter:g}, straggler {straggler:g}"
        raise Refused("jitter", what, f"give at least one card, a jitter from 0 to {MOST:g} and a factor above 0")
    return _slowest(cards, float(jitter), float(straggler))


@lru_cache(maxsize=4096)
def _slowest(cards: int, jitter: float, factor: float) -> float:
    if jitter == 0:
        return factor if cards == 1 else max(1.0, factor)
    low = min(1.0, factor) - WIDTH * jitter * max(1.0, factor)
    high = max(1.0, factor) + WIDTH * jitter * max(1.0, factor)
    x = np.linspace(low, high, POINTS)
    below = _normal((x - 1.0) / jitter) ** (cards - 1) * _normal((x - factor) / (factor * jitter))
    return float(high - np.trapezoid(below, x))


def _normal(x: np.ndarray) -> np.ndarray:
    """Distribution of a standard normal at every x."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in x.tolist()])
