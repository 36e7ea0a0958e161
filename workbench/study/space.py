"""A parameter space: axes, formulas and constraints, sized before anything is laid out, read cell by cell."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from workbench import units
from workbench.errors import Refused, WorkbenchError
from workbench.hardware.npu import NpuSpec
from workbench.study.axes import Axis, Column, Formula, as_numbers, field_of, full_path, make_axis
from workbench.study.scenario import Scenario

Axes = Mapping[str, object]
Constraints = Mapping[str, Callable[..., object]]
BYTES = 8  # of one float64
LEAST = 100
"""Numbers kept or made for a cell of even the smallest recording: results, shares, the card itself."""


@dataclass(frozen=True)
class Rule:
    """A user's function of fields: a formula (``name`` is the path it sets) or a constraint (``name`` is its reason)."""

    name: str
    function: Formula
    paths: Mapping[str, str]  # parameter -> path
    unit: str = ""

    def __call__(self, known: Mapping[str, object]) -> object:
        """Evaluate with the SI values in ``known``; whatever a user's function raises becomes a refusal."""
        try:
            return self.function(**{name: known[path] for name, path in self.paths.items()})
        except WorkbenchError:
            raise
        except Exception as fault:
            raise Refused(self.name, f"the formula fails: {type(fault).__name__}: {fault}", "mend the formula") from None


def sizes(axes: Axes) -> dict[str, int]:
    """Return the number of points of every axis by name, without making any value."""
    if not isinstance(axes, Mapping) or not all(isinstance(name, str) for name in axes):
        raise Refused("axes", f"{axes!r} does not name fields", "write e.g. {'npu.cores': [16, 32]}")
    out = {}
    for name, given in axes.items():
        if callable(given):
            continue
        if isinstance(given, str) or not hasattr(given, "__len__"):
            raise Refused(name, f"{given!r} is not an axis", "give a list, linspace(...), logspace(...), tied({...}) or a formula")
        out[name] = len(given)
    if not out:
        raise Refused("axes", "no axis to sweep", "name at least one field and its values")
    return out


def check_size(counts: Mapping[str, int], operators: int, budget: float, kind: str = "operators") -> int:
    """Return the number of cells, or refuse a space whose operator times exceed the budget.

    Parameters
    ----------
    counts : mapping
        Points by axis, see `sizes`.
    operators : int
        Unique operators priced in every cell.
    budget : float
        Most bytes [B] of float64 operator times (cells x operators x 8; at least 100 numbers a cell are counted).
    kind : str
        What is counted a cell, in words.

    Raises
    ------
    Refused
        Names cells, bytes and the axis to thin.
    """
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not budget >= 0:
        raise Refused("budget", f"{budget!r} is not a number of bytes", 'give e.g. "2 GB"')
    cells = math.prod(counts.values())
    numbers = max(operators, LEAST)
    needed = cells * numbers * BYTES
    if needed <= budget:
        return cells
    name, points = max(counts.items(), key=lambda item: item[1])
    keep = int(points * budget / needed)
    if keep >= 2:
        fix = f"thin {name} from {points} to {keep} points"
    else:
        each = int((budget / (BYTES * numbers)) ** (1 / len(counts)))
        fix = f"thin {name} ({points} points) and the others to about {max(each, 1)} points each"
    size, limit = (units.format(float(n), "B/s", 3).removesuffix("/s") for n in (needed, budget))  # decimal prefixes
    kind = kind if operators >= LEAST else "numbers"
    what = f"{_grouped(cells)} cells x {_grouped(numbers)} {kind} = {size} of float64, above the budget of {limit}"
    raise Refused("sweep", what, f"{fix}, or raise the budget")


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


@dataclass(frozen=True)
class Space:
    """All cells of a sweep in C order of its axes. Made by `lay_out`."""

    scenario: Scenario
    axes: tuple[Axis, ...]
    formulas: tuple[Rule, ...]
    constraints: tuple[Rule, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Points of every axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def dims(self) -> tuple[str, ...]:
        """Name of every axis."""
        return tuple(axis.dim for axis in self.axes)

    @cached_property
    def _columns(self) -> tuple[tuple[int, Column], ...]:
        """Columns with their axis; whole things (a card) before fields of things (its bandwidth)."""
        found = [(i, column) for i, axis in enumerate(self.axes) for column in axis.columns]
        return tuple(sorted(found, key=lambda item: "." in item[1].path))

    def changes(self, cell: int) -> dict[str, object]:
        """Return the field values of one cell by path, quantities in SI units.

        Raises
        ------
        Refused
            When a constraint does not hold or a formula fails.
        """
        index = np.unravel_index(cell, self.shape)
        out = {column.path: column.values[index[i]] for i, column in self._columns}
        if not self.formulas and not self.constraints:
            return out
        known = self.known(cell)
        for rule in self.formulas:
            out[rule.name] = known[rule.name]
        for rule in self.constraints:
            if not rule(known):
                raise Refused("constraint", rule.name, "outside the asked space")
        return out

    def known(self, cell: int) -> dict[str, object]:
        """Return the SI values every formula and constraint may use in one cell, formulas evaluated in order."""
        index = np.unravel_index(cell, self.shape)
        known: dict[str, object] = {}
        card = next((column.values[index[i]] for i, column in self._columns if column.path == "npu"), self.scenario.npu)
        if isinstance(card, NpuSpec):
            needed = {path for rule in (*self.formulas, *self.constraints) for path in rule.paths.values() if path.startswith("npu.")}
            known |= {path: card.get(path.removeprefix("npu.")) for path in needed}
        known |= {column.path: column.values[index[i]] for i, column in self._columns}
        for rule in self.formulas:
            known[rule.name] = as_numbers([rule(known)], rule.unit, rule.name)[0]
        return known


def lay_out(scenario: Scenario, axes: Axes, constraints: Constraints | None = None) -> Space:
    """Resolve axes, formulas and constraints against a scenario."""
    cards = make_axis("npu", axes["npu"], None).columns[0].values if "npu" in axes else (scenario.npu,)
    card = cards[0] if isinstance(cards[0], NpuSpec) else None
    made = tuple(make_axis(name, given, card) for name, given in axes.items() if not callable(given))
    functions = [(path, f) for axis in made for path, f in axis.formulas]
    functions += [(full_path(name), cast("Formula", given)) for name, given in axes.items() if callable(given)]
    swept = [column.path for axis in made for column in axis.columns] + [path for path, _ in functions]
    twice = next((path for path in swept if swept.count(path) > 1), None)
    if twice is not None:
        raise Refused(twice, "the field is on two axes", "give every field once, or tie the axes")
    fields = [f"npu.{field.path}" for field in card.fields()] if card else []
    rules = []
    for path, function in functions:
        field = field_of(path, card)
        others = [other for other in swept if other != path]
        rules.append(Rule(path, function, _parameters(path, function, others, fields), field.unit if field else ""))
    limits = tuple(Rule(text, f, _parameters(text, f, swept, fields)) for text, f in (constraints or {}).items())
    return Space(scenario, made, tuple(rules), limits)


def _parameters(name: str, function: Formula, first: list[str], second: list[str]) -> dict[str, str]:
    """Match the parameters of a user's function to paths by their last parts: ``rows``, ``matrix_rows``, ``npu_matrix_rows``."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise Refused(name, "the function does not say its parameters", "give a lambda or a function with named parameters") from None
    out = {}
    for parameter in parameters:
        matches = [path for path in first if _named(path, parameter)] or [path for path in second if _named(path, parameter)]
        if len(matches) != 1:
            what = "names no field" if not matches else f"could be any of {', '.join(matches[:4])}"
            raise Refused(name, f"the parameter {parameter!r} {what}", "use the last parts of one path, e.g. rows or hbm_bandwidth")
        out[parameter] = matches[0]
    return out


def _named(path: str, parameter: str) -> bool:
    flat = path.replace(".", "_")
    return flat == parameter or flat.endswith("_" + parameter)
