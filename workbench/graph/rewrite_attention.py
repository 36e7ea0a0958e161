"""Unfused attention, softmax(Q K^T) V, found on a stream: two batched products with a softmax between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from workbench.graph.rewrite import Tally
from workbench.graph.rewrite_chain import MAPS, Chains
from workbench.graph.rewrite_rows import Made, NewRow, Rows
from workbench.graph.rewrite_view import View
from workbench.operators.attention import BOTTOM_RIGHT, FULL, attention
from workbench.operators.table import ITEMSIZE, Dtype, Kind

PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM)
MASKS_AHEAD = re.compile(r"(?i)upper_?triang|causal")
"""Names of operators and kernels that mask every later key (Megatron-LM and Apex: ScaledUpperTriangMaskedSoftmax)."""
MOST_BETWEEN = 8
"""Kernels between a product and the softmax: scale, mask, cast, dropout, copies of operands."""


def attention_of(view: View, chains: Chains, rows: Rows, tally: Tally) -> Iterator[tuple[list[int], NewRow]]:
    """Yield the units of every attention that may become one kernel, and its row.

    Parameters
    ----------
    view : View
    chains : Chains
    rows : Rows
        To look made rows up.
    tally : Tally
        Told of those that may not.
    """
    for middle in np.flatnonzero(view.table.kind[view.row] == Kind.SOFTMAX).tolist():
        units = _around(view, middle)
        if not units:
            tally.refuse("no product before and after a softmax with fitting shapes", "record with record_shapes=True")
            continue
        reason = next((text for a, b in pairwise(units) if (text := chains.between(a, b))), "")
        if not reason and view.gradient_follows(middle):
            reason = "its gradient is recorded and reads the probabilities, which a fused kernel does not write"
        if reason:
            tally.refuse(reason, "fuse forward and gradient in the model and record again")
            continue
        tally.assumed["that nothing else reads scores or probabilities is assumed"] += 1
        causal = _causal(view, units)
        if not causal and _masked(view, units):
            tally.assumed["a mask is read whose content is not recorded: all pairs are counted, a causal mask would save up to half"] += 1
        yield units, _row(view, rows, units, middle, causal)


def _around(view: View, middle: int) -> list[int]:
    """Return the units from Q K^T to P V, empty where shapes do not fit."""
    table = view.table
    queries, keys = (int(x) for x in table.dims[view.row[middle], :2])  # rows of all heads, columns
    first, last = _product(view, middle, -1), _product(view, middle, 1)
    if first < 0 or last < 0:
        return []
    (b1, m1, n1, _), (b2, m2, _, k2) = (table.dims[view.row[unit], :4].tolist() for unit in (first, last))
    if (n1, k2) != (keys, keys) or b1 * m1 != queries or (b1, m1) != (b2, m2):
        return []
    return list(range(first, last + 1))


def _product(view: View, middle: int, way: int) -> int:
    at = middle + way
    while 0 <= at < len(view) and abs(at - middle) <= MOST_BETWEEN and view.resource[at] == view.resource[middle]:
        kind = view.table.kind[view.row[at]]
        if kind in PRODUCTS:
            return at
        if kind not in MAPS:
            return -1
        at += way
    return -1


def _causal(view: View, units: list[int]) -> int:
    """Return the mask that names of the softmax and the maps around it say: `BOTTOM_RIGHT` where they mask later keys, else `FULL`."""
    trace, graph = view.trace, view.graph
    for unit in units[1:-1]:
        events = [int(view.operator[unit]), *graph.event[view.nodes(unit)].tolist()]
        names = [view.table.name[view.row[unit]], *(trace.name_of(event) for event in events if event >= 0)]
        if any(MASKS_AHEAD.search(name) for name in names):
            return BOTTOM_RIGHT
    return FULL


def _masked(view: View, units: list[int]) -> bool:
    """Tell whether a map between the products reads queries x keys of something beside the scores."""
    queries, keys = (int(x) for x in view.table.dims[view.row[units[0]], [1, 2]])
    calls = [view.call_of(unit) for unit in units[1:-1]]
    return any(call is not None and sum(t.shape[-2:] == (queries, keys) for t in call.flat) > 1 for call in calls)


def _row(view: View, rows: Rows, units: list[int], middle: int, causal: int) -> NewRow:
    """Return the row of fused attention: Q, K and V read, O written, and what the maps between read beside the scores (a mask).

    FLOPs are those of the two products over the pairs the mask keeps, as of attention that was recorded fused.
    """
    table = view.table
    members = [int(view.row[unit]) for unit in units]
    batch, queries, keys, depth = (int(x) for x in table.dims[members[0], :4])
    value = int(table.dims[members[-1], 2])
    call = view.call_of(middle)
    shape = next((t.shape for t in call.flat if len(t.shape) == 4), None) if call else None
    outer, heads = (shape[0], shape[1]) if shape is not None and shape[0] * shape[1] == batch else (batch, 1)
    dtype = Dtype(table.dtype[members[0]])
    size = ITEMSIZE[dtype]
    work = attention(outer, heads, heads, queries, keys, depth, value, causal=causal, window=0, size=size, backward=False)
    scores = batch * queries * keys * size
    inner = [row for row in members[1:-1] if table.kind[row] == Kind.ELEMENTWISE]
    mask = float(np.maximum(table.bytes_read[inner] - scores, 0.0).sum()) if inner else 0.0
    seconds = table.measured_s[members]
    products = np.isin(table.kind[members], PRODUCTS)
    ratio = float(seconds[products].sum() / seconds.sum()) if seconds.sum() > 0 else 1.0
    name = "attention"
    signature = (
        f"{name}|{dtype.name.lower()}|[{outer},{heads},{queries},{keys},{depth}]{' causal' if causal else ''} of {len(units)} kernels"
    )
    dims = (outer, heads, heads, queries, keys, depth, value, causal, 0)
    return NewRow(
        name,
        signature,
        Kind.ATTENTION_FORWARD,
        dtype,
        dims,
        float(work.flops),
        float(work.read) + mask,
        float(work.written),
        Made(rows.parts(members), rows.ratio(members) * ratio),
    )
