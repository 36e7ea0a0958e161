"""The cells of a sweep as flat arrays, and the labelled dataset they become."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from workbench.cost.cost import Bound, Evidence
from workbench.errors import Note, Refused, WorkbenchError
from workbench.study.compare import ACCOUNT
from workbench.study.space import Space
from workbench.study.values import written

VALID = "valid"


@dataclass(eq=False)
class Cells:
    """Results of C cells in C order of the axes; nan where not (yet) valid."""

    shape: tuple[int, ...]
    steps: np.ndarray  # int64 [S], step numbers
    step_time: np.ndarray  # float64 [C] [s]
    low: np.ndarray  # float64 [C] [s]
    high: np.ndarray  # float64 [C] [s]
    energy: np.ndarray  # float64 [C] [J]
    flops_per_joule: np.ndarray  # float64 [C] [FLOP/J]
    step_times: np.ndarray  # float64 [C, S] [s]
    bound_share: np.ndarray  # float64 [C, len(Bound)] [1]
    evidence_share: np.ndarray  # float64 [C, len(Evidence)] [1]
    parts: np.ndarray  # float64 [C, parts] [s]
    reason: np.ndarray  # int32 [C], index into reasons
    reasons: list[str] = field(default_factory=lambda: [VALID])
    _codes: dict[str, int] = field(default_factory=lambda: {VALID: 0})

    @classmethod
    def empty(cls, shape: tuple[int, ...], steps: np.ndarray, parts: int) -> Cells:
        """Return cells without results."""
        count = math.prod(shape)

        def blank(*more: int) -> np.ndarray:
            return np.full((count, *more), np.nan)

        shares = blank(len(Bound)), blank(len(Evidence))
        times, energies = (blank(), blank(), blank()), (blank(), blank())
        reason = np.zeros(count, dtype=np.int32)
        return cls(shape, steps, *times, *energies, blank(len(steps)), *shares, blank(parts), reason)

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.reason)

    def refuse(self, cell: int, fault: WorkbenchError) -> None:
        """Mark a cell invalid: it keeps a reason and no number."""
        text = reason_of(fault)
        if text not in self._codes:
            self._codes[text] = len(self.reasons)
            self.reasons.append(text)
        self.reason[cell] = self._codes[text]
        shares = (self.bound_share, self.evidence_share)
        for values in (self.step_time, self.low, self.high, self.energy, self.flops_per_joule, self.step_times, *shares, self.parts):
            values[cell] = np.nan


def reason_of(fault: WorkbenchError) -> str:
    """Return why a cell is invalid, in one line."""
    return " ".join((fault.what if fault.where == "constraint" else f"{fault.where}: {fault.what}").split())


def to_dataset(space: Space, cells: Cells, base_step_s: float, notes: Sequence[Note]) -> xr.Dataset:
    """Label the cells of a space."""
    dims, shape = space.dims, space.shape

    def laid(values: np.ndarray) -> np.ndarray:
        return values.reshape(*shape, *values.shape[1:])

    def seconds(text: str) -> dict[str, str]:
        return {"units": "s", "long_name": text}

    with np.errstate(divide="ignore"):
        rate = np.where(cells.step_time > 0, 1.0 / cells.step_time, np.nan)
        ahead = np.where(cells.step_time > 0, base_step_s / cells.step_time, np.nan)
    one = {"units": "1"}
    data: dict[Hashable, Any] = {
        "step_time": (dims, laid(cells.step_time), seconds("predicted step time, median of complete steps")),
        "step_time_low": (dims, laid(cells.low), seconds("lower end of the 80 % interval")),
        "step_time_high": (dims, laid(cells.high), seconds("upper end of the 80 % interval")),
        "throughput": (dims, laid(rate), {"units": "1/s", "long_name": "steps per second"}),
        "energy": (dims, laid(cells.energy), {"units": "J", "long_name": "energy of a step"}),
        "flops_per_joule": (dims, laid(cells.flops_per_joule), {"units": "FLOP/J", "long_name": "operations over energy of a step"}),
        "speed_up": (dims, laid(ahead), {**one, "long_name": "base step time over step time"}),
        "bound_share": ((*dims, "bound"), laid(cells.bound_share), {**one, "long_name": "share of operator time by bound"}),
        "evidence_share": ((*dims, "evidence"), laid(cells.evidence_share), {**one, "long_name": "share of operator time by evidence"}),
        "valid": (dims, laid(cells.reason == 0)),
        "reason": (dims, laid(cells.reason), {"long_name": "index into reason_text"}),
    }
    if len(cells.steps):
        data["step_times"] = ((*dims, "step"), laid(cells.step_times), seconds("predicted time of every step"))
    if cells.parts.shape[1]:
        data["part_time"] = ((*dims, "part"), laid(cells.parts), seconds("mean account of a step"))
    attributes = {
        "title": "NPU Workbench parameter space",
        "scenario": space.scenario.digest,
        "recording": space.scenario.workload.path,
        "base_step_time_s": base_step_s,
        "notes": "\n".join(dict.fromkeys(str(note) for note in notes)),
    }
    return xr.Dataset(data, _coordinates(space, cells), attributes)


def _coordinates(space: Space, cells: Cells) -> dict[Hashable, Any]:
    coords: dict[Hashable, Any] = {
        "bound": [bound.name.lower() for bound in Bound],
        "evidence": [evidence.name.lower() for evidence in Evidence],
        "reason_text": ("code", np.array(cells.reasons, dtype=object)),
    }
    if len(cells.steps):
        coords["step"] = ("step", _unrepeated(cells.steps))
    if cells.parts.shape[1]:
        coords["part"] = [name.removesuffix("_s") for name in ACCOUNT]
    return coords | axis_coordinates(space)


def axis_coordinates(space: Space) -> dict[Hashable, Any]:
    """Return the coordinates of a space's axes and formulas, with units and path."""
    coords: dict[Hashable, Any] = {}
    for axis in space.axes:
        for column in axis.columns:
            attributes = {"units": column.unit or "1", "path": column.path, "axis_class": str(column.kind)}
            coords[column.path] = (axis.dim, _array(column.labels), attributes)
        if axis.dim not in coords:
            coords[axis.dim] = (axis.dim, np.arange(len(axis)), {"units": "1", "tied": " ".join(c.path for c in axis.columns)})
    coords |= {rule.name: _formula(space, at) for at, rule in enumerate(space.formulas)}
    return coords


def _formula(space: Space, at: int) -> tuple[tuple[str, ...], np.ndarray, dict[str, str]]:
    """Return the coordinate of a formula over the axes it depends on (nan where it fails)."""
    rule = space.formulas[at]
    needed = _depends(space, set(rule.paths.values()))
    kept = tuple(i for i, axis in enumerate(space.axes) if any(column.path in needed for column in axis.columns))
    values = np.full([space.shape[i] for i in kept], np.nan)
    for index in np.ndindex(*values.shape):
        full = [0] * len(space.shape)
        for i, j in zip(kept, index, strict=True):
            full[i] = j
        try:
            values[index] = space.known(int(np.ravel_multi_index(full, space.shape)))[rule.name]
        except WorkbenchError:
            continue
    attributes = {"units": rule.unit or "1", "path": rule.name, "axis_class": "time"}
    return tuple(space.axes[i].dim for i in kept), values, attributes


def _depends(space: Space, paths: set[str]) -> set[str]:
    """Return the paths a formula depends on, through other formulas and through the card, where that is an axis."""
    out = set(paths) | {"npu"}
    for rule in reversed(space.formulas):
        if rule.name in out:
            out |= set(rule.paths.values())
    return out


def _array(labels: Sequence[object]) -> np.ndarray:
    return np.array(labels, dtype=object) if isinstance(labels[0], str) else np.array(labels)


def _unrepeated(steps: np.ndarray) -> np.ndarray:
    """Return step numbers, or positions where numbers repeat."""
    return steps if len(np.unique(steps)) == len(steps) else np.arange(len(steps))


def write_netcdf(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a sweep as netCDF; ``xarray.open_dataset(path, engine="h5netcdf")`` returns it unchanged.

    Raises
    ------
    Refused
        When the file cannot be written. What was there before stays as it was.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise Refused(str(path), "is not a regular file", "name a file in a folder you may write to")
    part = target.with_name(f".{target.name[:200]}.part")  # whole or not at all, whatever interrupts
    try:
        try:
            dataset.to_netcdf(part, engine="h5netcdf")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as fault:
        raise Refused(str(path), f"cannot be written: {fault.strerror or fault}", "name a file in a folder you may write to") from None


def changes_at(dataset: xr.Dataset, **at: int) -> dict[str, object]:
    """Return what `Scenario.with_` needs to ask for one cell of a sweep.

    Parameters
    ----------
    dataset : Dataset
        From `sweep`, or read back from its file.
    **at : int
        Position along every axis (``**{"npu.cores": 3}``); axes left out take position 0.

    Returns
    -------
    dict
        Path to value, quantities as text.
    """
    cell = dataset.isel({dim: at.get(str(dim), 0) for dim in dataset["step_time"].dims})
    out = {}
    for coordinate in cell.coords.values():
        path = coordinate.attrs.get("path")
        if path is not None and coordinate.ndim == 0:
            out[str(path)] = written(coordinate.item(), str(coordinate.attrs["units"]))
    return dict(sorted(out.items(), key=lambda item: "." in item[0]))


def ratio(base: xr.Dataset, candidate: xr.Dataset) -> xr.DataArray:
    """Return base over candidate step time of two sweeps on exactly the same axes.

    Parameters
    ----------
    base, candidate : Dataset
        From `sweep`.

    Returns
    -------
    DataArray
        Above 1 where the candidate is faster [1].

    Raises
    ------
    Refused
        When the axes differ: no cell is dropped in silence.
    """
    try:
        with xr.set_options(arithmetic_join="exact"):
            out = base["step_time"] / candidate["step_time"]
    except ValueError as fault:
        raise Refused("axes", f"the two sweeps have different axes: {fault}", "make both sweeps with the same axes") from None
    out.attrs = {"units": "1", "long_name": "base step time over candidate step time"}
    return out.rename("speed_up")


def reasons(dataset: xr.Dataset) -> Mapping[str, int]:
    """Return how many cells are invalid for each reason."""
    codes, counts = np.unique(dataset["reason"].values, return_counts=True)
    texts = dataset["reason_text"].values
    return {str(texts[code]): int(count) for code, count in zip(codes, counts, strict=True) if code}
