"""Hardware counters of profilers -> busy fractions by unit: Ascend ``kernel_details.csv`` / ``op_summary*.csv``, Nsight Compute CSV.

A fraction is of the kernel's duration: the Ascend profiler states shares of a core's cycles, which are multiplied by the core's time
over the duration. What a column counts is data (counters.yaml, with sources); columns nobody knows are listed in a note.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from types import MappingProxyType

import numpy as np
import yaml

from workbench.errors import InvalidSpec, Note, Refused
from workbench.operators.cells import UNITS as TIMES
from workbench.operators.cells import amount, decimal_mark, missing
from workbench.operators.sheet import Sheet, read_sheet

UNITS = ("matrix", "vector", "scalar", "local", "transfer", "shared", "memory", "compute")
"""Parts whose busy fraction counters state; see counters.yaml."""
LEVELS = ("shared", "memory")
MOST_BUSY = 1.05  # a fraction above it is a percentage, or damage
_BYTES = {"byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_NSIGHT_TIMES = {"nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0}


@dataclass(frozen=True)
class Counters:
    """Counters of R kernels, with the table they came from; nan where nothing was counted.

    ``sheet`` has one row a kernel and the columns of an operator table as far as the profiler states them.
    """

    tool: str
    sheet: Sheet
    seconds: np.ndarray  # float64 [R] [s]
    busy: np.ndarray  # float64 [R, len(UNITS)] fraction of the duration
    rate: np.ndarray  # float64 [R, len(LEVELS)] [B/s]
    flops: np.ndarray  # float64 [R] operations counted
    cores: np.ndarray  # float64 [R] blocks
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class _Column:
    """One column and what it counts."""

    at: int
    name: str
    what: str
    unit: str
    core: str
    factor: float
    part_of: str
    unit_text: str = ""


def read_counters(path: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> Counters:
    """Read the counters of a profiler.

    Parameters
    ----------
    path : str or path
        ``kernel_details.csv`` or ``op_summary*.csv`` of the Ascend profiler, or what ``ncu --csv`` prints (pages ``raw`` and
        ``details``).
    columns : mapping of str to str, optional
        Name in the file to the name it means.

    Returns
    -------
    Counters

    Raises
    ------
    Refused
        No column is a hardware counter.
    InvalidSpec
        A counter that is no number, or a fraction above 1; file, line and column are named.
    UnreadableInput
        The file cannot be read.
    """
    sheet = read_sheet(path, tuple(columns or ()), units_row=False).renamed(columns or {})
    lower = [_plain(name) for name in sheet.header]
    if {"metricname", "metricvalue"} <= set(lower):
        sheet = _widened(sheet, lower)
        lower = [_plain(name) for name in sheet.header]
    tool = "nsight" if any(re.match(r"(gpu|sm|dram|lts|l1tex|smsp)__", name) for name in lower) or "kernelname" in lower else "ascend"
    sheet, units = _units(sheet, tool)
    found, unknown = _columns(sheet, units, tool)
    if not any(column.what in ("busy", "part", "busy_time", "rate", "bytes", "flops") for column in found):
        fix = "record with aic-metrics (PipeUtilization, ArithmeticUtilization), or with ncu --set full --csv --page raw"
        raise Refused(sheet.path, "no column is a hardware counter", fix)
    counted = _counted(sheet, found, tool)
    if unknown:
        text = f"nobody knows what these columns count: {', '.join(unknown[:12])}{' ...' if len(unknown) > 12 else ''}"
        note = Note("counters-unknown", sheet.path, len(unknown), text, "add them to counters.yaml with their source")
        counted = replace(counted, notes=(*counted.notes, note))
    return counted


def is_counter(name: str, tool: str) -> bool:
    """Whether a column belongs to the profiler, not to a table of operators; names of kernels belong to both."""
    plain = _plain(name)
    return plain != "kernelname" and any(pattern.fullmatch(plain) for pattern, _ in _book(tool))


def _plain(name: str) -> str:
    return re.sub(r"\s*\[[\w/%]+\]\Z", "", name).lower().replace(" ", "")


@cache
def _book(tool: str) -> tuple[tuple[re.Pattern[str], Mapping[str, object]], ...]:
    """Read counters.yaml once (it is part of the package)."""
    text = resources.files("workbench.operators").joinpath("counters.yaml").read_text(encoding="utf-8")
    return tuple((re.compile(entry["name"]), MappingProxyType(entry)) for entry in yaml.safe_load(text)[tool])


def _widened(sheet: Sheet, lower: list[str]) -> Sheet:
    """Turn one row a metric (page ``details``) into one row a kernel; metrics keep their unit in brackets."""
    name, value, unit = (lower.index(key) if key in lower else -1 for key in ("metricname", "metricvalue", "metricunit"))
    fixed = [at for at, key in enumerate(lower) if key in ("id", "kernelname", "blocksize", "gridsize", "device", "stream")]
    if not any(lower[at] == "id" for at in fixed):
        raise InvalidSpec(f"{sheet.path}:{sheet.header_line}", "no column ID tells the kernels apart", "print it with ncu --csv")
    kernels: dict[str, dict[str, str]] = {}
    lines: dict[str, int] = {}
    for row, cells in enumerate(sheet.rows):
        key = cells[lower.index("id")]
        lines.setdefault(key, sheet.line[row])
        found = kernels.setdefault(key, {sheet.header[at]: cells[at] for at in fixed})
        if cells[name]:
            mark = f" [{cells[unit]}]" if unit >= 0 and cells[unit] else ""
            found.setdefault(cells[name] + mark, cells[value])
    header = tuple(dict.fromkeys(column for found in kernels.values() for column in found))
    rows = tuple(tuple(found.get(column, "") for column in header) for found in kernels.values())
    return replace(sheet, header=header, rows=rows, line=tuple(lines.values()))


def _units(sheet: Sheet, tool: str) -> tuple[Sheet, list[str]]:
    """Take the row of units off a table (page ``raw``) and return the unit of every column."""
    marks = [re.search(r"\[([\w/%]+)\]\Z", name) for name in sheet.header]
    units = [mark.group(1) if mark else "" for mark in marks]
    lower = [_plain(name) for name in sheet.header]
    if tool == "nsight" and sheet.rows and "id" in lower and not sheet.rows[0][lower.index("id")]:
        units = [cell or unit for cell, unit in zip(sheet.rows[0], units, strict=True)]
        sheet = sheet.kept(range(1, len(sheet.rows)))
    return sheet, [unit.lower() for unit in units]


def _columns(sheet: Sheet, units: list[str], tool: str) -> tuple[list[_Column], list[str]]:
    names = [_plain(name) for name in sheet.header]
    found, unknown = [], []
    for at, name in enumerate(names):
        entry = next((entry for pattern, entry in _book(tool) if pattern.fullmatch(name)), None)
        if entry is None:
            unknown += [sheet.header[at]] if name else []
            continue
        texts = {key: str(entry.get(key, "")) for key in ("what", "unit", "core", "part_of")}
        if texts["part_of"] in names or texts["what"] == "known":
            continue
        factor = float(str(entry.get("factor", 1.0)))
        found.append(_Column(at, sheet.header[at], texts["what"], texts["unit"], texts["core"], factor, texts["part_of"], units[at]))
    return found, unknown


def _counted(sheet: Sheet, columns: list[_Column], tool: str) -> Counters:
    count = len(sheet.rows)
    out = Counters(
        tool, sheet, np.full(count, np.nan), np.full((count, len(UNITS)), np.nan), np.full((count, len(LEVELS)), np.nan),
        np.full(count, np.nan), np.full(count, np.nan),
    )  # fmt: skip
    marks = {column.at: decimal_mark(row[column.at] for row in sheet.rows) for column in columns}
    for row, cells in enumerate(sheet.rows):
        values = {
            column.at: _value(cells[column.at], column, sheet.where(row, column.name), marks[column.at])
            for column in columns
            if not missing(cells[column.at])
        }
        _fill(out, row, columns, values)
    if np.nanmax(out.busy, initial=0.0) > MOST_BUSY:
        worst, unit = divmod(int(np.nanargmax(out.busy)), len(UNITS))
        what = f"{UNITS[unit]} is busy {out.busy[worst, unit]:.3g} times the kernel's duration"
        raise InvalidSpec(sheet.where(worst), what, "fractions are of 1 (percentages need their unit); check the columns of times")
    np.clip(out.busy, 0.0, 1.0, out=out.busy)
    return out


def _value(text: str, column: _Column, where: str, mark: str) -> float:
    """Return a cell in SI units (fractions of 1)."""
    value, own = amount(text.rstrip("%"), where, "." if mark == "?" else mark)
    unit = (own or column.unit_text).lower()
    if value < 0 or not np.isfinite(value):
        raise InvalidSpec(where, f"{text!r} is not a count", "mend the number, or write N/A")
    if "%" in (text[-1:], unit):
        return value / 100.0
    if column.what == "time":
        scale = TIMES.get(unit) or _NSIGHT_TIMES.get(unit) or (column.factor if column.factor != 1.0 else None)
        if scale is None:
            raise InvalidSpec(where, f"the duration has no unit ({unit or 'none given'})", "keep the row of units that ncu prints")
        return value * scale
    if column.what in ("rate", "bytes"):
        return value * _BYTES.get(re.sub(r"(/s(econd)?)\Z", "", unit), 1.0) * column.factor
    if column.what == "busy" and ("pct_of_peak" in column.name or "throughput" in column.name.lower()):
        return value / 100.0  # Nsight's are percentages even where the unit is not printed
    return value * column.factor


_LARGEST = ("busy", "busy_time", "cores")  # of several columns of one unit; others add up


def _fill(out: Counters, row: int, columns: list[_Column], values: Mapping[int, float]) -> None:
    """Put one row's values together."""
    present = [column for column in columns if column.at in values]
    seconds = next((values[column.at] for column in present if column.what == "time"), float("nan"))
    cores = {column.core: 1e-6 * values[column.at] for column in present if column.what == "core_time"}
    out.seconds[row] = seconds
    sums: dict[tuple[str, str], float] = {}
    for column in present:
        value, key = values[column.at], (column.what, column.unit)
        if column.what in ("busy", "part") and column.core in cores and seconds > 0:
            value *= cores[column.core] / seconds
        if column.what == "busy_time":
            value = 1e-6 * value / seconds if seconds > 0 else float("nan")
        before = sums.get(key, 0.0)
        sums[key] = max(before, value) if column.what in _LARGEST else before + value
    out.flops[row] = sums.get(("flops", ""), np.nan)
    out.cores[row] = sums.get(("cores", ""), np.nan)
    for at, unit in enumerate(UNITS):
        out.busy[row, at] = next((sums[what, unit] for what in ("busy", "part", "busy_time") if (what, unit) in sums), np.nan)
    for at, level in enumerate(LEVELS):
        moved = sums.get(("bytes", level), np.nan)
        out.rate[row, at] = sums.get(("rate", level), moved / seconds if seconds > 0 else np.nan)
