"""Kernel tables of profilers, translated to the columns of operator tables: Ascend ``kernel_details.csv`` and ``op_summary*.csv``.

Shapes are texts such as ``"4096,12288;4608,12288"``. A product's m and n are those of its output (transposed inputs look like others),
its k is what is left of the first input. Source: CANN profiling guide, kernel_details.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from workbench.operators.sheet import Sheet
from workbench.operators.table import Kind
from workbench.operators.words import word

NEEDED = ("type", "duration(us)", "input shapes", "output shapes", "input data types")
HEADER = ("op", "name", "dtype", "B", "M", "N", "K", "rows", "cols", "elements", "latency_us")
PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM)
_OP_SUMMARY = {"op type": "type", "op name": "name", "task duration(us)": "duration(us)"}


def from_profile(sheet: Sheet) -> Sheet:
    """Return a profiler's kernel table with the columns of an operator table; any other sheet as it is."""
    names = [_OP_SUMMARY.get(name.lower(), name.lower()) for name in sheet.header]
    if not set(NEEDED) <= set(names):
        return sheet
    at = {name: index for index, name in enumerate(names)}
    return replace(sheet, header=HEADER, rows=tuple(_row(row, at) for row in sheet.rows))


def _row(row: tuple[str, ...], at: dict[str, int]) -> tuple[str, ...]:
    label = row[at["type"]]
    inputs, outputs = (_shapes(row[at[name]]) for name in ("input shapes", "output shapes"))
    dtype = row[at["input data types"]].split(";")[0].removeprefix("DT_")
    found = word(label)
    dims = {}
    if found is not None and inputs and inputs[0]:
        out = outputs[0] if outputs else ()
        if found.kind in PRODUCTS:
            if len(out) >= 2:
                batch, m, n = prod(out[:-2]), out[-2], out[-1]
                dims = {"B": batch, "M": m, "N": n, "K": prod(inputs[0]) // max(batch * m, 1)}
        else:
            largest = max((*inputs, *outputs), key=prod)
            dims = {"rows": prod(inputs[0][:-1]), "cols": inputs[0][-1], "elements": prod(largest)}
    texts = {"op": label, "name": row[at["name"]] if "name" in at else label, "dtype": "N/A" if dtype == "UNDEFINED" else dtype}
    texts |= {name: str(extent) for name, extent in dims.items()} | {"latency_us": row[at["duration(us)"]]}
    return tuple(texts.get(name, "") for name in HEADER)


def _shapes(text: str) -> list[tuple[int, ...]]:
    """Read ``"2,3;4"`` as [(2, 3), (4,)]; an empty shape or one that is no list of counts is ()."""
    parts = [part.split(",") for part in text.strip().strip('"').split(";")]
    return [tuple(int(extent) for extent in part) if all(extent.strip().isdecimal() for extent in part) else () for part in parts]
