"""Attention as one fused kernel, forward and backward: prefill, decode with split keys, caches of another width.

The time is that of `workbench.cost.kernels_attention`; here operators and cards become its rows. Beside the attention kernel
an operator launches what belongs to it: the append of new keys and values to a cache (with a cast where widths differ), the
combination of split keys, and in backward the row sums of ``o x do`` and the conversion of dQ (FlashAttention-2).
"""

from __future__ import annotations

import numpy as np

from workbench.cost import kernels
from workbench.cost import kernels_attention as k
from workbench.cost.choices import COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced, empty
from workbench.cost.pack import Cards
from workbench.cost.pack_matrix import levels
from workbench.hardware.spec import NpuSpec
from workbench.operators.attention import TOP_LEFT, pairs, seen

NAMES = (
    "batch", "heads", "kv_heads", "queries", "keys", "head", "value", "causal", "window", "bits", "page", "splits", "portable",
)  # fmt: skip
FEW_ROWS = 64.0  # least rows of a tile that all arrays of a core share: their quanta together, but no more than this
CAST = 0.7  # launches of a small kernel right behind another
TRANSPOSE = 4.0  # vector operations an element of V that 8-bit products want transposed (FlashAttention-3, section 3.3)
CONVERT = 2.0  # vector operations an element of a cache that is narrower than the products
PORTABLE_CONVERT = 10.0  # times as many where a portable kernel does it
PORTABLE_SPLITS, MOST_SPLITS = 8.0, 128.0
MASKS = 2.0  # kernels that list what a portable kernel's window keeps
ROW_SUMS = 8.0  # log-sum-exp and row sum of o x do that backward reads a query [B]


def attention(
    dims: np.ndarray, flops: np.ndarray, size: np.ndarray, backward: bool, column: np.ndarray, cards: Cards, copies: Copies = COLD
) -> Priced:
    """Price fused attention.

    Parameters
    ----------
    dims : ndarray, shape (U, >= 13)
        As ``DIMS[Kind.ATTENTION_FORWARD]``.
    flops : ndarray, shape (U,)
        Model FLOPs as in `workbench.operators.attention`, pairs counted exactly [FLOP].
    size : ndarray, shape (U,)
        Bytes an element [B].
    backward : bool
        Recomputes scores: five products instead of two, and three gradients written.
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    copies : Copies
        What is warm, see `workbench.cost.choices`.

    Returns
    -------
    Priced
    """
    out = empty(len(flops), cards)
    part = np.zeros((*out.seconds.shape, k.PARTS))
    k.price(operators(dims, flops, size, backward, copies[0]), card_columns(cards), column.astype(np.int64), out.seconds, part)
    matrix, vector, local = part[..., k.MATRIX], part[..., k.VECTOR], part[..., k.LOCAL]
    core = part[..., k.CORE]
    stall = np.maximum(core**4 - matrix**4 - vector**4 - local**4, 0.0) ** 0.25  # so that the four join to the core's time
    out.resource[..., Bound.MATRIX], out.resource[..., Bound.VECTOR], out.resource[..., Bound.LOCAL] = matrix, vector, local
    out.resource[..., Bound.SHARED], out.resource[..., Bound.MEMORY] = part[..., k.SHARED_TIME], part[..., k.MEMORY_TIME]
    overhead = part[..., k.LAUNCHES] + part[..., k.FILL]
    out.resource[..., Bound.LAUNCH] = overhead + stall
    out.level[..., 1], out.level[..., 2] = part[..., k.STREAMED], part[..., k.OUTSIDE]
    out.detail[..., 0], out.detail[..., 1] = part[..., k.LAUNCHES], part[..., k.FILL]
    body = out.seconds - overhead
    own = np.divide(core, body, out=np.zeros_like(core), where=body > 0.0) ** 4
    out.detail[..., 2] = body * np.minimum(own, 1.0) * part[..., k.IDLE]
    return out


def operators(dims: np.ndarray, flops: np.ndarray, size: np.ndarray, backward: bool, copies: float) -> np.ndarray:
    """Return the columns `kernels_attention` reads of operators, float64 [U, ROW].

    Parameters
    ----------
    dims, flops, size, backward
        As in `attention`.
    copies : float
        Working sets that compete for the shared level between two uses.
    """
    out = np.zeros((len(flops), k.ROW))
    given = np.maximum(dims[:, : len(NAMES)], 0).astype(np.float64)
    of = dict(zip(NAMES, given.T, strict=True))
    of["heads"], of["kv_heads"] = np.maximum(of["heads"], 1.0), np.maximum(of["kv_heads"], 1.0)
    width = of["head"] + of["value"]
    of["count"] = flops / np.maximum((4.0 if backward else 2.0) * of["batch"] * of["heads"] * width, 1.0)
    of["cache"] = np.where(of["bits"] > 0, of["bits"] / 8.0, size)
    out[:, k.HEAD], out[:, k.VALUE], out[:, k.COPIES] = of["head"], of["value"], copies
    (_backward if backward else _forward)(out, of, size, width)
    return out


def _forward(out: np.ndarray, of: dict[str, np.ndarray], size: np.ndarray, width: np.ndarray) -> None:
    """Fill the columns of forward operators: a tile is a block of queries, keys and values stream past it."""
    batch, queries, keys, cache = of["batch"], of["queries"], of["keys"], of["cache"]
    lines, groups = np.maximum(queries, 1.0), batch * of["kv_heads"]
    blind = (of["portable"] > 0) & ((queries > 1) | (keys <= queries))  # not decode
    window = np.where(blind, 0.0, of["window"])
    windowed = blind & (of["window"] > 0)  # such kernels walk over what a window masks
    count = np.where(windowed, pairs(queries, keys, of["causal"], 0), of["count"])
    masked = (lines > 1.0) & ((of["causal"] > 0) | (window > 0))
    index = np.where(of["page"] > 0, 4.0 * batch * np.ceil(keys / np.maximum(of["page"], 1.0)), 0.0)
    new = np.where(of["bits"] > 0, groups * np.minimum(queries, keys) * width, 0.0)
    cast = cache != size
    general = (of["head"] != 2.0 ** np.floor(np.log2(np.maximum(of["head"], 1.0)))) | (of["head"] != of["value"])
    out[:, k.GROUPS], out[:, k.PACKED], out[:, k.LINES], out[:, k.STREAM] = groups, of["heads"] / of["kv_heads"], lines, keys
    out[:, k.MEAN] = count / lines
    out[:, k.MOST] = np.where(masked, np.where(of["causal"] == TOP_LEFT, np.minimum(keys, queries), keys), count / lines)
    out[:, k.SUM], out[:, k.FIRST], out[:, k.SECOND], out[:, k.LINE_BYTES] = of["value"], 1.0, 1.0, of["head"] * size
    out[:, k.STREAM_BYTES] = out[:, k.TRAFFIC] = width * cache
    kept = groups * seen(queries, keys, of["causal"], window) * width * cache
    out[:, k.OWN] = batch * of["heads"] * queries * width * size + kept + index
    out[:, k.NEW], out[:, k.APPEND] = new * size, new * (size + cache + np.where(cast, 2.0 * cache, 0.0))
    small = 2.0 * cast + 3.0 * general  # casts of keys and of values; general scatters in place of one kernel
    out[:, k.EXTRA] = np.where(of["bits"] > 0, 1.0 + CAST * small, 0.0) + np.where(windowed, MASKS, 0.0)
    out[:, k.FIXED], out[:, k.PORTABLE] = of["splits"], blind
    out[:, k.LIMIT] = np.where((of["portable"] > 0) & ~blind, PORTABLE_SPLITS, MOST_SPLITS)
    out[:, k.MASKED], out[:, k.WINDOW] = masked, np.where(window < keys, window, 0.0)
    widened = np.where(cast, CONVERT * np.where(blind, PORTABLE_CONVERT, 1.0) * width, 0.0)
    out[:, k.CONVERTED] = np.where(size < 2.0, TRANSPOSE * of["value"], 0.0) + widened


def _backward(out: np.ndarray, of: dict[str, np.ndarray], size: np.ndarray, width: np.ndarray) -> None:
    """Fill the columns of backward operators: a tile is a block of keys, queries and what belongs to them stream past it."""
    batch, heads, queries, keys, window = of["batch"], of["heads"], of["queries"], of["keys"], of["window"]
    out[:, k.GROUPS], out[:, k.PACKED], out[:, k.LINES], out[:, k.STREAM] = batch * heads, 1.0, np.maximum(keys, 1.0), queries
    out[:, k.MEAN], out[:, k.MOST] = of["count"] / np.maximum(keys, 1.0), queries
    out[:, k.SUM], out[:, k.FIRST], out[:, k.SECOND], out[:, k.LINE_BYTES] = width, 3.0, 2.0, width * size
    out[:, k.STREAM_BYTES] = width * size + ROW_SUMS
    out[:, k.TRAFFIC] = out[:, k.STREAM_BYTES] + 8.0 * of["head"]  # dQ is summed in fp32: read and written
    both = batch * (heads * queries + of["kv_heads"] * seen(queries, keys, of["causal"], window)) * width * size
    out[:, k.OWN] = 2.0 * both + batch * heads * queries * (8.0 * of["head"] + ROW_SUMS)
    out[:, k.EXTRA], out[:, k.LIMIT] = 2.0, MOST_SPLITS  # row sums of o x do before, dQ to the operands' type after
    out[:, k.MASKED] = (keys > 1.0) & ((of["causal"] > 0) | (window > 0))
    out[:, k.WINDOW] = np.where(window < keys, np.minimum(window, queries), 0.0)


def card_columns(cards: Cards) -> np.ndarray:
    """Return the columns `kernels_attention` reads of cards, float64 [S, D, CARD]."""
    out = np.zeros((*cards.matrix.shape[:2], k.CARD))
    for mine, theirs in _COLUMNS.items():
        out[..., mine] = cards.matrix[..., theirs]
    whole = (cards.cores * np.array([spec.clock for spec in cards.specs]))[:, None]
    out[..., k.SPECIAL], out[..., k.LANES] = cards.special_rate[:, None] / whole, cards.softmax_rate[:, None] / whole
    rows = cards.matrix[..., kernels.QM]
    whole_steps = cards.matrix[..., kernels.FLOW] == kernels.CUBE
    out[..., k.ROWS] = np.where(whole_steps, np.minimum(rows * cards.matrix[..., kernels.ARRAYS], np.maximum(rows, FEW_ROWS)), rows)
    for s, spec in enumerate(cards.specs):
        out[s, :, k.SUMS], out[s, :, k.SCORES] = _sums(spec)
        out[s, :, k.ASYNC] = asynchronous(spec)
        shared = levels(spec)[1]
        out[s, :, k.SHARED] /= spec.memory[shared].replicas if shared else 1.0
    return out


def asynchronous(spec: NpuSpec) -> bool:
    """Whether the matrix unit works on its own while the core's vector unit computes: stated, else true of all but dot-product units.

    Tensor cores up to Ada are driven instruction by instruction by the warps that also do the softmax; a DaVinci cube, a systolic
    array, and Hopper's warp-group products (FlashAttention-3, section 3) run beside them.
    """
    stated = getattr(spec.matrix, "asynchronous", None)
    return spec.matrix.dataflow != "dot" if stated is None else bool(stated)


def _sums(spec: NpuSpec) -> tuple[float, float]:
    """Return the bytes for sums, and those of the vector unit's own buffer where it is another one (0: the same)."""
    level = spec.matrix.accumulator or spec.matrix.staging
    if level is None:
        return kernels.UNBOUND, 0.0
    own = spec.vector.buffer if spec.vector.buffer not in (None, level) else None
    return spec.memory[level].size, spec.memory[own].size if own else 0.0


_COLUMNS = {
    k.CORES: kernels.CORES, k.CLOCK: kernels.CLOCK, k.MACS: kernels.MACS, k.COMPUTE: kernels.ETA_COMPUTE, k.MEMORY: kernels.ETA_MEMORY,
    k.LAUNCH: kernels.LAUNCH, k.PORT: kernels.PORT, k.STAGING: kernels.STAGING, k.RATE_SHARED: kernels.RATE_SHARED,
    k.RATE_MEMORY: kernels.RATE_MEMORY, k.LATENCY_SHARED: kernels.LATENCY_SHARED, k.LATENCY_MEMORY: kernels.LATENCY_MEMORY,
    k.SHARED: kernels.SHARED, k.STEP: kernels.STEP, k.SPLIT: kernels.SPLIT,
    k.QUANTUM_K: kernels.QK, k.QUANTUM_N: kernels.QN,
}  # fmt: skip
