"""What-if edits of a recording: each takes a `Rewritten` and returns another, so that they chain.

An edit changes the graph (launches, order, streams) and the table (operators), never a time by itself: new operators are priced by
whoever prices the old ones. Where it would not be right it is left out and counted with its reason; where it applies nowhere it is
refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np

from workbench.errors import Note, Refused
from workbench.graph.graph import Graph
from workbench.graph.rewrite_draft import Draft
from workbench.graph.rewrite_rows import Made, Rows
from workbench.graph.rewrite_view import View, view
from workbench.operators.table import OpTable
from workbench.trace.trace import Trace


@dataclass(frozen=True)
class Rewritten:
    """A recording after some edits."""

    graph: Graph
    table: OpTable
    trace: Trace = field(repr=False)
    origin: np.ndarray = field(repr=False)  # int64 [V], node of the recording (-1: added)
    operator: np.ndarray | None = field(repr=False, default=None)  # int64 by node of the recording: the operator that asked for it
    made: Mapping[int, Made] = field(repr=False, default_factory=lambda: MappingProxyType({}))  # by row: what it is made of

    @cached_property
    def view(self) -> View:
        """Its units."""
        return view(self.graph, self.table, self.trace, None if self.operator is None else self.operator[self.origin])

    @property
    def has_device(self) -> bool:
        """Whether device work was recorded."""
        return bool(self.graph.resource_is_device[self.graph.resource[self.view.node]].any()) if len(self.view) else False


@runtime_checkable
class Rewrite(Protocol):
    """One edit: frozen, comparable, written as text."""

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording after the edit."""

    @property
    def text(self) -> str:
        """The edit as a person types it."""


def recorded(graph: Graph, table: OpTable, trace: Trace) -> Rewritten:
    """Return a recording no edit has touched yet."""
    found = Rewritten(graph, table, trace, np.arange(len(graph)))
    operator = np.full(len(graph) + 1, -1, dtype=np.int64)  # the last: of added nodes
    operator[found.view.node] = np.repeat(found.view.operator, np.diff(found.view.ptr))
    return replace(found, operator=operator)


def rewrite(of: Rewritten, edits: Iterable[Rewrite]) -> Rewritten:
    """Apply edits one after the other."""
    for edit in edits:
        of = edit.apply(of)
    return of


@dataclass
class Tally:
    """How often an edit applied, and why elsewhere it did not."""

    edit: str
    done: int = 0
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    assumed: Counter[str] = field(default_factory=Counter)

    def refuse(self, what: str, fix: str) -> None:
        """Count one place where the edit would not be right."""
        self.refused[what, fix] += 1

    def notes(self) -> tuple[Note, ...]:
        """Return what a reader of the result must know.

        Raises
        ------
        Refused
            The edit applies nowhere.
        """
        if not self.done:
            (what, fix), _ = self.refused.most_common(1)[0] if self.refused else (("nothing in the recording fits", "widen the pattern"), 0)
            raise Refused(self.edit, what, fix)
        out = [Note("rewrite-applied", self.edit, self.done, "a what-if edit: its times are estimates")]
        out += [Note("rewrite-skipped", self.edit, count, what, fix) for (what, fix), count in sorted(self.refused.items())]
        return (*out, *(Note("rewrite-assumed", self.edit, count, what) for what, count in sorted(self.assumed.items())))


def finished(of: Rewritten, draft: Draft, rows: Rows, tally: Tally) -> Rewritten:
    """Freeze an edit.

    Raises
    ------
    Refused
        It applied nowhere, or work would wait for itself.
    """
    notes = tally.notes()
    graph, origin = draft.freeze(notes, of.origin)
    table, made = rows.freeze()
    return replace(of, graph=graph, table=counted(table, graph), origin=origin, made=made)


def counted(table: OpTable, graph: Graph) -> OpTable:
    """Return the table with the number of units each row now has."""
    priced = (graph.op >= 0) & (graph.unit >= 0)
    units, head = np.unique(graph.unit[priced], return_index=True)
    count = np.bincount(graph.op[priced][head], minlength=len(table)).astype(np.int64) if len(units) else np.zeros(len(table), np.int64)
    count.setflags(write=False)
    return replace(table, count=count)
