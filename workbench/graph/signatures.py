"""The distinct operator calls of a trace: every shape text is parsed once, however often the call was made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from workbench.graph.image_layouts import learn_layouts
from workbench.graph.kernels_units import nearest
from workbench.operators.call import Call, parse_call
from workbench.operators.described import MATRIX_KINDS, Described
from workbench.operators.kinds import BEARING, TRANSPARENT, collective_kind, describe, rule_for, state, state_of
from workbench.trace.part import group
from workbench.trace.trace import Category, Trace

_DIMS = ("Input Dims", "Input dims", "Input Shapes", "input_shapes")
_TYPES = ("Input type", "Input types", "Input Types", "input_types")
_CONCRETE = ("Concrete Inputs", "Concrete inputs")
_LOOK_AHEAD = 64
_MATRIX_FAMILY = 1


@dataclass(frozen=True)
class Signatures:
    """Distinct calls. ``of`` is int32 [E] (-1 for events that are no operators), the rest has one entry a call.

    ``state`` and ``family`` are int8 by call: see `workbench.operators.kinds.state`; calls of one family other than 0 are the
    same work when one encloses the other.
    """

    of: np.ndarray
    calls: tuple[Call, ...]
    state: np.ndarray
    family: np.ndarray

    def per_event(self, values: np.ndarray) -> np.ndarray:
        """Spread a value a call over events (0 where there is none)."""
        return np.append(values, 0).astype(np.int8)[self.of]


def _text(trace: Trace, keys: tuple[str, ...]) -> np.ndarray:
    out = np.full(len(trace.events), -1, dtype=np.int64)
    for key in keys:
        if key in trace.args:
            column = trace.text_arg(key)
            out = np.where(out < 0, column, out)
    return out


def signatures(trace: Trace) -> Signatures:
    """Collect the distinct calls of a trace's framework operators and learn from neighbours what a call did not record."""
    rows = np.flatnonzero(trace.events.category == Category.CPU_OP)
    texts = [column[rows] for column in (trace.events.name, _text(trace, _DIMS), _text(trace, _TYPES), _text(trace, _CONCRETE))]
    shaped, _ = group(*texts[:3])
    code, head = group(shaped, texts[3])
    known = (*trace.strings, "")  # -1: no text
    calls = [parse_call(*(known[text[i]] for text in texts)) for i in head.tolist()]
    of = np.full(len(trace.events), -1, dtype=np.int32)
    of[rows] = code
    _learn(trace, of, calls)
    learn_layouts(trace, of, calls)
    found = [describe(call) for call in calls]
    states = np.array([state_of(*pair) for pair in zip(calls, found, strict=True)] or [TRANSPARENT], dtype=np.int8)
    families = np.array([_family(one) for one in found] or [0], dtype=np.int8)
    return Signatures(of, tuple(calls), states, families)


def _family(found: Described | None) -> int:
    if found is None:
        return 0
    return _MATRIX_FAMILY if found.kind in MATRIX_KINDS else _MATRIX_FAMILY + 1 + int(found.kind)


def _learn(trace: Trace, of: np.ndarray, calls: list[Call]) -> None:
    """Give calls that lack a fact their own entry with the fact (``of`` and ``calls`` are extended in place)."""
    wanting = {}
    for i, call in enumerate(calls):
        entry = rule_for(call.name)
        rule = entry["rule"] if entry else ""
        if rule == "message" or (rule in ("convolution", "convolution_backward", "pooling") and call.has_shapes and state(call) != BEARING):
            wanting[i] = rule
    if not wanting:
        return
    known: dict[tuple[int, tuple[tuple[str, object], ...]], int] = {}
    neighbours = _Neighbours(trace, of, calls)
    events = np.flatnonzero(np.isin(of, list(wanting)))
    alike, first = neighbours.alike(events, np.isin(of[events], [i for i, rule in wanting.items() if rule == "message"]))
    learnt = of[events[first]]
    for i, event in enumerate(events[first].tolist()):
        old = int(learnt[i])
        facts = neighbours.facts(event, wanting[old])
        if facts:
            if (old, facts) not in known:
                known[old, facts] = len(calls)
                calls.append(replace(calls[old], facts=facts))
            learnt[i] = known[old, facts]
    of[events] = learnt[alike]


class _Neighbours:
    """Looks around an event: at its ancestors, at what follows, at the forward pass of a gradient."""

    def __init__(self, trace: Trace, of: np.ndarray, calls: list[Call]) -> None:
        self.trace, self.of, self.calls = trace, of.copy(), calls[:]
        events = trace.events
        rows = np.flatnonzero(events.category == Category.CPU_OP)
        self.order = rows[np.lexsort((rows, -events.dur_ns[rows], events.start_ns[rows], events.track[rows]))]
        self.place = np.full(len(events), -1, dtype=np.int64)
        self.place[self.order] = np.arange(len(self.order))
        self.sequence = trace.integer_arg("Sequence number")
        self.integers = {key: trace.integer_arg(key) for key in ("In msg nelems", "Out msg nelems", "Group size")}
        self.texts = {key: trace.text_arg(key) for key in ("Collective name", "dtype")}
        self.forward = self._forward()
        names = np.flatnonzero(np.bincount(events.name))
        labels = [i for i in names.tolist() if trace.strings[i].startswith(("nccl:", "rccl:", "hccl:"))]
        inner = np.flatnonzero(np.isin(events.name, labels) & (events.parent >= 0))
        self.label = np.full(len(events), -1, dtype=np.int64)  # name of the label inside each event
        self.label[events.parent[inner]] = events.name[inner]
        telling = [i for i in names.tolist() if trace.strings[i].startswith(("c10d::", "nccl:", "rccl:"))]
        self.telling = np.isin(events.name, telling)

    def alike(self, events: np.ndarray, is_message: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Group events whose neighbours tell the same: messages of the same arguments under the same names; any other stands alone.

        Returns
        -------
        group : int64 [N]
        first : int64 [G]
            Position of the first event of each group, ascending.
        """
        names, parent = np.append(self.trace.events.name, -1), np.append(self.trace.events.parent, -1)
        number = np.where(is_message, self.of[events], -1 - np.arange(len(events)))
        for column in (*self.integers.values(), *self.texts.values(), self.label):
            number, _ = group(number, column[events])
        at, open_ = events, is_message
        while open_.any():  # up through the names that tell, all events together
            at = nearest(self.trace.events.parent, self.telling, parent[at].astype(np.int32))
            open_ = open_ & (at >= 0)
            number, _ = group(number, np.where(open_, names[at], -1))
        return group(number, number)

    def facts(self, event: int, rule: str) -> tuple[tuple[str, object], ...]:
        """Return what neighbours tell about an event."""
        if rule == "message":
            return message_facts(self.trace, event, self.integers, self.texts, self._labels(event))
        if rule == "convolution_backward":
            return self._gradient(event)
        output = self._output(event)
        return (("output", output),) if output else ()

    def _ancestors(self, event: int) -> Iterator[int]:
        up = int(self.trace.events.parent[event])
        while up >= 0:
            yield up
            up = int(self.trace.events.parent[up])

    def _labels(self, event: int) -> list[str]:
        names = [self.trace.strings[self.label[event]]] if self.label[event] >= 0 else []
        return names + [self.trace.name_of(up) for up in self._ancestors(event) if self.telling[up]]

    def _forward(self) -> dict[tuple[int, int], Call]:
        out: dict[tuple[int, int], Call] = {}
        if not np.any(self.sequence >= 0):
            return out
        convolutions = {
            i for i, call in enumerate(self.calls) if (rule_for(call.name) or {}).get("rule") == "convolution" and call.has_shapes
        }
        for event in np.flatnonzero(np.isin(self.of, list(convolutions)) & (self.sequence >= 0)):
            rank = self.trace.tracks[self.trace.events.track[event]].rank
            out[rank, int(self.sequence[event])] = self.calls[self.of[event]]
        return out

    def _gradient(self, event: int) -> tuple[tuple[str, object], ...]:
        rank = self.trace.tracks[self.trace.events.track[event]].rank
        for up in (event, *self._ancestors(event)):
            call = self.calls[self.of[up]] if self.of[up] >= 0 else None
            entry = (rule_for(call.name) or {}) if call else {}
            if call and up != event and entry.get("rule") == "convolution_backward":
                x, w = call.tensor(entry.get("x")), call.tensor(entry.get("w"))
                if x and w:
                    return (("input", x.shape), ("weight", w.shape))
            if self.sequence[up] >= 0 and (forward := self.forward.get((rank, int(self.sequence[up])))):
                x, w = forward.tensor(0), forward.tensor(1)
                return (("input", x.shape), ("weight", w.shape)) if x and w else ()
        return ()

    def _output(self, event: int) -> tuple[int, ...] | None:
        """Return the first tensor of the next operator after this one that may be its result: same images, right channels."""
        events, call = self.trace.events, self.calls[self.of[event]]
        x, w = call.tensor(0), call.tensor(1)
        if x is None or len(x.shape) < 3:
            return None
        channels = w.shape[0] if w is not None and len(w.shape) == len(x.shape) else x.shape[1]
        end = events.start_ns[event] + events.dur_ns[event]
        for place in range(self.place[event] + 1, min(self.place[event] + _LOOK_AHEAD, len(self.order))):
            later = self.order[place]
            if events.track[later] != events.track[event]:
                return None
            flat = self.calls[self.of[later]].flat
            if events.start_ns[later] < end or not flat:
                continue
            shape = flat[0].shape
            if (
                len(shape) == len(x.shape)
                and shape[:2] == (x.shape[0], channels)
                and all(a <= b for a, b in zip(shape[2:], x.shape[2:], strict=True))
            ):
                return shape
        return None


def message_facts(
    trace: Trace, event: int, integers: dict[str, np.ndarray], texts: dict[str, np.ndarray], labels: list[str]
) -> tuple[tuple[str, object], ...]:
    """Return the facts of a message from an event's own arguments, else its kind from names around it.

    Parameters
    ----------
    trace : Trace
    event : int
        Row of the event that carries the arguments.
    integers, texts : dict
        Dense columns of the arguments, int64 [E] and int32 [E] (-1: absent).
    labels : list of str
        Names that may tell the kind, the best first.

    Returns
    -------
    tuple of (str, object)
        ``in_elements``, ``out_elements``, ``group_size``, ``dtype``, ``collective``: those that are known.
    """
    out: list[tuple[str, object]] = []
    for key, fact in (("In msg nelems", "in_elements"), ("Out msg nelems", "out_elements"), ("Group size", "group_size")):
        if integers[key][event] >= 0:
            out.append((fact, int(integers[key][event])))
    if texts["dtype"][event] >= 0:
        out.append(("dtype", trace.strings[texts["dtype"][event]]))
    names = ([trace.strings[texts["Collective name"][event]]] if texts["Collective name"][event] >= 0 else []) + labels
    kinds = [kind for kind in (collective_kind(name.rstrip("_")) for name in names) if kind is not None]
    if kinds:
        out.append(("collective", kinds[0]))
    return tuple(out)
