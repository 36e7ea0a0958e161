"""PyTorch execution traces (ExecutionTraceObserver): which tensors each operator read and wrote.

Form: github.com/pytorch/pytorch, torch/csrc/profiler/standalone/execution_trace_observer.cpp. Schema 1.0: a node carries ``inputs``,
``input_shapes``, ``input_types`` (and the same of outputs), ``rf_id``, ``parent`` as keys of its own. Schema 1.1 and later: ``inputs`` and
``outputs`` are objects of ``values``, ``shapes``, ``types``, ``strides``; the rest lies in ``attrs``. A tensor is
[tensor id, storage id, offset, elements, bytes an element, device].
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.errors import UnreadableInput

TENSORS_IN, TENSORS_OUT = "Input tensors", "Output tensors"
"""Arguments that joined operators get: JSON lists of [tensor id, storage id, offset, elements, bytes an element, device]."""
DESCRIBED = ("Input Dims", "Input type", "Concrete Inputs")
"""Arguments that only operators without "Input Dims" get."""
ARGUMENTS = (TENSORS_IN, TENSORS_OUT, "Output Dims", *DESCRIBED)
NODES = "nodes"
"""Key of the file that holds the list of nodes."""
_NUMBERS = re.compile(r"[][0-9, -]*\Z")
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
    """One execution trace in columns of length N: the process it was made by, its operators, and how many nodes could not be read.

    Parameters
    ----------
    path, digest : str
    pid : int or None
    strings : sequence of str
        Texts, each once.
    rf_id : int64 [N]
    name : int32 [N]
        Index into ``strings``.
    args : dict of int32 [N]
        What a joined operator gets, by argument, as the profiler writes it: an index into ``strings``, -1 where there is nothing.
    unread : int
    """

    path: str
    digest: str
    pid: int | None
    strings: Sequence[str]
    rf_id: np.ndarray
    name: np.ndarray
    args: Mapping[str, np.ndarray]
    unread: int = 0

    def __len__(self) -> int:
        return len(self.rf_id)


class Nodes:
    """Nodes of an execution trace, read one by one."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._rows: list[tuple[int, ...]] = []
        self._unread = 0

    def add(self, row: object) -> None:
        """Add a node; one without name or id is counted."""
        try:
            node = _node(row) if isinstance(row, dict) else None
            texts = _texts(node) if node is not None else ()
        except RecursionError:
            node = None
        if node is None:
            self._unread += 1
            return
        number = self._number
        self._rows.append((node.rf_id, *(number.setdefault(text, len(number)) if text else -1 for text in (node.name, *texts))))

    def execution(self, top: Mapping[str, object], path: str, digest: str) -> Execution:
        """Return what was read. Raises `UnreadableInput` where no node is an operator."""
        if not self._rows:
            raise UnreadableInput(path, "is an execution trace without operators", "record it again")
        pid = top.get("pid")
        rf_id, name, *columns = (np.array(column) for column in zip(*self._rows, strict=True))
        args = {key: column.astype(np.int32) for key, column in zip(ARGUMENTS, columns, strict=True)}
        known = pid if isinstance(pid, int) else None
        return Execution(path, digest, known, list(self._number), rf_id.astype(np.int64), name.astype(np.int32), args, self._unread)


def is_execution(top: Mapping[str, object]) -> bool:
    """Whether the top-level keys of a JSON file, whose nodes were handed to `Nodes`, are those of an execution trace."""
    return isinstance(top.get(NODES), int) and "schema" in top


def _node(row: dict[str, Any]) -> Node | None:
    attrs = row.get("attrs")
    more = {a["name"]: a.get("value") for a in attrs if isinstance(a, dict) and a.get("name") == "rf_id"} if isinstance(attrs, list) else {}
    rf_id, name = row.get("rf_id", more.get("rf_id")), row.get("name")
    if not isinstance(rf_id, int) or isinstance(rf_id, bool) or not 0 <= rf_id < 2**62 or not isinstance(name, str) or not name:
        return None
    ends = []
    for side in ("input", "output"):
        values = row.get(f"{side}s")
        if isinstance(values, dict):
            parts = (values.get("values"), values.get("shapes"), values.get("types"))
        else:
            parts = (values, row.get(f"{side}_shapes"), row.get(f"{side}_types"))
        ends.append([part if isinstance(part, list) else [] for part in parts])
    (inputs, shapes, types), (outputs, output_shapes, _) = ends
    return Node(name, rf_id, inputs, shapes, [str(kind) for kind in types], outputs, output_shapes)


def _texts(node: Node) -> tuple[str, ...]:
    """Return the arguments of an operator in the order of ``ARGUMENTS``."""
    made = (tensors(node.inputs), tensors(node.outputs), _numbers(node.output_shapes))
    if not any(node.input_shapes):
        return (*made, "", "", "")
    types = tuple(profiler_type(kind) for kind in node.input_types)
    return (*made, _numbers(node.input_shapes), _words(types), _words(tuple(concrete(node))))


def _numbers(lists: Sequence[Any]) -> str:
    """Return lists of numbers as JSON text."""
    text = str(lists)
    return text if _NUMBERS.match(text) else json.dumps(lists)


@lru_cache(4096)
def _words(texts: tuple[str, ...]) -> str:
    return json.dumps(texts)


def tensors(values: Sequence[Any]) -> str:
    """Return the tensors among an operator's values, those in lists included, as JSON text."""
    found: list[str] = []

    def visit(value: list[Any]) -> None:
        if len(value) == 6 and isinstance(value[5], str) and all(isinstance(number, int) for number in value[:5]):
            found.append(f"{str(value[:5])[:-1]}, {_words((value[5],))[1:]}")
            return
        for inner in value:
            if isinstance(inner, list):
                visit(inner)

    for value in values:
        if isinstance(value, list):
            visit(value)
    return f"[{', '.join(found)}]"


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
