"""One arithmetic for every value on an axis: text or number -> exact SI float, and back to text."""

from __future__ import annotations

import math

import numpy as np

from workbench import units
from workbench.errors import Refused

Number = int | float
DIGITS = 14
"""Significant decimal digits an axis value is kept to."""
PLAIN = ("", "1")
"""Units of fields that are counts or ratios: their values are plain numbers."""


def exact(value: float) -> float:
    """Return the value rounded to 14 significant digits; whole numbers below 2**50 are kept as they are.

    ``0.1 * 3`` and ``0.3`` become the same float, so axes made in different ways are equal or clearly different.
    """
    if value.is_integer() and abs(value) < 2**50:
        return value
    return float(f"{value:.{DIGITS - 1}e}")


def written(value: object, unit: str) -> object:
    """Return an SI value the way `Scenario.with_` takes it: exact text for a quantity, else the value itself."""
    if unit in PLAIN or not isinstance(value, int | float):
        return value
    return units.format(value, unit)


def number(value: object, unit: str, where: str) -> float:
    """Return one value in SI units, exactly: text is parsed, a number is taken as SI."""
    if isinstance(value, str):
        found = _plain(value, where) if unit in PLAIN else units.parse(value, unit, where)
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        found = float(value)
    else:
        raise Refused(where, f"{value!r} is not a value of this field", f"give a number or text with a unit ({unit or 'none'})")
    if not math.isfinite(found):
        raise Refused(where, f"{value!r} is not finite", "give a finite value")
    return exact(float(found))


def _plain(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refused(where, f"{text!r} is not a number", "this field has no unit: give a plain number") from None
