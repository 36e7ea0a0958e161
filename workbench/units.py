"""Quantities as text with a unit <-> SI floats: the only place where units are text.

``parse("400 Gb/s", "B/s") == 5e10`` and ``format(3.35e12, "B/s") == "3.35 TB/s"``. Prefixes follow the SI (k, M, G, T
are powers of 1000; ``K`` is accepted for k) and IEC 60027 (Ki, Mi, Gi are powers of 1024); B is a byte, b a bit; case matters.
"""

from __future__ import annotations

import difflib
import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from workbench.errors import InvalidSpec

if TYPE_CHECKING:
    import pint

_DEFINITIONS = (
    *(f"{name}- = {value} = {symbol}-" for name, value, symbol in (
        ("pico", "1/1000000000000", "p"), ("nano", "1/1000000000", "n"), ("micro", "1/1000000", "u"), ("milli", "1/1000", "m"),
        ("kilo", "1000", "k"), ("mega", "1000000", "M"), ("giga", "1000000000", "G"), ("tera", "1000000000000", "T"),
        ("peta", "1000000000000000", "P"), ("exa", "1000000000000000000", "E"),
        ("kibi", "1024", "Ki"), ("mebi", "1048576", "Mi"), ("gibi", "1073741824", "Gi"), ("tebi", "1099511627776", "Ti"))),
    "byte = [information] = B",
    "bit = byte / 8 = b",
    "second = [time] = s",
    "hertz = 1 / second = Hz",
    "clk = [cycle]",
    "joule = [energy] = J",
    "watt = joule / second = W",
    "FLOP = [operation]",
    "OP = FLOP",
    "MAC = 2 * FLOP",
)  # fmt: skip
_BASES = ("B", "b", "s", "Hz", "clk", "J", "W", "FLOP", "OP", "MAC")
_PREFIXES = ("", "p", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti")
_NUMBER = re.compile(r"\s*(\+?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*\Z")
MOST_DIGITS = 400  # characters of a number
_DECIMAL = tuple(
    (p, Fraction(10) ** e, 10.0**e) for p, e in zip(("P", "T", "G", "M", "k", "", "m", "u", "n", "p"), range(15, -13, -3), strict=True)
)
_BINARY = tuple((p, Fraction(2) ** e, 2.0**e) for p, e in (("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)))
_ONE = ("", Fraction(1), 1.0)
EXAMPLES = {
    "B/s": "3.35 TB/s",
    "B": "512 KiB",
    "Hz": "1.8 GHz",
    "s": "6 us",
    "W": "400 W",
    "FLOP/s": "312 TFLOP/s",
    "B/clk": "128 B/clk",
    "J": "1 mJ",
    "J/FLOP": "0.6 pJ/FLOP",
    "J/B": "44 pJ/B",
}
"""One good text per SI unit, for error messages and editors."""


@cache
def _registry() -> pint.UnitRegistry:
    import pint  # 0.2 s: only when a quantity is read

    registry: pint.UnitRegistry = pint.UnitRegistry(None, non_int_type=Fraction, case_sensitive=True)
    for line in _DEFINITIONS:
        registry.define(line)
    return registry


@cache
def _symbols() -> dict[str, str]:
    known = {prefix + base: prefix + base for base in _BASES for prefix in _PREFIXES}
    known.update({"K" + base: "k" + base for base in _BASES})  # "512 KB" is common on data sheets
    known.update({s.replace("u", "µ", 1): s for s in known if s.startswith("u")})
    known.update({s.replace("FLOP", "FLOPS"): s + "/s" for s in list(known) if s.endswith("FLOP")})
    known.update({s.replace("OP", "OPS"): s + "/s" for s in list(known) if s.endswith("OP") and "FLOP" not in s})
    return known


@cache
def _factor(text: str, unit: str) -> Fraction | None:
    """Return what one ``text`` is in ``unit`` (None: of another kind), KeyError naming an unknown symbol."""
    known = _symbols()
    expression = "/".join(f"({known[part.strip()]})" for part in text.split("/"))
    registry = _registry()
    quantity = registry.Quantity(Fraction(1), expression)
    target = "/".join(f"({known[part]})" for part in unit.split("/"))
    if quantity.dimensionality != registry.Quantity(Fraction(1), target).dimensionality:
        return None
    return Fraction(quantity.to(target).magnitude)


def parse(text: object, unit: str, where: str = "quantity") -> float:
    """Read a quantity.

    Parameters
    ----------
    text : str
        Number and unit, e.g. ``"3.35 TB/s"``; not negative, decimal point, unit required.
    unit : str
        SI unit of the result: ``"B/s"``, ``"B"``, ``"Hz"``, ``"s"``, ``"W"``, ``"FLOP/s"``, ``"B/clk"``, ``"J"``.
    where : str
        File, line or field for the message.

    Returns
    -------
    float
        The value in ``unit``.

    Raises
    ------
    InvalidSpec
        Bare number, unknown or wrong unit, negative, not finite, comma as decimal mark.
    """
    example = EXAMPLES.get(unit, f"1 {unit}")
    if not isinstance(text, str):
        raise InvalidSpec(where, f"{text!r} is a bare number, its unit is unknown", f'write it with a unit, e.g. "{example}"')
    match = _NUMBER.match(text)
    if match is None:
        raise InvalidSpec(
            where, f"{text!r} is not a quantity", f'write a number that is not negative, with a decimal point, and a unit, e.g. "{example}"'
        )
    number, symbol = match.groups()
    if symbol is None:
        raise InvalidSpec(where, f"{text!r} has no unit", f'write it with a unit, e.g. "{example}"')
    try:
        factor = _factor(symbol, unit)
    except KeyError as missing:
        near = difflib.get_close_matches(str(missing.args[0]), _symbols(), 1, 0.3)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidSpec(
            where, f"unknown unit {symbol!r} in {text!r}{hint}", f'case matters: B byte, b bit, k = 1000, Ki = 1024, e.g. "{example}"'
        ) from None
    if factor is None:
        raise InvalidSpec(where, f"{text!r} is not in a unit of {unit}", f'write e.g. "{example}"')
    plain = float(number) if len(number) <= MOST_DIGITS else math.inf  # exact arithmetic on 1e999999999 would not end
    if not math.isfinite(plain) or (plain == 0 and set(number.lower().partition("e")[0]) & set("123456789")):
        raise InvalidSpec(where, f"{text[:60]!r} is not a number this can hold", f'write e.g. "{example}"')
    try:
        value = float(Fraction(number) * factor) if plain else 0.0
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise InvalidSpec(where, f"{text!r} is not finite", f'write e.g. "{example}"')
    return value


def format(value: float, unit: str, digits: int | None = None) -> str:
    """Write a quantity with the prefix that reads best.

    Parameters
    ----------
    value : float
        In ``unit``, finite and not negative.
    unit : str
        As in `parse`.
    digits : int, optional
        Significant digits; default: as few as make ``parse(format(value))`` return ``value`` exactly.

    Returns
    -------
    str
        E.g. ``"3.35 TB/s"``, ``"512 KiB"``; sizes that come out short in binary prefixes use them, rounded ones where nothing is lost.
    """
    value = float(value)
    prefixes = _DECIMAL
    largest = next((scale for _, _, scale in _BINARY if value >= scale), 0.0)
    short = largest > 0 and digits is not None and float(f"{value / largest:.{digits}g}") * largest == value
    if unit == "B" and (short if digits is not None else any(_reads_well(value, scale) for _, _, scale in _BINARY)):
        prefixes = (*(p for p in _BINARY if _reads_well(value, p[2])), _ONE)
    elif unit.endswith("/clk"):
        prefixes = (_ONE,)
    prefix, size, scale = next((p for p in prefixes if value >= p[2]), prefixes[-1] if value else _ONE)
    if digits is not None:
        mantissa = value / scale
        return f"{mantissa:.{digits}g} {prefix}{unit}" if mantissa < 10**digits else f"{mantissa:.0f} {prefix}{unit}"
    mantissa = float(Fraction(value) / size)
    for precision in range(1, 25):  # the fewest digits that give the same float back
        shown = f"{Decimal(f'{mantissa:.{precision}g}'):f}"
        if float(Fraction(shown) * size) == value:
            return f"{shown} {prefix}{unit}"
    return f"{value!r} {unit}"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number of things as text: ``1 edit``, ``2 edits``, ``0 copies`` (``many``: a plural that is not ``one`` + s)."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _reads_well(value: float, scale: float) -> bool:
    """Whether a size is at least one of a binary prefix and a whole number of its 64ths, e.g. 1.5 MiB."""
    return value >= scale and (value / scale * 64).is_integer()
