"""One step of one recording: its operators, its host, and the chain of work that made it as long as it was."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from workbench.errors import Refused
from workbench.graph.graph import EdgeKind, Graph, NodeKind
from workbench.operators.kinds import ran_of
from workbench.operators.table import Dtype, Kind, OpTable
from workbench.replay.replay import ends_step
from workbench.study.steps import kept_steps
from workbench.study.workload import Workload

GAP = "host time between events"
HOST: dict[int, str] = {
    NodeKind.HOST_WORK: "host operators",
    NodeKind.HOST_CALL: "runtime calls",
    NodeKind.LAUNCH: "launch calls",
    NodeKind.LAUNCH_RETURN: "launch calls",
    NodeKind.SYNC: "returns from waiting",
    NodeKind.GAP: GAP,
}
DEVICE: dict[int, str] = {NodeKind.COMPUTE: "kernels", NodeKind.COMMUNICATION: "messages", NodeKind.COPY: "copies"}
ON_HOST = "operators on the host"
UNCAUSED = "lag without a recorded cause"
LAGS: dict[int, str] = {
    EdgeKind.LAUNCH: "lag from launch to start",
    EdgeKind.STREAM: "lag between work of a stream",
    EdgeKind.EVENT: "lag after an event",
    EdgeKind.EVENT_INFERRED: "lag after an event",
    EdgeKind.SYNC: "lag from device to host",
    EdgeKind.SYNC_INFERRED: "lag from device to host",
    EdgeKind.QUEUE: "lag of a full launch queue",
    EdgeKind.PROGRAM: "lag between host threads",
    EdgeKind.HANDOVER: "lag between host threads",
    EdgeKind.ARRIVAL: "lag between ranks",
    EdgeKind.PEER: "lag between ranks",
    EdgeKind.ROOT: UNCAUSED,
    EdgeKind.FALLBACK: UNCAUSED,
}
"""Time on a chain between one piece of work and the next, by why the next waits for the one."""
HOST_PARTS = tuple(dict.fromkeys(HOST.values()))
LAG_PARTS = tuple(dict.fromkeys(LAGS.values()))
CHAIN = (*DEVICE.values(), ON_HOST, *HOST_PARTS, *LAG_PARTS)
COUNTED = (*DEVICE.values(), *HOST_PARTS)
ACCOUNT = ("compute", "exposed_communication", "exposed_copy", "host", "waiting", "idle")
UNIONS = ("communication", "device_busy")


@dataclass
class Row:
    """Operators of one signature in one step."""

    name: str
    dtype: str
    shapes: str  # "": not recorded
    kind: str
    signature: str = ""
    dims: tuple[int, ...] = ()  # of the kind, see `workbench.operators.table.DIMS`
    calls: list[int] = field(default_factory=list)  # place of each call in the step, ascending
    seconds: float = 0.0
    chain_s: float = 0.0  # of it on the chain that ends the step
    flops: float = 0.0
    kernels: dict[str, tuple[int, float]] = field(default_factory=dict)  # name -> launches, seconds

    @property
    def count(self) -> int:
        """Calls in the step."""
        return len(self.calls)


@dataclass(frozen=True)
class OneStep:
    """A step taken apart. ``chain_s`` (by `CHAIN`) adds up to ``step_s``, and so do the parts of ``account`` named in `ACCOUNT`."""

    index: int
    number: int
    rank: int
    step_s: float
    rows: list[Row]
    host: dict[tuple[str, str], tuple[int, float, float]]  # (part, name) -> count, seconds, seconds on the chain
    chain_s: dict[str, float]
    counts: dict[str, tuple[int, float]]  # by COUNTED: number, seconds
    account: dict[str, float]


def pick_step(workload: Workload, step: str | int, rank: int) -> int:
    """Return the place of a step of a rank: the complete one nearest to the median, or the one of a number.

    Raises
    ------
    Refused
        No step of the rank has the number.
    """
    if step != "median" and (isinstance(step, bool) or not isinstance(step, int | np.integer)):
        raise Refused("step", f"{step!r} is neither a step number nor median", 'write e.g. 3 or "median"')
    graph = workload.graph
    mine = graph.rank[graph.step_begin] == rank
    if step != "median":
        found = np.flatnonzero(mine & (graph.step_numbers == step))
        if not len(found):
            known = ", ".join(str(n) for n in graph.step_numbers[mine])
            raise Refused(workload.path, f"has no step {step}", f"give one of {known}, or median")
        return int(found[0])
    kept = np.flatnonzero(mine & graph.step_complete) if (mine & graph.step_complete).any() else np.flatnonzero(mine)
    seconds = workload.measured_timeline.step_s[kept]
    return int(kept[np.argmin(np.abs(seconds - np.median(seconds)))])


def step_times_of(workload: Workload, rank: int) -> np.ndarray:
    """Return the times of the steps of a rank that count, float64 [S] [s]."""
    graph = workload.graph
    mine = graph.rank[graph.step_begin] == rank
    return np.asarray(workload.measured_timeline.step_s[mine][kept_steps(graph.step_complete[mine])])


def take_apart(workload: Workload, index: int) -> OneStep:
    """Take one step of a recording apart, as it was measured.

    Parameters
    ----------
    workload : Workload
    index : int
        From `pick_step`.

    Returns
    -------
    OneStep
        Operators are those launched in the step; the chain also names work of an earlier step, or of another rank, that the step
        waited for.
    """
    graph, timeline, account = workload.graph, workload.measured_timeline, workload.measured_account
    chain, lags = _chain(graph, timeline.start_s, timeline.finish_s, timeline.binding, index)
    priced = graph.op >= 0
    mine = graph.step == index
    parts = dict.fromkeys(CHAIN, 0.0)
    for kind, name in DEVICE.items():
        parts[name] = float(chain[graph.kind == kind].sum())
    parts[ON_HOST] = float(chain[priced & (graph.kind == NodeKind.HOST_WORK)].sum())
    for kind, name in HOST.items():
        parts[name] += float(chain[~priced & (graph.kind == kind)].sum())
    return OneStep(
        index,
        int(graph.step_numbers[index]),
        int(graph.rank[graph.step_begin[index]]),
        float(timeline.step_s[index]),
        _rows(workload, np.flatnonzero(priced & (mine | (chain > 0))), mine, chain),
        _host(workload, np.flatnonzero(~priced & (mine | (chain > 0))), mine, chain),
        parts | lags,
        _counts(graph, mine),
        {name: float(getattr(account, f"{name}_s")[index]) for name in (*ACCOUNT, *UNIONS)},
    )


def _chain(graph: Graph, start: np.ndarray, finish: np.ndarray, binding: np.ndarray, index: int) -> tuple[np.ndarray, dict[str, float]]:
    """Return what each node adds to the chain that ends a step, float64 [V] [s], and the lags in it by `LAGS` [s].

    From the node that ends the step back along the edges that set each start, to the step's begin: the pieces telescope, so
    that they add up to the step.
    """
    begin = float(start[graph.step_begin[index]])
    members = np.flatnonzero(ends_step(graph) == index)
    at = int(members[np.argmax(finish[members])])
    out, lags = np.zeros(len(graph)), dict.fromkeys(LAG_PARTS, 0.0)
    while True:
        out[at] += max(float(finish[at]), begin) - max(float(start[at]), begin)
        edge = int(binding[at])
        before = int(graph.edge_from[edge]) if edge >= 0 else -1
        cause = LAGS[int(graph.edge_kind[edge])] if edge >= 0 else UNCAUSED
        lags[cause] += max(float(start[at]), begin) - (max(float(finish[before]), begin) if before >= 0 else begin)
        if before < 0 or start[at] <= begin:
            return out, lags
        at = before


def _rows(workload: Workload, nodes: np.ndarray, mine: np.ndarray, chain: np.ndarray) -> list[Row]:
    """Return the operators of the step in calling order, and those of earlier steps that the chain passes through."""
    graph, table, trace = workload.graph, workload.table, workload.trace
    out: dict[int, Row] = {}
    seen: set[tuple[int, int]] = set()
    columns = (graph.op, graph.unit, chain, mine, graph.measured_s, np.isin(graph.kind, list(DEVICE)), trace.events.name[graph.event])
    for place, (op, unit, on_chain, own, seconds, device, name) in enumerate(zip(*(c[nodes].tolist() for c in columns), strict=True)):
        row = out.get(op)
        if row is None:
            row = out[op] = _row(table, op, trace.strings[name])
        row.chain_s += on_chain
        if not own:
            continue
        row.seconds += seconds
        if (op, unit) not in seen:
            seen.add((op, unit))
            row.calls.append(place)
            row.flops += float(table.flops[op])
        if device:  # an operator on the host is its own work
            launches, total = row.kernels.get(trace.strings[name], (0, 0.0))
            row.kernels[trace.strings[name]] = launches + 1, total + seconds
    return list(out.values())


def _row(table: OpTable, op: int, event: str) -> Row:
    """Return an operator that has not yet run; where its call says nothing, its kernel's name may tell the kind."""
    name, signature, dtype = table.name[op], table.signature[op], Dtype(table.dtype[op]).name.lower()
    shapes = signature.removeprefix(name).removeprefix(f"|{dtype}").strip("| ") if table.has_shapes[op] else ""
    kind = Kind(table.kind[op]) or ran_of(event).kind
    return Row(name, dtype, shapes, kind.name.lower(), signature, tuple(table.dims[op].tolist()))


def _host(workload: Workload, nodes: np.ndarray, mine: np.ndarray, chain: np.ndarray) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Return count, time and time on the chain of the host's activity by part and name; a gap is named by what came before it."""
    graph, trace = workload.graph, workload.trace
    known = _last_event(graph)
    out: dict[tuple[str, str], tuple[int, float, float]] = {}
    for node, code in zip(nodes.tolist(), graph.kind[nodes].tolist(), strict=True):
        group = HOST.get(code)
        if group is None:
            continue
        event = int(known[node])
        name = trace.name_of(event) if event >= 0 else "the beginning"
        key = group, f"after {name}" if group == GAP else name
        count, seconds, on_chain = out.get(key, (0, 0.0, 0.0))
        own = bool(mine[node])
        whole = own and code != NodeKind.LAUNCH_RETURN  # the second half of a launch call already counted
        out[key] = count + whole, seconds + own * float(graph.measured_s[node]), on_chain + float(chain[node])
    return out


def _last_event(graph: Graph) -> np.ndarray:
    """Return the event of every node, or of the latest node before it on the same resource that has one, int64 [V] (-1: none)."""
    order = np.argsort(graph.resource, kind="stable")  # within a resource in topological order: program order of a thread
    has = graph.event[order] >= 0
    place = np.maximum.accumulate(np.where(has, np.arange(len(order)), -1))
    fine = (place >= 0) & (graph.resource[order][place] == graph.resource[order])
    out = np.empty(len(order), dtype=np.int64)
    out[order] = np.where(fine, graph.event[order][place], -1)
    return out


def _counts(graph: Graph, mine: np.ndarray) -> dict[str, tuple[int, float]]:
    """Return number and time of everything in a step by what it is."""
    number = np.bincount(graph.kind[mine], minlength=len(NodeKind))
    seconds = np.bincount(graph.kind[mine], weights=graph.measured_s[mine], minlength=len(NodeKind))
    out = {name: (0, 0.0) for name in COUNTED}
    for kind, name in (*DEVICE.items(), *HOST.items()):
        whole = 0 if kind == NodeKind.LAUNCH_RETURN else int(number[kind])
        out[name] = out[name][0] + whole, out[name][1] + float(seconds[kind])
    return out
