"""A recording's dependency graph as a Chakra execution trace (``.et``), for simulators that read it.

Form: et_def.proto of github.com/mlcommons/chakra, see `workbench.trace.chakra_nodes`. Its times are whole microseconds: what is shorter
is rounded, which `workbench` itself never does.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from workbench.errors import Refused
from workbench.graph.build import build_graph
from workbench.graph.graph import DEVICE_KINDS, Graph, NodeKind
from workbench.operators.table import Kind, OpTable
from workbench.study.prediction import Prediction
from workbench.trace.trace import Trace

MARKS = (NodeKind.ROOT, NodeKind.STEP_BEGIN, NodeKind.STEP_END, NodeKind.ARRIVAL, NodeKind.MEETING)
COMM = {Kind.ALL_REDUCE: 0, Kind.ALL_GATHER: 2, Kind.BROADCAST: 5, Kind.ALL_TO_ALL: 6, Kind.REDUCE_SCATTER: 7, Kind.BARRIER: 9}
_COMPUTE, _MESSAGE = 4, 7


def write_chakra(source: Trace | Prediction, path: str | os.PathLike[str]) -> int:
    """Write the dependency graph of a recording of one rank as a Chakra trace.

    Parameters
    ----------
    source : Trace or Prediction
        Of one rank; of a prediction its predicted times are written.
    path : str or path

    Returns
    -------
    int
        Nodes written: pieces of host work, calls, gaps and device work, with starts and durations [us, rounded], what each
        waits for as ``data_deps``, shapes and types of operators, kind and bytes of messages. Lags of edges have no place in the form.

    Raises
    ------
    Refused
        Several ranks, nothing to replay, or the file cannot be written.
    """
    trace = source.scenario.workload.trace if isinstance(source, Prediction) else source
    if len(trace.ranks) != 1:
        raise Refused("write_chakra", f"a Chakra file is of one rank, the trace has {len(trace.ranks)}", "open and write each rank alone")
    if isinstance(source, Prediction):
        graph, table, times = source.graph, source.table, (source.timeline.start_s, source.node_s)
    else:
        graph, table = build_graph(trace)
        times = graph.recorded_start_s, graph.measured_s
    kept = np.flatnonzero(~np.isin(graph.kind, [int(kind) for kind in MARKS]))
    needs = _needs(graph)
    shown = _Shown(trace, graph, table, times)
    parts = [_block(1, b"0.0.4") + _block(2, _block(1, b"schema") + _block(29, b"workbench"))]
    parts += [shown.node(int(node), needs[node]) for node in kept]
    try:
        Path(path).write_bytes(b"".join(_varint(len(part)) + part for part in parts))
    except OSError as fault:
        raise Refused(str(path), f"cannot be written: {fault.strerror or fault}", "choose another file") from None
    return len(kept)


def _needs(graph: Graph) -> list[list[int]]:
    """Return the nodes each node waits for, marks replaced by what they wait for."""
    marks = np.isin(graph.kind, [int(kind) for kind in MARKS])
    out: list[list[int]] = []
    for node in range(len(graph.kind)):
        found: dict[int, None] = {}
        for other in graph.edge_from[graph.edge_ptr[node] : graph.edge_ptr[node + 1]].tolist():
            found.update(dict.fromkeys(out[other] if marks[other] else [other]))
        out.append(list(found))
    return out


class _Shown:
    """Nodes as messages."""

    def __init__(self, trace: Trace, graph: Graph, table: OpTable, times: tuple[np.ndarray, np.ndarray]) -> None:
        self.trace, self.graph, self.table, self.times = trace, graph, table, times
        self.dims, self.types = (trace.text_arg(key) for key in ("Input Dims", "Input type"))
        self.device = np.isin(graph.kind, [int(kind) for kind in DEVICE_KINDS])
        self.part: dict[int, int] = {}

    def node(self, node: int, needs: list[int]) -> bytes:
        """Return one node."""
        graph, event = self.graph, int(self.graph.event[node])
        name = self.trace.name_of(event) if event >= 0 else NodeKind(int(graph.kind[node])).name.lower()
        host = not self.device[node]
        attributes = _flag("is_cpu_op", host) + _number("tid", int(graph.resource[node]))
        if host and event >= 0:
            piece = self.part[event] = self.part.get(event, -1) + 1
            name, attributes = f"{name}({piece})", attributes + _number("rf_id", event)
        message = graph.kind[node] == NodeKind.COMMUNICATION
        attributes += self._message(node) if message else b""
        start, dur = (int(np.rint(column[node] * 1e6)) for column in self.times)
        data = _int(1, node) + _block(2, name.encode()) + _int(3, _MESSAGE if message else _COMPUTE)
        data += _block(5, b"".join(map(_varint, needs))) if needs else b""
        return data + _int(6, max(start, 0)) + _int(7, max(dur, 0)) + self._inputs(event) + attributes

    def _inputs(self, event: int) -> bytes:
        if event < 0 or self.dims[event] < 0:
            return b""
        shapes, types = (self.trace.strings[c[event]] if c[event] >= 0 else "[]" for c in (self.dims, self.types))
        return _block(8, _block(1, b"[]") + _block(2, shapes.encode()) + _block(3, _typed(types).encode()))

    def _message(self, node: int) -> bytes:
        op = int(self.graph.op[node])
        kind = Kind(int(self.table.kind[op])) if op >= 0 else Kind.UNKNOWN
        if kind not in COMM:
            return b""
        return _number("comm_type", COMM[kind]) + _number("comm_size", int(self.table.dims[op, 0]))


def _typed(types: str) -> str:
    """Return types as Chakra writes them: ``"float"`` of a tensor is ``'Tensor(float)'``."""
    names = [name.strip().strip('"') for name in types.strip("[]").split(",")]
    return repr([f"Tensor({name})" if name and name not in ("Scalar", "ScalarList", "TensorList") else name for name in names])


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _number(name: str, value: int) -> bytes:
    return _block(10, _block(1, name.encode()) + _int(9, value))


def _flag(name: str, value: bool) -> bytes:
    return _block(10, _block(1, name.encode()) + _int(27, int(value)))
