"""Kernel tables of profilers, cut to the columns of operator tables: Ascend ``kernel_details.csv`` and ``op_summary*.csv``.

Source: CANN profiling guide, kernel_details and op_summary. What their other columns count: `workbench.operators.counters`.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.operators.cells import missing
from workbench.operators.sheet import Sheet

NEEDED = ("type", "duration(us)", "input shapes", "output shapes", "input data types")
COLUMNS = {"type": "type", "name": "name", "duration(us)": "latency_us", "input shapes": "input_shapes", "output shapes": "output_shapes",
           "input data types": "dtype", "output data types": "output_dtype", "input formats": "layout"}  # fmt: skip
_OP_SUMMARY = {"op type": "type", "op name": "name", "task duration(us)": "duration(us)"}


def is_profile(sheet: Sheet) -> bool:
    """Whether a sheet is a kernel table of the Ascend profiler."""
    return set(NEEDED) <= set(_names(sheet))


def from_profile(sheet: Sheet) -> Sheet:
    """Return a profiler's kernel table with the columns of an operator table; any other sheet as it is."""
    if not is_profile(sheet):
        return sheet
    names = _names(sheet)
    keep = [at for at, name in enumerate(names) if name in COLUMNS and names.index(name) == at]
    dtype = names.index("input data types")
    rows = tuple(tuple(_plain(row[at], names[at], row[dtype]) for at in keep) for row in sheet.rows)
    return replace(sheet, header=tuple(COLUMNS[names[at]] for at in keep), rows=rows)


def _names(sheet: Sheet) -> list[str]:
    return [_OP_SUMMARY.get(name.lower(), name.lower()) for name in sheet.header]


def _plain(cell: str, name: str, dtype: str) -> str:
    """Take the quotes off a shape; tensors of a known type without extents (``""``, ``";"``) are scalars: one element."""
    if not name.endswith("shapes"):
        return cell
    text = cell.strip('"')
    return "1" if cell and not text.strip("; ") and not missing(dtype) else text
