"""Compiled code of power: the clock a power limit leaves an operator, and the energy it takes."""

from __future__ import annotations

import math

from numba import njit


@njit(cache=True, nogil=True)
def clock_share(core, other, clocked, fixed, overhead, watts, floor):
    """Share of the full core clock that a power limit leaves an operator, in ]0, 1]; 1 where the limit is not reached.

    Solves ``core v(x)^2 + other = watts t(x)`` with ``t(x) = overhead + ((clocked / x)^4 + fixed^4)^(1/4)`` and
    ``v(x) = max(x, floor)``: dynamic energy goes with the square of the voltage (Rabaey et al., Digital Integrated Circuits), which
    follows the clock down to a floor (measured on GPUs by Guerreiro et al., HPCA 2018). ``core`` is the energy of what hangs on the
    core's clock and voltage, ``other`` that of the outermost memory [J], both at full clock; ``clocked`` the time that stretches
    with the clock, ``fixed`` what does not [s]; ``watts`` the limit less what is drawn idle. At the solution energy over time is
    ``watts``, so that a faster memory lowers the clock and never lengthens the time: ``t = energy(x) / watts``.
    """
    body = math.sqrt(math.sqrt(clocked**4 + fixed**4))
    if core + other <= watts * (overhead + body) or clocked <= 0.0:
        return 1.0
    low, high, x = 0.0, 1.0, 1.0
    for _ in range(60):
        v = max(x, floor)
        stretched = (clocked / x) ** 4
        body = math.sqrt(math.sqrt(stretched + fixed**4))
        excess = core * v * v + other - watts * (overhead + body)
        if excess > 0.0:
            high = x
        else:
            low = x
        slope = watts * stretched / (x * body * body * body) + (2.0 * core * x if x > floor else 0.0)
        following = x - excess / slope
        if following <= low or following >= high:
            following = 0.5 * (low + high)
        if abs(following - x) <= 1e-12 * x:
            return following
        x = following
    return x


@njit(cache=True, nogil=True)
def dynamic_joules(work, column, per_work, level, per_byte, core, other):
    """Fill ``core`` and ``other`` [U, S] with the dynamic energy of operators at full clock [J].

    ``work`` [U] operations, ``column`` [U] their column of ``per_work`` [S, C] [J/FLOP], ``level`` [U, S, L] bytes, ``per_byte``
    [S, L] [J/B]. Level 2, the outermost memory, goes to ``other``: it does not hang on the core's voltage.
    """
    for u in range(level.shape[0]):
        for s in range(level.shape[1]):
            total = work[u] * per_work[s, column[u]]
            for slot in range(level.shape[2]):
                if slot != 2 and level[u, s, slot] > 0.0:
                    total += level[u, s, slot] * per_byte[s, slot]
            core[u, s] = total
            other[u, s] = level[u, s, 2] * per_byte[s, 2] if level[u, s, 2] > 0.0 else 0.0


@njit(cache=True, nogil=True)
def throttle(core, other, column, active, watts, floor, seconds, resource, overhead):
    """Lengthen ``seconds`` [U, S] where a power limit lowers the clock, and with them the busy times of what hangs on it.

    ``active`` [S, C] says where the limit acts (``column`` [U] as in `dynamic_joules`), ``watts`` [S] is the limit less idle power.
    Of a time, ``overhead`` [U, S] (launch and fill) stays, and of the fourth-power norm of the rest what is neither the shared level
    nor the outermost memory stretches. ``resource`` [U, S, 8] by `Bound`.
    """
    for u in range(seconds.shape[0]):
        for s in range(seconds.shape[1]):
            t = seconds[u, s]
            if not active[s, column[u]] or not t > 0.0 or not core[u, s] + other[u, s] > watts[s] * t:
                continue
            still = min(overhead[u, s], t)
            fixed = math.sqrt(math.sqrt(resource[u, s, 4] ** 4 + resource[u, s, 5] ** 4))
            clocked = math.sqrt(math.sqrt(max((t - still) ** 4 - fixed**4, 0.0)))
            x = clock_share(core[u, s], other[u, s], clocked, fixed, still, watts[s], floor)
            if x < 1.0:
                seconds[u, s] = still + math.sqrt(math.sqrt((clocked / x) ** 4 + fixed**4))
                for r in range(1, 4):
                    resource[u, s, r] /= x


@njit(cache=True, nogil=True)
def energy(seconds, core, other, idle, watts, out):
    """Fill ``out`` [U, S]: idle power over the whole time, and the dynamic energy, which a power limit caps at ``watts`` [J]."""
    for u in range(seconds.shape[0]):
        for s in range(seconds.shape[1]):
            t = seconds[u, s]
            dynamic = core[u, s] + other[u, s]
            most = watts[s] * t
            out[u, s] = idle[s] * t + (most if dynamic > most else dynamic)
