"""Axes of a parameter space: any field of a scenario, spaced, listed or tied, always made by the same exact arithmetic.

One function makes every number (`exact`), so two axes over "the same" values are equal to the last bit and join exactly.
Nothing is laid out before it is asked for: an axis knows its length without holding its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from workbench.errors import Refused
from workbench.hardware.npu import Field, NpuSpec, load_npu
from workbench.hardware.schema import entry_of
from workbench.study.scenario import FIELDS
from workbench.study.values import PLAIN, Number, exact, number
from workbench.study.workload import Workload
from workbench.trace.trace import Trace

Formula = Callable[..., object]
MOST_POINTS = 10**15  # more than any budget holds, few enough to count
AXES = ("npu", "vendor", "host_factor", "anchored", "workload")
"""Fields of a scenario that may be an axis as a whole."""


class AxisClass(StrEnum):
    """What a change along an axis costs."""

    TIME = "time"  # re-prices operators and messages on the same graph
    GRAPH = "graph"  # rebuilds the graph (parallel plan, schedule, fusion)
    WORKLOAD = "workload"  # another recording or shape


@dataclass(frozen=True)
class Spaced:
    """``num`` values from ``start`` to ``stop``, both included, evenly or (``log``) by a constant factor."""

    start: Number | str
    stop: Number | str
    num: int
    log: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.num, bool) or not isinstance(self.num, int | np.integer) or self.num < 1:
            raise Refused("axis", f"{self.num!r} points", "give a whole number of points, 1 or more")
        if self.num > MOST_POINTS:
            raise Refused("axis", "too many points", f"give at most {MOST_POINTS:.0e} points")

    def __len__(self) -> int:
        return int(self.num)

    def values(self, unit: str, where: str) -> list[float]:
        """Return the values in SI [unit]; see `exact`."""
        low, high = number(self.start, unit, where), number(self.stop, unit, where)
        if self.num == 1:
            return [low]
        if self.log:
            if low <= 0 or high <= 0:
                raise Refused(where, f"a logarithmic axis from {self.start} to {self.stop}", "use limits above 0, or linspace")
            return [low, *(exact(low * (high / low) ** (i / (self.num - 1))) for i in range(1, self.num - 1)), high]
        first, last = Fraction(repr(low)), Fraction(repr(high))
        return [exact(float(first + (last - first) * i / (self.num - 1))) for i in range(self.num)]


def linspace(start: Number | str, stop: Number | str, num: int) -> Spaced:
    """Return an axis of evenly spaced values, limits included.

    Parameters
    ----------
    start, stop : number or str
        Quantity text such as ``"0.8 TB/s"``, or a number in SI units.
    num : int
        Number of points.

    Returns
    -------
    Spaced
        Its length is known at once; its values are made when a sweep knows the field's unit.

    Examples
    --------
    >>> linspace("0.1 TB/s", "0.3 TB/s", 3).values("B/s", "axis")
    [100000000000.0, 200000000000.0, 300000000000.0]
    """
    return Spaced(start, stop, num)


def logspace(start: Number | str, stop: Number | str, num: int) -> Spaced:
    """Return an axis whose neighbours differ by a constant factor, limits included.

    Parameters
    ----------
    start, stop : number or str
        As for `linspace`; above 0.
    num : int
        Number of points.

    Returns
    -------
    Spaced
    """
    return Spaced(start, stop, num, log=True)


@dataclass(frozen=True)
class Tied:
    """Fields that move together along one dimension; a formula computes one field from the others, point by point."""

    columns: Mapping[str, Sequence[object] | Spaced | Formula]

    def __len__(self) -> int:
        return len(next(c for c in self.columns.values() if not callable(c)))


def tied(columns: Mapping[str, Sequence[object] | Spaced | Formula]) -> Tied:
    """Tie fields to one axis.

    Parameters
    ----------
    columns : mapping of dotted path to values or formula
        Values of equal length, or a function of other columns named by the last part of their path; it takes and
        returns SI values. Functions may also name any other field of the card.

    Returns
    -------
    Tied

    Raises
    ------
    Refused
        When lengths differ or nothing but formulas is given.

    Examples
    --------
    >>> iso_area = tied({"npu.matrix.rows": [8, 16, 32], "npu.cores": lambda rows: round(65536 / rows**2)})
    """
    if not isinstance(columns, Mapping) or any(not (callable(v) or hasattr(v, "__len__")) or isinstance(v, str) for v in columns.values()):
        raise Refused("tied axis", f"{columns!r} does not give every field its values", "write e.g. tied({'npu.matrix.rows': [8, 16]})")
    sizes = {path: len(values) for path, values in columns.items() if not callable(values)}
    if not sizes or len(set(sizes.values())) > 1:
        listed = ", ".join(f"{path}: {n}" for path, n in sizes.items()) or "only formulas"
        raise Refused("tied axis", f"tied fields need equally many values ({listed})", "give every tied field the same number of values")
    return Tied(dict(columns))


@dataclass(frozen=True)
class Column:
    """The values of one field along an axis.

    ``values`` are SI numbers, names or objects, ``labels`` what coordinates show.
    """

    path: str
    unit: str
    kind: AxisClass
    values: tuple[object, ...]
    labels: tuple[Number | str | bool, ...]

    def __post_init__(self) -> None:
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for i, label in enumerate(self.labels) if label in self.labels[:i])
            raise Refused(self.path, f"{twice!r} is on the axis twice", "give every value once")


@dataclass(frozen=True)
class Axis:
    """One dimension of the space."""

    dim: str
    columns: tuple[Column, ...]
    formulas: tuple[tuple[str, Formula], ...] = ()

    def __len__(self) -> int:
        return len(self.columns[0].values)


def full_path(path: str) -> str:
    """Return the path with its head: ``memory.hbm.size`` is short for ``npu.memory.hbm.size``."""
    path = path.strip()
    return path if path.partition(".")[0] in (*FIELDS, "workload") else f"npu.{path}"


def make_axis(dim: str, given: object, card: NpuSpec | None) -> Axis:
    """Resolve one entry of the ``axes`` of a sweep: units, exact values, labels.

    Parameters
    ----------
    dim : str
        Key of the entry: a path, or any name for a tied axis.
    given : sequence, Spaced or Tied
        Its values.
    card : NpuSpec or None
        The card whose fields give units.
    """
    if not isinstance(given, Tied):
        column = _column(full_path(dim), given, card)
        return Axis(column.path, (column,))
    columns = tuple(_column(full_path(path), values, card) for path, values in given.columns.items() if not callable(values))
    formulas = tuple((full_path(path), values) for path, values in given.columns.items() if callable(values))
    return Axis(full_path(dim) if full_path(dim) in {c.path for c in columns} else dim, columns, formulas)


def field_of(path: str, card: NpuSpec | None) -> Field | None:
    """Return the numeric card field a path names (None: a field of the scenario, or not a number).

    Raises
    ------
    Refused
        When there is no such field.
    """
    head, _, tail = path.partition(".")
    if not tail and head in AXES:
        return None
    if head != "npu":
        raise Refused(path, "no axis", f"use {', '.join(AXES)} or a field of the card, npu.<path>")
    if card is None:
        raise Refused(path, "no card to take this field from", "choose a card first (npu)")
    found = {field.path: field for field in card.fields()}
    if tail not in found and entry_of(tail) is None:
        card.get(tail)  # raises with the nearest known path
    return found.get(tail)


def as_numbers(given: Sequence[object] | Spaced | np.ndarray, unit: str, where: str) -> list[Number]:
    """Return exact SI values; whole numbers of fields without a unit as int."""
    raw = given.values(unit, where) if isinstance(given, Spaced) else [number(value, unit, where) for value in given]
    return [int(v) if unit in PLAIN and v.is_integer() else v for v in raw]


def _column(path: str, given: object, card: NpuSpec | None) -> Column:
    if isinstance(given, str) or not isinstance(given, Sequence | Spaced | np.ndarray):
        raise Refused(path, f"{given!r} is not an axis", "give a list, linspace(...), logspace(...), tied({...}) or a formula")
    if not len(given):
        raise Refused(path, "an axis without values", "give at least one value")
    field = field_of(path, card)
    if path == "host_factor" or field is not None:
        unit = field.unit if field else "1"
        numbers = tuple(as_numbers(given, unit, path))
        if path == "host_factor" and min(numbers) < 0:
            raise Refused(path, f"{min(numbers)} is negative", "give factors of 0 or more")
        return Column(path, unit, AxisClass.TIME, numbers, numbers)
    if isinstance(given, Spaced):
        raise Refused(path, "this field is not a number", "list its values")
    values = tuple(_thing(path, value) for value in given)
    kind = AxisClass.WORKLOAD if path == "workload" else AxisClass.TIME
    return Column(path, "", kind, values, tuple(_label(value) for value in values))


def _thing(path: str, value: object) -> object:
    """Return the object a categorical axis stands for: a card by name, a recording as a workload, anything else as it is."""
    if path == "npu" and not isinstance(value, NpuSpec):
        return load_npu(str(value))
    if path == "workload":
        if not isinstance(value, Trace | Workload):
            raise Refused(path, f"{value!r} is not a recording", "give traces from open_trace")
        return Workload(value) if isinstance(value, Trace) else value
    return value


def _label(value: object) -> str | bool:
    if isinstance(value, bool):
        return value
    return str(getattr(value, "name", None) or getattr(value, "path", None) or value)
