"""Checks of single values and of values against each other. Raises InvalidSpec that names field, fault and remedy."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidSpec, Note
from workbench.hardware.plausible import doubted
from workbench.hardware.schema import ERROR_GROUPS, FALLBACK_DTYPES, Entry

if TYPE_CHECKING:
    from workbench.hardware.spec import NpuSpec

LEAST, MOST = 1e-15, 1e24
"""Smallest and largest figure of a card, in SI units: products and quotients of a few of them stay finite."""
PEAK_TOLERANCE = 0.02  # data sheets round clocks and peaks


def unknown_key(key: str, known: Iterable[str], where: str, what: str) -> InvalidSpec:
    """Return the refusal of an unknown name, with the nearest known one."""
    known = list(known)
    near = [name for name in known if name.endswith(f".{key}")] or _same_place(key, known)
    near = near or difflib.get_close_matches(key, known, 1, 0.5)
    fix = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known[:12])}"
    return InvalidSpec(where, f"{key!r} {what}", fix)


def _same_place(key: str, known: list[str]) -> list[str]:
    """Return the nearest name that begins with the same words as a dotted path: for ``memory.l1.capacity`` a field of L1."""
    place, dot, _ = key.rpartition(".")
    inside = [name for name in known if dot and (name.startswith(f"{place}.") or f".{place}." in name)]
    words = {"capacity": "size", "speed": "bandwidth", "frequency": "clock"}
    meant = [name for name in inside if name.endswith(words.get(key.rpartition(".")[2], "\n"))]
    return meant or difflib.get_close_matches(key, inside, 1, 0.3)


def check_entry(entry: Entry, value: Any, where: str) -> Any:
    """Return a value in its type and limits; quantities are already SI floats.

    Raises
    ------
    InvalidSpec
        Wrong type, out of limits, or not among the choices.
    """
    if entry.type in ("quantity", "float", "int", "table", "share"):
        return _number(entry, _ratio(value) if entry.type == "share" else value, where)
    if entry.type == "intervals":
        return _interval(value, where)
    if entry.type == "bool":
        if not isinstance(value, bool):
            raise InvalidSpec(where, f"{value!r} is neither true nor false", "write true or false")
        return value
    if entry.type == "choice":
        if value not in entry.choices:
            raise unknown_key(str(value), entry.choices, where, f"is not a {entry.label.lower()}")
        return value
    if entry.type in ("ints", "texts"):
        return _listed(entry, value, where)
    if not isinstance(value, str) or not value:
        raise InvalidSpec(where, f"{value!r} is not a text", "write a text")
    return value


def _listed(entry: Entry, value: Any, where: str) -> tuple[Any, ...]:
    if entry.type == "ints":
        if not isinstance(value, list | tuple) or (value and len(value) != 3) or any(type(v) is not int or v < 1 for v in value):
            raise InvalidSpec(where, f"{value!r} is not a list of three counts", "write e.g. [16, 16, 16] for m, n, k")
        return tuple(value)
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple) or any(not isinstance(v, str) for v in value):
        raise InvalidSpec(where, f"{value!r} is not a list of texts", "write a list of quoted texts")
    return tuple(value)


def _interval(value: Any, where: str) -> Any:
    """Return a pair of relative errors, or a mapping of groups to such pairs."""
    if isinstance(value, Mapping):
        return {group: _interval(pair, f"{where}.{group}") for group, pair in value.items()}
    pair = tuple(value) if isinstance(value, list | tuple) else ()
    real = [isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in pair]
    if len(pair) != 2 or not all(real) or not -1.0 < pair[0] <= 0.0 <= pair[1] <= MOST:
        raise InvalidSpec(where, f"{value!r} is not a pair of relative errors around 0", "write e.g. [-0.15, 0.2]")
    return float(pair[0]), float(pair[1])


def _ratio(value: Any) -> Any:
    """Return ``"3/8"`` as 0.375; anything that is no such text as it is."""
    try:
        return float(Fraction(value)) if isinstance(value, str) else value
    except (ValueError, ZeroDivisionError, OverflowError):
        return value


def _number(entry: Entry, value: Any, where: str) -> float | int:
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, str):
        raise InvalidSpec(where, f"{value!r} is not a number", "write a plain number")
    try:
        number = float(value)
    except (OverflowError, ValueError, TypeError):
        number = math.nan
    if number and not LEAST <= abs(number) <= MOST:  # also what is not finite
        raise InvalidSpec(where, f"{number:g} is out of range", f"give 0 or a value between {LEAST:g} and {MOST:g} (in SI units)")
    if number < entry.minimum or (number == entry.minimum and not entry.zero_ok) or number > entry.maximum:
        limit = f"at most {entry.maximum:g} and " if entry.maximum < math.inf else ""
        raise InvalidSpec(
            where, f"{number:g} is out of range", f"give a finite value that is {limit}{'not negative' if entry.zero_ok else 'positive'}"
        )
    if entry.type == "int":
        if number != int(number):
            raise InvalidSpec(where, f"{number:g} is not a whole number", "give a count")
        return int(number)
    return number


def cross_check(spec: NpuSpec, where: Callable[[str], str]) -> tuple[Note, ...]:
    """Check a spec against itself.

    Parameters
    ----------
    spec : NpuSpec
        The spec.
    where : callable
        Names a dotted path to a person (file and line, or card and path).

    Returns
    -------
    tuple of Note
        What is unusual but possible.

    Raises
    ------
    InvalidSpec
        What cannot be: peak against clock and arrays, capacities out of order, levels that do not exist.
    """
    for path, level in (
        *((f"matrix.{key}", getattr(spec.matrix, key)) for key in ("accumulator", "operand_a", "operand_b", "staging")),
        ("vector.buffer", spec.vector.buffer),
        ("vector.exchange", spec.vector.exchange),
    ):
        if level is not None and level not in spec.memory:
            raise unknown_key(level, spec.memory, where(path), "is not a memory level of this card")
    _check_peak(spec, where)
    for dtype, factor in spec.matrix.sparse.items():
        if dtype not in spec.matrix.rate or factor < 1.0:
            what = f"a factor for {dtype}, but no rate" if dtype not in spec.matrix.rate else f"{factor:g} would slow sparse products down"
            raise InvalidSpec(where(f"matrix.sparse.{dtype}"), what, "state factors of at least 1, for dtypes that have a rate")
    _check_realities(spec, where)
    if (spec.power.sustained_clock or 0.0) > spec.clock:
        raise InvalidSpec(
            where("power.sustained_clock"),
            "above the clock, of which it is what power leaves",
            "raise the clock, or lower the sustained one",
        )
    if (spec.power.idle or 0.0) >= (spec.power.tdp or float("inf")):
        raise InvalidSpec(where("power.idle"), "no less than the TDP, which it is a part of", "lower the idle power, or raise the TDP")
    for name, part in spec.partitions.items():
        if part.cores > spec.cores:
            raise InvalidSpec(
                where(f"partitions.{name}.cores"), f"{part.cores} cores, but the card has {spec.cores}", "give the cores of one partition"
            )
    names = list(spec.memory)
    outer = names[-1]
    if spec.memory[outer].bandwidth is None:
        raise InvalidSpec(where(f"memory.{outer}"), "the outermost memory has no bandwidth", 'add e.g. bandwidth: "1.6 TB/s"')
    if spec.memory[outer].scope != "chip":
        raise InvalidSpec(
            where(f"memory.{outer}.scope"),
            "the outermost memory must belong to the chip",
            "write scope: chip, or add the outer memory last",
        )
    return (*_check_order(spec, names, where), *doubted(spec, where))


def _check_realities(spec: NpuSpec, where: Callable[[str], str]) -> None:
    """Check the exchange between matrix and vector cores and what falls back to the control processors."""
    level = spec.vector.exchange
    if level is not None and spec.memory[level].scope != "chip":
        raise InvalidSpec(
            where("vector.exchange"),
            f"{level} belongs to a core, but separate cores meet in a level of the chip",
            "name such a level, or leave exchange out",
        )
    for name in spec.fallback.operators if spec.fallback else ():
        kind, _, dtype = name.rpartition(":")
        if not (kind or name in FALLBACK_DTYPES or name in ERROR_GROUPS) or (kind and kind not in ERROR_GROUPS):
            raise unknown_key(kind or name, (*ERROR_GROUPS, *FALLBACK_DTYPES), where("fallback.operators"), "is neither a kind nor a dtype")
        if kind and dtype not in FALLBACK_DTYPES:
            raise unknown_key(dtype, FALLBACK_DTYPES, where("fallback.operators"), "is not a dtype")


def _check_peak(spec: NpuSpec, where: Callable[[str], str]) -> None:
    for dtype, stated in spec.matrix.peak.items():
        if dtype not in spec.matrix.rate:
            raise InvalidSpec(
                where(f"matrix.peak.{dtype}"), f"a peak for {dtype}, but no rate", f"add {dtype} under matrix.rate, or drop the peak"
            )
        found = spec.unit_peak("matrix", dtype)
        if abs(found - stated) > PEAK_TOLERANCE * stated:
            raise InvalidSpec(
                where(f"matrix.peak.{dtype}"),
                f"stated peak {stated / 1e12:.4g} TFLOP/s, but 2 cores arrays rows cols depth clock rate is {found / 1e12:.4g} TFLOP/s",
                "mend the array, cores, clock or rate (or the peak: dense, not sparse)",
            )


def _instances(spec: NpuSpec, level: str, where: Callable[[str], str]) -> int:
    """Return how many instances of a level inside the chip there are; what a cluster is must be said, and only there."""
    memory = spec.memory[level]
    if (memory.scope == "cluster") != (memory.cores is not None):
        raise InvalidSpec(
            where(f"memory.{level}.cores"),
            f"{level} belongs to a {memory.scope}" + (", whose cores are not stated" if memory.cores is None else ""),
            f"say how many cores share one {level}" if memory.cores is None else "leave cores out, or write scope: cluster",
        )
    return -(-spec.cores // (memory.cores or 1))


def _check_order(spec: NpuSpec, names: list[str], where: Callable[[str], str]) -> tuple[Note, ...]:
    chip = [name for name in names if spec.memory[name].scope == "chip"]
    first = names.index(chip[0])
    inside = [name for name in names[first:] if spec.memory[name].scope != "chip"]
    if inside:
        raise InvalidSpec(
            where(f"memory.{inside[0]}.scope"),
            f"{inside[0]} belongs to a core but stands outside {chip[0]} of the chip",
            "list levels from the core outward",
        )
    notes = []
    for inner, outer in pairwise(chip):
        if spec.memory[inner].size > spec.memory[outer].size:
            raise InvalidSpec(
                where(f"memory.{inner}.size"),
                f"{inner} is larger than {outer} outside it",
                "mend the sizes or the order (from the core outward)",
            )
        if spec.bandwidth(inner) < spec.bandwidth(outer):
            notes.append(
                Note("bandwidth-order", where(f"memory.{inner}.bandwidth"), 1, f"{inner} is slower than {outer} outside it and limits it")
            )
    instances = {name: _instances(spec, name, where) for name in names}
    core_total = sum(spec.memory[name].size * instances[name] for name in names[:first])
    if core_total > spec.memory[names[-1]].size:
        raise InvalidSpec(
            where(f"memory.{names[-1]}.size"),
            f"smaller than all core-local memory together ({core_total / 2**20:.4g} MiB)",
            "mend the sizes",
        )
    return tuple(notes)
