"""Retype: operators run in another element type, with the casts between them and what stays in the old one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Refused
from workbench.graph.rewrite import Rewritten, Tally, finished
from workbench.graph.rewrite_chain import written
from workbench.graph.rewrite_draft import Draft
from workbench.graph.rewrite_drop import add_kernel
from workbench.graph.rewrite_rows import Made, NewRow, Rows, cast_row, row_of
from workbench.graph.rewrite_view import View
from workbench.operators.described import MATRIX_KINDS
from workbench.operators.table import ITEMSIZE, Dtype, Kind

FLOATS = (Dtype.FP64, Dtype.FP32, Dtype.TF32, Dtype.FP16, Dtype.BF16, Dtype.FP8)
TARGETS = {d.name.lower(): d for d in (Dtype.FP64, Dtype.FP32, Dtype.TF32, Dtype.FP16, Dtype.BF16, Dtype.FP8, Dtype.INT8)}
NARROW = (Dtype.FP8, Dtype.INT8)
"""Types of products only; they write 16 bits."""
GRADIENTS = (Kind.CONV_BACKWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT, Kind.ATTENTION_BACKWARD)
OTHERS = (Kind.ELEMENTWISE, Kind.NORM, Kind.SOFTMAX, Kind.POOLING, Kind.EMBEDDING, Kind.REDUCTION)


@dataclass(frozen=True)
class Retype:
    """Run operators in another element type.

    Parameters
    ----------
    pattern : str
        An operator's or kernel's name (``*`` is a wildcard), a kind, or the name of a module or operator around it.
    dtype : str
        ``bf16``, ``fp16``, ``fp8``, ``int8`` (products only), ``tf32``, ``fp32``, ``fp64``.
    casts : bool
        Add the conversions: of what an operator reads from one that keeps its type, and of what such a one reads from it. Parameters
        are converted each step where the recording holds gradients (training keeps them in the old type), else once, beforehand.
    """

    pattern: str
    dtype: str
    casts: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, str) or self.dtype not in TARGETS:
            raise Refused(f"retype:{self.pattern}", f"{self.dtype!r} is no element type to run in", f"use one of {', '.join(TARGETS)}")

    @property
    def text(self) -> str:
        """The edit as a person types it."""
        return f"retype:{self.pattern}={self.dtype}" + ("" if self.casts else ",nocasts")

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording with its operators retyped."""
        tally, rows, draft, view, to = Tally(self.text), Rows(of.table, of.made), Draft(of.graph), of.view, TARGETS[self.dtype]
        chosen = np.zeros(len(view), dtype=bool)
        for unit in np.flatnonzero(view.matches(self.pattern)).tolist():
            reason = self._reason(view, unit, to)
            if reason:
                tally.refuse(*reason)
            else:
                chosen[unit] = True
        training = bool(view.in_gradient.any())
        for unit in np.flatnonzero(chosen).tolist():
            row = int(view.row[unit])
            draft.column["op"][view.nodes(unit)] = rows.add(retyped_row(rows, view, row, to))
            tally.done += 1
            if self.casts and of.has_device and Dtype(of.table.dtype[row]) != to:
                tally.assumed["a cast was added"] += self._cast(draft, rows, view, unit, chosen, training, to)
        if not of.has_device and self.casts:
            tally.assumed["casts are left out: no device work is recorded"] += 1
        if self.casts and not training:
            tally.assumed["parameters are taken to be converted once, beforehand"] += 1
        tally.assumed = +tally.assumed
        return finished(of, draft, rows, tally)

    def _reason(self, view: View, unit: int, to: Dtype) -> tuple[str, str] | None:
        row = int(view.row[unit])
        kind, dtype = Kind(view.table.kind[row]), Dtype(view.table.dtype[row])
        if not view.table.has_shapes[row] or kind not in (*MATRIX_KINDS, *OTHERS):
            return f"{kind.name.lower()} without a formula cannot be priced in another type", "record with record_shapes=True"
        if dtype not in FLOATS:
            return f"its operands are {dtype.name.lower()}, not floating", "leave it out of the pattern"
        if dtype == to:
            return f"it runs in {to.name.lower()} already", "leave it out of the pattern"
        if to in NARROW and (kind not in MATRIX_KINDS or kind in GRADIENTS or (to == Dtype.INT8 and view.in_gradient[unit])):
            return f"{to.name.lower()} is a type of forward products", "use a pattern of products, e.g. gemm"
        if to == Dtype.TF32 and (kind not in MATRIX_KINDS or dtype != Dtype.FP32):
            return "tf32 is how products of fp32 run", "use bf16 or fp16"
        return None

    def _cast(self, draft: Draft, rows: Rows, view: View, unit: int, chosen: np.ndarray, training: bool, to: Dtype) -> int:
        """Add the conversions around a unit; returns how many."""
        table, row = view.table, int(view.row[unit])
        old = Dtype(table.dtype[row])
        old = Dtype.FP32 if old == Dtype.TF32 else old
        wide = to if to not in NARROW else old if ITEMSIZE[old] == 2 else Dtype.BF16  # narrow products write 16 bits of either kind
        if to == Dtype.TF32 or old == to or not len(view.calls(unit)):
            return 0
        made = 0
        before = unit > 0 and bool(chosen[unit - 1]) and view.resource[unit - 1] == view.resource[unit]
        after = unit + 1 < len(view) and bool(chosen[unit + 1]) and view.resource[unit + 1] == view.resource[unit]
        activations, parameters = operands(view, unit)
        elements = (0 if before and to not in NARROW else activations) + (parameters if training else 0)
        if elements:
            add_kernel(draft, view, unit, rows.add(cast_row(elements, old, to)), 0.0, after=False, place=0)
            made += 1
        if not after and wide != old:
            add_kernel(draft, view, unit, rows.add(cast_row(written(view, unit)[0], wide, old)), 0.0, after=True, place=0)
            made += 1
        return made


def operands(view: View, unit: int) -> tuple[int, int]:
    """Return the elements an operator reads of activations, and of parameters (the second factor of a forward product)."""
    table, row = view.table, int(view.row[unit])
    whole = int(float(table.bytes_read[row]) / ITEMSIZE[Dtype(table.dtype[row])])
    dims = table.dims[row].tolist()
    kind = Kind(table.kind[row])
    weights = 0
    if kind == Kind.GEMM and not view.in_gradient[unit]:
        weights = dims[2] * dims[3]
    if kind == Kind.CONV_FORWARD:
        weights = dims[4] * (dims[1] // max(dims[13], 1)) * dims[5] * dims[6] * max(dims[15], 1)
    return max(whole - weights, 0), weights


def retyped_row(rows: Rows, view: View, row: int, to: Dtype) -> NewRow:
    """Return a row in another type: bytes by the width of its elements; narrow products write 16 bits."""
    table = view.table
    old = Dtype(table.dtype[row])
    read = float(table.bytes_read[row]) * ITEMSIZE[to] / ITEMSIZE[old]
    wrote = float(table.bytes_written[row]) * max(ITEMSIZE[to], 2.0) / max(ITEMSIZE[old], 2.0)
    name = table.name[row]
    signature = table.signature[row].replace(f"|{old.name.lower()}|", f"|{to.name.lower()}|", 1)
    made = Made(rows.parts([row]), float("nan"))
    return row_of(table, row, made, name=name, signature=signature, dtype=to, bytes_read=read, bytes_written=wrote)
