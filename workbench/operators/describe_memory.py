"""Rules for operators bound by memory: elementwise maps, reductions, normalisation, copies, fills.

Bytes follow the recorded shapes: every distinct input is read once at its own (not its broadcast) size, the result is written
once at the broadcast shape with the result's type. A rule returns None where the recorded shapes do not settle the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any

from workbench.operators import formulas
from workbench.operators.call import Call, Tensor
from workbench.operators.describe_matrix import Rule
from workbench.operators.described import Described, Ran, axes, broadcast, described, itemsize, nbytes, promote, ran_dtype, split
from workbench.operators.table import ITEMSIZE, Dtype, Kind


def pointwise(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Elementwise maps of ``arity`` tensors; further tensors are outputs; lists pair up (foreach)."""
    arity = rule["arity"]
    if any(len(group) > 1 for group in call.tensors) or "_foreach_" in call.name:
        return _foreach(call, ran, rule)
    inputs, outputs = call.flat[:arity], call.flat[arity:]
    if not inputs:
        return None
    shape = call.flat[rule["shape_of"]].shape if rule.get("shape_of", 99) < len(call.flat) else broadcast(inputs)
    if shape is None:
        shape = max(inputs, key=lambda t: t.numel).shape
    in_place = call.name.endswith("_") and not call.name.endswith("__")
    dtype = ran_dtype(promote(inputs), Ran(ran.dtype if promote(inputs) == Dtype.UNKNOWN else Dtype.UNKNOWN))
    result = outputs[0].dtype if outputs else inputs[0].dtype if in_place else Dtype.BOOL if rule.get("boolean") else dtype
    elements = prod(shape)
    work = formulas.elementwise(elements, nbytes(inputs, ran), elements * itemsize(result, ran))
    return described(Kind.ELEMENTWISE, dtype, (elements,), work)


def _foreach(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    groups = [group for group in call.tensors if group][: rule["arity"]]
    if not groups:
        return None
    elements = sum(t.numel for t in groups[0])
    dtype = promote(groups[0])
    dtype = ran.dtype if dtype == Dtype.UNKNOWN else dtype
    read = sum(nbytes(group, ran, dtype) for group in groups)
    work = formulas.elementwise(elements, read, elements * itemsize(dtype, ran))
    return described(Kind.ELEMENTWISE, dtype, (elements,), work)


def reduction(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Reductions over the recorded axes; without concrete arguments the longest axis is taken for the reduced one (writes are small)."""
    if not call.flat:
        return None
    x = call.flat[0]
    inputs = call.flat if rule.get("all_inputs") or len(call.tensors[0]) > 1 else (x,)
    reduced = axes(call, len(x.shape))
    if reduced is None:
        reduced = (max(range(len(x.shape)), key=lambda i: x.shape[i]),) if x.shape else ()
    rows, cols = split(x.shape, reduced)
    if rule.get("all_inputs"):
        rows, cols = 1, x.numel
    dtype = ran_dtype(x.dtype, Ran(ran.dtype if x.dtype == Dtype.UNKNOWN else Dtype.UNKNOWN))
    work = formulas.reduction(rows, cols, itemsize(dtype, ran), 8 if "arg" in call.name else itemsize(dtype, ran))
    work = work.moving(read=nbytes(inputs, ran, dtype))
    return described(Kind.REDUCTION, dtype, (rows, cols), work, f"rows={rows}")


def scan(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Prefix sums: one read, one write."""
    del rule
    if not call.flat:
        return None
    x = call.flat[0]
    rows, cols = split(x.shape, axes(call, len(x.shape)) or ())
    work = formulas.reduction(rows, cols, ITEMSIZE[x.dtype], 0.0).moving(written=x.nbytes)
    return described(Kind.REDUCTION, x.dtype, (rows, cols), work, "scan")


def softmax(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Softmax along the recorded axis, the last where none was recorded."""
    if not call.flat or not call.flat[0].shape:
        return None
    x = call.flat[0]
    axis = (call.integers(rule.get("dim")) or (-1,))[0]
    axis = axis if -len(x.shape) <= axis < len(x.shape) else -1
    cols = x.shape[axis]
    rows = x.numel // cols if cols else 0
    backward = bool(rule.get("backward"))
    size = ITEMSIZE[x.dtype]
    work = formulas.softmax(rows, cols, size, size, backward)
    return described(Kind.SOFTMAX, ran_dtype(x.dtype, Ran()), (rows, cols), work, f"rows={rows}")


def norm(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Layer, RMS, batch and group normalisation; which axes share a statistic follows from ``over``."""
    backward, over = bool(rule.get("backward")), rule["over"]
    x = call.tensor(rule.get("x", 0)) or (call.flat[0] if call.flat else None)
    if x is None or not x.shape or (over == "channels" and len(x.shape) < 2):
        return None
    vectors = [t for t in call.flat if t is not x and 0 < t.numel < x.numel and len(t.shape) <= 2]
    if over == "channels":
        rows = x.shape[1]
    elif over == "groups":
        groups = [v for v in call.concrete if isinstance(v, int) and not isinstance(v, bool)]
        if len(groups) < 2:
            return None
        rows = x.shape[0] * groups[-1]
    else:
        shape = call.integers(rule.get("shape")) if over == "trailing" else None
        affine = [t.shape for t in vectors if t.shape == x.shape[len(x.shape) - len(t.shape) :]]
        shape = shape or (affine[0] if affine else x.shape[-1:])
        rows = x.numel // max(prod(shape), 1)
    cols = x.numel // rows if rows else 0
    per_set = rows if over == "channels" else x.shape[1] if over == "groups" and len(x.shape) > 1 else cols
    parameters = sum(t.numel for t in vectors if t.numel == per_set)
    work = formulas.norm(rows, cols, parameters, ITEMSIZE[x.dtype], ITEMSIZE[vectors[0].dtype] if vectors else 4.0, backward)
    return described(Kind.NORM, x.dtype, (rows, cols), work, f"rows={rows}")


def copy(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Copies, with conversion and across the bus."""
    source, to = call.tensor(rule["source"]), call.tensor(rule.get("to"))
    if source is None:
        return None
    to = to or source
    elements = to.numel
    work = formulas.copy(elements, 1.0, ITEMSIZE[to.dtype])
    work = work.moving(read=min(source.numel, elements) * ITEMSIZE[source.dtype])
    return described(Kind.COPY, to.dtype, (elements, ran.direction), work, ("", "host-to-device", "device-to-host")[ran.direction])


def concatenation(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Joining tensors: all of them read and written once."""
    del rule
    if not call.tensors or not call.tensors[0]:
        return None
    return _moved(call.tensors[0], call.tensors[0], Kind.COPY, ran)


def foreach_copy(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """A list copied into another."""
    del rule
    groups = [group for group in call.tensors if group]
    return _moved(groups[-1], groups[0], Kind.COPY, ran) if len(groups) == 2 else None


def _moved(source: tuple[Tensor, ...], to: tuple[Tensor, ...], kind: Kind, ran: Ran) -> Described:
    dtype = promote(to)
    dtype = ran.dtype if dtype == Dtype.UNKNOWN else dtype
    elements = sum(t.numel for t in to)
    work = formulas.copy(0, 0, 0).moving(nbytes(source, ran, dtype), nbytes(to, ran, dtype))
    if kind == Kind.COPY:
        return described(kind, dtype, (elements, ran.direction), work, ("", "host-to-device", "device-to-host")[ran.direction])
    if kind == Kind.EMBEDDING:
        return described(kind, dtype, (1, elements), work)  # as one row: how it is cut is not recorded
    return described(kind, dtype, (elements, 1) if kind == Kind.POOLING else (elements,), work)


def moved(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Data moved or mapped once by an operator whose outputs are not recorded: all inputs read, the largest one's size written."""
    if not call.flat:
        return None
    largest = max(call.flat, key=lambda t: t.numel)
    return _moved(call.flat, (largest,), Kind[rule["kind"]], ran)


def fill(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Fills: the first tensor (or list) written; a range's length comes from its concrete bounds."""
    del rule
    if call.name in ("aten::arange", "aten::linspace", "aten::range", "aten::eye"):
        numbers = [v for v in call.concrete if isinstance(v, int | float) and not isinstance(v, bool)]
        if not numbers or not call.flat:
            return None
        low, high, step = (0.0, numbers[0], 1.0) if len(numbers) == 1 else (numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else 1.0)
        elements = max(int(-(-(high - low) // step)), 0) if step and "arange" in call.name else 0
        if not elements:
            return None
        return described(
            Kind.SET, call.flat[-1].dtype, (elements,), formulas.fill(elements, ITEMSIZE[call.flat[-1].dtype]), f"n={elements}"
        )
    group = call.tensors[0] if call.tensors else ()
    if not group:
        return None
    elements = sum(t.numel for t in group)
    dtype = promote(group)
    dtype = ran.dtype if dtype == Dtype.UNKNOWN else dtype
    return described(Kind.SET, dtype, (elements,), formulas.fill(elements, itemsize(dtype, ran)))


def optimizer(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Fused optimizer steps over lists of parameters, gradients and states."""
    groups = [group for group in call.tensors if len(group) >= 1]
    if not groups:
        return None
    elements = sum(t.numel for t in groups[0])
    full = [group for group in groups[: rule["read"]] if sum(t.numel for t in group) == elements]
    dtype = promote(groups[0])
    dtype = ran.dtype if dtype == Dtype.UNKNOWN else dtype
    sizes = [nbytes(group, ran, dtype) for group in full]
    work = formulas.optimizer(elements, sum(sizes), sum(sizes[:1]) + sum(sizes[2:]), rule["flops"])
    return described(Kind.OPTIMIZER, dtype, (elements, len(groups[0])), work)


def sort(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Sorts, selections and searches along the recorded axis (the last where none was recorded)."""
    del rule
    if not call.flat:
        return None
    x = call.flat[0]
    cols = x.shape[-1] if x.shape else 1
    rows = x.numel // cols if cols else 0
    k = (call.integers(1) or (cols,))[0] if "topk" in call.name else cols
    work = formulas.sort(rows, cols, ITEMSIZE[x.dtype], rows * max(k, 0) * (ITEMSIZE[x.dtype] + 8.0))
    return described(Kind.SORT, ran_dtype(x.dtype, ran if x.dtype == Dtype.UNKNOWN else Ran()), (rows, cols), work)


def compiled(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Compiled (Triton) kernels: tensors in the order inputs, outputs; the last is written, the others are read."""
    tensors = call.flat
    if not tensors:
        return None
    kind = Kind[rule["kind"]]
    read = tensors[:-1] or tensors
    elements = max(t.numel for t in tensors)
    extents = [v for v in call.concrete if isinstance(v, int) and not isinstance(v, bool) and v > 0]
    dims: tuple[int, ...] = (elements,)
    if kind == Kind.REDUCTION:
        rows, cols = (extents[-2], extents[-1]) if len(extents) >= 2 else (1, elements)
        dims = (rows, cols)
        elements = max(elements, rows * cols)
    dtype = promote(read)
    operations = max(call.name.count("_") - 3, 1)  # one word an operator fused into it
    work = formulas.elementwise(elements, nbytes(read, ran), nbytes(tensors[-1:], ran), operations)
    return described(kind, dtype, dims, work)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        f.__name__: f
        for f in (pointwise, reduction, scan, softmax, norm, copy, concatenation, foreach_copy, moved, fill, optimizer, sort, compiled)
    }
)
"""Rules by the name rules.yaml uses."""
