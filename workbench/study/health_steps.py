"""Steps that differ, time in which nothing happens, and clocks that cannot be right."""

from __future__ import annotations

import numpy as np

from workbench import units
from workbench.graph.kernels_units import enclosing
from workbench.operators.kinds import shorten
from workbench.study.documents_health import FindingDocument
from workbench.study.findings import finding, names_of
from workbench.study.health_host import JOIN_S
from workbench.study.seen import NS, Seen
from workbench.trace.trace import Category

FAR = 0.10
"""A step this far from the median of its rank is an outlier [1]."""
DRIFT = 0.02
"""Steps that change by this much from the first to the last, step by step, drift [1]."""
LONG = 0.01
"""An idle gap of this part of the step is named [1], if it is none of those that launching explains (`JOIN_S`)."""
SILENCE = 0.05
"""A time without any record of this part of the recording is named [1]."""
SKEW_S = 1e-6
"""Device work that starts earlier than this before its own launch says that the two clocks differ [s]."""


def step_kinds(seen: Seen) -> list[str]:
    """Return what each step is: ``typical``, ``warm-up`` (first and slow), ``outlier`` or ``incomplete``.

    Of fewer than three complete steps of a rank none can be told from the rest: all are typical.
    """
    graph = seen.graph
    kinds = np.where(graph.step_complete, "typical", "incomplete").astype(object)
    for rank in np.unique(seen.window_rank):
        mine = _of_rank(seen, int(rank))
        step = graph.measured_step_s[mine]
        if len(mine) < 3:
            continue
        typical = float(np.median(step))
        kinds[mine[np.abs(step - typical) > FAR * typical]] = "outlier"
        kinds[mine[: int(np.argmin(step > (1 + FAR) * typical))]] = "warm-up"
    return [str(kind) for kind in kinds]


def _of_rank(seen: Seen, rank: int) -> np.ndarray:
    """Complete steps of a rank, in time order."""
    mine = np.flatnonzero((seen.window_rank == rank) & seen.graph.step_complete)
    return mine[np.argsort(seen.windows[0][mine], kind="stable")]


def odd_steps(seen: Seen) -> list[FindingDocument]:
    """Find warm-up steps, outliers and drift among the complete steps of each rank."""
    out, kinds = [], np.array(step_kinds(seen), dtype=object)
    for rank in np.unique(seen.window_rank):
        mine = _of_rank(seen, int(rank))
        if len(mine) < 3:
            continue
        typical = float(np.median(seen.graph.measured_step_s[mine]))
        of = f" of rank {rank}" if len(np.unique(seen.window_rank)) > 1 else ""
        for kind, text, fix in (
            ("warm-up", f"the first steps{of} are slower than the rest", "leave them out"),
            ("outlier", f"steps{of} far from the median", "see what differs in them"),
        ):
            if (hit := mine[kinds[mine] == kind]).size:
                out.append(_steps(seen, f"{kind}-step", hit, typical, text, fix))
        out += _drift(seen, mine[kinds[mine] != "warm-up"], of)
    return out


def _steps(seen: Seen, code: str, steps: np.ndarray, typical: float, text: str, fix: str) -> FindingDocument:
    graph = seen.graph
    where = ", ".join(f"step {graph.step_numbers[s]}: {graph.measured_step_s[s] / typical - 1:+.0%}" for s in steps[:6])
    lost = float(np.maximum(graph.measured_step_s[steps] - typical, 0).sum())
    return finding(seen, code, f"{text} ({units.format(typical, 's', 4)})", where, len(steps), lost, fix, "certain")


def _drift(seen: Seen, steps: np.ndarray, of: str) -> list[FindingDocument]:
    """Theil-Sen slope of the steps, where nearly all pairs agree on its sign (Mann-Kendall: |S| above 0.8 of the pairs)."""
    step = seen.graph.measured_step_s[steps]
    if len(steps) < 5:
        return []
    first, second = np.triu_indices(len(steps), 1)
    slope = (step[second] - step[first]) / (second - first)
    change = float(np.median(slope)) * (len(steps) - 1) / float(np.median(step))
    if abs(change) < DRIFT or abs(np.sign(slope).sum()) < 0.8 * len(slope):
        return []
    text = f"steps{of} drift by {change:+.1%} from the first to the last"
    fix = "watch the clock and the temperature of the card, and what grows from step to step on the host"
    lost = float(np.maximum(step - step.min(), 0).sum())
    return [finding(seen, "drifting-steps", text, f"{len(steps)} steps", len(steps), lost, fix, "likely")]


def long_gaps(seen: Seen) -> list[FindingDocument]:
    """Find long idle times of the device within steps, and say what the launching thread did meanwhile."""
    begin, end, _, node = seen.gaps
    graph = seen.graph
    typical = float(np.median(graph.measured_step_s)) if len(graph.measured_step_s) else 0.0
    step = graph.step[node]
    low, high = (edge[np.maximum(step, 0)] if len(edge) else np.zeros(len(step)) for edge in seen.windows)
    begin, end = np.maximum(begin, low), np.minimum(end, high)  # only what lies in the step
    hit = np.flatnonzero((end - begin > max(LONG * typical, JOIN_S)) & (step >= 0))
    if not len(hit):
        return []
    doing = _meanwhile(seen, node[hit], (begin + end)[hit] / 2)
    cost = float((end - begin)[hit].sum())
    longest = float((end - begin)[hit].max())
    most = units.format(longest, "s", 4)
    text = f"the device is idle for {LONG:.0%} of a step or longer at a time, the longest {most}; the host meanwhile in:"
    fix = "start this work earlier, on another thread, or while the device is busy"
    return [finding(seen, "long-idle", text, names_of(doing, (end - begin)[hit]), len(hit), cost, fix, "certain")]


def _meanwhile(seen: Seen, nodes: np.ndarray, moment_s: np.ndarray) -> list[str]:
    """What the thread that launched each node did at a moment: its innermost named operator, call or annotation."""
    e, graph = seen.trace.events, seen.graph
    call = seen.calls[graph.event[nodes]]
    known = call >= 0
    out = ["nothing that is recorded"] * len(nodes)
    if not known.any():
        return out
    shift = e.start_ns[call[known]] - np.rint(seen.begins(call[known]) * 1e9).astype(np.int64)
    at = np.rint(moment_s[known] * 1e9).astype(np.int64) + shift
    finish = e.start_ns + np.maximum(e.dur_ns, 0)
    order = np.lexsort((np.arange(len(e)), -e.dur_ns, e.start_ns, e.track))
    first = np.searchsorted(e.track[order], np.arange(len(seen.trace.tracks) + 1))
    found = enclosing(at, e.track[call[known]], order, first, e.start_ns, finish, e.parent)
    steps = set(seen.trace.steps.event.tolist())
    for place, event in zip(np.flatnonzero(known).tolist(), found.tolist(), strict=True):
        if event >= 0 and event not in steps and e.category[event] != Category.TRACE:
            out[place] = shorten(seen.name(event), 60)
        elif event in steps:
            out[place] = "nothing that is recorded (Python)"
    return out


def silences(seen: Seen) -> list[FindingDocument]:
    """Find times inside steps without any record on any track: a suspended process, a clock that jumped, or lost records."""
    e, out = seen.trace.events, []
    used = (e.category != Category.TRACE) & (e.dur_ns >= 0)
    used[seen.trace.steps.event] = False
    for rank in np.unique(seen.rank_of_event[used]) if used.any() else ():
        rows = np.flatnonzero(used & (seen.rank_of_event == rank))
        order = rows[np.argsort(e.start_ns[rows], kind="stable")]
        shift = int(e.start_ns[order[0]]) - round(float(seen.begins(order[:1])[0]) * NS)
        until = np.maximum.accumulate(e.start_ns[order] + e.dur_ns[order])[:-1] - shift
        again = e.start_ns[order[1:]] - shift
        hit = again - until > max(SILENCE * seen.steps_s / max(len(seen.window_rank), 1), JOIN_S) * NS
        low, high = seen.inside((until[hit], again[hit]), int(rank))
        if not len(low):
            continue
        where = ", ".join(f"rank {rank} after {at / 1e6:.3f} ms" for at in low[:3].tolist())
        longest = (high - low).max() / 1e6
        text = (
            f"nothing at all is recorded for up to {longest:.3f} ms: Python alone, a stopped process, lost records, or a clock that jumped"
        )
        fix = "record with stacks, and compare with the time outside the profiler"
        out.append(finding(seen, "silence", text, where, len(low), float((high - low).sum()) / NS, fix, "possible"))
    return out


def clock_faults(seen: Seen) -> list[FindingDocument]:
    """Find device work that starts before the call that launched it: the clocks of host and device differ."""
    events = seen.graph.event[seen.device]
    call = seen.calls[events]
    known = call >= 0
    early = seen.begins(call[known]) - seen.begins(events[known])
    hit = early > SKEW_S
    if not hit.any():
        return []
    share = hit.sum() / known.sum()
    names = names_of([shorten(seen.name(int(i)), 60) for i in events[known][hit]], early[hit])
    text = f"device work starts up to {early.max() * 1e6:.1f} us before its own launch ({share:.0%} of it): host and device clocks differ"
    fix = "trust durations, not distances between host and device; newer drivers and profilers align the clocks"
    return [finding(seen, "clock-skew", text, names, int(hit.sum()), 0.0, fix, "certain")]
