"""Edits a recording invites: chains of kernels that may become one, attention, launches to capture, products in a wide type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from workbench.errors import Refused
from workbench.graph.rewrite import Rewrite, Rewritten, Tally
from workbench.graph.rewrite_attention import attention_of
from workbench.graph.rewrite_capture import Capture
from workbench.graph.rewrite_chain import MAPS, Chains, one_anchor
from workbench.graph.rewrite_fuse import ATTENTION, Fuse
from workbench.graph.rewrite_retype import Retype
from workbench.graph.rewrite_rows import Rows
from workbench.operators.described import MATRIX_KINDS
from workbench.operators.table import Dtype, Kind

LONGEST = 12
"""Members of a proposed chain."""
WIDE = (Dtype.FP32, Dtype.TF32)


def find(of: Rewritten, dtypes: Mapping[Dtype, float]) -> list[Rewrite]:
    """Return edits that are legal somewhere, those that touch most recorded time first.

    Parameters
    ----------
    of : Rewritten
    dtypes : mapping of Dtype to float
        Peak rates of the matrix unit [FLOP/s] by type, where the card is known (empty: it is not): products are proposed in 16 bits
        where that is faster.

    Returns
    -------
    list of Rewrite
    """
    if not of.has_device:
        return _retypes(of, dtypes)
    found = chains(of)
    out: list[Rewrite] = [Fuse(pattern) for pattern in found]
    return [*_attention(of), *_capture(of), *_retypes(of, dtypes), *out]


def chains(of: Rewritten) -> dict[str, float]:
    """Return the longest legal chains by the names of their members, with the recorded time of all but the longest member [s].

    Parameters
    ----------
    of : Rewritten

    Returns
    -------
    dict
        Pattern of `Fuse` to seconds, most first.
    """
    view, legal = of.view, Chains(of.view)
    seconds: dict[str, float] = defaultdict(float)
    at = 0
    while at < len(view):
        end = at
        kinds = [int(legal.kind[at])]
        while end + 1 < len(view) and end - at + 1 < LONGEST and legal.link(end).legal and one_anchor([*kinds, int(legal.kind[end + 1])]):
            end += 1
            kinds.append(int(legal.kind[end]))
        if end > at:
            units = range(at, end + 1)
            pattern = " > ".join(view.table.name[view.row[unit]] for unit in units)
            seconds[pattern] += float(view.seconds[at : end + 1].sum() - view.seconds[at : end + 1].max())
        at = end + 1
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def _attention(of: Rewritten) -> list[Rewrite]:
    """Return the fusion of attention where it is legal anywhere."""
    view = of.view
    if not (view.table.kind[view.row] == Kind.SOFTMAX).any():
        return []
    found = next(attention_of(view, Chains(view), Rows(of.table, of.made), Tally(ATTENTION)), None)
    return [Fuse(ATTENTION)] if found is not None else []


def _capture(of: Rewritten) -> list[Rewrite]:
    try:
        Capture().apply(of)
    except Refused:
        return []
    return [Capture()]


def _retypes(of: Rewritten, dtypes: Mapping[Dtype, float]) -> list[Rewrite]:
    """Return products of 32 bits in 16 bits where the card multiplies those faster; and with them the maps between."""
    view = of.view
    to = Dtype.BF16 if dtypes.get(Dtype.BF16, 0.0) > 0 else Dtype.FP16
    slow = [dtype for dtype in WIDE if 0 < dtypes.get(dtype, 0.0) < dtypes.get(to, 0.0)]
    wide = np.isin(view.table.dtype[view.row], slow) & view.table.has_shapes[view.row] if slow else np.zeros(len(view), dtype=bool)
    kinds = [kind for kind in MATRIX_KINDS if (wide & (view.table.kind[view.row] == kind)).any()]
    out: list[Rewrite] = [Retype(kind.name.lower(), to.name.lower()) for kind in kinds]
    if kinds and (np.isin(view.table.kind[view.row], MAPS) & (view.table.dtype[view.row] == Dtype.FP32)).any():
        out.append(Retype("*", to.name.lower()))
    return out
