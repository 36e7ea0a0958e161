"""Rows of a table of operators -> listed operators: which column means which dimension, which are times, which say nothing."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from workbench.errors import InvalidSpec
from workbench.operators import headings, launch_grid
from workbench.operators.agreement import contradiction
from workbench.operators.attention import BOTTOM_RIGHT, FULL, TOP_LEFT
from workbench.operators.cells import MOST, MOST_SMALL, UNITS, amount, decimal_mark, missing, whole
from workbench.operators.headings import ALIASES, KNOWN, LABELS, SHAPES, TENSORS, TITLES, defaults
from workbench.operators.layouts import NAMES as LAYOUTS
from workbench.operators.layouts import layout_of
from workbench.operators.listed import Dims, Listed
from workbench.operators.moved import moved
from workbench.operators.shaped import extents
from workbench.operators.sheet import Sheet
from workbench.operators.sides import BOTH, side
from workbench.operators.table import DIMS, ITEMSIZE, Dtype, Kind
from workbench.operators.words import Word, element_type, unknown, word

LARGE = ("elements", "bytes", "rows")
LONGEST_S = 1e6  # [s]; longer is no operator, and sums of it may overflow
MASKS = MappingProxyType({"none": FULL, "full": FULL, "": FULL, "causal": BOTTOM_RIGHT, "bottom_right": BOTTOM_RIGHT, "top_left": TOP_LEFT})
PRODUCT_LIKE = (Kind.GROUPED_GEMM, Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT)
PORTABLE = re.compile(r"triton|portable", re.IGNORECASE)
"""Names of attention kernels that are written once for all cards."""
GUESSES = ((Kind.ATTENTION_FORWARD, ("head_dim",)), (Kind.CONV_FORWARD, ("r", "s", "h")), (Kind.RNN, ("hidden", "timesteps")),
           (Kind.GEMM, ("m", "n", "k")))  # fmt: skip
"""What a table without a column for the kind lists, by the dimensions it has."""


@dataclass(frozen=True)
class Columns:
    """What the columns of a sheet mean: positions by small name, time column and its factor to seconds, what is not used.

    ``factor`` is nan where every cell of the time column carries its own unit; ``mark`` is that of decimals.
    """

    at: Mapping[str, int]
    time: str | None
    factor: float
    label: str | None
    title: str | None
    unused: tuple[str, ...]
    mark: str = "."
    exchanged: bool = False  # n and k of rows with a launch grid, see `workbench.operators.launch_grid`


def columns_of(sheet: Sheet, needs_time: bool = False, clock: float | None = None) -> Columns:
    """Find out what the columns mean.

    Parameters
    ----------
    sheet : Sheet
        Table.
    needs_time : bool
        Refuse a table without a time.
    clock : float, optional
        Of the machine that counted cycles [Hz], for tables that state cycles instead of times.

    Raises
    ------
    InvalidSpec
        A time without a unit, two times, two columns of one name, a misspelt column; with file, line and column.
    """
    where = f"{sheet.path}:{sheet.header_line}"
    names = [headings.canonical(name) for name in sheet.header]
    twice = next((name for name in names if name and name != "line" and names.count(name) > 1), None)
    if twice:
        clash = [name for name in sheet.header if headings.canonical(name) == twice]
        what = "two columns of one name" if len({name.lower() for name in clash}) == 1 else "two columns of one meaning"
        raise InvalidSpec(f"{where}: column {twice!r}", f"{what}: {', '.join(clash)}", "name every column once")
    time, factor = _time_column(sheet, names, where, needs_time, clock)
    unused = [name for name in names if name and name not in KNOWN and name != "line" and name != time and not headings.is_cycles(name)]
    if wrong := headings.misspelt(unused, names):
        near, column = ", ".join(map(repr, wrong.values())), "column" if len(wrong) == 1 else "columns"
        fix = f"did you mean {near}? (or give it a name of its own)"
        raise InvalidSpec(f"{where}: {column} {', '.join(map(repr, wrong))}", f"unknown {column}", fix)
    at = {name: index for index, name in enumerate(names) if name}
    label, title = (next((key for key in keys if key in at), None) for keys in (LABELS, TITLES))
    return Columns(at, time, factor, label, title, tuple(unused), _mark(sheet, at, time), launch_grid.exchanged(sheet.rows, at))


def _time_column(sheet: Sheet, names: Sequence[str], where: str, needs_time: bool, clock: float | None) -> tuple[str | None, float]:
    """Return the column of the time and what one of its unit is [s] (nan: cells carry units)."""
    times = headings.best_times([name for name in names if headings.time_unit(name)])
    bare = [name for name in names if headings.is_bare_time(name)]
    cycles = [name for name in names if headings.is_cycles(name)]
    if len(times) > 1:
        raise InvalidSpec(where, f"two columns with a time: {', '.join(times)}", "keep one, or give the other one another name")
    if times:
        return times[0], headings.time_unit(times[0]) or math.nan
    for name in bare:
        cells = [row[names.index(name)] for row in sheet.rows if not missing(row[names.index(name)])]
        if cells and all(any(cell.lower().rstrip().endswith(unit) for unit in UNITS) for cell in cells):
            return name, math.nan
    if bare and not cycles:
        fix = f"name it {bare[0]}_us (or _ns, _ms, _s), or map it: {bare[0]}=time_us"
        raise InvalidSpec(f"{where}: column {bare[0]!r}", "the time has no unit", fix)
    if cycles and clock:
        return cycles[0], 1.0 / clock
    if cycles and needs_time:
        fix = "state the clock they were counted at: a line '# clock: 1.8 GHz' above the header, or --vendor-contract clock='1.8 GHz'"
        raise InvalidSpec(f"{where}: column {cycles[0]!r}", "cycles without a clock give no time", fix)
    if needs_time:
        what = f"no column with a time; there are {', '.join(sheet.header)}"[:400]
        raise InvalidSpec(where, what, "add one with its unit, e.g. latency_us, or map one: NAME=time_us")
    return None, math.nan


def _mark(sheet: Sheet, at: Mapping[str, int], time: str | None) -> str:
    """Return how this sheet writes decimals: as its times do or, where these leave it open, as its other numbers do."""
    first = decimal_mark(row[at[time]] for row in sheet.rows) if time is not None else "."
    if first != "?":
        return first
    rest = [index for name, index in at.items() if name not in (*SHAPES, *LABELS, *BOTH, "signature")]
    return decimal_mark(row[index] for row in sheet.rows for index in rest)


@dataclass(frozen=True)
class LeftOut:
    """A row that gives no operator, and why."""

    row: int
    name: str
    why: str


def listed(sheet: Sheet, columns: Columns, row: int, default: Dtype = Dtype.UNKNOWN) -> tuple[Listed, str] | LeftOut:
    """Translate one row.

    Parameters
    ----------
    sheet : Sheet
    columns : Columns
        Of this sheet.
    row : int
    default : Dtype
        Element type of rows that do not say.

    Returns
    -------
    (Listed, str) or LeftOut, with what the translation changes ("": nothing)

    Raises
    ------
    InvalidSpec
        A cell that is no number, no known element type or mask; file, line and column are named.
    """
    cells = sheet.rows[row]

    def cell(name: str | None) -> str:
        text = cells[columns.at[name]] if name is not None and name in columns.at else ""
        return "" if missing(text) else text

    found = _meaning(cell(columns.label), columns)
    title = cell(columns.title) or cell(columns.label) or (found.kind.name.lower() if found else f"row {sheet.line[row]}")
    if found is None:
        named = cell(columns.label)
        return LeftOut(row, title, unknown(named) if named else "nothing says which operator it is")
    dtype, lost = dtype_of(sheet, columns, row, default)
    seconds = time_of(sheet, columns, row)
    dims = dims_of(sheet, columns, row, found)
    if isinstance(dims, str) and found.kind in PRODUCT_LIKE and all(cell(name) for name in "mnk"):
        found = Word(Kind.BATCHED_GEMM)  # stated as the (equal) products it comes to
        dims = dims_of(sheet, columns, row, found)
    if isinstance(dims, str):
        return LeftOut(row, title, dims)
    if columns.exchanged and found.kind in (Kind.GEMM, Kind.BATCHED_GEMM) and cell("grid"):
        dims, lost = (*dims[:2], dims[3], dims[2]), launch_grid.WHY
    times = whole(cell("count"), sheet.where(row, "count")) if cell("count") else 1
    return Listed(title, dtype, dims, found, seconds, times, moved(found.kind, *map(cell, TENSORS))), lost


def _meaning(label: str, columns: Columns) -> Word | None:
    if label:
        return word(label)
    for kind, needed in GUESSES:
        if all(any(name in columns.at for name in ALIASES[kind][dim]) for dim in needed):
            return Word(kind)
    return None


def dtype_of(sheet: Sheet, columns: Columns, row: int, default: Dtype = Dtype.UNKNOWN) -> tuple[Dtype, str]:
    """Return the element type of a row and what its translation loses.

    Raises
    ------
    InvalidSpec
        An unknown one.
    """
    text = sheet.rows[row][columns.at["dtype"]] if "dtype" in columns.at else ""
    if missing(text):
        return default, ""
    known = element_type(text)
    if known is None:
        near = difflib.get_close_matches(text.upper(), Dtype.__members__, 1, 0.3)
        hint = f"did you mean {near[0].lower()}?" if near else "use fp32, fp16, bf16 ..."
        raise InvalidSpec(sheet.where(row, "dtype"), f"unknown dtype {text!r}", hint)
    return known


def time_of(sheet: Sheet, columns: Columns, row: int) -> float:
    """Return the time of a row [s], nan where there is none.

    Raises
    ------
    InvalidSpec
        Not a positive number.
    """
    text = sheet.rows[row][columns.at[columns.time]] if columns.time is not None else ""
    if columns.time is None or missing(text):
        return math.nan
    where = sheet.where(row, columns.time)
    value, unit = amount(text, where, columns.mark)
    factor = UNITS.get(unit.lower(), math.nan) if unit else columns.factor
    if math.isnan(factor):
        raise InvalidSpec(where, f"{text!r} has no unit of time", "write e.g. 5.5 us, or name the column latency_us")
    seconds = value * factor
    if not 0 < seconds <= LONGEST_S:
        raise InvalidSpec(where, f"{text!r} is not a positive time an operator can take", "mend the number, or write N/A")
    return seconds


def names_of(kind: Kind) -> set[str]:
    """Return the column names that may give a dimension of a kind."""
    return {name for names in ALIASES[kind].values() for name in names}


def dims_of(sheet: Sheet, columns: Columns, row: int, found: Word) -> Dims | str:
    """Return the dimensions, or which one is missing."""
    kind, cells = found.kind, sheet.rows[row]
    given: dict[str, int] = {}
    for dim, names in ALIASES[kind].items():
        name = next((name for name in names if name in columns.at and not missing(cells[columns.at[name]])), None)
        if name is not None and dim != "layout":
            place, most = sheet.where(row, name), MOST_SMALL if dim not in LARGE else MOST
            given[dim] = whole(side(cells[columns.at[name]], name, dim, place), place, most, columns.mark)
    _from_others(sheet, columns, row, kind, given)
    texts = [cells[columns.at[name]] if name in columns.at else "" for name in (*SHAPES, "layout")]
    if not all(map(missing, texts[:4])):
        given = extents(found, *("" if missing(text) else text for text in texts)) | given
    if found.depthwise and "c" in given:
        given.setdefault("groups", given["c"])
    full = defaults(kind, found.causal) | given
    if "heads" in full:
        full.setdefault("kv_heads", full["heads"])
    if "head_dim" in full:
        full.setdefault("value_dim", full["head_dim"])
    if "queries" in full:
        full.setdefault("keys", full["queries"])
    absent = [dim for dim in DIMS[kind] if dim not in full]
    if absent or not DIMS[kind]:
        return f"no value for {', '.join(absent)}" if absent else "its kind has no dimensions"
    if full.get("groups", 1) < 1 or any(full.get(f"{name}_{side}", 1) < 1 for name in ("stride", "dilation") for side in "hw"):
        raise InvalidSpec(sheet.where(row), "groups, strides and dilations are at least 1", "mend the row")
    return contradiction(full) or tuple(full[dim] for dim in DIMS[kind])


def _from_others(sheet: Sheet, columns: Columns, row: int, kind: Kind, given: dict[str, int]) -> None:
    """Add dimensions that other columns imply: the mask by its name, elements as rows x cols."""
    cells = sheet.rows[row]
    if "mask" in columns.at and "causal" in ALIASES[kind]:
        text = cells[columns.at["mask"]].lower()
        if text not in MASKS:
            raise InvalidSpec(sheet.where(row, "mask"), f"unknown mask {text!r}", f"use {', '.join(filter(None, MASKS))}")
        given["causal"] = MASKS[text]
    if "kv_bits" in ALIASES[kind]:
        _cache(sheet, columns, row, given)
    if "layout" in ALIASES[kind] and "layout" in columns.at and not missing(cells[columns.at["layout"]]):
        known = layout_of(cells[columns.at["layout"]])
        if known is None:
            raise InvalidSpec(sheet.where(row, "layout"), f"unknown layout {cells[columns.at['layout']]!r}", f"use {', '.join(LAYOUTS)}")
        given["layout"] = int(known)
    if "elements" in ALIASES[kind] and "elements" not in given and {"rows", "cols"} <= set(columns.at):
        sides = {name: cells[columns.at[name]] for name in ("rows", "cols")}
        if not any(map(missing, sides.values())):
            given["elements"] = math.prod(whole(side, sheet.where(row, name), mark=columns.mark) for name, side in sides.items())
            if given["elements"] > MOST:
                raise InvalidSpec(sheet.where(row), "rows x cols is larger than any memory", "mend the row")


def _cache(sheet: Sheet, columns: Columns, row: int, given: dict[str, int]) -> None:
    """Add what the type of a key-value cache and the kernel's name say of attention."""
    cells = sheet.rows[row]
    if "kv_dtype" in columns.at and not missing(cells[columns.at["kv_dtype"]]):
        text = cells[columns.at["kv_dtype"]]
        known = element_type(text)
        if known is None or known[0] == Dtype.UNKNOWN:
            raise InvalidSpec(sheet.where(row, "kv_dtype"), f"unknown dtype {text!r}", "use bf16, fp16, fp8, int8 ...")
        given.setdefault("kv_bits", round(8 * ITEMSIZE[known[0]]))
    if "kernel" in columns.at and PORTABLE.search(cells[columns.at["kernel"]]):
        given.setdefault("portable", 1)
