"""Gradients of a training step: how large each is, and after which work it is ready, as the recording says.

What says it, the strongest first:

- ``torch::autograd::AccumulateGrad``, which the backward pass calls once a parameter with its gradient (torch/csrc/autograd/functions/
  accumulate_grad.h), where shapes are recorded;
- messages of a process group of one rank: a data-parallel job on one card asks for its buckets, though nothing is sent;
- a total that the user states, laid over the recorded gradients, or over the device time of the backward pass.

Nothing else is guessed: without any of these the question is refused with what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import Note, Refused
from workbench.graph.callers import launch_calls
from workbench.graph.graph import Graph, NodeKind
from workbench.graph.stages import Phase, Stages
from workbench.operators.call import Tensor, message_dtype, parse_call
from workbench.operators.table import ITEMSIZE, Dtype
from workbench.trace.trace import Category, Trace

ACCUMULATE = ("torch::autograd::AccumulateGrad", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad")
SHAPES, TYPES = "Input Dims", "Input type"
REDUCTIONS = ("allreduce", "all_reduce", "reduce_scatter", "_reduce_scatter_base", "allreduce_coalesced")
BACKWARD_SHARE = 2.0 / 3.0
"""Share of the backward pass in the floating-point operations of a training step without recompute: two products of every three
(Kaplan et al., Scaling laws for neural language models, 2020, section 2.1)."""
STATE = "state their size: --gradients '1.34 GB' (bytes of all gradients of one card), or record with record_shapes=True"


@dataclass(frozen=True)
class Gradients:
    """G gradients, sorted by rank, step and order of readiness; arrays of length G, read-only."""

    rank: np.ndarray  # int32
    step: np.ndarray  # int32, index of the graph's steps
    ready: np.ndarray  # int32, node of the graph after which it is ready
    elements: np.ndarray  # float64
    bytes: np.ndarray  # float64 [B]
    notes: tuple[Note, ...]

    def __len__(self) -> int:
        return len(self.ready)


def gradients(trace: Trace, graph: Graph, stages: Stages, total: float | None = None) -> Gradients:
    """Return the gradients of every step.

    Parameters
    ----------
    trace : Trace
    graph : Graph
        Of that recording.
    stages : Stages
        Of that recording.
    total : float, optional
        Size of all gradients of one card [B], as the user states it.

    Returns
    -------
    Gradients
        Where a step has several backward passes (microbatches), those of the last: the others only accumulate.

    Raises
    ------
    Refused
        Sizes or times cannot be known.
    """
    work = _work(graph)
    if not len(work):
        raise Refused(_where(trace), "no device work and no priced operator: no gradient is computed", "record with device activities")
    events, sizes = _accumulated(trace, stages)
    if total is not None:
        return _stated(trace, graph, stages, work, events, total)
    if not any(size is not None for size in sizes):
        events, sizes = _alone(trace)
    known = [i for i, size in enumerate(sizes) if size is not None]
    tensors = [size for size in sizes if size is not None]
    if not known:
        what = "the size of its gradients is not recorded: no AccumulateGrad with shapes, and no bucket of a group of one"
        raise Refused(_where(trace), what, STATE)
    notes = []
    if len(known) < len(sizes):
        text = "gradients without a recorded shape (undefined or sparse ones) are not reduced"
        notes.append(Note("gradient-without-size", _where(trace), len(sizes) - len(known), text))
    ready = _ready(trace, graph, work, events[known])
    elements = np.array([tensor.numel for tensor in tensors], dtype=np.float64)
    size = np.array([tensor.nbytes for tensor in tensors], dtype=np.float64)
    return _sorted(trace, graph, ready, elements, size, events[known], notes)


def _where(trace: Trace) -> str:
    return ", ".join(rank.path for rank in trace.ranks) or "recording"


def _work(graph: Graph) -> np.ndarray:
    """Nodes that compute: device work, else the priced operators of a recording of the host alone, int64."""
    device = np.flatnonzero(np.isin(graph.kind, (NodeKind.COMPUTE, NodeKind.COPY)))
    return device if len(device) else np.flatnonzero((graph.kind == NodeKind.HOST_WORK) & (graph.op >= 0))


def _accumulated(trace: Trace, stages: Stages) -> tuple[np.ndarray, list[Tensor | None]]:
    """Calls that accumulate a gradient, of the last microbatch of their step, and their tensors (None: not recorded)."""
    e = trace.events
    for name in ACCUMULATE:
        codes = [i for i, text in enumerate(trace.strings) if text == name]
        events = np.flatnonzero(np.isin(e.name, codes) & (e.category == Category.CPU_OP)) if codes else np.zeros(0, dtype=np.int64)
        if len(events):
            break
    events = _last_microbatch(trace, stages, events)
    dims, types = trace.text_arg(SHAPES)[events], trace.text_arg(TYPES)[events]
    return events, [_tensor(trace, d, t) for d, t in zip(dims.tolist(), types.tolist(), strict=True)]


def _tensor(trace: Trace, dims: int, types: int) -> Tensor | None:
    if dims < 0 or types < 0:
        return None
    found = parse_call("", trace.strings[dims], trace.strings[types], "").flat
    return found[0] if found else None


def _last_microbatch(trace: Trace, stages: Stages, events: np.ndarray) -> np.ndarray:
    """Calls of the last microbatch of their step and rank; all where microbatches are not known."""
    microbatch, group = stages.microbatch[events], _step_of(trace, events)
    last = np.full(int(group.max(initial=0)) + 1, -1, dtype=np.int64)
    np.maximum.at(last, group, microbatch)
    return events[microbatch == last[group]] if (microbatch >= 0).all() else events


def _step_of(trace: Trace, events: np.ndarray) -> np.ndarray:
    """Number that tells steps and ranks of host events apart, int64 [K]."""
    rank = np.array([t.rank for t in trace.tracks] or [0], dtype=np.int64)[trace.events.track[events]]
    out = np.zeros(len(events), dtype=np.int64)
    for r in np.unique(rank):
        mine = rank == r
        out[mine] = np.searchsorted(np.sort(trace.steps.start_ns[trace.steps.rank == r]), trace.events.start_ns[events[mine]], "right")
    return out * (int(rank.max(initial=0)) + 1) + rank


def _alone(trace: Trace) -> tuple[np.ndarray, list[Tensor | None]]:
    """Reductions that a group of one rank asked for: the buckets of a data-parallel job on one card."""
    name, kind = trace.text_arg("Collective name"), trace.text_arg("dtype")
    count, size = trace.integer_arg("In msg nelems"), trace.integer_arg("Group size")
    codes = [i for i, text in enumerate(trace.strings) if text.lower() in REDUCTIONS]
    host = trace.events.category == Category.CPU_OP
    events = np.flatnonzero(host & np.isin(name, codes) & (size == 1) & (count > 0) & (kind >= 0))
    return events, [Tensor((int(count[i]),), message_dtype(trace.strings[kind[i]])) for i in events.tolist()]


def _ready(trace: Trace, graph: Graph, work: np.ndarray, events: np.ndarray) -> np.ndarray:
    """Return the node after which each host event's gradient is ready: the last work its thread had asked for by then, int64 (-1: none)."""
    e = trace.events
    call = launch_calls(trace)[graph.event[work]].astype(np.int64)
    on_host = ~trace.is_device_work[graph.event[work]]
    call[on_host] = graph.event[work][on_host]
    fine = call >= 0
    work, call = work[fine], call[fine]
    out = np.full(len(events), -1, dtype=np.int64)
    end = e.start_ns[events] + np.maximum(e.dur_ns[events], 0)
    for track in np.unique(e.track[events]):
        mine, asked = np.flatnonzero(e.track[events] == track), np.flatnonzero(e.track[call] == track)
        order = asked[np.lexsort((work[asked], e.start_ns[call[asked]]))]
        place = np.searchsorted(e.start_ns[call[order]], end[mine], "right") - 1
        out[mine[place >= 0]] = work[order[place[place >= 0]]]
    return out


def _sorted(
    trace: Trace, graph: Graph, ready: np.ndarray, elements: np.ndarray, size: np.ndarray, events: np.ndarray, notes: list[Note]
) -> Gradients:
    """Gradients by rank, step and order of the calls; those outside every step, or before any work, are set aside with a note."""
    fine = (ready >= 0) & (graph.step[np.maximum(ready, 0)] >= 0)
    if not fine.any():
        what = "its gradients are not ready within any step: no launch of the thread that accumulates them is recorded"
        raise Refused(_where(trace), what, "record whole steps with runtime calls, or state --gradients")
    if not fine.all():
        text = "gradients before any recorded work, or outside every step, are not reduced"
        notes = [*notes, Note("gradient-outside", _where(trace), int((~fine).sum()), text)]
    ready, elements, size, when = ready[fine], elements[fine], size[fine], trace.events.start_ns[events][fine]
    order = np.lexsort((when, graph.step[ready], graph.rank[ready]))
    return _frozen(graph, ready[order], elements[order], size[order], notes)


def _frozen(graph: Graph, ready: np.ndarray, elements: np.ndarray, size: np.ndarray, notes: list[Note]) -> Gradients:
    columns = (graph.rank[ready], graph.step[ready], ready.astype(np.int32), elements, size)
    for column in columns:
        column.setflags(write=False)
    return Gradients(*columns, tuple(notes))


def _stated(trace: Trace, graph: Graph, stages: Stages, work: np.ndarray, events: np.ndarray, total: float) -> Gradients:
    """Gradients of a stated total: by the recorded shapes, evenly over the recorded gradients, or over the backward pass's time."""
    if not (np.isfinite(total) and total > 0):
        raise Refused("gradients", f"{total:g} B is no size", "give the bytes of all gradients of one card, e.g. '1.34 GB'")
    dims, types = trace.text_arg(SHAPES)[events], trace.text_arg(TYPES)[events]
    weights = np.array([t.numel if (t := _tensor(trace, *pair)) else 0 for pair in zip(dims.tolist(), types.tolist(), strict=True)])
    how, ready = "over the recorded gradients by their shapes", _ready(trace, graph, work, events) if len(events) else events
    fine = (ready >= 0) & (graph.step[np.maximum(ready, 0)] >= 0)
    if len(events) and not weights.any():
        how, weights = "evenly over the recorded gradients, whose shapes are not", np.ones(len(events))
    if not len(events) or not (weights[fine] > 0).any():
        ready, how = _backward(trace, graph, stages, work)
        weights, fine = graph.measured_s[ready], np.ones(len(ready), dtype=bool)
    ready, weights = ready[fine], weights[fine].astype(np.float64)
    order = np.lexsort((ready, graph.step[ready], graph.rank[ready]))
    ready, weights = ready[order], weights[order]
    key = graph.rank[ready].astype(np.int64) * (len(graph.step_numbers) + 1) + graph.step[ready]
    _, group = np.unique(key, return_inverse=True)
    size = total * weights / np.maximum(np.bincount(group, weights=weights), 1e-300)[group]
    note = Note("gradients-stated", _where(trace), 1, f"{total:.4g} B of gradients as stated, laid {how}", "record shapes to know them")
    return _frozen(graph, ready, size / ITEMSIZE[Dtype.FP32], size, [note])


def _backward(trace: Trace, graph: Graph, stages: Stages, work: np.ndarray) -> tuple[np.ndarray, str]:
    """Work of the backward pass, and how it was told; of several microbatches the last."""
    work = work[(graph.step[work] >= 0) & (graph.event[work] >= 0) & (graph.measured_s[work] > 0)]
    event = graph.event[work]
    found = work[stages.phase[event] == Phase.BACKWARD]
    if len(found):
        microbatch = stages.microbatch[graph.event[found]]
        last = np.full(len(graph.step_numbers), -1, dtype=np.int64)
        np.maximum.at(last, graph.step[found], microbatch)
        return found[microbatch == last[graph.step[found]]], "over the device time of the backward pass"
    compute = work[graph.kind[work] != NodeKind.COPY]
    kept = []
    for key in np.unique(np.stack((graph.rank[compute], graph.step[compute])), axis=1).T.tolist():
        mine = compute[(graph.rank[compute] == key[0]) & (graph.step[compute] == key[1])]
        spent = np.cumsum(graph.measured_s[mine])
        kept.append(mine[spent > (1.0 - BACKWARD_SHARE) * spent[-1]])
    if not kept:
        raise Refused(_where(trace), "no device work within a step", "record whole steps, or open the trace of a training job")
    return np.concatenate(kept), "over the last two thirds of each step's device time, as no backward pass is recorded (an assumption)"
