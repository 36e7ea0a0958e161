"""Which neighbours on a stream may become one kernel, and why others may not.

An elementwise tail works on what is still in the registers of the kernel before it; a normalisation, softmax or sum may do its
elementwise predecessor while reading. A product's tile holds no whole row, so what reduces rows does not follow it. A batch norm
whose statistics are those of the batch needs all of its input first; one with stored statistics is a scale and a shift.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.graph.graph import EdgeKind, NodeKind
from workbench.graph.rewrite_view import View
from workbench.operators.call import Call
from workbench.operators.table import ITEMSIZE, Dtype, Kind

PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM, Kind.GROUPED_GEMM, Kind.CONV_FORWARD)
MAPS = (Kind.ELEMENTWISE, Kind.COPY)
ROWWISE = (Kind.NORM, Kind.SOFTMAX, Kind.REDUCTION)
HEADS = (*PRODUCTS, *MAPS, Kind.NORM, Kind.SOFTMAX, Kind.EMBEDDING, Kind.ATTENTION_FORWARD, Kind.POOLING)
BATCH_NORM = "batch_norm"
TRAINING = 5
"""Position of ``training`` among the arguments of every batch norm of ATen (native_functions.yaml)."""
NEEDS_INPUT = (
    "gelu",
    "silu",
    "mul",
    "pow",
    "div",
    "norm",
    "sin",
    "cos",
    "log",
    "mish",
    "where",
    "hardswish",
    "softplus",
    "elu",
    "clamp",
    "abs",
)
"""Functions whose gradient reads their input (PyTorch, tools/autograd/derivatives.yaml)."""
NEEDS_RESULT = ("relu", "sigmoid", "tanh", "softmax", "exp", "sqrt", "rsqrt")
"""Functions whose gradient reads their result (the same)."""
EVENTS = (EdgeKind.EVENT, EdgeKind.EVENT_INFERRED)
SYNCS = (EdgeKind.SYNC, EdgeKind.SYNC_INFERRED)
SHAPES = "shapes are not recorded, so that nobody knows what it reads"
RECORD = "record with record_shapes=True"
LEAVE = "leave it out of the chain"


@dataclass(frozen=True, slots=True)
class Link:
    """One intermediate of a chain: what it measures [B], who else reads it, what stays uncertain, or why there is none."""

    nbytes: float = 0.0
    kept: bool = False  # written all the same: a gradient reads it
    known: bool = False  # its readers are known by tensor
    reason: tuple[str, str] = ("", "")  # why the two may not become one, and what to do

    @property
    def legal(self) -> bool:
        """Whether the two may become one kernel."""
        return not self.reason[0]


class Chains:
    """Legality of chains of one view."""

    def __init__(self, of: View) -> None:
        self.of = of
        self.kind = of.table.kind[of.row]
        self.follows = np.zeros(len(of), dtype=bool)  # unit i comes right after unit i - 1 on its stream, in the same step
        self.follows[1:] = (of.resource[1:] == of.resource[:-1]) & (of.step[1:] == of.step[:-1])
        graph, target = of.graph, of.target
        self.waits = np.zeros(len(graph), dtype=bool)  # waits for another stream
        self.waits[target[np.isin(graph.edge_kind, EVENTS)]] = True
        self.awaited = np.zeros(len(graph), dtype=bool)  # another stream, or the host, waits for it
        self.awaited[graph.edge_from[np.isin(graph.edge_kind, (*EVENTS, *SYNCS))]] = True
        synced = np.unique(target[np.isin(graph.edge_kind, SYNCS)])
        self.synced = {int(r): synced[graph.resource[synced] == r] for r in np.unique(graph.resource[synced])}
        self._calls: dict[int, Call | None] = {}
        self._readers: dict[tuple[int, int], list[int]] | None = None

    def call(self, unit: int) -> Call | None:
        """Return the recorded call of a unit (parsed once an operator event)."""
        event = int(self.of.operator[unit])
        if event not in self._calls:
            self._calls[event] = self.of.call_of(unit)
        return self._calls[event]

    def link(self, first: int) -> Link:
        """Return what may become of a unit and the next on its stream."""
        second = first + 1
        if second >= len(self.of) or not self.follows[second]:
            return Link(reason=("nothing follows it on its stream in the same step", LEAVE))
        for check in (self._kinds, self.between, self._batch_norm):
            if reason := check(first, second):
                return Link(reason=(reason, LEAVE))
        return self._data(first, second)

    def _kinds(self, first: int, second: int) -> str:
        a, b = Kind(self.kind[first]), Kind(self.kind[second])
        if Kind.UNKNOWN in (a, b) and not self.of.table.has_shapes[self.of.row[[first, second]]].all():
            return SHAPES
        if (a == Kind.COPY and self.of.table.dims[self.of.row[first], 1]) or (
            b == Kind.COPY and self.of.table.dims[self.of.row[second], 1]
        ):
            return "a copy between host and device is no kernel"
        if a in HEADS and b in MAPS:
            return ""
        if (a in MAPS and b in ROWWISE) or (a == Kind.CONV_FORWARD and self._is_batch_norm(second)):
            return ""
        if a in PRODUCTS and b in ROWWISE:
            return "a tile of a product holds no whole row, which the next reduces"
        return f"{a.name.lower()} and {b.name.lower()} do not become one kernel"

    def _is_batch_norm(self, unit: int) -> bool:
        return self.kind[unit] == Kind.NORM and BATCH_NORM in self.of.table.name[self.of.row[unit]]

    def _batch_norm(self, first: int, second: int) -> str:
        if self.kind[first] not in PRODUCTS or not self._is_batch_norm(second):
            return ""
        call = self.call(second)
        training = call.value(TRAINING) if call else None
        if training is True or (training is not False and (self.of.gradient_follows(second) or self.of.in_gradient.any())):
            return "the statistics of a batch norm in training need the whole output first"
        return ""

    def between(self, first: int, second: int) -> str:
        """Return why the two are not launched one right after the other."""
        of, graph = self.of, self.of.graph
        a, b = of.nodes(first), of.nodes(second)
        if self.waits[b].any() or self.awaited[a].any():
            return "a synchronisation lies between them"
        calls = of.calls(first), of.calls(second)
        if not len(calls[0]) or not len(calls[1]):
            return "their launches are not recorded"
        if len({int(graph.resource[c]) for part in calls for c in part}) > 1:
            return "different threads launch them"
        synced = self.synced.get(int(graph.resource[calls[0][0]]))
        if synced is not None and ((synced > calls[0].min()) & (synced < calls[1].max())).any():
            return "the host waits for the device between them"
        if any((graph.kind[nodes] != NodeKind.COMPUTE).all() for nodes in (a, b)):
            return "a copy or message is no kernel to fuse"
        return ""

    def _data(self, first: int, second: int) -> Link:
        """Return the tensor between the two: by tensor ids where recorded, else by shape and type."""
        of, call = self.of, self.call(second)
        if call is None or not of.table.has_shapes[of.row[first]]:
            return Link(reason=(SHAPES, RECORD))
        readers = self._by_id(first, second)
        if readers is not None and second not in readers:
            return Link(reason=("it does not read what the one before it writes", LEAVE))
        elements, dtype = written(of, first)
        fits = [
            t for t in call.flat if t.numel == elements and Dtype.UNKNOWN not in (t.dtype, dtype) and ITEMSIZE[t.dtype] == ITEMSIZE[dtype]
        ]
        if not fits:
            what = "shapes or types do not match: it reads no tensor of the size the one before it writes"
            return Link(reason=(what, LEAVE))
        gradient = self._saved(first, second)
        others = [unit for unit in readers or () if unit != second]
        if others and not all(of.in_gradient[unit] for unit in others):
            what = f"{of.table.name[of.row[next(u for u in others if not of.in_gradient[u])]]} reads the intermediate too"
            return Link(reason=(what, "fuse with keep, which writes the intermediate as well"), nbytes=fits[0].nbytes, known=True)
        if readers is not None:
            return Link(fits[0].nbytes, bool(others), True)
        return Link(fits[0].nbytes, gradient or self.kind[second] == Kind.NORM)

    def _saved(self, first: int, second: int) -> bool:
        """Whether a recorded gradient reads the tensor between the two."""
        names = [self.of.table.name[self.of.row[unit]] for unit in (first, second)]
        by_first = any(word in names[0] for word in NEEDS_RESULT) and self.of.gradient_follows(first)
        by_second = any(word in names[1] for word in NEEDS_INPUT) and self.of.gradient_follows(second)
        return by_first or by_second

    def _by_id(self, first: int, second: int) -> list[int] | None:
        """Return the units that read what a unit writes before it is written again, None where tensors are not recorded."""
        out = tensor_ids(self.of.tensors(int(self.of.operator[first]), "Output tensors"))
        if not out or not self.of.tensors(int(self.of.operator[second]), "Input tensors"):
            return None
        if self._readers is None:
            self._readers = {}
            for unit in range(len(self.of)):
                for tensor in tensor_ids(self.of.tensors(int(self.of.operator[unit]), "Input tensors")):
                    self._readers.setdefault((int(self.of.step[unit]), tensor), []).append(unit)
        step = int(self.of.step[first])
        units = {unit for tensor in out for unit in self._readers.get((step, tensor), ())}
        start = self.of.trace.events.start_ns[self.of.operator]
        return sorted(unit for unit in units if start[unit] > start[first])


def tensor_ids(text: str) -> set[int]:
    """Return the storages named in a list of [tensor id, storage id, offset, ...]: aliases of a tensor share one."""
    return {int(entry[1]) for entry in json.loads(text)} if text else set()


def written(of: View, unit: int) -> tuple[int, Dtype]:
    """Return elements and type of what a unit writes."""
    row = int(of.row[unit])
    dtype = Dtype(of.table.dtype[row])
    dims = of.table.dims[row].tolist()
    match Kind(of.table.kind[row]):
        case Kind.GEMM | Kind.BATCHED_GEMM:
            return dims[0] * dims[1] * dims[2], _result(dtype)
        case Kind.NORM | Kind.SOFTMAX | Kind.EMBEDDING:
            return dims[0] * dims[1], dtype
        case Kind.ELEMENTWISE | Kind.COPY:
            return dims[0], dtype
        case _:
            return round(float(of.table.bytes_written[row]) / ITEMSIZE[dtype]), _result(dtype)


def _result(dtype: Dtype) -> Dtype:
    """Return the type products of some type write: fp8 and int8 ones write 16 bits."""
    return {Dtype.TF32: Dtype.FP32, Dtype.FP8: Dtype.BF16, Dtype.INT8: Dtype.BF16}.get(dtype, dtype)


def anchor(kinds: Sequence[int]) -> int:
    """Return which member of a chain gives it its kind: the product, else what reduces rows, else the first that is no map."""
    for group in (PRODUCTS, (*ROWWISE, Kind.EMBEDDING, Kind.ATTENTION_FORWARD, Kind.POOLING)):
        for place, kind in enumerate(kinds):
            if kind in group:
                return place
    return 0


def one_anchor(kinds: Sequence[int]) -> bool:
    """Tell whether a chain has at most one member that is no map (a folded batch norm aside)."""
    return sum(kind not in MAPS for kind in kinds) <= 1 or (
        kinds[0] == Kind.CONV_FORWARD and sum(kind not in MAPS for kind in kinds[2:]) == 0
    )
