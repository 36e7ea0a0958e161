"""Device tasks that carry their own description (a profiler's kernel table): type, shapes, element types and formats -> work.

What the device says it ran is taken before what the framework asked for: one operator may have become several tasks.
"""

from __future__ import annotations

import numpy as np

from workbench.errors import InvalidSpec
from workbench.operators.columns import LeftOut, columns_of, listed
from workbench.operators.described import Described
from workbench.operators.listed import signature, work
from workbench.operators.profiles import from_profile
from workbench.operators.sheet import Sheet
from workbench.operators.table import COLLECTIVES
from workbench.trace.trace import Trace

COLUMNS = (("Type", "OP Type", "Op Type"), ("Input Shapes",), ("Output Shapes",), ("Input Data Types",), ("Input Formats",))
"""Arguments of a task: its type, then what its tensors are; the first that is there counts."""


def described_tasks(trace: Trace, device: np.ndarray) -> dict[int, tuple[str, str, Described, bool]]:
    """Return (name, signature, work, shapes known) of device events that describe themselves, by position in ``device``.

    Parameters
    ----------
    trace : Trace
    device : int64 [D]
        Rows of device events.
    """
    if not any(key in trace.args for key in COLUMNS[0]) or COLUMNS[1][0] not in trace.args:
        return {}
    texts = np.stack([_column(trace, keys)[device] for keys in COLUMNS], axis=1)
    rows = np.flatnonzero((texts[:, :3] >= 0).all(axis=1))
    distinct, of = np.unique(texts[rows], axis=0, return_inverse=True)
    found = [_described(tuple(trace.strings[i] if i >= 0 else "" for i in row)) for row in distinct.tolist()]
    return {int(row): known for row, at in zip(rows, of.reshape(-1), strict=True) if (known := found[at]) is not None}


def _column(trace: Trace, keys: tuple[str, ...]) -> np.ndarray:
    out = np.full(len(trace.events), -1, np.int32)
    for key in keys:
        if key in trace.args:
            out = np.where(out < 0, trace.text_arg(key), out)
    return out


def _described(cells: tuple[str, ...]) -> tuple[str, str, Described, bool] | None:
    """Return the work of one kind of task; None where no rule knows it or its shapes do not settle it."""
    header = ("Type", "Duration(us)", "Input Shapes", "Output Shapes", "Input Data Types", "Input Formats")
    row = (cells[0], "1.0", *cells[1:])
    sheet = from_profile(Sheet("task", header, 1, (row,), (2,), (), ""))
    try:
        one = listed(sheet, columns_of(sheet), 0)
    except InvalidSpec:
        return None
    if isinstance(one, LeftOut) or one[0].word.kind in COLLECTIVES:
        return None
    entry = one[0]
    done = work(entry)
    found = Described(entry.word.kind, entry.dtype, entry.dims, float(done.flops), float(done.read), float(done.written))
    return entry.name, signature(entry), found, True
