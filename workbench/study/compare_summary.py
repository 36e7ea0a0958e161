"""What a person reads first of a comparison: how much slower, and what made it so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from workbench import units
from workbench.study.documents_compare import DifferenceDocument, OperatorPairDocument
from workbench.study.one_step import HOST_PARTS, LAG_PARTS

SAME = 1e-3
"""A change of the step below this is none [1]."""
MOST = 3
SMALL = 0.02
"""Causes below this share of the largest are not named [1]."""
LONG = 60
ROUNDING = 1e-12
"""Differences below this [s] come from adding floats in another order."""


def summary(a_s: float, b_s: float, operators: Sequence[OperatorPairDocument], chain: Sequence[DifferenceDocument]) -> str:
    """Return one sentence on two steps.

    Parameters
    ----------
    a_s, b_s : float
        Step times [s].
    operators : sequence of OperatorPairDocument
        Their effects, and those of ``chain`` on the host and in lags, add up to the change.
    chain : sequence of DifferenceDocument
    """
    named = ", ".join(f"{signed(effect)} {name}" for effect, name in causes(operators, chain))
    return headline(a_s, b_s) + (f", of which {named}" if named and abs(b_s - a_s) >= SAME * a_s else "")


def headline(a_s: float, b_s: float) -> str:
    """Return how two step times [s] compare."""
    change = b_s - a_s
    if a_s <= 0 or abs(change) < SAME * a_s:
        exact = abs(change) < ROUNDING
        return f"B takes as long as A: {time(b_s)} a step" + ("" if exact else f" ({signed(change)})")
    word = "slower" if change > 0 else "faster"
    return f"B is {100 * abs(change) / a_s:.3g} % {word} than A: {time(a_s)} -> {time(b_s)} a step, {signed(change)}"


def causes(operators: Sequence[OperatorPairDocument], chain: Sequence[DifferenceDocument]) -> list[tuple[float, str]]:
    """Return the largest effects on the step [s]: operators by name, the host and lags by what they are."""
    effect: dict[str, float] = defaultdict(float)
    shapes: dict[str, int] = defaultdict(int)
    for row in operators:
        effect[row.label] += row.effect_s
        shapes[row.label] += max(len(side.shapes) for side in (row.a, row.b) if side) if row.effect_s else 0
    found = [(value, _named(name, shapes[name])) for name, value in effect.items()]
    found += [(part.delta_s, part.name) for part in chain if part.name in (*HOST_PARTS, *LAG_PARTS)]
    found.sort(key=lambda item: (-abs(item[0]), item[1]))
    return [item for item in found[:MOST] if abs(item[0]) > max(SMALL * abs(found[0][0]), ROUNDING)]


def _named(name: str, shapes: int) -> str:
    short = name if len(name) <= LONG else f"{name[: LONG - 3]}..."
    return f"{short} ({shapes} shapes)" if shapes > 1 else short


def time(value: float) -> str:
    """Return a time as text with four digits."""
    return units.format(value, "s", 4)


def signed(value: float) -> str:
    """Return a change of time as text with its sign."""
    return "0" if abs(value) < ROUNDING else f"{'+' if value > 0 else '-'}{units.format(abs(value), 's', 4)}"
