"""What an edit sees of a recording: priced units in stream order, the calls that launch them, the operators that ask for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

import numpy as np

from workbench.graph.graph import EdgeKind, Graph, NodeKind
from workbench.operators.call import Call, parse_call
from workbench.operators.table import Kind, OpTable
from workbench.trace.trace import Category, Trace

DIMS, TYPES, CONCRETE = ("Input Dims", "Input Shapes"), ("Input type", "Input types"), ("Concrete Inputs",)
GRADIENT = re.compile(r"^autograd::engine::evaluate_function|Backward\d*$")
"""Names of what runs gradients."""


@dataclass(frozen=True)
class View:
    """Units of a graph in stream order; unit arrays have length N, node arrays length V."""

    graph: Graph
    table: OpTable
    trace: Trace
    node: np.ndarray  # int64 [priced nodes], unit after unit
    ptr: np.ndarray  # int64 [N + 1], nodes of unit i are node[ptr[i]:ptr[i + 1]]
    row: np.ndarray  # int64 [N], row of the table
    resource: np.ndarray  # int64 [N]
    step: np.ndarray  # int64 [N]
    launch: np.ndarray  # int64 [V], launch node of a device node (-1: none is recorded)
    operator: np.ndarray  # int64 [N], event of the framework operator that asked for the unit (-1: none)

    def __len__(self) -> int:
        return len(self.row)

    def nodes(self, unit: int) -> np.ndarray:
        """Return the nodes of a unit in stream order, int64."""
        return self.node[self.ptr[unit] : self.ptr[unit + 1]]

    def calls(self, unit: int) -> np.ndarray:
        """Return the launch nodes of a unit, int64 (empty: none is recorded)."""
        found = self.launch[self.nodes(unit)]
        return np.unique(found[found >= 0])

    @cached_property
    def target(self) -> np.ndarray:
        """Int64 [L]: the node every edge goes into."""
        return np.repeat(np.arange(len(self.graph)), np.diff(self.graph.edge_ptr))

    @cached_property
    def seconds(self) -> np.ndarray:
        """Float64 [N] [s]: recorded device time of a unit."""
        return np.add.reduceat(self.graph.measured_s[self.node], self.ptr[:-1]) if len(self) else np.zeros(0)

    @cached_property
    def in_gradient(self) -> np.ndarray:
        """Bool [N]: units that a backward function asked for."""
        strings, events = self.trace.strings, self.trace.events
        named = np.array([bool(GRADIENT.search(text)) for text in strings] + [False])
        out, at = np.zeros(len(self), dtype=bool), self.operator.copy()
        while (at >= 0).any():
            out |= (at >= 0) & named[events.name[at]]
            at = np.where(at >= 0, events.parent[at], -1)
        return out

    @cached_property
    def forward(self) -> np.ndarray:
        """Int64 [N]: the forward operator whose gradient a unit is part of, by sequence number (-1: none is known)."""
        sequence, events = self._sequence, self.trace.events
        out = np.full(len(self), -1, dtype=np.int64)
        at = np.where(self.in_gradient, self.operator, -1)
        mine = np.unique(at[at >= 0])
        rows = np.setdiff1d(np.flatnonzero(sequence >= 0), mine)
        last = dict(zip(sequence[rows].tolist(), rows.tolist(), strict=True)) if len(mine) else {}
        for row in rows[np.argsort(-events.start_ns[rows], kind="stable")].tolist() if len(mine) else ():
            last[int(sequence[row])] = row  # the first that carries the number
        while (at >= 0).any():
            for unit in np.flatnonzero((at >= 0) & (sequence[at] >= 0) & (out < 0)).tolist():
                found = last.get(int(sequence[at[unit]]), -1)
                out[unit] = found if found >= 0 and events.start_ns[found] < events.start_ns[at[unit]] else -1
            at = np.where(at >= 0, events.parent[at], -1)
        return out

    @cached_property
    def _sequence(self) -> np.ndarray:
        return self.trace.integer_arg("Sequence number")

    @cached_property
    def _with_gradient(self) -> np.ndarray:
        """Int64: sequence numbers of which the recording holds the gradient."""
        return np.unique(self._sequence[self.forward[self.forward >= 0]])

    def gradient_follows(self, unit: int) -> bool:
        """Tell whether the recording holds the gradient of what a unit computes."""
        at = -1 if self.in_gradient[unit] else int(self.operator[unit])
        while at >= 0:
            if self._sequence[at] >= 0 and self._sequence[at] in self._with_gradient:
                return True
            at = int(self.trace.events.parent[at])
        return False

    def call_of(self, unit: int) -> Call | None:
        """Return the recorded call of a unit's operator, None without an operator or shapes."""
        event = int(self.operator[unit])
        if event < 0:
            return None
        texts = [self._text(keys, event) for keys in (DIMS, TYPES, CONCRETE)]
        call = parse_call(self.trace.name_of(event), *texts)
        return call if call.has_shapes else None

    def _text(self, keys: tuple[str, ...], event: int) -> str:
        for key in keys:
            column = self._columns.get(key)
            if column is not None and column[event] >= 0:
                return self.trace.strings[column[event]]
        return ""

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        wanted = (*DIMS, *TYPES, *CONCRETE, "Input tensors", "Output tensors")
        return {key: self.trace.text_arg(key) for key in wanted if key in self.trace.args}

    def tensors(self, event: int, key: str) -> str:
        """Return the JSON text of an operator's ``Input tensors`` or ``Output tensors`` ("": not recorded)."""
        return self._text((key,), event) if event >= 0 else ""

    def matches(self, pattern: str) -> np.ndarray:
        """Return which units a pattern names, bool [N].

        It is matched (``*`` is a wildcard) against the operator's name and signature, its kind (``gemm``), the kernel's name, and the
        names of what encloses it: operators, annotations, modules. Gradients belong to the modules and annotations of their forward.
        """
        fits = re.compile(translate(pattern)).match
        table, events = self.table, self.trace.events
        rows = [
            bool(fits(name) or fits(signature) or Kind(kind).name.lower() == pattern.lower())
            for name, signature, kind in zip(table.name, table.signature, table.kind.tolist(), strict=True)
        ]
        out = np.array(rows or [False])[self.row] if len(self) else np.zeros(0, dtype=bool)
        named = np.zeros(len(self.trace.strings) + 1, dtype=bool)
        used = np.unique(events.name)
        named[used] = [bool(fits(self.trace.strings[i]) or fits(self.trace.strings[i].removeprefix("nn.Module: "))) for i in used.tolist()]
        made = np.array(["+" in name for name in table.name] or [False])[self.row] if len(self) else out
        event = self.graph.event[self.node]
        kernel = (event >= 0) & named[events.name[event]]
        out |= (np.add.reduceat(kernel.astype(int), self.ptr[:-1]) > 0) & ~made if len(self) else out
        enclosing = np.where(self.operator >= 0, events.parent[self.operator], -1)
        for start, any_kind in ((enclosing, True), (self.forward, False)):
            at = start.copy()
            while (at >= 0).any():
                out |= (at >= 0) & named[events.name[at]] & (any_kind | (events.category[at] != Category.CPU_OP))
                at = np.where(at >= 0, events.parent[at], -1)
        return out


def view(graph: Graph, table: OpTable, trace: Trace, asked: np.ndarray | None = None) -> View:
    """Lay the units of a graph out in stream order; ``asked`` is the operator of every node, int64 [V], where it is known already."""
    priced = np.flatnonzero((graph.op >= 0) & (graph.unit >= 0))
    priced = priced[np.lexsort((priced, graph.resource[priced]))]
    ids, head, inverse = np.unique(graph.unit[priced], return_index=True, return_inverse=True)
    place = np.empty(len(ids), dtype=np.int64)
    place[np.argsort(head)] = np.arange(len(ids))
    node = priced[np.argsort(place[inverse], kind="stable")]
    counts = np.bincount(place[inverse], minlength=len(ids)) if len(ids) else np.zeros(0, dtype=np.int64)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    first = node[ptr[:-1]] if len(ids) else node
    launch = np.full(len(graph), -1, dtype=np.int64)
    into = np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))
    edges = np.flatnonzero(graph.edge_kind == EdgeKind.LAUNCH)
    launch[into[edges]] = graph.edge_from[edges]
    row = graph.op[first].astype(np.int64)
    operator = _operators(graph, table, trace, first, launch, row) if asked is None else asked[first]
    return View(
        graph, table, trace, node, ptr, row, graph.resource[first].astype(np.int64), graph.step[first].astype(np.int64), launch, operator
    )


def _operators(graph: Graph, table: OpTable, trace: Trace, first: np.ndarray, launch: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return the operator of each unit: the innermost around its launch that the row is named after, else the innermost of all."""
    events = trace.events
    on_host = graph.kind[first] == NodeKind.HOST_WORK
    call = np.where(on_host, first, launch[first])
    at = np.where(call >= 0, graph.event[call], -1).astype(np.int64)
    number = {text: i for i, text in enumerate(trace.strings)}
    wanted = np.array([number.get(name, -2) for name in table.name] or [-2])[row] if len(row) else row
    named, innermost = np.full(len(first), -1, dtype=np.int64), np.full(len(first), -1, dtype=np.int64)
    while (at >= 0).any():
        operator = (at >= 0) & (events.category[at] == Category.CPU_OP)
        innermost = np.where(operator & (innermost < 0), at, innermost)
        named = np.where(operator & (named < 0) & (events.name[at] == wanted), at, named)
        at = np.where(at >= 0, events.parent[at], -1)
    return np.where(named >= 0, named, innermost)
