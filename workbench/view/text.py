"""Numbers as a person reads them: four digits, SI prefix, unit."""

from __future__ import annotations

from math import isfinite

from workbench.units import format as exact


def quantity(value: float, unit: str = "", digits: int = 4) -> str:
    """Return a value with its unit, e.g. ``"1.234 ms"``; a dash where there is none.

    Parameters
    ----------
    value : float
        In ``unit``; any sign.
    unit : str
        SI unit as in `workbench.units`, or empty for a plain number.
    digits : int
        Significant digits.
    """
    if not isfinite(value):
        return "–"
    sign = "−" if value < 0 else ""
    size = abs(float(value))
    if not unit or size == 0:
        number = f"{size:.0f}" if size >= 10**digits else f"{size:.{digits}g}"
        return f"{sign}{number} {unit}".rstrip()
    return sign + exact(size, unit, digits).replace(" u", " µ")


def ratio(before: float, after: float) -> str:
    """Return how many times faster ``after`` is than ``before`` [s], e.g. ``"1.42x"``."""
    return f"{before / after:.2f}x" if after > 0 and isfinite(before / after) else "–"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.1f} %" if isfinite(share) else "–"
