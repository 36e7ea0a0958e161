"""Rules for tables and windows (embedding, gather, scatter, pooling) and for messages between ranks."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any

from workbench.operators import formulas, messages
from workbench.operators.call import Call, message_dtype
from workbench.operators.describe_matrix import Rule
from workbench.operators.described import Described, Ran, described, itemsize
from workbench.operators.table import COLLECTIVES, ITEMSIZE, Dtype, Kind


def gather(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Rows (or elements) of a table selected by an index tensor."""
    del ran
    table, index = call.tensor(rule["table"]), call.tensor(rule["index"])
    if table is None or index is None or not table.shape:
        return None
    cols = 1
    if rule.get("rowwise"):
        cols = prod(table.shape[1:])
    elif "dim" in rule:
        axis = call.integers(rule["dim"])
        if axis is None and len(table.shape) > 1:
            axis = (0,)  # not recorded: rows, as embedding does
        extent = table.shape[(axis or (0,))[0] % len(table.shape)]
        cols = table.numel // extent if extent else 0
    rows = index.numel
    work = formulas.gather(rows, cols, ITEMSIZE[table.dtype], ITEMSIZE[index.dtype], index.numel)
    return described(Kind.EMBEDDING, table.dtype, (rows, cols), work)


def index(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Advanced indexing: index tensors select over the leading axes; None where their shapes were not recorded."""
    del ran
    table, indices = call.tensor(rule["table"]), call.group(rule["index"])
    if table is None or not indices:
        return None
    rows = max(t.numel for t in indices)
    if indices[0].dtype == Dtype.BOOL:
        return None  # as many as are true: not recorded
    cols = prod(table.shape[len(indices) :])
    work = formulas.gather(rows, cols, ITEMSIZE[table.dtype], 8.0, sum(t.numel for t in indices))
    return described(Kind.EMBEDDING, table.dtype, (rows, cols), work)


def update(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Values written or added at indexed places."""
    del ran
    table, values = call.tensor(rule["table"]), call.tensor(rule["values"])
    if table is None or values is None:
        return None
    many = call.tensor(rule.get("index"))
    elements = max(values.numel, many.numel if many else 0)
    cols = table.shape[-1] if len(table.shape) > 1 and values.shape[-1:] == table.shape[-1:] else 1
    rows = elements // cols if cols else 0
    work = formulas.scatter(
        rows, cols, ITEMSIZE[table.dtype], 8.0, many.numel if many else rows, "add" in call.name or "reduce" in call.name
    )
    return described(Kind.EMBEDDING, table.dtype, (rows, cols), work, "update")


def embedding_backward(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Dense gradient of an embedding: the whole table is cleared, gradients are added row by row."""
    del ran
    dy, at = call.tensor(rule["dy"]), call.tensor(rule["index"])
    if dy is None or at is None or not dy.shape:
        return None
    cols, rows = dy.shape[-1], at.numel
    table = call.integers(rule["rows"])
    work = formulas.scatter(rows, cols, ITEMSIZE[dy.dtype], ITEMSIZE[at.dtype], rows)
    cleared = (table[0] if table else rows) * cols * ITEMSIZE[dy.dtype]
    return described(Kind.EMBEDDING, dy.dtype, (rows, cols), work.moving(written=work.written + cleared), "backward")


def embedding_bag(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Pooled embedding: a row an index read, a row a bag written."""
    del ran
    table, at, offsets = (call.tensor(rule[key]) for key in ("table", "index", "offsets"))
    if table is None or at is None or offsets is None or len(table.shape) != 2:
        return None
    cols = table.shape[1]
    work = formulas.gather(at.numel, cols, ITEMSIZE[table.dtype], 8.0, at.numel + offsets.numel)
    written = offsets.numel * cols * ITEMSIZE[table.dtype]
    return described(Kind.EMBEDDING, table.dtype, (at.numel, cols), work.moving(written=written), "pooled")


def table_lookup(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Batched table lookup (all tables flattened into one vector): compulsory are the indices and at most the tables.

    Row widths are not recorded, so at least min(tables, one element an index) is read and as much written.
    """
    del ran, rule
    floats = [t for t in call.flat if t.dtype in (Dtype.FP32, Dtype.FP16, Dtype.BF16, Dtype.FP8, Dtype.UINT8, Dtype.INT8)]
    whole = [t for t in call.flat if t.dtype in (Dtype.INT64, Dtype.INT32)]
    if not floats or not whole:
        return None
    table, at = max(floats, key=lambda t: t.nbytes), max(whole, key=lambda t: t.numel)
    rows = at.numel
    read = min(table.nbytes, rows * ITEMSIZE[table.dtype]) + sum(t.nbytes for t in whole)
    work = formulas.copy(0, 0, 0).moving(read, min(table.nbytes, rows * ITEMSIZE[table.dtype]))
    return described(Kind.EMBEDDING, table.dtype, (rows, 1), work, "tables")


def table_update(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Gradient of a batched lookup with the optimizer inside: the gradient read, at least as many values read, changed and written."""
    del ran, rule
    if not call.flat or len(call.flat[0].shape) < 2:
        return None
    dy = call.flat[0]
    rows, cols = dy.shape[0], prod(dy.shape[1:])
    work = formulas.scatter(rows, cols, ITEMSIZE[dy.dtype], 8.0, 0)
    return described(Kind.EMBEDDING, dy.dtype, (rows, cols), work, "update")


def pooling(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Pooling forward: output from the concrete window, else from what follows."""
    del ran
    x = call.tensor(0)
    if x is None or len(x.shape) < 3:
        return None
    output = call.fact("output")
    window = 1
    adaptive = call.integers(rule.get("output"))
    kernel = call.integers(rule.get("kernel"))
    rank = len(adaptive or kernel or ()) or len(x.shape) - 2
    rank = {"1d": 1, "2d": 2, "3d": 3}.get(next((s for s in ("1d", "2d", "3d") if s in call.name), ""), rank)
    spatial = x.shape[-rank:]
    if adaptive:
        outs = adaptive if len(adaptive) == rank else adaptive * rank
        window = max(prod(spatial) // max(prod(outs), 1), 1)
    elif kernel:
        kernel = kernel if len(kernel) == rank else kernel * rank
        stride = call.integers(rule.get("stride")) or kernel
        padding = call.integers(rule.get("padding")) or (0,)
        stride, padding = (v if len(v) == rank else v * rank for v in (stride, padding))
        extra = tuple(s - 1 for s in stride) if call.value(rule.get("ceil")) is True else (0,) * rank
        grown = tuple(s + e for s, e in zip(spatial, extra, strict=True))
        outs = tuple(int(v) for v in formulas.output_extent(grown, kernel, stride, padding, 1))
        window = prod(kernel)
    elif isinstance(output, tuple) and len(output) >= rank:
        outs = output[-rank:]
        window = max(prod(spatial) // max(prod(outs), 1), 1)
    else:
        return None
    many = prod(x.shape[:-rank]) * prod(outs)
    indices = 8.0 if "max" in call.name and "indices" in call.name else 0.0
    work = formulas.pooling(many, window, x.nbytes, many * (ITEMSIZE[x.dtype] + indices))
    return described(Kind.POOLING, x.dtype, (many, window), work, f"window={window}")


def pooling_backward(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Pooling backward: output gradient (and indices) read, input gradient written."""
    del ran, rule
    if len(call.flat) < 2:
        return None
    dy, x = call.flat[0], call.flat[1]
    at = sum(t.nbytes for t in call.flat[2:] if t.dtype == Dtype.INT64)
    window = max(x.numel // max(dy.numel, 1), 1)
    work = formulas.pooling(dy.numel, window, dy.nbytes + at, x.nbytes)
    return described(Kind.POOLING, dy.dtype, (x.numel, window), work, "backward")


def resample(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Interpolation to a recorded size: four reads' worth of arithmetic an output element."""
    del ran
    x, size = call.tensor(0), call.integers(rule["output"])
    if x is None or not size or len(x.shape) < len(size) + 1:
        return None
    many = prod(x.shape[: -len(size)]) * prod(size)
    work = formulas.pooling(many, 4, x.nbytes, many * ITEMSIZE[x.dtype])
    return described(Kind.POOLING, x.dtype, (many, 4), work, "resample")


def message(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Collectives: bytes are the larger of one rank's input and output buffer; None unless kind, bytes and group are known."""
    del rule
    kind = call.fact("collective")
    group = call.fact("group_size")
    if kind is None and ran.kind in COLLECTIVES:
        kind = ran.kind
    if not isinstance(kind, Kind):
        return None
    if group is None and call.concrete:
        group = call.concrete[-1]  # record_param_comms ends with the size of the group
    dtype = message_dtype(str(call.fact("dtype", "")))
    ins, outs = call.fact("in_elements"), call.fact("out_elements")
    if not isinstance(ins, int) and call.tensors and call.tensors[0]:
        ins = sum(t.numel for t in call.tensors[0])
        known = [t.dtype for t in call.tensors[0] if t.dtype != Dtype.UNKNOWN]
        dtype = known[0] if known else dtype
    dtype = ran.dtype if dtype == Dtype.UNKNOWN else dtype
    if not isinstance(ins, int) or not isinstance(group, int) or group < 1:
        return None
    outs = outs if isinstance(outs, int) else ins * group if kind == Kind.ALL_GATHER else ins
    if dtype == Dtype.UNKNOWN and not ran.itemsize:
        return None
    size = max(ins, outs) * itemsize(dtype, ran)
    if kind != Kind.BARRIER and size <= 0:
        return None
    work = messages.traffic(kind.name, size, group)
    return described(kind, dtype, (int(size), group), work, f"{kind.name.lower()} group={group}")


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        f.__name__: f
        for f in (
            gather,
            index,
            update,
            embedding_backward,
            embedding_bag,
            table_lookup,
            table_update,
            pooling,
            pooling_backward,
            resample,
            message,
        )
    }
)
"""Rules by the name rules.yaml uses."""
