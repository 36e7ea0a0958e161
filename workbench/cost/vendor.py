"""A vendor's operator times: a CSV read strictly, looked up exactly."""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import units
from workbench.data import read_small
from workbench.errors import InvalidSpec, Note, UnreadableInput
from workbench.operators.table import DIMS, Dtype, Kind, OpTable

TIME_COLUMN = re.compile(r"(?:latency|time|duration|mean|median)_(ns|us|ms|s)\Z")
CONTRACT = {
    "launch": "is the launch included (yes/no)",
    "caches": "were caches cold or warm",
    "clock": "at which clock, e.g. 1.41 GHz",
    "layout": "is layout conversion included",
    "fusion": "what is fused into one row",
    "simulator": "which simulator or library version",
}
"""Questions a vendor table should answer in ``# key: value`` lines above its header (design.md, section 7)."""
KEYS = ("kind", "op", "operator", "name", "signature")
IGNORED = ("device", "source", "kernel", "split", "transa", "transb", "grid", "count", "kv_dtype", "note", "notes", "comment")
ALIASES = {"b": "batch", "hkv": "kv_heads", "d": "head_dim", "l": "keys", "h": "h", "s": "s"}
MISSING = ("", "n/a", "na", "nan", "-", "none", "null")
KIND_WORDS = {
    "gemm": Kind.GEMM, "matmul": Kind.GEMM, "linear": Kind.GEMM, "mm": Kind.GEMM, "bmm": Kind.BATCHED_GEMM, "conv": Kind.CONV_FORWARD,
    "conv_fwd": Kind.CONV_FORWARD, "conv_bwd_input": Kind.CONV_BACKWARD_DATA, "conv_bwd_weight": Kind.CONV_BACKWARD_WEIGHT,
    "attention_prefill": Kind.ATTENTION_FORWARD, "attention_decode": Kind.ATTENTION_FORWARD, "attention": Kind.ATTENTION_FORWARD,
    "layernorm": Kind.NORM, "rmsnorm": Kind.NORM, "ln": Kind.NORM,
}  # fmt: skip

Key = tuple[str, str, tuple[int, ...]]


@dataclass(frozen=True)
class VendorTimes:
    """A vendor's times. ``exact`` maps (kind or operator name, dtype, dims) and ``signed`` maps signatures to seconds."""

    path: str
    exact: Mapping[Key, float] = field(repr=False)
    signed: Mapping[str, float] = field(repr=False)
    digest: str
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.exact) + len(self.signed)

    def lookup(self, table: OpTable) -> np.ndarray:
        """Return the stated seconds of every row, float64 [U] [s]; nan where the table has none."""
        out = np.full(len(table), math.nan)
        for row, (kind, dtype) in enumerate(zip(table.kind.tolist(), table.dtype.tolist(), strict=True)):
            found = self.signed.get(table.signature[row])
            if found is None and self.exact:
                dims = tuple(table.dims[row, : len(DIMS[Kind(kind)])].tolist())
                name = Dtype(dtype).name.lower()
                for label in (Kind(kind).name.lower(), table.name[row].lower()):  # the operator's own row goes before its kind's
                    found = self.exact.get((label, name, dims), found)
            if found is not None:
                out[row] = found
        return out


def read_vendor(path: str | os.PathLike[str]) -> VendorTimes:
    """Read a vendor's operator times.

    Columns: ``kind`` (or ``op``, ``operator``, ``name``), ``dtype``, the dims of the kind by name (``m``, ``n``, ``k``, ``batch``
    ...) or ``signature``, and a time with its unit in the header (``latency_us``, ``time_ms``). Lines ``# key: value`` above
    the header answer the questions of `CONTRACT`; those left open are noted.

    Parameters
    ----------
    path : str or path
        CSV file, UTF-8.

    Returns
    -------
    VendorTimes
        Rows without shape or with N/A are left out and counted in a note.

    Raises
    ------
    InvalidSpec
        Unknown column, no unit, a time that is not a positive number; file, line and column are named.
    UnreadableInput
        The file cannot be read as text.
    """
    name = str(path)
    try:
        raw = read_small(path, "give a CSV file in UTF-8")
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableInput(name, f"cannot be read: {error}", "give a CSV file in UTF-8") from None
    lines = text.splitlines()
    comments = [(i, line) for i, line in enumerate(lines, 1) if line.lstrip().startswith("#")]
    rows = list(csv.reader(io.StringIO("\n".join("" if line.lstrip().startswith("#") else line for line in lines))))
    start = next((i for i, row in enumerate(rows) if any(cell.strip() for cell in row)), None)
    if start is None:
        raise InvalidSpec(f"{name}:1", "an empty vendor table", "add a header such as kind,dtype,m,n,k,latency_us and rows")
    header = [cell.strip().lower() for cell in rows[start]]
    columns = _columns(header, f"{name}:{start + 1}")
    exact: dict[Key, float] = {}
    signed: dict[str, float] = {}
    left_out = 0
    for number, row in enumerate(rows[start + 1 :], start + 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise InvalidSpec(f"{name}:{number}", f"{len(row)} cells, but {len(header)} columns", "give one cell a column")
        left_out += not _read_row(
            dict(zip(header, (cell.strip() for cell in row), strict=True)), columns, f"{name}:{number}", exact, signed
        )
    notes = _notes(name, comments, left_out)
    return VendorTimes(name, exact, signed, hashlib.sha256(raw).hexdigest()[:16], notes)


@dataclass(frozen=True)
class _Columns:
    time: str
    factor: float
    label: str | None
    signature: str | None
    dims: Mapping[str, str]  # dim name -> column


def _columns(header: list[str], where: str) -> _Columns:
    known = {name for names in DIMS.values() for name in names}
    times = [name for name in header if TIME_COLUMN.match(name)]
    bare = [name for name in header if name in ("latency", "time", "duration", "mean", "median")]
    if not times:
        if bare:
            raise InvalidSpec(f"{where}: column {bare[0]!r}", "the time has no unit", f"name it {bare[0]}_us (or _ns, _ms, _s)")
        raise InvalidSpec(where, "no column with a time", "add one with its unit, e.g. latency_us")
    if len(times) > 1:
        raise InvalidSpec(where, f"two columns with a time: {', '.join(times)}", "keep one")
    if len(set(header)) < len(header):
        raise InvalidSpec(where, "two columns of one name", "name every column once")
    dims = {}
    for name in header:
        dim = ALIASES.get(name, name) if name not in known else name
        if dim in known:
            dims[dim] = name
        elif name not in (*KEYS, *IGNORED, "dtype", *times):
            near = difflib.get_close_matches(name, (*known, *KEYS, "dtype", "latency_us"), 1, 0.5)
            raise InvalidSpec(
                f"{where}: column {name!r}",
                "unknown column",
                f"did you mean {near[0]!r}?" if near else "drop it, or name a dim, kind, dtype",
            )
    label = next((key for key in KEYS[:-1] if key in header), None)
    signature = "signature" if "signature" in header else None
    if label is None and signature is None:
        raise InvalidSpec(where, "no column says which operator a row is", "add kind, name or signature")
    if label is not None and signature is None and "dtype" not in header:
        raise InvalidSpec(where, "no dtype column", "add dtype (fp16, bf16, fp32 ...)")
    unit = times[0].rpartition("_")[2]
    return _Columns(times[0], units.parse(f"1 {unit}", "s"), label, signature, dims)


def _read_row(cells: Mapping[str, str], columns: _Columns, where: str, exact: dict[Key, float], signed: dict[str, float]) -> bool:
    """Add one row; False when it has no time or no shape."""
    text = cells[columns.time]
    if text.lower() in MISSING:
        return False
    seconds = _number(text, f"{where}: column {columns.time!r}") * columns.factor
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidSpec(f"{where}: column {columns.time!r}", f"{text!r} is not a positive time", "mend the number, or write N/A")
    if columns.signature and cells[columns.signature].lower() not in MISSING:
        _put(signed, cells[columns.signature], seconds, where)
        return True
    if columns.label is None or cells[columns.label].lower() in MISSING:
        return False
    label = cells[columns.label].lower()
    try:
        dtype = Dtype[cells["dtype"].upper()].name.lower() if cells["dtype"].lower() not in MISSING else "unknown"
    except KeyError:
        near = difflib.get_close_matches(cells["dtype"].upper(), Dtype.__members__, 1, 0.3)
        hint = f"did you mean {near[0].lower()}?" if near else "use fp32, fp16, bf16 ..."
        raise InvalidSpec(f"{where}: column 'dtype'", f"unknown dtype {cells['dtype']!r}", hint) from None
    named = label.upper() in Kind.__members__
    kind = Kind[label.upper()] if named else KIND_WORDS.get(label)
    given = {
        dim: _whole(cells[column], f"{where}: column {column!r}")
        for dim, column in columns.dims.items()
        if cells[column].lower() not in MISSING
    }
    candidates = [kind] if kind is not None else [k for k, names in DIMS.items() if names and set(given) <= set(names)]
    added = False
    for candidate in candidates:
        names = DIMS[candidate]
        default = {"batch": 1, "groups": 1, "dilation_h": 1, "dilation_w": 1, "depth": 1, "t": 1} if candidate != Kind.RNN else {}
        full = default | given
        if names and all(dim in full for dim in names):
            word = candidate.name.lower() if kind is not None else label
            _put(exact, (word, dtype, tuple(full[dim] for dim in names)), seconds, where)
            added = True
    return added


def _put(target: dict[Any, float], key: object, seconds: float, where: str) -> None:
    if target.get(key, seconds) != seconds:
        raise InvalidSpec(where, f"a second, different time for {key}", "keep one row an operator")
    target[key] = seconds


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidSpec(where, f"{text!r} is not a number", "write a decimal number, or N/A") from None


def _whole(text: str, where: str) -> int:
    value = _number(text, where)
    if not math.isfinite(value) or value != int(value) or value < 0:
        raise InvalidSpec(where, f"{text!r} is not a count", "write a whole number")
    return int(value)


def _notes(name: str, comments: list[tuple[int, str]], left_out: int) -> tuple[Note, ...]:
    answered = {}
    for _, line in comments:
        key, colon, value = line.lstrip("# ").partition(":")
        if colon and value.strip():
            answered[key.strip().lower()] = value.strip()
    open_questions = [question for key, question in CONTRACT.items() if key not in answered]
    notes = []
    if left_out:
        notes.append(
            Note("vendor-rows-left-out", name, left_out, "rows without a time or without a complete shape are not used", "complete them")
        )
    if open_questions:
        fix = "add lines such as '# caches: warm' above the header"
        notes.append(Note("vendor-contract-open", name, len(open_questions), f"not stated: {'; '.join(open_questions)}", fix))
    return tuple(notes)
