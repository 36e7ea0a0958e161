"""PyTorch execution traces (ExecutionTraceObserver): which tensors each operator read and wrote, joined to the profile of its rank.

Form: github.com/pytorch/pytorch, torch/csrc/profiler/standalone/execution_trace_observer.cpp. Schema 1.0: a node carries ``inputs``,
``input_shapes``, ``input_types`` (and the same of outputs), ``rf_id``, ``parent`` as keys of its own. Schema 1.1 and later: ``inputs`` and
``outputs`` are objects of ``values``, ``shapes``, ``types``, ``strides``; the rest lies in ``attrs``. A tensor is
[tensor id, storage id, offset, elements, bytes an element, device].
The profile's ``External id`` of an operator is the node's ``rf_id`` plus a constant of the run.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.errors import Note, Refused, UnreadableInput
from workbench.trace.part import Part, frozen
from workbench.trace.trace import ArgColumn, Category

RARE = 32
"""Operators called at most so often vote for the constant between ``External id`` and ``rf_id``."""
BELONGS = 0.5
"""Share of nodes that must find an operator of their name for two files to belong together."""
TENSORS_IN, TENSORS_OUT = "Input tensors", "Output tensors"
"""Arguments that joined operators get: JSON lists of [tensor id, storage id, offset, elements, bytes an element, device]."""
_NO_TYPE = {"Int": "Scalar", "Bool": "Scalar", "Double": "Scalar", "None": "", "Device": "", "String": "", "Object": ""}


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of an execution trace."""

    name: str
    rf_id: int
    inputs: Sequence[Any]
    input_shapes: Sequence[Any]
    input_types: Sequence[str]
    outputs: Sequence[Any]
    output_shapes: Sequence[Any]


@dataclass(frozen=True)
class Execution:
    """One execution trace: the process it was made by, its nodes, and what could not be read."""

    path: str
    digest: str
    pid: int | None
    nodes: tuple[Node, ...]
    unread: int = 0


def is_execution(top: Mapping[str, object]) -> bool:
    """Whether the top-level keys of a JSON file are those of an execution trace."""
    return isinstance(top.get("nodes"), list) and "schema" in top


def read_execution(top: Mapping[str, object], path: str, digest: str) -> Execution:
    """Return the nodes of an execution trace; nodes without name or id are counted, not read.

    Raises
    ------
    UnreadableInput
        No node can be read.
    """
    rows = top["nodes"]
    assert isinstance(rows, list)
    found = [node for row in rows if isinstance(row, dict) and (node := _node(row)) is not None]
    if not found:
        raise UnreadableInput(path, "is an execution trace without operators", "record it again")
    pid = top.get("pid")
    return Execution(path, digest, pid if isinstance(pid, int) else None, tuple(found), len(rows) - len(found))


def _node(row: dict[str, Any]) -> Node | None:
    attrs = row.get("attrs")
    more = {a.get("name"): a.get("value") for a in attrs if isinstance(a, dict)} if isinstance(attrs, list) else {}
    rf_id, name = row.get("rf_id", more.get("rf_id")), row.get("name")
    if not isinstance(rf_id, int) or not isinstance(name, str):
        return None
    ends = []
    for side in ("input", "output"):
        values = row.get(f"{side}s")
        if isinstance(values, dict):
            parts = (values.get("values"), values.get("shapes"), values.get("types"))
        else:
            parts = (values, row.get(f"{side}_shapes"), row.get(f"{side}_types"))
        ends.append(tuple(part if isinstance(part, list) else [] for part in parts))
    (inputs, shapes, types), (outputs, output_shapes, _) = ends
    return Node(name, rf_id, inputs, shapes, [str(kind) for kind in types], outputs, output_shapes)


def join(parts: Sequence[Part], executions: Sequence[Execution]) -> None:
    """Give the operators of each profile the tensors of its execution trace, and shapes where the profile has none.

    Parameters
    ----------
    parts : sequence of Part
        Profiles; changed in place.
    executions : sequence of Execution
        At most one a profile.

    Raises
    ------
    Refused
        An execution trace belongs to none of the profiles, or two belong to one.
    """
    owner: dict[int, str] = {}
    for execution in executions:
        at, shift, share = _home(parts, execution)
        if share < BELONGS:
            what = f"belongs to none of the profiles: at most {100 * share:.0f} % of its operators are found in one"
            raise Refused(execution.path, what, "give the profile that was recorded with it")
        if at in owner:
            raise Refused(f"{owner[at]}, {execution.path}", f"both belong to {parts[at].path}", "leave one out")
        owner[at] = execution.path
        _link(parts[at], execution, shift)


def _home(parts: Sequence[Part], execution: Execution) -> tuple[int, int, float]:
    """Return the profile an execution trace belongs to, the constant between the ids, and the share of nodes found."""
    same = [i for i, part in enumerate(parts) if any(track.pid == str(execution.pid) for track in part.tracks)]
    best = (0, 0, -1.0)
    for i in same or range(len(parts)):
        by_id = _operators(parts[i])
        shift = _shift(by_id, parts[i], execution)
        share = sum(_name(by_id, parts[i], node.rf_id + shift) == node.name for node in execution.nodes) / len(execution.nodes)
        if share > best[2]:
            best = (i, shift, share)
    return best


def _operators(part: Part) -> dict[int, int]:
    """Return the row of each operator of a profile by its external id (the first, where one repeats)."""
    e = part.events
    rows = np.flatnonzero(((e.category == Category.CPU_OP) | (e.category == Category.ANNOTATION)) & (e.external_id >= 0))[::-1]
    return dict(zip(e.external_id[rows].tolist(), rows.tolist(), strict=True))


def _name(by_id: Mapping[int, int], part: Part, number: int) -> str:
    row = by_id.get(number)
    return part.strings[part.events.name[row]] if row is not None else ""


def _shift(by_id: Mapping[int, int], part: Part, execution: Execution) -> int:
    """Return the constant that most pairs of equally named, rare operators agree on."""
    here: dict[str, list[int]] = defaultdict(list)
    for number, row in by_id.items():
        here[part.strings[part.events.name[row]]].append(number)
    there: dict[str, list[int]] = defaultdict(list)
    for node in execution.nodes:
        there[node.name].append(node.rf_id)
    votes: Counter[int] = Counter()
    for name, ids in there.items():
        if len(ids) <= RARE and 0 < len(here[name]) <= RARE:
            votes.update(external - rf_id for external in here[name] for rf_id in ids)
    return votes.most_common(1)[0][0] if votes else 0


def _link(part: Part, execution: Execution, shift: int) -> None:
    by_id = _operators(part)
    pairs = [(row, node) for node in execution.nodes if (row := by_id.get(node.rf_id + shift)) is not None]
    pairs = [(row, node) for row, node in pairs if part.strings[part.events.name[row]] == node.name]
    pairs.sort(key=lambda pair: pair[0])
    rows = np.array([row for row, _ in pairs], np.int32)
    nodes = [node for _, node in pairs]
    texts = {
        TENSORS_IN: [tensors(node.inputs) for node in nodes],
        TENSORS_OUT: [tensors(node.outputs) for node in nodes],
        "Output Dims": [json.dumps(node.output_shapes) for node in nodes],
    }
    known = set(part.args["Input Dims"].event.tolist()) if "Input Dims" in part.args else set()
    lacking = [(row, node) for row, node in pairs if row not in known and any(node.input_shapes)]
    where, bare = np.array([row for row, _ in lacking], np.int32), [node for _, node in lacking]
    args = dict(part.args)
    for key, values in texts.items():
        _add(part, args, key, rows, values)
    _add(part, args, "Input Dims", where, [json.dumps(node.input_shapes) for node in bare])
    _add(part, args, "Input type", where, [json.dumps([profiler_type(kind) for kind in node.input_types]) for node in bare])
    _add(part, args, "Concrete Inputs", where, [json.dumps(concrete(node)) for node in bare])
    part.args = args
    part.digest = f"{part.digest}+{execution.digest}"
    text = f"{len(pairs)} of {len(execution.nodes)} operators of {execution.path} joined to the profile (External id = rf_id + {shift})"
    part.notes.append(Note("execution-trace-joined", part.path, len(pairs), text + (f"; {len(bare)} gain their shapes" if bare else "")))
    if execution.unread:
        part.notes.append(Note("execution-trace-unread", execution.path, execution.unread, "nodes without name or id are left out"))


def _add(part: Part, args: dict[str, ArgColumn], key: str, rows: np.ndarray, texts: Sequence[str]) -> None:
    """Add an argument to rows that do not have it; rows ascend."""
    if not len(rows):
        return
    number = {text: i for i, text in reversed(list(enumerate(part.strings)))}
    value = np.empty(len(rows), np.int64)
    for i, text in enumerate(texts):
        if text not in number:
            number[text] = len(part.strings)
            part.strings.append(text)
        value[i] = number[text]
    old = args.get(key, ArgColumn(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, bool)))
    event = np.concatenate((old.event, rows.astype(np.int32)))
    order = np.argsort(event, kind="stable")
    values = np.concatenate((old.value, value))[order]
    is_text = np.concatenate((old.is_text, np.ones(len(rows), bool)))[order]
    args[key] = ArgColumn(*map(frozen, (event[order], values, is_text)))


def tensors(values: Sequence[Any]) -> str:
    """Return the tensors among an operator's values, those in lists included, as JSON text."""
    found: list[list[Any]] = []

    def visit(value: Any) -> None:
        if isinstance(value, list):
            if len(value) == 6 and isinstance(value[5], str) and all(isinstance(number, int) for number in value[:5]):
                found.append(value)
            else:
                for inner in value:
                    visit(inner)

    visit(list(values))
    return json.dumps(found)


def profiler_type(kind: str) -> str:
    """Return a type as the profiler writes it: ``Tensor(float)`` is ``float``, numbers are ``Scalar``, lists of tensors ``TensorList``."""
    if kind.startswith("Tensor(") and kind.endswith(")"):
        return kind[7:-1]
    if kind.startswith("GenericList["):
        return "TensorList" if "Tensor" in kind else "ScalarList"
    return _NO_TYPE.get(kind, "")


def concrete(node: Node) -> list[str]:
    """Return the values of an operator that are no tensors, as the profiler writes them."""
    out = []
    for value, kind in zip(node.inputs, node.input_types, strict=False):
        plain = kind in ("Int", "Bool", "Double") or (kind.startswith("GenericList[") and "Tensor" not in kind)
        out.append(str(value) if plain else "")
    return out
