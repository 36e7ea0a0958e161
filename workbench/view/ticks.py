"""Axis ticks with an SI prefix and the unit behind every number."""

from __future__ import annotations

from bokeh.models import CustomJSTickFormatter

_TICKS = """
const v = tick, a = Math.abs(v); if (a === 0) return "0";
for (const [s, p] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]])
  if (a >= s * 0.9999999) return `${Number((v / s).toPrecision(3))} ${p}${unit}`.trim();
return String(v);
"""


def si_ticks(unit: str) -> CustomJSTickFormatter:
    """Return a formatter that writes e.g. ``3.2 TB/s`` for 3.2e12 with the unit ``B/s``."""
    return CustomJSTickFormatter(code=_TICKS, args={"unit": unit})
