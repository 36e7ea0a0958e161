"""Rules for operators of the matrix unit: products and convolutions.

A rule takes the call, what its kernels' names said and the parameters of its entry in rules.yaml; it returns None where the
recorded shapes do not settle the work (no guess is made).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Any

from workbench.operators import formulas
from workbench.operators.call import Call, Tensor
from workbench.operators.described import Described, Ran, broadcast, described, nbytes, ran_dtype
from workbench.operators.grouped import grouped_gemm
from workbench.operators.layouts import Layout
from workbench.operators.table import ITEMSIZE, Dtype, Kind

LAYOUT = "layout"
"""Fact of a convolution's call: `workbench.operators.layouts.Layout` of its image, as the recorded strides prove it."""
Rule = Callable[[Call, Ran, Mapping[str, Any]], Described | None]
"""One rule: (call, ran, parameters) -> description, or None where shapes do not suffice."""


def _product(a: Tensor, batch: int, m: int, n: int, k: int, read: float, ran: Ran, out_size: float | None = None) -> Described | None:
    dtype = ran_dtype(a.dtype, ran)
    size_out = ITEMSIZE[a.dtype] if out_size is None else out_size
    if dtype == Dtype.FP8 and out_size is None:
        size_out = 2.0  # fp8 products write half precision
    if a.dtype == Dtype.INT8:
        size_out = 4.0
    work = formulas.gemm(batch, m, n, k, ITEMSIZE[a.dtype], size_out)
    work = work.moving(read=read)
    kind = Kind.BATCHED_GEMM if batch > 1 else Kind.GEMM
    return described(kind, dtype, (batch, m, n, k), work, "acc=fp16" if ran.fp16_accumulate else "")


def matmul(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Products by numpy's rules: vectors, matrices, stacks of matrices (broadcast)."""
    a, b = call.tensor(rule["a"]), call.tensor(rule["b"])
    if a is None or b is None or not a.shape or not b.shape:
        return None
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        if left[-1] == right[-1] and len(b.shape) > 1 and "scaled" not in call.name:
            return None
        if left[-1] != right[-1]:
            return None
        right = (*right[:-2], right[-1], right[-2])
    m, k, n = left[-2], left[-1], right[-1]
    stack = broadcast((Tensor(left[:-2], a.dtype), Tensor(right[:-2], b.dtype)))
    if stack is None:
        return None
    batch = prod(stack)
    if len(right) == 2 and batch > 1:  # a stack against one matrix is one tall product
        batch, m = 1, batch * m
    added = call.tensor(rule.get("c"))
    beta = call.value(rule.get("beta"))
    read = nbytes((a, b), ran)
    if added is not None and not (isinstance(beta, int | float) and float(beta) == 0.0):
        read += nbytes((added,), ran)
    if call.name.startswith(("aten::addbmm",)):
        batch, k = 1, batch * k
    return _product(a, batch, m, n, k, read, ran)


def linear(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """x W^T + b with W of out x in."""
    x, w = call.tensor(rule["x"]), call.tensor(rule["w"])
    if x is None or w is None or len(w.shape) != 2 or not x.shape or x.shape[-1] != w.shape[1]:
        return None
    bias = call.tensor(rule.get("c"))
    read = nbytes((x, w) + ((bias,) if bias else ()), ran)
    return _product(x, rule.get("passes", 1), prod(x.shape[:-1]), w.shape[0], w.shape[1], read, ran)


def outer(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Every element of one vector times every element of another: a product over one step."""
    a, b = call.tensor(rule["a"]), call.tensor(rule["b"])
    if a is None or b is None or len(a.shape) != 1 or len(b.shape) != 1:
        return None
    return _product(a, 1, a.numel, b.numel, 1, nbytes((a, b), ran), ran)


def grouped_matmul(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Products of G groups that split the rows, columns or terms of a two-dimensional factor (experts): each row meets one group.

    The groups' own sizes are values, not shapes: they count as equal, so the FLOPs are exact and the tiles typical. Rows in groups,
    a matrix each, are of `Kind.GROUPED_GEMM`.
    """
    a, b = call.tensor(rule["a"]), call.tensor(rule["b"])
    if a is None or b is None or not {len(a.shape), len(b.shape)} <= {2, 3}:
        return None
    ends = call.tensor(rule["offsets"])  # one end a group
    groups = a.shape[0] if len(a.shape) == 3 else b.shape[0] if len(b.shape) == 3 else ends.numel if ends else 0
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    if not groups or b.shape[-2] != k:
        return None
    if len(a.shape) == 2 and len(b.shape) == 3:
        dtype = ran_dtype(a.dtype, ran)
        written = 2.0 if dtype == Dtype.FP8 else 4.0 if a.dtype == Dtype.INT8 else ITEMSIZE[a.dtype]
        work = grouped_gemm(groups, m, 0, n, k, ITEMSIZE[a.dtype], written, ITEMSIZE[b.dtype])
        return described(Kind.GROUPED_GEMM, dtype, (groups, m, 0, n, k), work)
    whole = 2.0 * m * n * k * (groups if len(a.shape) == len(b.shape) == 3 else 1)
    split = [-(-extent // groups) for extent in (m, n, k)]
    if len(a.shape) == 2:
        m, k = (split[0], k) if len(b.shape) == 3 else (m, split[2])
    elif len(b.shape) == 2:
        n = split[1]
    out = _product(a, groups, m, n, k, nbytes((a, b), ran), ran)
    return replace(out, flops=whole) if out else None


def linear_like(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Fused and custom products whose argument order is not known: two factors that share exactly one reading.

    The weight is the largest matrix; the input is the first other tensor whose last extent is one of the weight's.
    """
    del rule
    matrices = [t for t in call.flat if len(t.shape) == 2 and min(t.shape) > 1]
    if not matrices:
        return None
    w = max(matrices, key=lambda t: t.numel)
    for x in call.flat:
        if x is w or len(x.shape) < 2 or x.shape[-1] not in w.shape:
            continue
        k = x.shape[-1]
        n = w.numel // k
        return _product(x, 1, prod(x.shape[:-1]), n, k, nbytes((x, w), ran), ran)
    return None


def _pad(values: tuple[int, ...] | None, rank: int, default: int) -> tuple[int, ...] | None:
    """Bring a per-axis setting to three axes (depth first); None where it was not recorded."""
    if values is None:
        return None
    if len(values) == 1:
        values = values * rank
    if len(values) != rank or min(values) < (default > 0):
        return None
    return (default,) * (3 - rank) + tuple(values[-rank:])


def _three(extents: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (3 - len(extents)) + tuple(extents)


def _settle(x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Find stride and padding that map extents x through kernel w to y (dilation 1), smallest padding first; None if none do."""
    stride, padding = [], []
    for size, kernel, out in zip(x, w, y, strict=True):
        found = []
        for pad in range(kernel):
            free = size + 2 * pad - kernel
            step = free // out + 1 if out else 0  # the smallest step that leaves `out` positions, if any does
            if free >= 0 and step and free // step + 1 == out:
                found.append((abs(2 * pad - kernel + 1), step, pad))
        if not found:
            return None
        _, step, pad = min(found)
        stride.append(step)
        padding.append(pad)
    return tuple(stride), tuple(padding)


def _shape(call: Call, position: int | None, key: str) -> tuple[int, ...] | None:
    tensor = call.tensor(position)
    if tensor is not None:
        return tensor.shape
    known = call.fact(key)
    return known if isinstance(known, tuple) else None


def _geometry(
    call: Call, rule: Mapping[str, Any], x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...] | None
) -> dict[str, Any] | None:
    """Extents, stride, padding and dilation on three axes; groups and transposition; None where they cannot be known."""
    rank = len(w) - 2
    if rank not in (1, 2, 3) or len(x) not in (rank + 1, rank + 2):
        return None
    x = x if len(x) == rank + 2 else (1, *x)
    at = dict(rule)
    if rule.get("trailing"):  # fused variants: the last four arguments
        last = len(call.tensors)
        at |= {"stride": last - 4, "padding": last - 3, "dilation": last - 2, "groups": last - 1}
    if rule.get("legacy_bias") and len(call.tensors) > 3 and len(call.tensors[2]) == 1:  # bias before the settings, before 2020
        at |= {key: at[key] + 1 for key in ("padding", "stride", "dilation", "groups")}
    swap = bool(rule.get("always_transposed") or call.value(at.get("transposed")) is True)
    channels, kernels = (w[0], x[1]) if swap else (x[1], w[1])
    if not kernels or (channels % kernels and not swap):
        return None
    recorded = call.integers(at.get("groups"))
    groups = recorded[0] if recorded else (channels // kernels if not swap else 1)
    stride, padding, dilation = (_pad(call.integers(at.get(key)), rank, d) for key, d in (("stride", 1), ("padding", 0), ("dilation", 1)))
    ins, window = _three(x[2:]), _three(w[2:])
    outs = _three(y[2:]) if y is not None and len(y) == rank + 2 else None
    if stride is None or padding is None:
        settled = _settle(outs, window, ins) if swap and outs else _settle(ins, window, outs) if outs else None
        if settled is None or outs is None:
            return None
        stride, padding = settled
    dilation = dilation or (1, 1, 1)
    if outs is None:
        if swap:
            outs = tuple(
                (i - 1) * s - 2 * p + d * (r - 1) + 1 for i, s, p, d, r in zip(ins, stride, padding, dilation, window, strict=True)
            )
        else:
            outs = tuple(int(v) for v in formulas.output_extent(ins, window, stride, padding, dilation))
    c, k = x[1], w[1] * groups if swap else w[0]
    if swap:  # a transposed convolution is the data gradient of a convolution from its output to its input
        ins, outs, c, k = outs, ins, k, c
    return dict(
        n=x[0], c=c, k=k, ins=ins, outs=outs, window=window, stride=stride, padding=padding, dilation=dilation, groups=groups, swap=swap
    )


def _convolution(geometry: dict[str, Any], which: str, base: Dtype, ran: Ran, extra: float, last: bool = False) -> Described:
    g = geometry
    if g["swap"]:
        which = {"forward": "data", "data": "forward"}.get(which, which)
    kinds = {"forward": Kind.CONV_FORWARD, "data": Kind.CONV_BACKWARD_DATA, "weight": Kind.CONV_BACKWARD_WEIGHT, "both": Kind.CONV_BACKWARD}
    window, ins, outs = g["window"], g["ins"], g["outs"]
    work = formulas.convolution(g["n"], g["c"], g["k"], prod(window), prod(ins), prod(outs), g["groups"], ITEMSIZE[base], which)
    # the table has strides of two axes: the depth axis, where there is one, is the first
    dims = (g["n"], g["c"], ins[1], ins[2], g["k"], window[1], window[2], *g["padding"][1:], *g["stride"][1:], *g["dilation"][1:])
    settings = "x".join(map(str, g["stride"])), "x".join(map(str, g["padding"])), "x".join(map(str, g["dilation"]))
    detail = "stride={} pad={} dil={}".format(*settings) + f" groups={g['groups']}" + (" transposed" if g["swap"] else "")
    detail += (" transform" if ran.transform else "") + (" nhwc" if last else "")
    layout = (int(Layout.NHWC),) if last else ()
    return described(
        kinds[which],
        ran_dtype(base, ran),
        (*dims, g["groups"], ins[0], window[0], *layout),
        work.moving(read=work.read + extra),
        detail,
    )


def convolution(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Forward convolution; without concrete arguments the output's shape must be known from what follows."""
    x, w = call.tensor(rule["x"]), call.tensor(rule["w"])
    if x is None or w is None:
        return None
    output = call.fact("output")
    geometry = _geometry(call, rule, x.shape, w.shape, output if isinstance(output, tuple) else None)
    bias = call.tensor(rule.get("bias"))
    return _convolution(geometry, "forward", x.dtype, ran, bias.nbytes if bias else 0.0, _last(call)) if geometry else None


def convolution_backward(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Gradients of a convolution: which ones, the output mask says."""
    dy = call.tensor(rule["dy"])
    x = _shape(call, rule.get("x"), "input") or call.integers(rule.get("x_sizes"))
    w = _shape(call, rule.get("w"), "weight") or call.integers(rule.get("w_sizes"))
    if dy is None or x is None or w is None:
        return None
    geometry = _geometry(call, rule, x, w, dy.shape)
    mask = call.value(rule.get("mask"))
    which = rule.get("only", "both")
    if isinstance(mask, list) and len(mask) >= 2:
        which = {(True, True): "both", (True, False): "data", (False, True): "weight"}.get((bool(mask[0]), bool(mask[1])), "")
    return _convolution(geometry, which, dy.dtype, ran, 0.0, _last(call)) if geometry and which else None


def _last(call: Call) -> bool:
    """Whether the strides say that channels lie last; channels first is what stays unstated: whatever the unit wants."""
    return call.fact(LAYOUT) == int(Layout.NHWC)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "matmul": matmul,
        "outer": outer,
        "grouped_matmul": grouped_matmul,
        "linear": linear,
        "linear_like": linear_like,
        "convolution": convolution,
        "convolution_backward": convolution_backward,
    }
)
"""Rules by the name rules.yaml uses."""
