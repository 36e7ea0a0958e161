"""Rows of a table of operators -> listed operators: which column means which dimension, which are times, which say nothing."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from workbench import units
from workbench.errors import InvalidSpec
from workbench.operators.attention import BOTTOM_RIGHT, FULL, TOP_LEFT
from workbench.operators.listed import Dims, Listed
from workbench.operators.sheet import Sheet
from workbench.operators.table import DIMS, Dtype, Kind
from workbench.operators.words import Word, element_type, word

TIME = re.compile(r"(?:latency|time|duration|mean|median)\W?_?\(?(ns|us|ms|s)\)?\Z")
MOST, MOST_SMALL = 2**53, 2**31  # exact in a float; products of two small ones in an int64 (pairs of attention)
LARGE = ("elements", "bytes", "rows")
LONGEST_S = 1e6  # [s]; longer is no operator, and sums of it may overflow
BARE_TIMES = ("latency", "time", "duration")
LABELS = ("kind", "op", "operator", "type", "name")
TITLES = ("layer", "case", "name", "operator", "op", "kind", "type")
MISSING = ("", "n/a", "na", "nan", "-", "none", "null")
MASKS = MappingProxyType({"none": FULL, "full": FULL, "": FULL, "causal": BOTTOM_RIGHT, "bottom_right": BOTTOM_RIGHT, "top_left": TOP_LEFT})
SILENT = (
    "device", "source", "kernel", "split", "transa", "transb", "grid", "kv_dtype", "note", "notes", "comment", "layer", "case", "name",
    "measured_tflops", "peak_tflops", "signature", "count", "dtype", "mask",
)  # fmt: skip
"""Columns that carry no dimension and need no remark."""
_MATMUL = {"batch": ("batch", "b", "groups", "g"), "m": ("m",), "n": ("n",), "k": ("k",)}
_CONV = {
    "n": ("n", "batch"), "c": ("c", "in_channels"), "h": ("h",), "w": ("w",), "k": ("k", "out_channels"), "r": ("r", "kernel_h"),
    "s": ("s", "kernel_w"), **{name: (name,) for name in DIMS[Kind.CONV_FORWARD][7:]},
}  # fmt: skip
_ATTENTION = {
    "batch": ("batch", "b"), "heads": ("heads", "h", "q_heads", "num_heads"), "kv_heads": ("kv_heads", "hkv", "num_kv_heads"),
    "queries": ("queries", "s", "q_len", "seq_len"), "keys": ("keys", "l", "kv_len"),
    "head_dim": ("head_dim", "d", "head_dim_qk", "head_size"), "value_dim": ("value_dim", "head_dim_v"), "causal": ("causal",),
    "window": ("window",),
}  # fmt: skip
_ROWS = {"rows": ("rows",), "cols": ("cols", "columns")}
ALIASES: Mapping[Kind, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {kind: {name: (name,) for name in names} for kind, names in DIMS.items()}
    | dict.fromkeys((Kind.GEMM, Kind.BATCHED_GEMM), _MATMUL)
    | dict.fromkeys((Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT, Kind.CONV_BACKWARD), _CONV)
    | dict.fromkeys((Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD), _ATTENTION)
    | dict.fromkeys((Kind.SOFTMAX, Kind.NORM, Kind.REDUCTION, Kind.EMBEDDING, Kind.SORT), _ROWS)
    | {Kind.RNN: {"hidden": ("hidden",), "batch": ("batch", "b"), "timesteps": ("timesteps", "steps")}}
)
"""Columns (small letters) that give each dimension of a kind, best first."""
PRODUCT_LIKE = (Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT)
DEFAULTS: Mapping[str, int] = MappingProxyType(
    {"groups": 1, "dilation_h": 1, "dilation_w": 1, "stride_h": 1, "stride_w": 1, "pad_h": 0, "pad_w": 0, "depth": 1, "t": 1,
     "window": 0, "direction": 0, "tensors": 1}
)  # fmt: skip
KNOWN = frozenset(name for kind in ALIASES.values() for names in kind.values() for name in names) | set(SILENT) | set(LABELS)
GUESSES = ((Kind.ATTENTION_FORWARD, ("head_dim",)), (Kind.CONV_FORWARD, ("r", "s", "h")), (Kind.RNN, ("hidden", "timesteps")),
           (Kind.GEMM, ("m", "n", "k")))  # fmt: skip
"""What a table without a column for the kind lists, by the dimensions it has."""


@dataclass(frozen=True)
class Columns:
    """What the columns of a sheet mean: positions by small name, time column and its factor to seconds, what is not used."""

    at: Mapping[str, int]
    time: str | None
    factor: float
    label: str | None
    title: str | None
    unused: tuple[str, ...]


def columns_of(sheet: Sheet, needs_time: bool = False) -> Columns:
    """Find out what the columns mean.

    Raises
    ------
    InvalidSpec
        A time without a unit, two times, two columns of one name, a misspelt column; with file, line and column.
    """
    where = f"{sheet.path}:{sheet.header_line}"
    names = [name.lower() for name in sheet.header]
    times = [name for name in names if TIME.match(name)]
    bare = [name for name in names if name in BARE_TIMES]
    if not times and bare:
        raise InvalidSpec(f"{where}: column {bare[0]!r}", "the time has no unit", f"name it {bare[0]}_us (or _ns, _ms, _s)")
    if not times and needs_time:
        raise InvalidSpec(where, "no column with a time", "add one with its unit, e.g. latency_us")
    if len(times) > 1:
        raise InvalidSpec(where, f"two columns with a time: {', '.join(times)}", "keep one, or give the other one another name")
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice:
        raise InvalidSpec(f"{where}: column {twice!r}", "two columns of one name", "name every column once")
    unused = [name for name in names if name not in KNOWN and name not in times]
    for name in unused:
        missing = (KNOWN | {"latency_us"}) - set(names)
        doubled = len(name) == 2 and name[0] == name[1] and name[0] in missing
        near = [name[0]] if doubled else difflib.get_close_matches(name, sorted(missing), 1, 0.8) if len(name) > 3 else []
        if near:
            raise InvalidSpec(f"{where}: column {name!r}", "unknown column", f"did you mean {near[0]!r}? (or give it a name of its own)")
    unit = TIME.match(times[0]).group(1) if times else ""  # type: ignore[union-attr]
    at = {name: index for index, name in enumerate(names)}
    label, title = (next((key for key in keys if key in at), None) for keys in (LABELS, TITLES))
    return Columns(at, times[0] if times else None, units.parse(f"1 {unit}", "s") if unit else math.nan, label, title, tuple(unused))


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
        Index of the row.
    default : Dtype
        Element type of rows that do not say.

    Returns
    -------
    (Listed, str) or LeftOut
        With what the translation of the element type loses ("": nothing).

    Raises
    ------
    InvalidSpec
        A cell that is no number, no known element type or mask; file, line and column are named.
    """
    cells = sheet.rows[row]

    def cell(name: str | None) -> str:
        text = cells[columns.at[name]] if name is not None and name in columns.at else ""
        return "" if text.lower() in MISSING else text

    found = _meaning(cell(columns.label), columns)
    title = cell(columns.title) or cell(columns.label) or (found.kind.name.lower() if found else f"row {sheet.line[row]}")
    if found is None:
        named = cell(columns.label)
        return LeftOut(row, title, f"no rule knows the operator {named!r}" if named else "nothing says which operator it is")
    dtype, lost = dtype_of(sheet, columns, row, default)
    seconds = time_of(sheet, columns, row)
    dims = dims_of(sheet, columns, row, found)
    if isinstance(dims, str) and found.kind in PRODUCT_LIKE and all(cell(name) for name in "mnk"):
        found = Word(Kind.BATCHED_GEMM)  # a convolution stated as the products it comes to
        dims = dims_of(sheet, columns, row, found)
    if isinstance(dims, str):
        return LeftOut(row, title, dims)
    times = whole(cell("count"), sheet.where(row, "count")) if cell("count") else 1
    return Listed(title, dtype, dims, found, seconds, times), lost


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
    if text.lower() in MISSING:
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
    if columns.time is None or text.lower() in MISSING:
        return math.nan
    where = sheet.where(row, columns.time)
    seconds = number(text, where) * columns.factor
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
        name = next((name for name in names if name in columns.at and cells[columns.at[name]].lower() not in MISSING), None)
        if name is not None:
            given[dim] = whole(cells[columns.at[name]], sheet.where(row, name), MOST_SMALL if dim not in LARGE else MOST)
    _from_others(sheet, columns, row, kind, given)
    if found.depthwise and "c" in given:
        given.setdefault("groups", given["c"])
    full = dict(DEFAULTS) | ({"batch": 1} if kind in (Kind.GEMM, Kind.BATCHED_GEMM) else {"causal": found.causal}) | given
    if "heads" in full:
        full.setdefault("kv_heads", full["heads"])
    if "head_dim" in full:
        full.setdefault("value_dim", full["head_dim"])
    if "queries" in full:
        full.setdefault("keys", full["queries"])
    missing = [dim for dim in DIMS[kind] if dim not in full]
    if missing or not DIMS[kind]:
        return f"no value for {', '.join(missing)}" if missing else "its kind has no dimensions"
    if full.get("groups", 1) < 1 or any(full.get(f"{name}_{side}", 1) < 1 for name in ("stride", "dilation") for side in "hw"):
        raise InvalidSpec(sheet.where(row), "groups, strides and dilations are at least 1", "mend the row")
    return tuple(full[dim] for dim in DIMS[kind])


def _from_others(sheet: Sheet, columns: Columns, row: int, kind: Kind, given: dict[str, int]) -> None:
    """Add dimensions that other columns imply: the mask by its name, elements as rows x cols."""
    cells = sheet.rows[row]
    if "mask" in columns.at and "causal" in ALIASES[kind]:
        text = cells[columns.at["mask"]].lower()
        if text not in MASKS:
            raise InvalidSpec(sheet.where(row, "mask"), f"unknown mask {text!r}", f"use {', '.join(filter(None, MASKS))}")
        given["causal"] = MASKS[text]
    if "elements" in ALIASES[kind] and "elements" not in given and {"rows", "cols"} <= set(columns.at):
        sides = {name: cells[columns.at[name]] for name in ("rows", "cols")}
        if not any(side.lower() in MISSING for side in sides.values()):
            given["elements"] = math.prod(whole(side, sheet.where(row, name)) for name, side in sides.items())
            if given["elements"] > MOST:
                raise InvalidSpec(sheet.where(row), "rows x cols is larger than any memory", "mend the row")


def number(text: str, where: str) -> float:
    """Read a number.

    Raises
    ------
    InvalidSpec
        Not one.
    """
    try:
        return float(text)
    except ValueError:
        raise InvalidSpec(where, f"{text!r} is not a number", "write a decimal number, or N/A") from None


def whole(text: str, where: str, most: int = MOST) -> int:
    """Read a count.

    Raises
    ------
    InvalidSpec
        Not a whole number of 0 or more, or one beyond ``most``.
    """
    value = number(text, where)
    if not math.isfinite(value) or value != int(value) or not 0 <= value <= most:
        raise InvalidSpec(where, f"{text!r} is not a count", f"write a whole number of at most {most}")
    return int(value)
