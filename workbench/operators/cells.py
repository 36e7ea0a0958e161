"""Texts of table cells -> numbers, times and shapes, in the spellings vendors and profilers use.

A sheet writes decimals with a point or with a comma; `decimal_mark` finds out which, or says that it cannot be told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache

from workbench.errors import InvalidSpec

MISSING = frozenset(
    ("", "n/a", "na", "n.a.", "n.a", "nan", "-", "--", "---", "\u2013", "\u2014", "/", "none", "null", "nil", "tbd", "todo", "?",
     "oom", "fail", "failed", "error", "timeout", "unsupported", "not supported", "skipped", "unknown", "undefined", "#n/a",
     "#div/0!", "#ref!", "#value!", "#name?", "#num!", "#null!", "\u65e0", "\u4e0d\u652f\u6301", "\u672a\u6d4b")
)  # fmt: skip
"""Texts (small letters) of a cell that holds nothing."""
MOST, MOST_SMALL = 2**53, 2**31  # exact in a float; products of two small ones in an int64 (pairs of attention)
UNITS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "usec": 1e-6, "usecs": 1e-6, "microsecond": 1e-6,
         "microseconds": 1e-6, "nsec": 1e-9, "nanosecond": 1e-9, "nanoseconds": 1e-9, "ms": 1e-3, "msec": 1e-3, "msecs": 1e-3,
         "millisecond": 1e-3, "milliseconds": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
         "\u7eb3\u79d2": 1e-9, "\u5fae\u79d2": 1e-6, "\u6beb\u79d2": 1e-3, "\u79d2": 1.0}  # fmt: skip
"""Spellings of units of time (small letters) and what they are in seconds."""
_SPACES = re.compile("(?<=\\d)[ \u00a0\u202f\u2009'\u2019_](?=\\d{3}(?:\\D|\\Z))")
_AMOUNT = re.compile(r"([+-]?(?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d+)?)\s*([^\W\d]\w*)?\Z")
_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+,\d+|0,\d+|\d+,(?:\d{1,2}|\d{4,})|\d{4,},\d+)(?:[eE][+-]?\d+)?\Z")
_POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+\.\d*|\d{1,3}(?:,\d{3}){2,}|0\.\d+|\d*\.(?:\d{1,2}|\d{4,})|\d{4,}\.\d+)(?:[eE][+-]?\d+)?\Z")
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}\Z")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?\Z")
_GROUPED_COMMA = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+(?:,\d*)?\Z")


def missing(text: str) -> bool:
    """Whether a cell holds nothing: empty, N/A, a dash, an error of a spreadsheet."""
    return not text or (not ("0" <= text[0] <= "9") and text.strip().lower() in MISSING)


def decimal_mark(texts: Iterable[str]) -> str:
    """Return how numbers of a sheet write decimals: ``"."``, ``","``, or ``"?"`` where both readings are possible.

    Parameters
    ----------
    texts : iterable of str
        Cells of columns that hold numbers (no shapes).
    """
    comma = point = either = False
    for text in set(texts):
        if comma and point:
            break
        if "," not in text and (point or "." not in text):
            continue
        plain = _plain(text)
        comma |= bool(_COMMA.match(plain))
        point |= bool(_POINT.match(plain))
        either |= bool(_EITHER.match(plain))
    if comma and not point:
        return ","
    return "?" if (comma and point) or (either and not point) else "."


def _plain(text: str) -> str:
    found = _AMOUNT.match(_SPACES.sub("", text.strip()))
    return found.group(1) if found else ""


def number(text: str, where: str, mark: str = ".") -> float:
    """Read a number.

    Parameters
    ----------
    text : str
        Thousands may be grouped by spaces, apostrophes, or the mark that is not the decimal one.
    where : str
        Place, for the error.
    mark : str
        What `decimal_mark` returns.

    Raises
    ------
    InvalidSpec
        No number, or one with two readings.
    """
    plain = _SPACES.sub("", text.strip())
    if mark == "?" and "," in plain:
        raise InvalidSpec(where, f"{text!r} may be a decimal comma or a thousands separator", "write decimals with a point")
    if mark == ",":
        if _GROUPED_COMMA.match(plain) or plain.count(",") == 1:
            plain = plain.replace(".", "").replace(",", ".")
    elif _GROUPED.match(plain):
        plain = plain.replace(",", "")
    try:
        return float(plain.replace("_", "?"))  # Python's own "1_0" is no number here
    except ValueError:
        raise InvalidSpec(where, f"{text!r} is not a number", "write a decimal number, or N/A") from None


def amount(text: str, where: str, mark: str = ".") -> tuple[float, str]:
    """Read a number that may carry a unit, ``"5.5 us"`` -> (5.5, "us").

    Raises
    ------
    InvalidSpec
        No number, or one with two readings.
    """
    if text.isascii() and text.isdecimal():
        return float(text), ""
    found = _AMOUNT.match(_SPACES.sub("", text.strip()))
    if found and found.group(2):
        return number(found.group(1), where, mark), found.group(2)
    return number(text, where, mark), ""


def whole(text: str, where: str, most: int = MOST, mark: str = ".") -> int:
    """Read a count; as it must be whole, ``4,096`` and ``4.096`` (with decimal commas) are 4096.

    Raises
    ------
    InvalidSpec
        Not a whole number of 0 or more, or one beyond ``most``.
    """
    if len(text) < 16 and text.isascii() and text.isdecimal() and int(text) <= most:
        return int(text)
    plain = text if text.isdecimal() else _SPACES.sub("", text.strip())
    if mark == "?":
        mark = "."
    value = float(plain.replace(".", "")) if mark == "," and _GROUPED_COMMA.match(plain) else number(plain, where, mark)
    if not math.isfinite(value) or value != int(value) or not 0 <= value <= most:
        raise InvalidSpec(where, f"{text!r} is not a count", f"write a whole number of at most {most}")
    return int(value)


Shape = tuple[int, ...]
_BRACKETS = re.compile(r"[\[({]([^\[\](){}]*)[\])}]")
_MNK = re.compile(r"(?:\A|[\s,;_xX*/|]|(?<=\d))([BGMNK])\s*[=:]?\s*(\d+)(?![\d.])", re.IGNORECASE)
_TYPE = re.compile(r"(?:[a-z]+\d*\w*)(?=\[)", re.IGNORECASE)
_LAYOUT = re.compile(r"\](?:\{[\d,:TS()\s]*\})")
LARGEST = 2**50  # elements; a larger shape is damage


def named_extents(text: str) -> dict[str, int]:
    """Read ``M128N3072K768``, ``m=128, n=3072, k=768`` or ``B12_M64_N64_K64`` as extents by small letter; {} where it is none."""
    found = [(name.lower(), int(extent)) for name, extent in _MNK.findall(text.strip())]
    names = [name for name, _ in found]
    rest = _MNK.sub("", text.strip())
    complete = {"m", "n", "k"} <= set(names) and len(set(names)) == len(names) and not re.search(r"[\w.]", rest)
    return dict(found) if complete and all(extent <= MOST_SMALL for _, extent in found) else {}


def shapes(text: str) -> list[Shape]:
    """Read a list of shapes; an empty one, or one that is no list of counts, is ().

    ``"1,128,768;768,3072"``, ``"[1x128x768]"``, ``"[[1, 128], [128, 64]]"``, ``"(1,128)(128,64)"``, ``"1*128 @ 128*64"`` and
    ``"bf16[1,128]{1,0}"`` are understood.
    """
    return list(_shapes(text))


@lru_cache(4096)
def _shapes(text: str) -> tuple[Shape, ...]:
    plain = _TYPE.sub("", _LAYOUT.sub("]", text.strip().strip("\"'").strip()))
    inner = _BRACKETS.findall(plain)
    if not inner:
        inner = re.split(r"[;@|]|\s/\s|\s\s+|\)\s*x\s*\(", plain.strip("[](){} "))
        if len(inner) == 1 and "," in plain and re.search(r"\d\s*[xX\u00d7*]\s*\d", plain):  # 1x128, 128x64: commas between shapes
            inner = plain.split(",")
    elif len(inner) == 1 and ";" in inner[0]:
        inner = inner[0].split(";")
    return tuple(_shape(part) for part in inner)


def _shape(text: str) -> Shape:
    parts = [part for part in re.split(r"[,xX\u00d7*\s]+", text.strip().strip("\"'")) if part]
    if not parts or not all(part.isascii() and part.isdecimal() and len(part) < 16 for part in parts):
        return ()
    found = tuple(map(int, parts))
    return found if math.prod(found) <= LARGEST and max(found) <= MOST else ()
