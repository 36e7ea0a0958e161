"""Capture: stretches of launches become one launch of a graph; the host does nothing else for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS, EdgeKind, NodeKind
from workbench.graph.rewrite import Rewritten, Tally, finished
from workbench.graph.rewrite_chain import SYNCS
from workbench.graph.rewrite_draft import Draft
from workbench.graph.rewrite_drop import usual_launch
from workbench.graph.rewrite_rows import Rows
from workbench.graph.rewrite_view import View
from workbench.trace.trace import Category

BARRED = re.compile(r"(cuda|hip|cu)(Mem)?(Alloc|Free|HostAlloc|HostRegister)|Malloc|Memcpy(?!.*Async)|GraphLaunch|EventQuery|StreamQuery")
"""Calls that may not be made while a stream is captured (CUDA programming guide, prohibited and unhandled operations)."""
FEWEST = 2


@dataclass(frozen=True)
class Capture:
    """Capture the launches of stretches of work into graphs: the launch overhead is paid once a stretch.

    A stretch is what one thread launches without waiting for the device or another thread, allocating, or copying to pageable memory.
    Framework and Python work inside it vanish, kernels keep their order and dependencies.

    Parameters
    ----------
    pattern : str
        Which work, see `Drop`; ``*`` is all.
    """

    pattern: str = "*"

    @property
    def text(self) -> str:
        """The edit as a person types it."""
        return f"capture:{self.pattern}"

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording with its launches captured."""
        tally, draft, view = Tally(self.text), Draft(of.graph), of.view
        if not of.has_device:
            raise Refused(self.text, "no device work is recorded", "record with activities CPU and CUDA")
        chosen = np.zeros(len(of.graph), dtype=bool)
        for unit in np.flatnonzero(view.matches(self.pattern)).tolist():
            chosen[view.nodes(unit)] = True
        for nodes, launches in stretches(view, chosen):
            _capture(draft, view, nodes, launches)
            tally.done += 1
        if not tally.done:
            tally.refuse(
                "no thread launches two of these in a row without a wait, an allocation or other work between", "widen the pattern"
            )
        tally.assumed["shapes and control flow are taken to be the same every time, as a captured graph needs"] += 1
        return finished(of, draft, Rows(of.table, of.made), tally)


def stretches(view: View, chosen: np.ndarray) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Yield the host nodes of every stretch, and its launch nodes.

    Parameters
    ----------
    view : View
    chosen : bool [V]
        Device nodes that may be captured.
    """
    graph = view.graph
    bar = barriers(view, chosen)
    works = np.zeros(len(graph), dtype=bool)  # nodes that launch something
    works[view.launch[view.launch >= 0]] = True
    host = np.flatnonzero(~graph.resource_is_device[graph.resource] & (graph.rank >= 0))
    for thread in np.unique(graph.resource[host]).tolist():
        mine = host[graph.resource[host] == thread]
        cuts = np.flatnonzero(bar[mine])
        for begin, end in zip(np.append(-1, cuts), np.append(cuts, len(mine)), strict=True):
            part = mine[begin + 1 : end]
            at = np.flatnonzero(works[part])
            if len(at) >= FEWEST:
                yield _trimmed(view, part, int(at[0]), int(at[-1])), part[at].tolist()


def barriers(view: View, chosen: np.ndarray) -> np.ndarray:
    """Bool [V]: host nodes a stretch cannot reach across."""
    graph, trace = view.graph, view.trace
    out = np.isin(graph.kind, (NodeKind.SYNC, NodeKind.STEP_BEGIN, NodeKind.STEP_END))
    handed = graph.edge_kind == EdgeKind.HANDOVER
    out[view.target[handed | np.isin(graph.edge_kind, SYNCS)]] = True
    named = np.array([bool(BARRED.search(text)) for text in trace.strings] + [False])
    calls = np.isin(graph.kind, (NodeKind.HOST_CALL, NodeKind.LAUNCH, NodeKind.LAUNCH_RETURN)) & (graph.event >= 0)
    out |= calls & named[np.where(graph.event >= 0, trace.events.name[graph.event], -1)]
    launched = np.flatnonzero(view.launch >= 0)
    other = launched[~chosen[launched] & np.isin(graph.kind[launched], DEVICE_KINDS)]
    out[view.launch[other]] = True
    # the last node before a hand-over belongs to the stretch: the cut lies after it
    giver = graph.edge_from[handed]
    later = np.full(len(graph), -1, dtype=np.int64)
    program = np.flatnonzero((graph.edge_kind == EdgeKind.PROGRAM) & (graph.resource[graph.edge_from] == graph.resource[view.target]))
    later[graph.edge_from[program]] = view.target[program]
    out[later[giver][later[giver] >= 0]] = True
    return np.asarray(out & ~graph.resource_is_device[graph.resource])


def _trimmed(view: View, part: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return a stretch from the operator around its first launch to the end of that around its last."""
    graph = view.graph
    last = last + 1 if last + 1 < len(part) and graph.kind[part[last + 1]] == NodeKind.LAUNCH_RETURN else last
    while first > 0 and graph.kind[part[first - 1]] != NodeKind.GAP and _same_operator(view, int(part[first - 1]), int(part[first])):
        first -= 1
    while (
        last + 1 < len(part) and graph.kind[part[last + 1]] != NodeKind.GAP and _same_operator(view, int(part[last + 1]), int(part[last]))
    ):
        last += 1
    return part[first : last + 1]


def _same_operator(view: View, a: int, b: int) -> bool:
    found = _outermost(view, a)
    return found >= 0 and found == _outermost(view, b)


def _outermost(view: View, node: int) -> int:
    """Return the outermost operator around a node's event (-1: none)."""
    events, at, found = view.trace.events, int(view.graph.event[node]), -1
    while at >= 0:
        found = at if events.category[at] == Category.CPU_OP else found
        at = int(events.parent[at])
    return found


def _capture(draft: Draft, view: View, nodes: np.ndarray, launches: list[int]) -> None:
    """Leave one launch of the usual length; all work of the stretch hangs on it."""
    graph = view.graph
    first, issue = launches[0], usual_launch(view, int(graph.resource[launches[0]]))
    draft.quiet(int(v) for v in nodes if v != first)
    draft.column["measured_s"][first] = issue
    moved = np.flatnonzero((graph.edge_kind == EdgeKind.LAUNCH) & np.isin(graph.edge_from, launches))
    for e in moved.tolist():
        draft.cut[e] = True
        draft.add_edge(first, int(view.target[e]), EdgeKind.LAUNCH, float(graph.edge_known_s[e]))
