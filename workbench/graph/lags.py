"""Ledger of unexplained lags: where a step's time goes that no record accounts for, with a cause in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.graph.graph import EdgeKind, Graph, NodeKind
from workbench.trace.trace import DEVICE_WORK, HOST_CALLS, Category, Trace

if TYPE_CHECKING:
    from typing import Protocol

    class Replayed(Protocol):
        """What the ledger reads of a timeline (which is made in a higher room)."""

        @property
        def start_s(self) -> np.ndarray:
            """Start of every node [s]."""

        @property
        def finish_s(self) -> np.ndarray:
            """Finish of every node [s]."""

        @property
        def critical(self) -> np.ndarray:
            """Nodes of a critical path."""

        @property
        def binding(self) -> np.ndarray:
            """Edge that set each start."""

        @property
        def step_s(self) -> np.ndarray:
            """Seconds of every step."""


@dataclass(frozen=True)
class Lag:
    """One stretch of time without a recorded explanation."""

    where: str  # resource it is on
    seconds: float  # unexplained part [s]
    start_s: float  # when it begins, since the root [s]
    edge_kind: str  # kind of the edge that carries it; "GAP" for host time between events
    before: str  # what ended before it
    after: str  # what started after it
    cause: str  # likely cause, in words
    critical: bool  # on the critical path of a step
    step: int  # step number (-1: none)


FIRST_USE = ("Malloc", "HostAlloc", "ModuleLoad", "StreamCreate", "GetDeviceProperties", "Create", "FuncSetAttribute")


def ledger(graph: Graph, timeline: Replayed, trace: Trace, n: int = 10) -> list[Lag]:
    """Return the n largest unexplained lags: those on a critical path first, then by size.

    Parameters
    ----------
    graph : Graph
    timeline : Timeline
    trace : Trace
        The recording, for names.
    n : int
    """
    seconds, node, edge = _all(graph, timeline)
    order = np.lexsort((node, -seconds, ~timeline.critical[node]))[:n]
    return [_describe(graph, timeline, trace, float(seconds[k]), int(node[k]), int(edge[k])) for k in order]


def unexplained_share(graph: Graph, timeline: Replayed) -> np.ndarray:
    """Share of each step's critical path that rests on unexplained lag, float64 [S] in 0..1 (gaps on the host included)."""
    seconds, node, _ = _all(graph, timeline)
    mine = timeline.critical[node]
    begin = timeline.start_s[graph.step_begin]
    end = begin + timeline.step_s
    low = np.where(graph.kind[node] == NodeKind.GAP, timeline.start_s[node], timeline.start_s[node] - seconds)
    out = np.zeros(len(begin))
    for s in range(len(begin)):
        inside = np.minimum(low + seconds, end[s]) - np.maximum(low, begin[s])
        out[s] = np.clip(inside[mine], 0, None).sum() / timeline.step_s[s] if timeline.step_s[s] > 0 else 0.0
    return np.minimum(out, 1.0)


def _all(graph: Graph, timeline: Replayed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(seconds, node, edge) of every unexplained lag that set a start (edge -1: a gap)."""
    node = np.flatnonzero(timeline.binding >= 0)
    edge = timeline.binding[node]
    extra = graph.edge_lag_s[edge] - graph.edge_known_s[edge]
    some = extra > 0
    gaps = np.flatnonzero((graph.kind == NodeKind.GAP) & (timeline.finish_s > timeline.start_s))
    seconds = np.concatenate([extra[some], (timeline.finish_s - timeline.start_s)[gaps]])
    return seconds, np.concatenate([node[some], gaps]), np.concatenate([edge[some], np.full(len(gaps), -1)])


def _describe(graph: Graph, timeline: Replayed, trace: Trace, seconds: float, node: int, edge: int) -> Lag:
    if edge >= 0:
        before, after, kind = int(graph.edge_from[edge]), node, EdgeKind(int(graph.edge_kind[edge])).name
    else:
        before, after, kind = _neighbour(graph, node, -1), _neighbour(graph, node, 1), "GAP"
    names = _name(graph, trace, before), _name(graph, trace, after)
    begin = timeline.start_s[node] - (seconds if edge >= 0 else 0.0)
    step = int(graph.step[node])
    number = int(graph.step_numbers[step]) if step >= 0 else -1
    frame = _frame(graph, trace, node, before if before >= 0 else after) if edge < 0 else ""
    cause = (
        _gap_cause(names, graph, after, frame)
        if edge < 0
        else _edge_cause(EdgeKind[kind], graph, node, names, _meanwhile(graph, timeline, trace, node, float(begin), seconds))
    )
    return Lag(graph.resources[graph.resource[node]], seconds, float(begin), kind, *names, cause, bool(timeline.critical[node]), number)


def _neighbour(graph: Graph, node: int, way: int) -> int:
    """Nearest other node on the same resource in program order that has a record (-1: none)."""
    mine = np.flatnonzero((graph.resource == graph.resource[node]) & (graph.event >= 0))
    k = int(np.searchsorted(mine, node)) + (0 if way > 0 else -1)
    return int(mine[k]) if 0 <= k < len(mine) else -1


def _name(graph: Graph, trace: Trace, node: int) -> str:
    if node < 0:
        return ""
    event = int(graph.event[node])
    if event >= 0:
        return trace.name_of(event)
    return "start of the recording" if graph.kind[node] == NodeKind.ROOT else "unrecorded host time"


def _frame(graph: Graph, trace: Trace, gap: int, beside: int) -> str:
    """Innermost Python frame around the middle of a gap as recorded, on the thread of a node beside it ("": none recorded).

    A prediction moves a gap, not what ran in it: the recorded times find the frame.
    """
    e = trace.events
    if beside < 0:
        return ""
    frames = np.flatnonzero((e.category == Category.PYTHON) & (e.track == e.track[graph.event[beside]]))
    if not len(frames):
        return ""
    used = np.isin(e.category, (Category.CPU_OP, *HOST_CALLS, *DEVICE_WORK))
    used[trace.steps.event] = True
    used &= np.array([track.rank == graph.rank[gap] for track in trace.tracks])[e.track]  # the clocks of ranks were laid on one
    first = graph.recorded_start_s[(graph.rank == graph.rank[gap]) & (graph.event >= 0)].min()
    middle = int(e.start_ns[used].min()) + int((graph.recorded_start_s[gap] + graph.measured_s[gap] / 2 - first) * 1e9)
    around = frames[(e.start_ns[frames] <= middle) & (e.start_ns[frames] + e.dur_ns[frames] >= middle)]
    return trace.name_of(int(around[np.argmin(e.dur_ns[around])])) if len(around) else ""


def _gap_cause(names: tuple[str, str], graph: Graph, after: int, frame: str) -> str:
    before, following = names
    if frame:
        return f"Python: {frame}" + (", data loader" if "dataloader" in frame.lower() else "")
    if "DataLoader" in before or "DataLoader" in following:
        return "data loader"
    if after >= 0 and graph.kind[after] == NodeKind.STEP_BEGIN:
        return f"host between steps, after {before}" if before else "host between steps"
    if any(word in before or word in following for word in FIRST_USE):
        return "first use: library set-up or memory allocation on the host"
    return f"host time no record explains (Python or untraced code) after {before}" if before else "host time before the first record"


def _meanwhile(graph: Graph, timeline: Replayed, trace: Trace, node: int, begin: float, seconds: float) -> str:
    """Work of other streams that ran for most of a lag on the device: the name of the longest ("": they were idle)."""
    on_device = graph.resource_is_device[graph.resource] & (graph.resource != graph.resource[node])
    mine = np.flatnonzero(on_device & (timeline.start_s < begin + seconds) & (timeline.finish_s > begin))
    inside = np.minimum(timeline.finish_s[mine], begin + seconds) - np.maximum(timeline.start_s[mine], begin)
    if inside.sum() < 0.5 * seconds:
        return ""
    return _name(graph, trace, int(mine[np.argmax(inside)]))


def _edge_cause(kind: EdgeKind, graph: Graph, node: int, names: tuple[str, str], meanwhile: str) -> str:
    before, after = names
    if meanwhile and kind in (EdgeKind.LAUNCH, EdgeKind.STREAM):
        return f"other streams kept the device busy ({meanwhile}), or a wait that is not recorded"
    if kind == EdgeKind.LAUNCH:
        return (
            "copy engine or staging of a copy"
            if graph.kind[node] == NodeKind.COPY
            else "launch latency on an empty stream, longer than usual"
        )
    if kind == EdgeKind.STREAM:
        return "device idle between two pieces of work of a stream although both were launched"
    if kind in (EdgeKind.EVENT, EdgeKind.EVENT_INFERRED):
        return f"wait for an event of another stream ({before}), longer than usual"
    if kind == EdgeKind.ROOT:
        return "no recorded cause: hangs on the start of the recording"
    if kind == EdgeKind.FALLBACK:
        return f"no recorded cause: hangs on the latest activity before it ({before})"
    return f"between {before} and {after}"
