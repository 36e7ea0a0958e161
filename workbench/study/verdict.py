"""Whether hardware counters and the model name the same bound of a kernel, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping

COMPARED = ("matrix", "vector", "local", "transfer", "shared", "memory")
"""Units whose busy fractions the model states; ``transfer`` is the slower of shared level and memory."""
OUTSIDE = ("shared", "memory")
MOVING = ("transfer", *OUTSIDE)
WAITING = "waiting"
IDLE = 0.35  # a kernel none of whose units is busier waits: for launch, latency or other cores
TIE = 0.10  # fractions this close name the same bound
SATURATED = 0.80  # a unit busier than this bounds a kernel, whatever is not counted


def verdict(
    counted: Mapping[str, float | None], model: Mapping[str, float | None], bound: str | None
) -> tuple[str | None, bool | None, float | None, str]:
    """Compare busy fractions by unit.

    Parameters
    ----------
    counted, model : mapping of str to float
        Fractions by unit; ``model`` is empty where no model prices the kernel.
    bound : str or None
        What the model says bounds it: a unit, or "waiting" (launch, latency).

    Returns
    -------
    busiest : str or None
        Unit the counters name; "waiting" where none is busy, None where nothing is counted.
    agree : bool or None
        None: the counters do not cover what the model says.
    difference : float or None
        Largest difference of a fraction both know.
    sentence : str
    """
    fractions = {unit: value for unit, value in counted.items() if value is not None}
    if not fractions:
        return None, None, None, "nothing is counted"
    unit = max(fractions, key=lambda name: fractions[name])
    most = fractions[unit]
    busiest = unit if most >= IDLE else WAITING
    said = f"{unit} busy {most:.2f}" if busiest != WAITING else f"no unit busier than {most:.2f} ({unit})"
    if not model or bound is None:
        return busiest, None, None, f"counters: {said}; no model of it"
    both = [name for name in fractions if model.get(name) is not None]
    difference = max((abs(fractions[name] - (model[name] or 0.0)) for name in both), default=None)
    own = model.get(bound) or 0.0
    agree = _agrees(fractions, model, bound, busiest)
    if agree:
        return busiest, True, difference, f"both say {bound}: model {own:.2f}, counters: {said}"
    tail = f" (model {model[unit]:.2f})" if busiest != WAITING and model.get(unit) is not None else ""
    head = f"model says {bound}-bound {own:.2f}" if bound != WAITING else "model says launch and latency"
    missing = bound if bound in COMPARED and bound not in fractions else "what moves data"
    return busiest, agree, difference, f"{head}; counters: {said}{tail}" + ("" if agree is False else f", {missing} is not counted")


def _agrees(counted: Mapping[str, float], model: Mapping[str, float | None], bound: str, busiest: str) -> bool | None:
    if bound == WAITING or max((model[unit] or 0.0 for unit in COMPARED if unit in model), default=0.0) < IDLE:
        if busiest == WAITING and not any(unit in counted for unit in MOVING):
            return None  # idle arithmetic alone proves no waiting: the kernel may move data
        return busiest in (WAITING, bound) or abs(counted[busiest] - (model.get(busiest) or 0.0)) <= TIE
    proxies = [name for name in ((bound, "transfer") if bound in OUTSIDE else (bound,)) if name in counted]
    if not proxies:
        sure = counted.get(busiest, 0.0) >= SATURATED and (model[bound] or 0.0) - (model.get(busiest) or 0.0) > TIE
        return False if sure else None
    if busiest == WAITING:
        return False
    return any(counted[name] >= counted[busiest] - TIE for name in proxies)
