"""What the host does to the device: blocking calls, slow copies, launches that come too late."""

from __future__ import annotations

import re

import numpy as np

from workbench import units
from workbench.graph.calls import Call, classify
from workbench.graph.graph import NodeKind
from workbench.graph.kernels_units import nearest
from workbench.operators.kinds import ran_of, shorten
from workbench.replay.launch_bound import launched_late
from workbench.study.documents_health import FindingDocument
from workbench.study.findings import finding, names_of
from workbench.study.seen import Seen
from workbench.trace.trace import Category

ALLOCATE = re.compile(r"^(cuda|hip|cu|aclrt)(Mem)?(Host)?(Malloc|Alloc)(Host|Managed|Async|Physical|Pitch|_v\d)*$")
RETURNED = re.compile(r"^(cuda|hip|cu|aclrt)(Mem)?(Free|FreeHost|HostFree|FreeAsync)(_v\d)?$")
LOADS_CODE = re.compile(r"ModuleLoad|ModuleGetFunction|LibraryLoad|FuncGetAttributes|RtcCompile|LinkComplete")
TINY_S = 10e-6
"""A kernel shorter than about two launches takes the host longer to launch than the device to run [s]."""
MANY = 50
"""A stretch of fewer tiny kernels is not worth a word."""
WORTH = 1e-3
"""Waiting for launches that adds up to less of the steps is not worth a word [1]."""
JOIN_S = 100e-6
"""Longer pauses between kernels are gaps of their own, not the price of launching [s]."""

_BLOCKING: tuple[tuple[str, tuple[Call, ...], str, str], ...] = (
    ("device-synchronise", (Call.DEVICE_SYNC,), "wait for the whole device", "remove them, or wait for one stream or event only"),
    ("stream-synchronise", (Call.STREAM_SYNC, Call.EVENT_SYNC), "wait for a stream or an event",
     "read results later or many at once (.item(), .cpu(), nonzero and masks block)"),
)  # fmt: skip


def blocking_calls(seen: Seen) -> list[FindingDocument]:
    """Find calls in which the host stands still while the device has nothing to do: allocation, waits, loading of code."""
    calls, e = seen.host_calls, seen.trace.events
    role = classify(e.name[calls], seen.trace.strings)
    used, back = np.unique(e.name[calls], return_inverse=True)
    texts = [seen.trace.strings[i] for i in used.tolist()]

    def named(pattern: re.Pattern[str]) -> np.ndarray:
        return calls[np.array([bool(pattern.search(text)) for text in texts] or [False])[back]] if len(calls) else calls

    allocating = np.union1d(named(ALLOCATE), named(RETURNED))
    found = [
        ("allocator-calls", allocating, "allocate or free memory of the card or pinned memory of the host",
         "let an allocator keep the memory: fixed shapes, a larger pool, no empty_cache() within a step"),
        ("code-loading", named(LOADS_CODE), "load or compile code for the card", "run the shapes once before recording; load eagerly"),
    ]  # fmt: skip
    found += [(code, calls[np.isin(role, roles)], text, fix) for code, roles, text, fix in _BLOCKING]
    return [one for code, rows, text, fix in found if len(rows) for one in _blocked(seen, code, rows, text, fix)]


def _blocked(seen: Seen, code: str, rows: np.ndarray, text: str, fix: str) -> list[FindingDocument]:
    held, idle = float(seen.lengths(rows).sum()), seen.idle_within(rows)
    by = names_of(_askers(seen, rows), seen.lengths(rows))
    what = f"{len(rows)} calls {text}: {units.format(held, 's', 4)} of the host, {units.format(idle, 's', 4)} of it with the device idle"
    return [finding(seen, code, what, by, len(rows), idle, fix, "certain")]


def _askers(seen: Seen, rows: np.ndarray) -> list[str]:
    """Name each call by the operator or annotation it lies in."""
    e = seen.trace.events
    label = np.isin(e.category, (Category.CPU_OP, Category.ANNOTATION))
    label[seen.trace.steps.event] = False
    inside = nearest(e.parent, label, rows.astype(np.int32))
    return [
        f"{seen.name(int(row))} in {shorten(seen.name(int(op)), 60)}" if op >= 0 else seen.name(int(row))
        for row, op in zip(rows, inside, strict=True)
    ]


def host_copies(seen: Seen) -> list[FindingDocument]:
    """Find copies from pageable memory, and copies to the device that are the same in every step."""
    graph, e = seen.graph, seen.trace.events
    copies = seen.device[e.category[graph.event[seen.device]] == Category.MEMCPY]
    if not len(copies):
        return []
    names = [seen.name(int(event)) for event in graph.event[copies]]
    out = []
    pageable = copies[np.array(["Pageable" in name for name in names])]
    if len(pageable):
        cost = _alone(seen, pageable)
        took = graph.measured_s[pageable]
        spent = units.format(float(took.sum()), "s", 4)
        text = f"copies from or to pageable memory of the host take {spent}; they block the host and overlap with nothing"
        where = names_of([seen.name(int(event)) for event in graph.event[pageable]], took)
        fix = "pin the memory (pin_memory=True) and copy non_blocking"
        out.append(finding(seen, "pageable-copy", text, where, len(pageable), cost, fix, "certain"))
    return out + _repeated(seen, copies[np.array([ran_of(name).direction == 1 for name in names])])


def _repeated(seen: Seen, copies: np.ndarray) -> list[FindingDocument]:
    graph = seen.graph
    steps = len(graph.step_numbers)
    size = seen.trace.integer_arg("bytes")[graph.event[copies]]
    copies, size = copies[(graph.step[copies] >= 0) & (size > 0)], size[(graph.step[copies] >= 0) & (size > 0)]
    if steps < 3 or not len(copies):
        return []
    sizes, group = np.unique(size, return_inverse=True)
    seen_in = np.zeros((len(sizes), steps), dtype=bool)
    seen_in[group, graph.step[copies]] = True
    every = np.flatnonzero(seen_in.all(axis=1))
    mine = copies[np.isin(group, every)]
    if not len(mine):
        return []
    moved = int(size[np.isin(group, every)].sum())
    where = names_of([f"{s} bytes" for s in size[np.isin(group, every)].tolist()], size[np.isin(group, every)].astype(np.float64))
    moved_text = f"{moved / steps / 1e6:.3f} MB a step; the batch is one of them"
    text = f"copies to the device of {units.count(len(every), 'size')} return in every step: {moved_text}"
    fix = "keep on the device what does not change (masks, tables, constants made with torch.tensor)"
    return [finding(seen, "repeated-upload", text, where, len(mine), _alone(seen, mine), fix, "possible")]


def _alone(seen: Seen, nodes: np.ndarray) -> float:
    """Time of some device work during which no kernel of its rank runs [s]."""
    graph, total = seen.graph, 0.0
    for rank in np.unique(graph.rank[nodes]):
        kernels = seen.device[(graph.rank[seen.device] == rank) & (graph.kind[seen.device] != NodeKind.COPY)]
        mine = nodes[graph.rank[nodes] == rank]
        total += seen.uncovered(mine, kernels)
    return total


def launch_bound(seen: Seen) -> list[FindingDocument]:
    """Find many short kernels each of which the device had to wait for (see `workbench.replay.launch_bound`).

    Work counts whose wait is shorter than `JOIN_S`, where half of it is at most `TINY_S` long.
    """
    graph = seen.graph
    order, late, idle = launched_late(graph, seen.workload.measured_timeline)
    late &= (idle > 0) & (idle < JOIN_S) & (graph.event[order] >= 0)
    hit = np.flatnonzero(late)
    node, waited = order[hit], idle[hit]
    length = graph.measured_s[node]
    if len(hit) < MANY or np.median(length) > TINY_S:
        return []
    cost = float(waited.sum())
    if cost < WORTH * seen.steps_s:
        return []
    called = [seen.table.name[graph.op[n]] if graph.op[n] >= 0 else seen.name(int(graph.event[n])) for n in node]
    names = names_of(called, waited)
    work, wait = (units.format(float(np.median(x)), "s", 3) for x in (length, waited))
    text = f"{len(hit)} of {len(seen.device)} pieces of device work wait for their own launch: {work} of work after {wait} (medians)"
    fix = "fuse or compile these operators, capture them into a graph, or give the device more work a launch"
    return [finding(seen, "launch-bound", text, names, len(hit), cost, fix, "likely")]
