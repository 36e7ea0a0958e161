"""Cards laid out along axes: one card, a list of cards, axes over a base card, or an xarray space of spec values."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import xarray as xr

from workbench import units
from workbench.errors import Refused
from workbench.hardware.npu import NpuSpec, load_npu
from workbench.hardware.schema import entry_of
from workbench.study.axes import as_numbers, field_of, full_path
from workbench.study.dataset import axis_coordinates
from workbench.study.scenario import Scenario
from workbench.study.space import Axes, Constraints, lay_out
from workbench.study.values import PLAIN


@dataclass(frozen=True)
class CardSpace:
    """Cells in C order of ``dims``; ``changes`` gives what a cell changes of ``base`` by path (``npu`` a whole card), SI values."""

    base: NpuSpec | None
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: Mapping[Hashable, Any]
    changes: Callable[[int], dict[str, object]]

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def card(self, cell: int, made: dict[tuple[object, ...], NpuSpec]) -> NpuSpec:
        """Return the card of a cell; equal cards are made once (``made``).

        Raises
        ------
        WorkbenchError
            A constraint does not hold, a formula fails, or the card contradicts itself.
        """
        changes = self.changes(cell)
        base = cast("NpuSpec", changes.pop("npu", self.base))
        fields = {path.removeprefix("npu."): value for path, value in changes.items()}
        if not fields:
            return base
        key = (id(base), repr(list(fields.values())))
        if key not in made:
            made[key] = base.with_si(fields)
        return made[key]


@dataclass(frozen=True)
class _Base:
    """What `lay_out` reads of a scenario."""

    npu: NpuSpec | None


def card_space(npu: object, axes: object, constraints: Constraints | None) -> CardSpace:
    """Lay out what a caller names: see `workbench.study.estimates.estimate`.

    Raises
    ------
    Refused, InvalidSpec
        No card, an axis that is not of the card, or one that does not hold.
    """
    if isinstance(npu, Mapping | xr.Dataset | xr.DataArray) and axes is None:
        npu, axes = None, npu
    if isinstance(npu, Sequence) and not isinstance(npu, str):
        if axes is not None:
            raise Refused("npu", "several cards and axes", 'name the cards on an axis: {"npu": [...], ...}')
        return _named({"npu": list(npu)}, None, constraints)
    base = None if npu is None else npu if isinstance(npu, NpuSpec) else load_npu(cast("str", npu))
    if axes is None:
        return CardSpace(base, (), (), {}, lambda _: {})
    if isinstance(axes, xr.Dataset | xr.DataArray):
        if constraints:
            raise Refused("constraints", "constraints need named axes", "drop the cells from the xarray space instead")
        return _labelled(_as_dataset(axes), base)
    return _named(cast("Axes", axes), base, constraints)


def _named(axes: Axes, base: NpuSpec | None, constraints: Constraints | None) -> CardSpace:
    """Lay out axes as a sweep does."""
    if not isinstance(axes, Mapping):
        raise Refused("axes", f"{axes!r} does not name fields", "write e.g. {'npu.cores': [16, 32]}, or give an xarray space")
    if base is None and "npu" not in axes:
        raise Refused("npu", "axes without a card to change", 'name the card, or give an axis "npu"')
    space = lay_out(cast("Scenario", _Base(base)), axes, constraints)
    paths = [column.path for axis in space.axes for column in axis.columns] + [rule.name for rule in space.formulas]
    other = next((path for path in paths if path != "npu" and not path.startswith("npu.")), None)
    if other is not None:
        raise Refused(other, "no axis of a card", "use npu or a field of the card; sweep varies the rest of a scenario")
    return CardSpace(base, space.dims, space.shape, axis_coordinates(space), space.changes)


def _as_dataset(given: xr.Dataset | xr.DataArray) -> xr.Dataset:
    if isinstance(given, xr.Dataset):
        return given
    return given.coords.to_dataset() if given.name is None else given.to_dataset()


def _labelled(space: xr.Dataset, base: NpuSpec | None) -> CardSpace:
    """Lay out an xarray space: every variable or coordinate that names a field of a card is set by its values, over its dimensions."""
    paths = {name: full_path(str(space[name].attrs.get("path", name))) for name in space.variables}
    labels = {n for n in space.coords if "." not in str(n) and paths[n] != "npu" and entry_of(paths[n].removeprefix("npu.")) is None}
    names = sorted((name for name in space.variables if name not in labels), key=lambda name: paths[name] != "npu")  # cards before fields
    space = space.rename({name: paths[name] for name in names if name in space.dims})
    names = [paths[name] if name not in space.variables else name for name in names]
    dims = tuple(str(dim) for dim in space.sizes)
    shape = tuple(space.sizes[dim] for dim in dims)
    fields: dict[str, tuple[tuple[int, ...], np.ndarray]] = {}
    coords: dict[Hashable, Any] = {name: space[name] for name in labels}
    card = base
    for name in names:
        variable = space[name]
        path = full_path(str(variable.attrs.get("path", name)))
        values, unit = _values(variable, path, card)
        if path == "npu" and card is None:
            card = cast("NpuSpec", values.flat[0])
        fields[path] = tuple(dims.index(str(dim)) for dim in variable.dims), values
        shown = np.array([getattr(v, "name", v) for v in values.ravel()], dtype=object if unit is None else None)
        attributes = {"units": unit or "1", "path": path, "axis_class": "time"}
        coords[path] = (tuple(str(d) for d in variable.dims), shown.reshape(values.shape), attributes)
    if card is None:
        raise Refused("npu", "a space without a card to change", 'name the card, or give a coordinate "npu"')
    for dim, length in zip(dims, shape, strict=True):
        coords.setdefault(dim, (dim, np.arange(length)))

    def changes(cell: int) -> dict[str, object]:
        index = np.unravel_index(cell, shape) if shape else ()
        return {path: values[tuple(index[i] for i in own)] for path, (own, values) in fields.items()}

    return CardSpace(base, dims, shape, coords, changes)


def _values(variable: xr.DataArray, path: str, card: NpuSpec | None) -> tuple[np.ndarray, str | None]:
    """Return the values of a field as SI numbers, names or cards, object array, and the unit (None: not a number)."""
    if path != "npu" and not path.startswith("npu."):
        raise Refused(path, "no axis of a card", "use npu or a field of the card; sweep varies the rest of a scenario")
    raw = variable.values.ravel().tolist()
    out: np.ndarray = np.empty(len(raw), dtype=object)
    if path == "npu":
        out[:] = [value if isinstance(value, NpuSpec) else load_npu(str(value)) for value in raw]
        return out.reshape(variable.shape), None
    field = field_of(path, card)
    if field is None:
        out[:] = raw
        return out.reshape(variable.shape), None
    stated = str(variable.attrs.get("units", ""))
    if stated not in ("", field.unit, *PLAIN):
        raw = [value if isinstance(value, str) else units.parse(f"{value!r} {stated}", field.unit, path) for value in raw]
    out[:] = as_numbers(raw, field.unit, path)
    return out.reshape(variable.shape), field.unit
