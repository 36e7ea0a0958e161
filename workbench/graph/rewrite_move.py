"""Move and overlap: work goes to another stream, behind an event of what it reads and before what reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Refused
from workbench.graph.calls import Call, call_of
from workbench.graph.graph import EdgeKind, NodeKind
from workbench.graph.rewrite import Rewritten, Tally, finished
from workbench.graph.rewrite_chain import EVENTS, SYNCS, tensor_ids
from workbench.graph.rewrite_draft import Draft
from workbench.graph.rewrite_rows import Rows
from workbench.graph.rewrite_view import View

CALL_S = 1e-6
"""What an event call takes on the host where none is recorded [s]: about a microsecond, a judgement."""
BESIDE = "beside"


@dataclass(frozen=True)
class Move:
    """Run work on another stream.

    It waits for the work before it on its old stream and for whatever it waited for; what reads its result waits for it. Two event
    records and two waits are added on the host.

    Parameters
    ----------
    pattern : str
        See `Drop`.
    stream : str
        Number of a stream of the recording, or any name for a new one.
    until : str
        Pattern of the first work after it that reads its result. Empty: known by tensor where execution traces are recorded.
    """

    pattern: str
    stream: str = BESIDE
    until: str = ""

    def __post_init__(self) -> None:
        if not str(self.stream).strip():
            raise Refused(self.text, "names no stream", "give a number of a stream, or a name for a new one")

    @property
    def text(self) -> str:
        """The edit as a person types it."""
        return f"move:{self.pattern}={self.stream}" + (f",until={self.until}" if self.until else "")

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording with the work moved."""
        tally, draft, view = Tally(self.text), Draft(of.graph), of.view
        if not of.has_device:
            raise Refused(self.text, "no device work is recorded", "record with activities CPU and CUDA")
        wanted = view.matches(self.until) if self.until else None
        for unit in np.flatnonzero(view.matches(self.pattern)).tolist():
            reader, certain = self._reader(view, unit, wanted)
            if reader < 0:
                tally.refuse("what reads its result is not known", f"say which: {self.text},until=PATTERN")
            elif len(view.calls(unit)) != 1 or not len(view.calls(reader)):
                tally.refuse("its launch, or that of its reader, is not recorded", "choose other work")
            elif _lane(view, unit, self.stream) == view.graph.resources[view.resource[unit]]:
                tally.refuse("it runs on that stream already", "name another stream")
            else:
                _move(draft, view, unit, reader, _lane(view, unit, self.stream))
                tally.done += 1
                tally.assumed["that nothing reads its result before, and that streams do not slow each other, is assumed"] += not certain
        tally.assumed = +tally.assumed
        return finished(of, draft, Rows(of.table, of.made), tally)

    def _reader(self, view: View, unit: int, wanted: np.ndarray | None) -> tuple[int, bool]:
        """Return the first unit that reads what a unit writes, and whether tensors say so (-1: not known)."""
        start = view.trace.events.start_ns
        after = np.arange(unit + 1, len(view))
        after = after[(view.step[after] == view.step[unit]) & (view.resource[after] == view.resource[unit])]
        found = after[wanted[after]] if wanted is not None else after[:0]
        stated = int(found[0]) if len(found) else -1
        out = tensor_ids(view.tensors(int(view.operator[unit]), "Output tensors"))
        if not out:
            return stated, False
        for other in after.tolist():
            event = int(view.operator[other])
            if event >= 0 and start[event] > start[view.operator[unit]] and out & tensor_ids(view.tensors(event, "Input tensors")):
                return (min(other, stated) if stated >= 0 else other), True
        return stated, False


@dataclass(frozen=True)
class Overlap:
    """Run work beside the work after it, on a stream of its own, until something reads its result (see `Move`)."""

    pattern: str
    until: str = ""

    @property
    def text(self) -> str:
        """The edit as a person types it."""
        return f"overlap:{self.pattern}" + (f",until={self.until}" if self.until else "")

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording with the work on a stream of its own."""
        return Move(self.pattern, BESIDE, self.until).apply(of)


def _lane(view: View, unit: int, stream: str) -> str:
    """Return the name of a stream of the unit's device, whether there is one or not."""
    own = view.graph.resources[view.resource[unit]]
    return own.partition(" stream ")[0] + f" stream {stream}"


def _move(draft: Draft, view: View, unit: int, reader: int, lane: str) -> None:
    graph, nodes = draft.graph, view.nodes(unit)
    resource = draft.add_resource(lane)
    first, last = int(nodes[0]), int(nodes[-1])
    before = [e for e in draft.into(first) if graph.edge_kind[e] == EdgeKind.STREAM and not draft.cut[e]]
    awaited = [e for e in draft.into(first) if graph.edge_kind[e] in EVENTS and not draft.cut[e]]
    after = np.flatnonzero((graph.edge_from == last) & (graph.edge_kind == EdgeKind.STREAM) & ~draft.cut).tolist()
    for e in after:
        draft.cut[e] = True
        known = float(graph.edge_known_s[e])
        for b in (*before, *awaited):
            kind = EdgeKind.STREAM if b in before else EdgeKind(graph.edge_kind[b])
            draft.add_edge(int(graph.edge_from[b]), int(draft.target[e]), kind, known if b in before else float(graph.edge_known_s[b]))
    gap = max((float(graph.edge_known_s[b]) for b in before), default=0.0)
    for b in before:
        draft.cut[b] = True
        draft.add_edge(int(graph.edge_from[b]), first, EdgeKind.EVENT_INFERRED, gap)
        for e in np.flatnonzero((graph.edge_from == last) & np.isin(graph.edge_kind, SYNCS)).tolist():
            draft.add_edge(int(graph.edge_from[b]), int(draft.target[e]), EdgeKind(graph.edge_kind[e]), float(graph.edge_lag_s[e]))
    draft.add_edge(last, int(view.nodes(reader)[0]), EdgeKind.EVENT_INFERRED, gap)
    _enter(draft, view, nodes, resource, gap)
    draft.column["resource"][nodes] = resource
    record, wait = (_usual(view, role) for role in (Call.RECORD, Call.WAIT))
    own, theirs = int(view.calls(unit)[0]), int(view.calls(reader)[0])
    for seconds, place in ((record, own), (wait, own), (record, theirs), (wait, theirs)):
        draft.insert_host(place, NodeKind.HOST_CALL, seconds)


def _enter(draft: Draft, view: View, nodes: np.ndarray, resource: int, gap: float) -> None:
    """Take a place on another stream by the order of launches."""
    graph = draft.graph
    mine = np.flatnonzero(draft.column["resource"] == resource)
    mine = mine[np.argsort(draft.key[mine], kind="stable")]
    call = int(view.launch[nodes[0]])
    earlier = np.array([v for v in mine.tolist() if 0 <= view.launch[v] < call], dtype=np.int64)
    later = np.array([v for v in mine.tolist() if view.launch[v] > call], dtype=np.int64)
    for e in np.flatnonzero(
        np.isin(graph.edge_from, earlier[-1:]) & np.isin(draft.target, later[:1]) & (graph.edge_kind == EdgeKind.STREAM)
    ).tolist():
        draft.cut[e] = True
    if len(earlier):
        draft.add_edge(int(earlier[-1]), int(nodes[0]), EdgeKind.STREAM, gap)
    if len(later):
        draft.add_edge(int(nodes[-1]), int(later[0]), EdgeKind.STREAM, gap)


def _usual(view: View, role: Call) -> float:
    """Return what a runtime call of a role takes [s]: its median in the recording."""
    graph, trace = view.graph, view.trace
    calls = np.flatnonzero((graph.kind == NodeKind.HOST_CALL) & (graph.event >= 0))
    used, back = np.unique(trace.events.name[graph.event[calls]], return_inverse=True)
    fits = np.array([call_of(trace.strings[i]) == role for i in used.tolist()] or [False])
    mine = calls[fits[back]] if len(calls) else calls
    return float(np.median(graph.measured_s[mine])) if len(mine) else CALL_S
