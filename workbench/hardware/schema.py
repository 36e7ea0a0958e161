"""Keys of an NPU description: type, unit, default, meaning. Reading, checking, writing and editing all use this one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REQUIRED: Any = object()
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int32", "int16", "int8", "int4")
DATAFLOWS = ("cube", "dot", "os", "ws", "is")
SCOPES = ("core", "cluster", "chip")
ERROR_GROUPS = (
    "gemm", "batched_gemm", "conv_forward", "conv_backward_data", "conv_backward_weight", "conv_backward", "attention_prefill",
    "attention_decode", "attention_backward", "elementwise", "reduction", "softmax", "norm", "embedding", "pooling", "copy", "set",
    "optimizer", "rnn", "sort", "grouped_gemm",
)  # fmt: skip
"""Kinds of operators whose error is stated apart: those of the operator table, attention divided by how many queries there are."""
FALLBACK_DTYPES = (*DTYPES, "int64", "uint8", "bool", "complex64")
"""Element types that operators outside the matrix unit may have."""
PROCESSES = ("45 nm", "28 nm", "20 nm", "16 nm", "14 nm", "12 nm", "10 nm", "8 nm", "7 nm", "6 nm", "5 nm", "4 nm", "3 nm", "2 nm")
"""Nodes by the name their makers give them; no length of anything."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key.

    ``type`` is ``"quantity"`` (text with ``unit``), ``"int"``, ``"float"``, ``"bool"``, ``"text"``, ``"choice"``,
    ``"level"`` (name of a memory level), ``"share"`` (``"3/8"`` or 0.375),
    ``"texts"``, ``"ints"``, ``"table"`` (dtype -> float, or -> quantity when it has a unit) or ``"intervals"`` (group -> [low, high]).
    ``low`` and ``high`` are sensible limits for an editor; only ``minimum`` and ``maximum`` are enforced.
    """

    type: str
    default: Any = None
    unit: str = ""
    label: str = ""
    help: str = ""
    low: float = 0.0
    high: float = 0.0
    minimum: float = 0.0  # exclusive unless zero_ok
    maximum: float = float("inf")
    zero_ok: bool = False
    choices: tuple[str, ...] = ()


def _quantity(unit: str, label: str, help_: str, low: float, high: float, default: Any = None, zero_ok: bool = False) -> Entry:
    return Entry("quantity", default, unit, label, help_, low, high, zero_ok=zero_ok)


def _count(label: str, help_: str, low: float, high: float, default: Any = REQUIRED) -> Entry:
    return Entry("int", default, "", label, help_, low, high)


TOP: Mapping[str, Entry] = {
    "name": Entry("text", REQUIRED, label="Name"),
    "vendor": Entry("text", "", label="Vendor"),
    "aliases": Entry("texts", (), label="Names of this card in traces"),
    "cores": _count(
        "Cores",
        "Cores that each hold a matrix and a vector unit (SM, CU, AI core). More cores shorten every compute-bound operator.",
        1,
        512,
    ),
    "clock": _quantity(
        "Hz",
        "Clock",
        "Core clock under load. Scales matrix, vector and per-clock memory rates; HBM and launch stay as they are.",
        0.2e9,
        4e9,
        REQUIRED,
    ),
    "confidence": Entry("choice", "weak", label="Confidence", choices=("high", "medium", "weak", "invented")),
    "sources": Entry("texts", (), label="Sources"),
    "weak": Entry("texts", (), label="Weak numbers"),
}
MATRIX: Mapping[str, Entry] = {
    "rows": _count(
        "Rows",
        "Rows of one multiply-accumulate array (M of a tile step). Larger arrays are faster, but waste more on ragged shapes.",
        1,
        512,
    ),
    "cols": _count("Columns", "Columns of one array (N of a tile step).", 1, 512),
    "depth": _count("Depth", "Products summed in one step (K of a tile step); 1 for a systolic array.", 1, 512, 1),
    "arrays_per_core": _count("Arrays a core", "Arrays working side by side in one core.", 1, 64, 1),
    "dataflow": Entry(
        "choice",
        "cube",
        label="Dataflow",
        choices=DATAFLOWS,
        help="cube or dot: a whole tile step a cycle; os, ws, is: systolic fill and drain.",
    ),
    "rate": Entry("table", {}, label="Rate by dtype", help="Multiply-adds a cycle relative to rows x cols x depth.", low=0.0625, high=8.0),
    "sparse": Entry(
        "table",
        {},
        label="Structured sparsity",
        help="Factor on the rate where 2 of every 4 weights along K are zero and left out; operators take it only when told to.",
        low=1.0,
        high=2.0,
        maximum=4.0,
    ),
    "tile_quantum": Entry(
        "ints", (), label="Tile quantum", help="Smallest m, n, k a kernel works on; shapes are padded to it. Default: rows, cols, depth."
    ),
    "accumulator": Entry("level", None, label="Accumulator", help="Level that holds a tile's sums; its size limits the tile."),
    "operand_a": Entry("level", None, label="A buffer", help="Level that feeds the array with A."),
    "operand_b": Entry("level", None, label="B buffer", help="Level that feeds the array with B."),
    "staging": Entry("level", None, label="Staging", help="Core-local level in which operand tiles are (double-)buffered."),
    "asynchronous": Entry(
        "bool",
        None,
        label="Asynchronous",
        help="Products run on their own while the core's vector unit works (attention hides its softmax). Default: all but dot.",
    ),
    "layout": Entry(
        "choice",
        None,
        label="Operand layout",
        choices=("fractal",),
        help="fractal: an operator of its own converts inputs to blocks of the tile quantum before a product, and results back.",
    ),
    "peak": Entry(
        "table", {}, "FLOP/s", label="Stated dense peak", help="Checked against cores x arrays x size x clock; never used to price."
    ),
}
VECTOR: Mapping[str, Entry] = {
    "lanes": _count(
        "Lanes",
        "Vector multiply-adds a cycle and core at rate 1. Speeds up softmax, norms and activations once they leave the memory bound.",
        1,
        4096,
    ),
    "rate": Entry("table", REQUIRED, label="Rate by dtype", help="Vector operations a cycle relative to the lanes.", low=0.0625, high=8.0),
    "special": Entry(
        "float", 1.0, "", "Special functions", "exp, tanh, rsqrt ... a cycle and core. Limits attention and softmax when low.", 1, 1024
    ),
    "buffer": Entry("level", None, label="Vector buffer", help="Level a row must fit in to be read once."),
    "contexts": _count(
        "Contexts", "Groups of lanes (warps) a core of threads keeps going; they hide each other's waiting. Default: 64.", 8, 128, None
    ),
    "exchange": Entry(
        "level", None, label="Exchange", help="Level through which matrix and vector cores hand tiles over; none: they share buffers."
    ),
}
LEVEL: Mapping[str, Entry] = {
    "size": _quantity(
        "B", "size", "Capacity of one instance. Decides tiles, re-reads and what stays resident.", 2.0**14, 2.0**38, REQUIRED
    ),
    "bandwidth": _quantity(
        "B/s",
        "bandwidth",
        "Read bandwidth of one instance (text in B/clk follows the clock). Sets the time of operators bound by this level.",
        1e10,
        2e13,
    ),
    "write_bandwidth": _quantity("B/s", "write bandwidth", "Write bandwidth where it differs from reading.", 1e10, 2e13),
    "efficiency": Entry(
        "float", None, "", "efficiency", "Sustained share of the bandwidth. Default: by the kind of level.", 0.2, 1.0, maximum=1.0
    ),
    "latency": _quantity("s", "latency", "Time from request to data. Felt by small operators and short tiles.", 0.0, 2e-6, 0.0, True),
    "scope": Entry("choice", "core", label="scope", choices=SCOPES),
    "type": Entry("choice", "scratchpad", label="type", choices=("scratchpad", "cache")),
    "double_buffer": Entry("bool", True, label="double buffer", help="Half the level is filled while the other half is used."),
    "multicast": Entry("float", 1.0, "", "multicast", "Cores served by one read of this level.", 1, 64),
    "replicas": _count("replicas", "Parts of a cache that each keep what their own cores read: so many copies of shared data.", 1, 8, 1),
    "reach": _quantity("B", "reach", "Bytes whose addresses a core translates at once (TLB); longer rows walk pages.", 2.0**20, 2.0**40),
    "cores": Entry("int", None, "", "cores a cluster", "Cores that share one instance of a level of a cluster (a die's L2).", 1, 512),
    "energy": _quantity("J/B", "energy", "Of a byte that this level gives or takes, the way to its user included.", 1e-13, 1e-9),
}
RUNTIME: Mapping[str, Entry] = {
    "launch_overhead": _quantity(
        "s", "Kernel overhead", "Device time every kernel costs whatever it does (the floor of small operators).", 0.0, 2e-5, 2e-6, True
    ),
    "issue": Entry("float", 0.0, "", "Issue", "Cycles to issue one tile step of the matrix unit.", 0, 128, zero_ok=True),
    "split_k": Entry("bool", True, label="Split K", help="Kernels may split the sum over K among cores."),
    "partition": Entry(
        "choice",
        "static",
        label="Work partition",
        choices=("static", "dynamic"),
        help="static: whole tiles a core, the last wave may be ragged; dynamic: work is evened out below a tile.",
    ),
}
POWER: Mapping[str, Entry] = {
    "tdp": _quantity("W", "TDP", "Power limit. Where energy by dtype is stated, the clock falls until an operator keeps to it.", 5, 2000),
    "idle": _quantity("W", "Idle power", "Drawn whatever runs: leakage, fans, memory refresh, idle clocks.", 1, 500),
    "sustained_clock": _quantity(
        "Hz", "Sustained clock", "Clock held under matrix load; replaces the clock there, and the power limit with it.", 0.2e9, 4e9
    ),
    "process": Entry("choice", None, label="Process", choices=PROCESSES, help="Node; scales published energies where none is stated."),
    "energy": Entry(
        "table",
        {},
        "J/FLOP",
        "Matrix energy",
        "Of an operation of the matrix unit at full clock, operands from inside the core included.",
        1e-14,
        1e-10,
    ),
    "vector_energy": Entry("table", {}, "J/FLOP", "Vector energy", "The same of an operation of the vector unit.", 1e-14, 1e-10),
}
FALLBACK: Mapping[str, Entry] = {
    "operators": Entry(
        "texts", (), label="Operators that fall back", help="Kinds, dtypes, or kind:dtype that run on the card's control processors."
    ),
    "rate": _quantity("FLOP/s", "Fallback rate", "Operations a second of an operator on the control processors.", 1e8, 1e12, REQUIRED),
    "bandwidth": _quantity("B/s", "Fallback bandwidth", "At which the control processors reach the operands.", 1e8, 1e12, REQUIRED),
    "launch": _quantity("s", "Fallback launch", "Hand-over of an operator to the control processors and back.", 0.0, 1e-3, 5e-5, True),
}
LINK: Mapping[str, Entry] = {
    "bandwidth": _quantity("B/s", "bandwidth", "Bandwidth per direction.", 1e9, 2e12, REQUIRED),
    "latency": _quantity("s", "latency", "Time of one hop.", 1e-7, 5e-5, 5e-6, True),
    "group_size": _count("group size", "Cards joined by this link.", 2, 1024, 8),
}
CALIBRATION: Mapping[str, Entry] = {
    "compute": Entry("float", REQUIRED, "", "compute efficiency", "Sustained share of the matrix peak.", 0.2, 1.0, maximum=1.0),
    "memory": Entry("float", REQUIRED, "", "memory efficiency", "Sustained share of the outermost bandwidth.", 0.2, 1.0, maximum=1.0),
    "launch": _quantity("s", "launch", "Fitted kernel overhead; replaces the runtime's.", 0.0, 2e-5, REQUIRED, True),
    "error": Entry("float", REQUIRED, "", "error", "80 % of left-out rows lie within a factor 1 + error.", 0.0, 2.0, zero_ok=True),
    "errors": Entry(
        "intervals", {}, label="Errors by kind", help="80 % of left-out measured times lie between predicted x (1 + low) and x (1 + high)."
    ),
    "source": Entry("text", "", label="Source"),
}
PARTITION: Mapping[str, Entry] = {
    "cores": _count("cores", "Cores of the partition.", 1, 512),
    "memory": Entry(
        "share", REQUIRED, "", "memory share", "Its share of size and bandwidth of every level of the chip.", 0.0, 1.0, maximum=1.0
    ),
    "aliases": Entry("texts", (), label="Names in traces", help="Default: the card's names followed by MIG and the partition's name."),
}
SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "matrix": MATRIX, "vector": VECTOR, "runtime": RUNTIME, "power": POWER, "link": LINK, "host": LINK, "fallback": FALLBACK,
}  # fmt: skip
"""Sections with fixed keys; ``memory``, ``calibration`` and ``partitions`` are mappings of LEVEL, CALIBRATION and PARTITION by name."""
OPTIONAL = ("link", "host", "fallback")
"""Sections that a card may lack altogether."""
GROUPS: Mapping[str, Mapping[str, Entry]] = {"memory": LEVEL, "calibration": CALIBRATION}
NEEDED = ("matrix", "vector", "memory")


def entry_of(path: str) -> Entry | None:
    """Return the entry behind a dotted path such as ``memory.hbm.size`` (dtype keys: ``matrix.rate.bf16``), None when there is none."""
    parts = path.split(".")
    if len(parts) == 1:
        return TOP.get(path)
    if parts[0] in GROUPS:
        return GROUPS[parts[0]].get(parts[2]) if len(parts) == 3 else None
    entry = SECTIONS.get(parts[0], {}).get(parts[1])
    if entry is not None and entry.type == "table":
        return entry if len(parts) == 3 and parts[2] in DTYPES else None
    return entry if len(parts) == 2 else None
