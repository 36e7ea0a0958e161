"""Which part of training each event belongs to: phase, microbatch and layer, each with what says so.

A stage is never guessed: where nothing in the recording proves one, it is UNKNOWN. What proves it, the strongest first:

- autograd: functions of the backward pass, and forward operators that made them (the sequence number both carry);
- annotations of users and frameworks (``RULES``), and frames of modules recorded with stacks;
- operators that only an optimizer calls;
- position: what lies between two pieces of one phase, on one thread, with nothing of another phase between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from workbench.graph.callers import event_ranks, launch_calls, operators_by_id
from workbench.graph.kernels_units import nearest
from workbench.graph.layers import Layers, layers_of
from workbench.graph.microbatches import microbatches_of
from workbench.trace.trace import HOST_CALLS, Category, Trace


class Phase(IntEnum):
    """Part of a training step."""

    UNKNOWN = 0
    INPUT = 1  # loading and moving the batch
    FORWARD = 2
    BACKWARD = 3
    OPTIMIZER = 4  # update and clearing of gradients


class Basis(IntEnum):
    """What says to which stage an event belongs."""

    NONE = 0
    AUTOGRAD = 1  # functions of the backward pass, and the forward operators they belong to
    ANNOTATION = 2  # a user's or framework's label
    MODULE = 3  # a frame of a module
    OPERATOR = 4  # an operator that only this phase calls
    POSITION = 5  # between two pieces of one phase
    REPETITION = 6  # blocks of equal operators


PROVEN = (Basis.AUTOGRAD, Basis.ANNOTATION, Basis.MODULE)
"""Bases that prove a stage; the others make it likely."""

RULES: tuple[tuple[str, Phase], ...] = (
    (r"^Optimizer\.(step|zero_grad)#", Phase.OPTIMIZER),  # torch.optim
    (r"^enumerate\(DataLoader\)#|^enumerate\(\w*Loader\)", Phase.INPUT),  # torch.utils.data
    (r"(?i)\b(zero_grad|optimizer([_. -]?step)?|optim(izer)?[_-]update|clip_grad(_norm)?_?|grad_norm|unscale)\b", Phase.OPTIMIZER),
    (r"(?i)\b(load_batch|data_?load(er|ing)?|next_batch|get_batch|fetch_next|wait_for_(training_)?batch|copy_batch_to_gpu)\b", Phase.INPUT),
    (r"(?i)\b(batch|data)[-_](generator|loader)\b|train_dataloader_next|_PrefetchDataFetcher", Phase.INPUT),  # Megatron, Lightning
    (r"(?i)\b(backward([-_ ](step|compute|pass))?|bwd)\b", Phase.BACKWARD),  # Megatron timers, DeepSpeed, Lightning, own labels
    (r"(?i)\b(forward([-_ ](step|compute|pass))?|fwd)\b", Phase.FORWARD),  # the same; DistributedDataParallel.forward
    (r"\b(training_step|validation_step)\b", Phase.FORWARD),  # Lightning; its backward and optimizer have labels of their own
    (r"^DeepSpeedEngine\.step\b|\b_take_model_step\b|\boptimizer_step\b", Phase.OPTIMIZER),
)
"""Names of annotations, searched in this order. Sources: torch/optim/optimizer.py, torch/utils/data/dataloader.py,
torch/nn/parallel/distributed.py; Megatron-LM megatron/core/timers; deepspeed/runtime/engine.py; lightning profilers."""
UPDATES = re.compile(r"_fused_(adam|adamw|sgd|adagrad|lamb|lion|rmsprop)|multi_tensor_(adam|sgd|lamb|l2norm)|FusedAdam|fused_adam")
"""Operators that only an optimizer calls."""
ON_LISTS = re.compile(r"^aten::_foreach_(add|sub|mul|div|addcmul|addcdiv|sqrt|lerp|norm|maximum|reciprocal|neg|pow|sign)_?$")
"""Arithmetic on lists of tensors: after a backward pass it updates parameters, or clips their gradients."""
ENGINE = "autograd::engine::evaluate_function"
FUNCTION = re.compile(r"Backward\d*$|^torch::autograd::(AccumulateGrad|GraphRoot|CopySlices)$")
MODULE = "nn.Module: "


@dataclass(frozen=True)
class Stages:
    """Stages of a recording; arrays of length E (events of the trace), read-only.

    ``microbatch`` counts within a step from 0 (-1: unknown), ``layer`` indexes ``layers.names`` (-1: in none, or unknown).
    """

    phase: np.ndarray  # int8, Phase
    phase_basis: np.ndarray  # int8, Basis
    microbatch: np.ndarray  # int32
    layer: np.ndarray  # int32
    layers: Layers


def stages(trace: Trace) -> Stages:
    """Return the stage of every event of a recording.

    Parameters
    ----------
    trace : Trace
        Device work gets the stage of the operator that launched it; without a recorded launch it is unknown.
    """
    rank = event_ranks(trace)
    call = launch_calls(trace)
    phase, basis = _named(trace)
    sequence = trace.integer_arg("Sequence number")
    functions = (phase == Phase.BACKWARD) & (basis == Basis.AUTOGRAD) & (sequence >= 0)
    creators = _creators(trace, rank, phase, sequence)
    fresh = _with_callers(trace, phase, creators[phase[creators] == Phase.UNKNOWN])
    phase[fresh], basis[fresh] = Phase.FORWARD, Basis.AUTOGRAD
    _inherit(trace, phase, basis)
    _between(trace, phase, basis)
    layers = layers_of(trace, rank, phase == Phase.FORWARD, creators, call)
    layer = layers.layer.copy()
    microbatch = microbatches_of(trace, rank, phase == Phase.FORWARD, functions, sequence)
    columns = (phase, basis, microbatch, layer)
    _to_device(trace, call, columns)
    for column in columns:
        column.setflags(write=False)
    return Stages(*columns, layers)


def _to_device(trace: Trace, call: np.ndarray, columns: tuple[np.ndarray, ...]) -> None:
    """Give device work the stage of the call that launched it, else of the operator whose id it, or its call, carries."""
    device = np.flatnonzero(trace.is_device_work)
    by_id = operators_by_id(trace, device)
    lost = np.flatnonzero((by_id < 0) & (call[device] >= 0))
    by_id[lost] = operators_by_id(trace, call[device[lost]])
    for source in (call[device], by_id):
        known = source >= 0
        rows, give = device[known], source[known]
        for column in columns:
            none = 0 if column.dtype == np.int8 else -1
            unset = column[rows] == none
            column[rows[unset]] = column[give[unset]]


def _named(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Phase and basis that names give, each on the very event that has the name."""
    e = trace.events
    phase, basis = np.zeros(len(e), dtype=np.int8), np.zeros(len(e), dtype=np.int8)
    label = np.isin(e.category, (Category.ANNOTATION, Category.CPU_OP, Category.PYTHON, Category.OTHER))
    label[trace.steps.event] = False
    rows = np.flatnonzero(label)
    used, back = np.unique(e.name[rows], return_inverse=True)
    texts = [trace.strings[i] for i in used.tolist()]
    operator = e.category[rows] == Category.CPU_OP
    fwd = trace.integer_arg("Fwd thread id")[rows] > 0
    backward = np.array([text.startswith(ENGINE) or bool(FUNCTION.search(text)) for text in texts] or [False])[back] | fwd
    lists = bool(backward.any())
    update = np.array([bool(UPDATES.search(text) or (lists and ON_LISTS.match(text))) for text in texts] or [False])[back]
    python = e.category[rows] == Category.PYTHON
    labels = set(back[~python].tolist())  # thousands of Python functions are not asked
    ruled = np.array([_ruled(text) if i in labels else 0 for i, text in enumerate(texts)] or [0], dtype=np.int8)[back]
    module = python & np.array([text.startswith(MODULE) for text in texts] or [False])[back]
    for mask, values, why in (
        (operator & update, np.int8(Phase.OPTIMIZER), Basis.OPERATOR),
        (module, np.int8(Phase.FORWARD), Basis.MODULE),
        (~python & (ruled > 0), ruled, Basis.ANNOTATION),
        (operator & backward, np.int8(Phase.BACKWARD), Basis.AUTOGRAD),
    ):
        hit = rows[mask]
        phase[hit] = values[mask] if isinstance(values, np.ndarray) else values
        basis[hit] = why
    return phase, basis


def _ruled(name: str) -> int:
    if name.startswith(("aten::", ENGINE)) or FUNCTION.search(name):
        return 0
    return next((int(phase) for pattern, phase in RULES if re.search(pattern, name)), 0)


def _creators(trace: Trace, rank: np.ndarray, phase: np.ndarray, sequence: np.ndarray) -> np.ndarray:
    """Forward operators that made a function of the backward pass, by thread and time, int64 [C].

    An operator records the number that the next function will get. It made one if the number moves on: of the operators that carry a
    number the last to start made its function, if a later operator of the thread carries a larger one or a backward function carries it.
    """
    e = trace.events
    ops = np.flatnonzero((e.category == Category.CPU_OP) & (sequence >= 0))
    forward, back = ops[phase[ops] != Phase.BACKWARD], ops[phase[ops] == Phase.BACKWARD]
    order = forward[np.lexsort((forward, e.start_ns[forward], e.track[forward]))]
    if not len(order):
        return order
    same = e.track[order[1:]] == e.track[order[:-1]]
    advances = np.append(same & (sequence[order[1:]] > sequence[order[:-1]]), False)
    width = int(sequence.max()) + 1
    key = rank * width + sequence
    last_of_number = np.append(~same | (sequence[order[1:]] != sequence[order[:-1]]), True)
    answered = np.isin(key[order], np.unique(key[back])) & last_of_number
    return np.asarray(order[advances | answered])


def _with_callers(trace: Trace, phase: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return operators and the operators around them, up to the first of another phase."""
    e = trace.events
    found, up = [rows], rows
    while len(up):
        up = np.unique(e.parent[up])
        up = up[up >= 0]
        up = up[(e.category[up] == Category.CPU_OP) & (phase[up] == Phase.UNKNOWN)]
        found.append(up)
    return np.unique(np.concatenate(found))


def _inherit(trace: Trace, phase: np.ndarray, basis: np.ndarray) -> None:
    """Give every host event the phase of the innermost enclosing one that has one; the backward pass encloses what it recomputes."""
    e = trace.events
    host = np.flatnonzero(np.isin(e.category, (Category.CPU_OP, *HOST_CALLS, Category.ANNOTATION, Category.PYTHON)))
    engine = (phase == Phase.BACKWARD) & (basis == Basis.AUTOGRAD)
    for allowed in (engine, phase > 0):
        above = nearest(e.parent, allowed, host.astype(np.int32))
        found = above >= 0
        rows = host[found]
        fill = rows[(phase[rows] == 0) | allowed[rows] | engine[above[found]]]
        source = above[found][(phase[rows] == 0) | allowed[rows] | engine[above[found]]]
        phase[fill], basis[fill] = phase[source].copy(), basis[source].copy()


def _between(trace: Trace, phase: np.ndarray, basis: np.ndarray) -> None:
    """Fill operators and calls without a phase between two of one phase on their thread."""
    e = trace.events
    rows = np.flatnonzero(np.isin(e.category, (Category.CPU_OP, *HOST_CALLS)))
    order = rows[np.lexsort((-e.dur_ns[rows], e.start_ns[rows], e.track[rows]))]
    known = np.flatnonzero(phase[order] > 0)
    if not len(known):
        return
    place = np.arange(len(order))
    before = np.searchsorted(known, place, "right") - 1
    after = np.minimum(before + 1, len(known) - 1)
    low, high = order[known[np.maximum(before, 0)]], order[known[after]]
    ok = (phase[order] == 0) & (before >= 0) & (before + 1 < len(known)) & (phase[low] == phase[high])
    ok &= (e.track[low] == e.track[order]) & (e.track[high] == e.track[order])
    ok &= _same_step(trace, low, high)
    phase[order[ok]], basis[order[ok]] = phase[low[ok]], Basis.POSITION


def _same_step(trace: Trace, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Bool [N]: no step begins between two events."""
    begins = np.sort(trace.steps.start_ns)
    at = trace.events.start_ns
    return np.asarray(np.searchsorted(begins, at[low], "right") == np.searchsorted(begins, at[high], "right"))
