"""Scale the batch: operators that work on samples get more or fewer of them; parameters, their gradients and updates stay.

Which extents count samples is read from the recording: the batch is the leading extent most first operators of a step share, tokens
are the batch times the extent beside it. Where an extent that must change may also be something else, the edit is refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from workbench.errors import Refused
from workbench.graph.rewrite import Rewritten, Tally, finished
from workbench.graph.rewrite_chain import PRODUCTS
from workbench.graph.rewrite_draft import Draft
from workbench.graph.rewrite_rows import Made, NewRow, Rows, row_of
from workbench.graph.rewrite_view import View
from workbench.operators.call import Call, Tensor
from workbench.operators.described import MATRIX_KINDS, Described, Ran
from workbench.operators.kinds import describe
from workbench.operators.table import COLLECTIVES, Dtype, Kind

MOST = 1024
FIXED = (*COLLECTIVES, Kind.OPTIMIZER)
"""Kinds whose size is that of parameters."""
GIVE = "say it: batch:{}x,from=N, with N the batch of the recording"


@dataclass(frozen=True)
class ScaleBatch:
    """Give every step so many times as many samples.

    Parameters
    ----------
    factor : float
        2 doubles the batch, 0.5 halves it; the result must be a whole number of samples.
    batch : int
        Samples of a recorded step; 0: the leading extent that tells.
    """

    factor: float
    batch: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.factor, bool) or not isinstance(self.factor, int | float) or not 1 / MOST <= self.factor <= MOST:
            raise Refused("batch", f"{self.factor!r} is no factor on the batch", f"give a number from {1 / MOST:g} to {MOST}")
        if isinstance(self.batch, bool) or not isinstance(self.batch, int) or self.batch < 0:
            raise Refused("batch", f"{self.batch!r} is no batch", "give the samples of a recorded step")

    @property
    def text(self) -> str:
        """The edit as a person types it."""
        return f"batch:{self.factor:g}x" + (f",from={self.batch}" if self.batch else "")

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording with another batch."""
        view, tally, rows, draft = of.view, Tally(self.text), Rows(of.table, of.made), Draft(of.graph)
        samples = samples_of(view, self)
        ratio = Fraction(self.factor).limit_denominator(MOST)
        if (samples.batch * ratio).denominator != 1:
            raise Refused(self.text, f"{samples.batch} samples times {self.factor:g} is no whole number", "choose another factor")
        _, head = np.unique(view.row, return_index=True)
        made: dict[int, int] = {}
        for unit in head.tolist():
            row = int(view.row[unit])
            new = scaled_row(rows, view, unit, samples, ratio, tally)
            if new is not None:
                made[row] = rows.add(new)
            elif of.table.kind[row] in MATRIX_KINDS and of.table.has_shapes[row]:
                self._fixed(of.table.signature[row], samples.batch, tally)
        for unit in range(len(view)):
            row = int(view.row[unit])
            if row in made:
                draft.column["op"][view.nodes(unit)] = made[row]
                tally.done += 1
        return finished(of, draft, rows, tally)

    def _fixed(self, signature: str, batch: int, tally: Tally) -> None:
        """Doubt a batch on which a product does not depend.

        Raises
        ------
        Refused
            The batch was not stated but found.
        """
        if not self.batch:
            what = f"{signature} does not depend on a batch of {batch}, which leading extents suggest"
            raise Refused(self.text, what, GIVE.format(f"{self.factor:g}"))
        tally.assumed["products without an extent that counts samples are taken to work on parameters"] += 1


@dataclass(frozen=True)
class Samples:
    """The batch of a recording and every extent that is a multiple of it by construction."""

    batch: int
    rows: frozenset[int]  # batch, and batch x the extent beside it in some tensor that leads with it
    others: frozenset[int] = field(repr=False)  # extents of parameters: an extent in both sets tells nothing


def samples_of(view: View, edit: ScaleBatch) -> Samples:
    """Find the batch of a recording.

    Raises
    ------
    Refused
        No leading extent is shared by most operators with more than two axes, or no shapes are recorded.
    """
    _, head = np.unique(view.row, return_index=True)
    calls = [call for unit in head.tolist() if (call := view.call_of(unit)) is not None]
    if not calls:
        raise Refused(edit.text, "no shapes are recorded, so that nothing says which extent is the batch", "record with record_shapes=True")
    leading = Counter(t.shape[0] for call in calls for t in call.flat[:1] if len(t.shape) > 2 and t.shape[0] > 1)
    batch = edit.batch
    if not batch:
        total = sum(leading.values())
        batch, votes = leading.most_common(1)[0] if leading else (0, 0)
        if 2 * votes <= total:
            raise Refused(edit.text, "no leading extent is shared by most operators", GIVE.format(f"{edit.factor:g}"))
    tall = [t.shape for call in calls for t in call.flat if len(t.shape) > 2 and t.shape[0] == batch]
    rows = {batch} | {batch * shape[1] for shape in tall} | {batch * shape[1] * shape[2] for shape in tall if len(shape) > 3}
    weights = {extent for call in calls for extent in _parameters(call)}
    return Samples(batch, frozenset(rows), frozenset(weights))


def _parameters(call: Call) -> tuple[int, ...]:
    """Return the extents of what is surely a parameter: the weight of a linear layer, convolution, norm or embedding."""
    place = {"aten::linear": 1, "aten::conv2d": 1, "aten::convolution": 1, "aten::embedding": 0, "aten::native_layer_norm": 2}.get(
        call.name
    )
    tensor = call.tensor(place)
    return tensor.shape if tensor is not None else ()


def scaled_row(rows: Rows, view: View, unit: int, samples: Samples, ratio: Fraction, tally: Tally) -> NewRow | None:
    """Return the row of an operator with more samples, None where it does not depend on them.

    Parameters
    ----------
    rows : Rows
    view : View
    unit : int
        One unit of the operator.
    samples : Samples
    ratio : Fraction
        On the batch.
    tally : Tally
        Told what is assumed.

    Raises
    ------
    Refused
        It does, but what of it cannot be told.
    """
    table, row = view.table, int(view.row[unit])
    kind = Kind(table.kind[row])
    call = view.call_of(unit)
    if kind in FIXED or "_foreach_" in table.name[row]:
        return None
    if call is None or not table.has_shapes[row]:
        tally.assumed["work without recorded shapes is taken not to depend on the batch"] += 1
        return None
    grown = tuple(tuple(_grown(t, samples, ratio, table.name[row]) for t in group) for group in call.tensors)
    if grown == call.tensors:
        return None
    before, after = _described(call, table, row), _described(replace(call, tensors=grown), table, row)
    if before is None or after is None:
        return _by_hand(rows, view, row, ratio)
    return _row(rows, view, row, after, before)


def _grown(tensor: Tensor, samples: Samples, ratio: Fraction, name: str) -> Tensor:
    """Return a tensor with its samples scaled: the leading extent, or in a matrix the only one that counts samples."""
    shape = tensor.shape
    if not shape:
        return tensor
    hits = [axis for axis, extent in enumerate(shape) if extent in samples.rows]
    if len(shape) > 2:
        hits = [axis for axis in hits if axis == 0]
    if not hits:
        return tensor
    if len(shape) <= 2 and (len(hits) > 1 or shape[hits[0]] in samples.others):
        what = f"{name} has a tensor {list(shape)} of which {shape[hits[0]]} may count samples or be a width"
        raise Refused("batch", what, "record with a batch that is no width of the model")
    axis = hits[0]
    return Tensor((*shape[:axis], int(shape[axis] * ratio), *shape[axis + 1 :]), tensor.dtype)


def _described(call: Call, table: object, row: int) -> Described | None:
    dtype = Dtype(table.dtype[row])  # type: ignore[attr-defined]
    return describe(call, Ran(dtype=dtype))


def _row(rows: Rows, view: View, row: int, after: Described, before: Described) -> NewRow:
    table = view.table
    same = Kind(table.kind[row]) == before.kind
    ran = float(table.flops[row]), float(table.bytes_read[row]), float(table.bytes_written[row])
    old, new = ((d.flops, d.bytes_read, d.bytes_written) for d in (before, after))
    flops, read, written = (r * n / o if o > 0 else n for r, n, o in zip(ran, new, old, strict=True))
    work = (flops, ran[0]) if before.kind in PRODUCTS and ran[0] > 0 else (read + written, ran[1] + ran[2])
    made = Made(rows.parts([row]), rows.ratio([row]) * (work[0] / work[1] if work[1] > 0 else 1.0))
    dims = after.dims if same else tuple(table.dims[row].tolist())
    return row_of(
        table,
        row,
        made,
        signature=f"{table.signature[row]} {_times(after, before)}",
        dims=dims,
        flops=flops,
        bytes_read=read,
        bytes_written=written,
    )


def _times(after: Described, before: Described) -> str:
    changed = [f"{o}->{n}" for o, n in zip(before.dims, after.dims, strict=False) if o != n]
    return "batch " + ",".join(changed)


def _by_hand(rows: Rows, view: View, row: int, ratio: Fraction) -> NewRow:
    """Return a row whose rule needs more than shapes: everything but the weights of convolutions grows."""
    table, kind, times = view.table, Kind(view.table.kind[row]), float(ratio)
    dims = table.dims[row].tolist()
    if kind != Kind.UNKNOWN:
        dims[0] = int(dims[0] * ratio)
    made = Made(rows.parts([row]), rows.ratio([row]) * times)
    changes = {name: float(getattr(table, name)[row]) * times for name in ("flops", "bytes_read", "bytes_written")}
    return row_of(table, row, made, signature=f"{table.signature[row]} batch x{times:g}", dims=tuple(dims), **changes)
