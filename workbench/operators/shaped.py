"""Shapes of an operator's tensors -> the dimensions of its kind.

A product's m and n are those of its output where it is given (transposed inputs look like others), its k is what is left of the first
input; else the inputs' extents that agree are contracted. A second factor of rank 2 is shared by the batch, which then counts as rows.
Source of the forms: CANN profiling guide, ``kernel_details.csv`` and ``op_summary``; PyTorch's recorded shapes.
"""

from __future__ import annotations

from math import isqrt, prod

from workbench.operators.cells import Shape, named_extents, shapes
from workbench.operators.table import Kind
from workbench.operators.words import Word

PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM)
ATTENTION = (Kind.ATTENTION_FORWARD,)
BLOCK = 16  # of Ascend's fractal formats
MOST_STRIDE = 8
WIDEST = 1024  # kernel; a wider one is no convolution
_AXES = {"BNSD": "bnsd", "BHSD": "bnsd", "BSND": "bsnd", "BSHD": "bsnd", "TND": "snd", "NTD": "nsd"}


def extents(found: Word, inputs: str, outputs: str = "", plain: str = "", mnk: str = "", layout: str = "") -> dict[str, int]:
    """Return the dimensions that shapes give, by the names of `DIMS`; {} or fewer where they do not settle them.

    Parameters
    ----------
    found : Word
        What the operator is.
    inputs, outputs : str
        Lists of shapes, see `workbench.operators.cells.shapes`.
    plain : str
        Shapes of which nobody says what they are of: of the inputs, then the output; ``M128N64K32``. One shape alone gives no product:
        it may be one input, or m, n and k.
    mnk : str
        Extents of a product: ``128x64x32`` (m, n, k), or four with the batch before them.
    layout : str
        Order of axes or formats, e.g. ``"BNSD"``, ``"NHWC"``, ``"FRACTAL_NZ;ND"``.
    """
    given, out = shapes(inputs), next(iter(shapes(outputs)), ())
    if named := named_extents(plain) or named_extents(mnk):
        return {{"b": "batch", "g": "batch"}.get(name, name): extent for name, extent in named.items()}
    if mnk and found.kind in PRODUCTS and len(shapes(mnk)[0]) in (3, 4):
        return dict(zip(("batch", "m", "n", "k")[-len(shapes(mnk)[0]) :], shapes(mnk)[0], strict=True))
    if plain and not any(given):
        given = shapes(plain)
    if not given or not given[0]:
        return {}
    if found.kind in PRODUCTS:
        return _product([shape for shape in given if len(shape) > 1], out, layout.upper())
    if found.kind == Kind.GROUPED_GEMM:
        return _grouped(given)
    if found.kind == Kind.CONV_FORWARD:
        return _convolution(given, out, layout.upper(), found.depthwise)
    if found.kind in ATTENTION:
        return _attention(given, layout.upper())
    first = given[0]
    largest = max(map(_elements, [*given, out]))
    found_dims = {"rows": prod(first[:-1]), "cols": first[-1], "elements": largest}
    if out and found.kind == Kind.EMBEDDING:
        found_dims |= {"rows": prod(out[:-1]), "cols": out[-1]}
    whole, results = _elements(first), _elements(out)
    if out and found.kind == Kind.REDUCTION and results and whole % results == 0:
        found_dims |= {"rows": results, "cols": whole // results}
    return found_dims


def _elements(shape: Shape) -> int:
    return prod(shape)


def _grouped(given: list[Shape]) -> dict[str, int]:
    """Rows of all groups x k, or groups x rows x k; then groups x k x n, or n x k where k says so."""
    if len(given) < 2 or len(given[0]) not in (2, 3) or len(given[1]) != 3:
        return {}
    rows, k, (groups, *sides) = prod(given[0][:-1]), given[0][-1], given[1]
    if k not in sides or (len(given[0]) == 3 and given[0][0] != groups):
        return {}
    return {"groups": groups, "rows": rows, "n": sides[1] if sides[0] == k else sides[0], "k": k}


def _product(factors: list[Shape], out: Shape, layout: str) -> dict[str, int]:
    if not factors:
        return {}
    shared = len(factors) > 1 and len(factors[1]) == 2 and "NZ" not in layout
    if "NZ" in layout and out[-2:] == (BLOCK, BLOCK) and len(out) >= 4:
        out = (*out[:-4], out[-3] * BLOCK, out[-4] * BLOCK)  # stored as n1, m1, m0, n0
    if len(out) >= 2:
        batch, m, n = prod(out[:-2]), out[-2], out[-1]
        if shared:
            batch, m = 1, batch * m
        k, rest = divmod(prod(factors[0]), max(batch * m, 1))
        return {"batch": batch, "m": m, "n": n, "k": k} if not rest else {}
    if len(factors) < 2:
        return {}
    (a, b), (p, q) = (factors[0], factors[1]), (factors[0][-2:], factors[1][-2:])
    if not shared and prod(a[:-2]) != prod(b[:-2]):
        return {}
    agreeing = ((p[1], q[0], p[0], q[1]), (p[1], q[1], p[0], q[0]), (p[0], q[0], p[1], q[1]), (p[0], q[1], p[1], q[0]))
    for k, other, m, n in agreeing:
        if k == other:
            batch = prod(a[:-2])
            return {"batch": 1 if shared else batch, "m": batch * m if shared else m, "n": n, "k": k}
    return {}


def _convolution(given: list[Shape], out: Shape, layout: str, depthwise: bool) -> dict[str, int]:
    """Input, kernel and output of rank 4 (channels first or last), or of rank 5 in blocks of channels with a fractal kernel."""
    if len(given) < 2:
        return {}
    x, w, y = given[0], given[1], out
    kernels: list[Shape] = []
    if (len(x), len(w), len(y)) == (5, 4, 5):  # NC1HWC0, FRACTAL_Z: c1 x r x s, k1, 16, c0; r and s are taken as equal
        window, rest = divmod(w[0], max(x[1], 1))
        side = isqrt(window)
        if not rest and side * side == window and not depthwise:
            kernels = [(y[1] * y[4], x[1] * x[4], side, side)]
        x, y = (x[0], x[1] * x[4], x[2], x[3]), (y[0], y[1] * y[4], y[2], y[3])
    elif {len(x), len(w), len(y)} == {4}:
        kernels = [w]
        if layout.startswith("NHWC"):
            x, y = (x[0], x[3], x[1], x[2]), (y[0], y[3], y[1], y[2])
            kernels = [(w[0], w[3], w[1], w[2]), (w[3], w[2], w[0], w[1])]  # OHWI, HWIO
    else:
        return {}
    return next((dims for kernel in kernels if (dims := _windows(x, kernel, y, depthwise))), {})


def _windows(x: Shape, w: Shape, y: Shape, depthwise: bool) -> dict[str, int]:
    """Return a convolution whose strides and paddings give the output; the least stride, and of it the most padding."""
    if w[0] != y[1] or w[1] == 0 or x[1] % w[1]:
        return {}
    dims = {"n": x[0], "c": x[1], "h": x[2], "w": x[3], "k": w[0], "r": w[2], "s": w[3], "groups": x[1] if depthwise else x[1] // w[1]}
    for side, size, kernel, result in (("h", x[2], w[2], y[2]), ("w", x[3], w[3], y[3])):
        fits = [(stride, pad) for stride in range(1, MOST_STRIDE + 1) for pad in range(kernel // 2 + 1)
                if size + 2 * pad >= kernel and (size + 2 * pad - kernel) // stride + 1 == result] if kernel < WIDEST else []  # fmt: skip
        if not fits:
            return {}
        stride = min(stride for stride, _ in fits)
        dims |= {f"stride_{side}": stride, f"pad_{side}": max(pad for s, pad in fits if s == stride)}
    return dims


def _attention(given: list[Shape], layout: str) -> dict[str, int]:
    """Queries, keys and values; their axes must be named, as head and sequence axes look alike."""
    axes = next((axes for name, axes in _AXES.items() if name in layout), "")
    if not axes or len(given) < 2 or {len(shape) for shape in given[:2]} != {len(axes)}:
        return {}
    q, k = (dict(zip(axes, shape, strict=True)) for shape in given[:2])
    dims = {"batch": q.get("b", 1), "heads": q["n"], "kv_heads": k["n"], "queries": q["s"], "keys": k["s"], "head_dim": q["d"]}
    if len(given) > 2 and len(given[2]) == len(axes):
        dims["value_dim"] = dict(zip(axes, given[2], strict=True))["d"]
    return dims
