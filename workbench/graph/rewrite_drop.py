"""Drop and split: work that is not done, and work done in parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Refused
from workbench.graph.graph import EdgeKind, NodeKind
from workbench.graph.rewrite import Rewritten, Tally, finished
from workbench.graph.rewrite_draft import Draft
from workbench.graph.rewrite_host import Host
from workbench.graph.rewrite_operands import read_whole
from workbench.graph.rewrite_rows import Made, NewRow, Rows, row_of
from workbench.graph.rewrite_view import View
from workbench.operators.table import COLLECTIVES, DIMS, ITEMSIZE, Dtype, Kind

MOST_PARTS = 64
SPLIT_ALONG = {
    Kind.GEMM: "m",
    Kind.BATCHED_GEMM: "batch",
    Kind.CONV_FORWARD: "n",
    Kind.CONV_BACKWARD_DATA: "n",
    Kind.ATTENTION_FORWARD: "batch",
    Kind.ATTENTION_BACKWARD: "batch",
    Kind.ELEMENTWISE: "elements",
    Kind.COPY: "elements",
    Kind.SET: "elements",
    Kind.NORM: "rows",
    Kind.SOFTMAX: "rows",
    Kind.REDUCTION: "rows",
    Kind.EMBEDDING: "rows",
}
"""The dimension along which parts of an operator are independent."""


@dataclass(frozen=True)
class Drop:
    """Leave out work, its launches, and the host's work for it.

    Parameters
    ----------
    pattern : str
        An operator's or kernel's name (``*`` is a wildcard), a kind, or the name of a module or operator around it.
    """

    pattern: str

    @property
    def text(self) -> str:
        """The edit as a person types it."""
        return f"drop:{self.pattern}"

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording without the work."""
        tally, draft, view = Tally(self.text), Draft(of.graph), of.view
        units = np.flatnonzero(view.matches(self.pattern)).tolist()
        met = np.zeros(len(of.graph), dtype=bool)
        met[view.target[of.graph.edge_kind == EdgeKind.ARRIVAL]] = True
        fine = []
        for unit in units:
            if met[view.nodes(unit)].any():
                tally.refuse("other ranks meet in this message", "drop it on all ranks, in recordings of one rank each")
            else:
                fine.append(unit)
        tally.done = len(fine)
        if fine and of.has_device:
            Host(view).remove(draft, fine)
        elif fine:
            nodes = np.concatenate([view.nodes(unit) for unit in fine])
            draft.column["measured_s"][nodes], draft.column["op"][nodes], draft.column["unit"][nodes] = 0.0, -2, -1
        return finished(of, draft, Rows(of.table, of.made), tally)


@dataclass(frozen=True)
class Split:
    """Do work in several launches of equal parts, along its rows, images or heads.

    Parameters
    ----------
    pattern : str
        See `Drop`.
    parts : int
        2 or more.
    """

    pattern: str
    parts: int

    def __post_init__(self) -> None:
        if isinstance(self.parts, bool) or not isinstance(self.parts, int | np.integer) or not 2 <= self.parts <= MOST_PARTS:
            raise Refused(f"split:{self.pattern}", f"{self.parts!r} is no number of parts", f"give a whole number from 2 to {MOST_PARTS}")

    @property
    def text(self) -> str:
        """The edit as a person types it."""
        return f"split:{self.pattern}={self.parts}"

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording with the work in parts."""
        tally, rows, draft, view = Tally(self.text), Rows(of.table, of.made), Draft(of.graph), of.view
        for unit in np.flatnonzero(view.matches(self.pattern)).tolist():
            row = int(view.row[unit])
            name = SPLIT_ALONG.get(Kind(of.table.kind[row]))
            if name is None or Kind(of.table.kind[row]) in COLLECTIVES:
                tally.refuse(f"{Kind(of.table.kind[row]).name.lower()} has no independent parts", "split something else")
            elif extent_of(view, row, name) % self.parts:
                tally.refuse(f"{name} = {extent_of(view, row, name)} does not divide by {self.parts}", "choose another number of parts")
            elif of.has_device and (len(view.nodes(unit)) > 1 or len(view.calls(unit)) != 1):
                tally.refuse("it takes several kernels, or its launch is not recorded", "split an operator of one kernel")
            else:
                self._split(draft, view, unit, rows.add(part_row(rows, view, unit, name, self.parts)), of.has_device)
                tally.done += 1
        return finished(of, draft, rows, tally)

    def _split(self, draft: Draft, view: View, unit: int, row: int, on_device: bool) -> None:
        nodes = view.nodes(unit)
        draft.column["op"][nodes] = row
        draft.column["measured_s"][nodes] /= self.parts
        if not on_device:
            for _ in range(self.parts - 1):
                repeat_on_host(draft, int(nodes[-1]), row)
            return
        for place in range(self.parts - 1):
            add_kernel(draft, view, unit, row, float(draft.column["measured_s"][nodes[-1]]), after=True, place=place)


def extent_of(view: View, row: int, name: str) -> int:
    """Return one dimension of a row."""
    return int(view.table.dims[row, DIMS[Kind(view.table.kind[row])].index(name)])


def part_row(rows: Rows, view: View, unit: int, name: str, parts: int) -> NewRow:
    """Return the row of one of some equal parts; what all parts read (weights, broadcast operands) is read by each.

    Parameters
    ----------
    rows : Rows
    view : View
    unit : int
    name : str
        Dimension that is cut.
    parts : int
    """
    table, row = view.table, int(view.row[unit])
    kind = Kind(table.kind[row])
    dims = table.dims[row].tolist()
    dims[DIMS[kind].index(name)] //= parts
    whole = 0.0
    if kind == Kind.GEMM:
        whole = float(dims[2] * dims[3]) * ITEMSIZE[Dtype(table.dtype[row])]
    if kind in (Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA):
        _, c, _, _, k, r, s, *_ = dims
        whole = float(k * c * r * s * max(dims[15], 1)) / max(dims[13], 1) * ITEMSIZE[Dtype(table.dtype[row])]
    read = float(table.bytes_read[row])
    more = read_whole(view.call_of(unit), kind, Dtype(table.dtype[row]), parts)
    return row_of(
        table,
        row,
        Made(rows.parts([row], 1.0 / parts), rows.ratio([row])),
        signature=f"{table.signature[row]} /{parts}",
        dims=tuple(dims),
        flops=float(table.flops[row]) / parts,
        bytes_read=min(max(read - whole, 0.0) / parts + min(whole, read) + more, read),
        bytes_written=float(table.bytes_written[row]) / parts,
    )


def add_kernel(draft: Draft, view: View, unit: int, row: int, seconds: float, *, after: bool, place: int) -> int:
    """Return a new kernel with a launch of its own right before or after a unit, on its stream.

    Parameters
    ----------
    draft : Draft
        Changed.
    view : View
    unit : int
    row : int
        Row of the table of the new kernel.
    seconds : float
        Its time until it is priced [s].
    after : bool
        After the unit, else before it.
    place : int
        Order among several at one place.
    """
    graph, nodes = draft.graph, view.nodes(unit)
    at, call = int(nodes[-1 if after else 0]), int(view.launch[nodes[-1 if after else 0]])
    issue = usual_launch(view, int(graph.resource[call]))
    before = _after_call(draft, call) if after else call
    host = draft.insert_host(before, NodeKind.LAUNCH, issue) if before >= 0 else call
    offset = 0.2 + 0.001 * place
    new = draft.add_node(at, offset if after else -offset, op=row, unit=_fresh(draft), share=1.0, measured_s=seconds)
    launch = next((e for e in draft.into(at) if graph.edge_kind[e] == EdgeKind.LAUNCH), -1)
    lag = float(graph.edge_known_s[launch]) if launch >= 0 else 0.0
    draft.add_edge(host, new, EdgeKind.LAUNCH, lag)
    gap = next((float(graph.edge_known_s[e]) for e in draft.into(at) if graph.edge_kind[e] == EdgeKind.STREAM), 0.0)
    weave(draft, new, at, gap, after=after)
    return new


def weave(draft: Draft, new: int, at: int, gap_s: float, *, after: bool) -> None:
    """Put a new kernel into a stream beside another: what waited for the stream there waits for it, or it waits instead.

    Parameters
    ----------
    draft : Draft
        Changed.
    new, at : int
        Nodes.
    gap_s : float
        From the end of the one to the start of the other [s].
    after : bool
        After the other, else before it.
    """
    if after:
        for e in np.flatnonzero((draft.graph.edge_from == at) & ~draft.cut).tolist():
            if draft.graph.edge_kind[e] != EdgeKind.QUEUE:
                draft.cut[e] = True
                lags = float(draft.graph.edge_lag_s[e]), float(draft.graph.edge_known_s[e])
                draft.add_edge(new, int(draft.target[e]), EdgeKind(draft.graph.edge_kind[e]), *lags)
        for i, edge in enumerate(draft.added):
            if edge.source == at and edge.target != new:
                draft.added[i] = edge._replace(source=new)
        draft.add_edge(at, new, EdgeKind.STREAM, gap_s)
        return
    for e in draft.into(at):
        if draft.graph.edge_kind[e] != EdgeKind.LAUNCH and not draft.cut[e]:
            draft.cut[e] = True
            lags = float(draft.graph.edge_lag_s[e]), float(draft.graph.edge_known_s[e])
            draft.add_edge(int(draft.graph.edge_from[e]), new, EdgeKind(draft.graph.edge_kind[e]), *lags)
    for i, edge in enumerate(draft.added):
        if edge.target == at and edge.kind != EdgeKind.LAUNCH:
            draft.added[i] = edge._replace(target=new)
    draft.add_edge(new, at, EdgeKind.STREAM, gap_s)


def repeat_on_host(draft: Draft, node: int, row: int) -> None:
    """Let a host's thread run one more part after another."""
    before = _after_call(draft, node)
    seconds = float(draft.column["measured_s"][node])
    if before >= 0:
        new = draft.insert_host(before, NodeKind.HOST_WORK, seconds)
        draft._new[new - len(draft.graph)] |= {"op": row, "unit": _fresh(draft), "event": draft.column["event"][node]}


def usual_launch(view: View, thread: int) -> float:
    """Return what a launch call of a thread usually takes on the host [s]: the median of its issue parts."""
    graph = view.graph
    mine = (graph.kind == NodeKind.LAUNCH) & (graph.resource == thread)
    return float(np.median(graph.measured_s[mine])) if mine.any() else 0.0


def _after_call(draft: Draft, node: int) -> int:
    """Return the node that follows another on its thread (-1: none)."""
    follows = (draft.graph.edge_from == node) & (draft.graph.edge_kind == EdgeKind.PROGRAM)
    follows &= draft.graph.resource[draft.target] == draft.graph.resource[node]
    found = np.flatnonzero(follows)
    return int(draft.target[found[0]]) if len(found) else -1


def _fresh(draft: Draft) -> int:
    return int(draft.column["unit"].max(initial=-1)) + 1 + len(draft._new)
