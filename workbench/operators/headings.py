"""Headings of tables: what a column is called by vendors, profilers and frameworks -> the name this project uses, and its unit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType

import yaml

from workbench.operators.cells import UNITS
from workbench.operators.table import DIMS, Kind

LABELS = ("kind", "op", "operator", "type", "name")
TITLES = ("layer", "case", "name", "operator", "op", "kind", "type")
SHAPES = ("input_shapes", "output_shapes", "shapes", "mnk")
TENSORS = ("input_shapes", "output_shapes", "dtype", "output_dtype")
SILENT = (
    "device", "source", "kernel", "split", "transa", "transb", "grid", "kv_dtype", "note", "notes", "comment", "layer", "case", "name",
    "measured_tflops", "peak_tflops", "signature", "count", "dtype", "mask", "layout", "output_dtype", "clock", *SHAPES,
)  # fmt: skip
"""Columns that carry no dimension and need no remark."""
_MATMUL = {"batch": ("batch", "b", "groups", "g"), "m": ("m",), "n": ("n",), "k": ("k",)}
_CONV = {
    "n": ("n", "batch"), "c": ("c", "in_channels"), "h": ("h",), "w": ("w",), "k": ("k", "out_channels"),
    "r": ("r", "kernel_h", "kernel_size"), "s": ("s", "kernel_w", "kernel_size"),
    **{name: (name, name[:-2]) if name[-2:] in ("_h", "_w") else (name,) for name in DIMS[Kind.CONV_FORWARD][7:]},
}  # fmt: skip
_ATTENTION = {
    "batch": ("batch", "b"), "heads": ("heads", "h", "q_heads", "num_heads"), "kv_heads": ("kv_heads", "hkv", "num_kv_heads"),
    "queries": ("queries", "s", "q_len", "seq_len"), "keys": ("keys", "l", "kv_len"),
    "head_dim": ("head_dim", "d", "head_dim_qk", "head_size"), "value_dim": ("value_dim", "head_dim_v"), "causal": ("causal",),
    "window": ("window",), "kv_bits": ("kv_bits",), "page": ("page", "page_size"), "splits": ("splits", "num_splits", "kv_splits"),
    "portable": ("portable",),
}  # fmt: skip
_GROUPED = {
    "groups": ("groups", "experts", "num_experts"), "rows": ("rows", "tokens", "total_rows"),
    "busiest": ("busiest", "busiest_rows"), "n": ("n",), "k": ("k",),
}  # fmt: skip
_ROWS = {"rows": ("rows",), "cols": ("cols", "columns")}
ALIASES: Mapping[Kind, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {kind: {name: (name,) for name in names} for kind, names in DIMS.items()}
    | dict.fromkeys((Kind.GEMM, Kind.BATCHED_GEMM), _MATMUL)
    | dict.fromkeys((Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT, Kind.CONV_BACKWARD), _CONV)
    | dict.fromkeys((Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD), _ATTENTION)
    | dict.fromkeys((Kind.SOFTMAX, Kind.NORM, Kind.REDUCTION, Kind.EMBEDDING, Kind.SORT), _ROWS)
    | {Kind.GROUPED_GEMM: _GROUPED}
    | {Kind.RNN: {"hidden": ("hidden",), "batch": ("batch", "b"), "timesteps": ("timesteps", "steps")}}
)
"""Columns (small letters) that give each dimension of a kind, best first."""
DEFAULTS: Mapping[str, int] = MappingProxyType(
    {"groups": 1, "dilation_h": 1, "dilation_w": 1, "stride_h": 1, "stride_w": 1, "pad_h": 0, "pad_w": 0, "depth": 1, "t": 1,
     "window": 0, "direction": 0, "tensors": 1, "kv_bits": 0, "page": 0, "splits": 0, "portable": 0, "layout": 0}
)  # fmt: skip
KNOWN = frozenset(name for kind in ALIASES.values() for names in kind.values() for name in names) | set(SILENT) | set(LABELS)
_WORDS = "latency|time|duration|elapsed|runtime|run time|mean|median|avg|average|\u8017\u65f6|\u65f6\u5ef6|\u65f6\u95f4"
_NOT = re.compile(
    r"start|begin|end(?![a-z])|stop|stamp|wait|queue|compil|host|std|stdev|deviation|jitter|min(?![a-z])|max(?![a-z])|p\d\d|percentile|best"
    r"|worst|total_time_of|aicore|aic_|aiv_|aicpu|_ratio|theor|roof|ideal|\u5f00\u59cb|\u7ed3\u675f|\u7b49\u5f85"
)
_UNIT = re.compile(r"(?P<base>.*?)[\s_/,:|.\-]*[\[(\uff08\u3010]?\s*(?P<unit>" + "|".join(sorted(UNITS, key=len, reverse=True))
                   + r")(?:\s*(?:/|per)\s*(?:iter|iteration|call|op|step|run))?\s*[\])\uff09\u3011]?\Z")  # fmt: skip
_TIMED = re.compile(_WORDS)
_CYCLES = re.compile(
    r"(?:(?:total|avg|average|mean|median|task|kernel|elapsed)[\s_]*)?"
    r"(?:cycles?|clks?|clocks|cycle[\s_]?counts?|\u5468\u671f\u6570?)(?:[\s_]*(?:count|total))?"
)
_RANKS = (re.compile(r"median"), re.compile(r"mean|avg|average"))
BARE = re.compile(rf"(?:[\w\s]*?(?:\A|[\s_]))?(?:{_WORDS})(?:[\s_]+[\w\s]*)?\Z")


def defaults(kind: Kind, causal: int) -> dict[str, int]:
    """Return the dimensions of a kind that a table need not give; ``causal`` as the operator's name says."""
    if kind == Kind.GROUPED_GEMM:
        return {"busiest": 0}
    return dict(DEFAULTS) | ({"batch": 1} if kind in (Kind.GEMM, Kind.BATCHED_GEMM) else {"causal": causal})


def time_unit(name: str) -> float | None:
    """Return what one of a time column's unit is [s]; None where the column is no time or has no unit.

    ``"latency_us"``, ``"Duration(us)"``, ``"time [ms]"``, ``"Latency/ns"`` and a bare ``"us"`` are times; starts, waits, minima and
    the busy times of single units are not.
    """
    plain = " ".join(name.lower().split())
    found = _UNIT.match(plain)
    if not found or _NOT.search(plain):
        return None
    base, unit = found.group("base"), found.group("unit")
    attached = bool(base) and plain[len(base) : len(base) + 1].isalnum()
    if attached or not (_TIMED.search(base) or (not base and unit != "s")):
        return None
    return UNITS[unit]


def is_bare_time(name: str) -> bool:
    """Whether a column is a time that does not say its unit."""
    plain = " ".join(name.lower().split())
    return bool(BARE.match(plain)) and not _NOT.search(plain) and time_unit(name) is None


def is_cycles(name: str) -> bool:
    """Whether a column counts clock cycles of the whole operator."""
    return bool(_CYCLES.fullmatch(" ".join(re.sub(r"[\[(].*[\])]", "", name.lower()).split())))


def best_times(names: Sequence[str]) -> list[str]:
    """Return the names of time columns that no better one makes superfluous: medians go before means, means before others."""
    for rank in _RANKS:
        chosen = [name for name in names if rank.search(name)]
        if chosen and len(chosen) < len(names):
            return chosen
    return list(names)


LONGEST = 200
"""Letters beyond which a cell is no heading: patterns are not tried on what may be a whole file in one line."""


@cache
def _spellings() -> Mapping[str, str]:
    """Read headings.yaml once (it is part of the package): spelling to the name this project uses."""
    text = resources.files("workbench.operators").joinpath("headings.yaml").read_text(encoding="utf-8")
    return MappingProxyType({other: name for name, others in yaml.safe_load(text)["columns"].items() for other in others})


@lru_cache(4096)
def canonical(name: str) -> str:
    """Return the name this project uses for a column (small letters); the name itself where no other spelling is known."""
    plain = " ".join(name.strip().strip("'\"").lower().split())
    if plain in KNOWN or len(plain) > LONGEST:
        return plain
    short = re.sub(r"\s*[\[(].*[\])]\Z", "", plain)
    for text in (plain, short, plain.replace("_", " "), short.replace("_", " ")):
        if text in _spellings():
            return _spellings()[text]
    return short if short in KNOWN and short != plain and len(short) > 0 else plain


def misspelt(unused: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return those of the unused columns that nearly are a known one which the table lacks, and that one's name.

    Parameters
    ----------
    unused, names : sequence of str
        Columns no dimension is read from, and all columns; as `canonical` returns them.
    """
    absent = (KNOWN | {"latency_us"}) - set(names)
    out = {}
    for name in unused:
        doubled = len(name) == 2 and name[0] == name[1] and name[0] in absent
        near = [name[0]] if doubled else difflib.get_close_matches(name, sorted(absent), 1, 0.8) if 3 < len(name) <= LONGEST else []
        if near and not time_unit(name):
            out[name] = near[0]
    return out


def known(name: str) -> bool:
    """Whether a cell reads like a heading of a table of operators."""
    plain = canonical(name)
    if len(plain) > LONGEST:
        return False
    return plain in KNOWN or plain in ("line",) or time_unit(name) is not None or is_cycles(name) or (is_bare_time(name) and len(name) < 24)


def is_unit(cell: str) -> bool:
    """Whether a cell of a row of units could be one."""
    plain = cell.strip().strip("[]()\uff08\uff09").lower()
    return plain in UNITS or plain in ("", "-", "cycles", "cycle", "clk", "b", "kb", "mb", "gb", "gb/s", "tb/s", "gflop", "gflops",
                                       "tflops", "flop", "%", "mhz", "ghz", "hz", "count", "elements", "n/a", "1", "#")  # fmt: skip
