"""Chakra execution traces -> a trace: host operators on their threads, device nodes on their streams, messages with their bytes.

What was split is put together again: the parts ``name(0)``, ``name(1)`` of an operator, which the converter cut where it launched work,
are one operator. A device node is launched by the host node it depends on last; the call that did so is not recorded and is written as
a call without length at the end of that node.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence

import numpy as np

from workbench.errors import Note
from workbench.trace.builder import Builder
from workbench.trace.chakra_nodes import COLLECTIVES, COMM_COLL, COMM_RECV, COMM_SEND, MEM_LOAD, MEM_STORE, METADATA, ChakraNode, read_nodes
from workbench.trace.chakra_place import starts_of
from workbench.trace.execution_trace import TENSORS_IN, TENSORS_OUT, Node, concrete, profiler_type, tensors
from workbench.trace.kineto import to_part
from workbench.trace.part import Part

CALL = "dependency: LaunchKernel"
_PART = re.compile(r"\(\d+\)$")
_DEVICE = re.compile(r"'[a-z]+:(\d{1,4})'")
_MESSAGES = {COMM_SEND: "send", COMM_RECV: "recv"}
_ITEMSIZE = {"float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long int": 8, "signed char": 1, "unsigned char": 1}


def read_chakra(data: np.ndarray, path: str, digest: str, salvage: bool) -> Part:
    """Return the trace in the bytes of a Chakra file.

    Parameters
    ----------
    data : ndarray of uint8
    path, digest : str
    salvage : bool
        Keep what is whole of a damaged file.

    Raises
    ------
    BrokenMessage
        The bytes are damaged or cut, with the byte.
    """
    read = read_nodes(data, salvage)
    nodes = [node for node in read.nodes if node.kind != METADATA]
    lanes = [_lane(node) for node in nodes]
    start, made_up, broken = starts_of(nodes, lanes)
    built = Builder(top=_identity(read.top))
    for lane in dict.fromkeys(lanes):
        device = lane[0].startswith("device ")
        name = "GPU " + lane[0].removeprefix("device ") if device else "host"
        built.name(lane[0], name, lane[1], f"stream {lane[1]}" if device else f"thread {lane[1]}")
    launched = _launches(nodes, start)
    _hosts(built, nodes, lanes, start, set(launched.values()))
    for at, node in enumerate(nodes):
        if not _on_host(node):
            _device(built, node, lanes[at], start[at], launched.get(at))
    part = to_part(built.records("chakra", digest, len(data), read.damage), path)
    part.notes += _notes(path, nodes, made_up, broken, len(launched))
    return part


def _on_host(node: ChakraNode) -> bool:
    return node.attributes.get("is_cpu_op") is True


def _lane(node: ChakraNode) -> tuple[str, str]:
    tid = node.attributes.get("stream", node.attributes.get("tid"))
    if _on_host(node):
        return "host", str(node.attributes.get("tid", 0))
    found = _DEVICE.search(node.inputs[0]) or _DEVICE.search(node.outputs[0])
    return f"device {found[1] if found else 0}", str(tid if isinstance(tid, int) else int(node.kind in (COMM_COLL, *_MESSAGES)))


def _identity(top: dict[str, object]) -> dict[str, object]:
    said = {key: top[key] for key in ("rank", "world_size") if isinstance(top.get(key), int)}
    return top | ({"distributedInfo": said} if said else {})


def _launches(nodes: Sequence[ChakraNode], start: Sequence[int]) -> dict[int, int]:
    """Return {device node: host node that launched it}: of the host nodes it depends on, the one that began last before it."""
    place = {node.id: at for at, node in reversed(list(enumerate(nodes)))}
    out = {}
    for at, node in enumerate(nodes):
        if not _on_host(node):
            hosts = [p for d in node.data if (p := place.get(d)) is not None and _on_host(nodes[p]) and start[p] <= start[at]]
            if hosts:
                out[at] = max(hosts, key=lambda p: (start[p], p))
    return out


def _hosts(built: Builder, nodes: Sequence[ChakraNode], lanes: Sequence[tuple[str, str]], start: Sequence[int], calling: set[int]) -> None:
    """Add the operators of the host, parts put together, and the calls that launch."""
    parts: dict[object, list[int]] = {}
    for at, node in enumerate(nodes):
        if _on_host(node):
            whole = _PART.sub("", node.name) if "rf_id" in node.attributes else node.name
            key = (lanes[at], node.attributes["rf_id"], whole) if whole != node.name else at
            parts.setdefault(key, []).append(at)
    for members in parts.values():
        first = nodes[members[0]]
        begin, end = min(start[i] for i in members), max(start[i] + nodes[i].dur_us * 1000 for i in members)
        name = _PART.sub("", first.name) if "rf_id" in first.attributes else first.name
        built.add(lanes[members[0]], name, "cpu_op", begin, end - begin, _described(first))
    for at in sorted(calling):
        built.add(lanes[at], CALL, "runtime", start[at] + nodes[at].dur_us * 1000, 0, {"correlation": at + 1})


def _described(node: ChakraNode) -> dict[str, object]:
    """Return the arguments of an operator as the profiler writes them."""
    a = node.attributes
    args: dict[str, object] = {
        "Chakra id": node.id,
        "External id": a.get("rf_id"),
        "Sequence number": a.get("seq_id"),
        "Fwd thread id": a.get("fw_tid"),
    }
    values, shapes, types = map(_listed, node.inputs)
    outputs, output_shapes, _ = map(_listed, node.outputs)
    whole = Node(node.name, 0, values, shapes, [str(kind) for kind in types], outputs, output_shapes)
    if shapes:
        args["Input Dims"] = json.dumps(shapes)
        args["Input type"] = json.dumps([profiler_type(str(kind)) for kind in types])
        args["Concrete Inputs"] = json.dumps(concrete(whole))
    if output_shapes:
        args["Output Dims"] = json.dumps(output_shapes)
    args |= {TENSORS_IN: tensors(values), TENSORS_OUT: tensors(outputs), "op_schema": a.get("op_schema")}
    return args


def _listed(text: str) -> list[object]:
    """Return a list written in Python or JSON; [] where it is none."""
    for read in (lambda: json.loads(text.replace("'", '"')), lambda: ast.literal_eval(text)):
        try:
            found = read()
            return found if isinstance(found, list) else []
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return []


def _device(built: Builder, node: ChakraNode, lane: tuple[str, str], start: int, launch: int | None) -> None:
    """Add a kernel, a copy or a message."""
    name = node.name.lower()
    category = "kernel"
    if name.startswith("memset"):
        category = "gpu_memset"
    elif name.startswith("memcpy") or node.kind in (MEM_LOAD, MEM_STORE):
        category = "gpu_memcpy"
    args: dict[str, object] = {"device": int(lane[0].removeprefix("device ")), "stream": int(lane[1]), "Chakra id": node.id}
    args["correlation"] = launch + 1 if launch is not None else None
    if node.kind in (COMM_COLL, *_MESSAGES) or "comm_type" in node.attributes:
        args |= _message(node)
    elif category == "kernel":
        args |= {"Input Dims": node.inputs[1], "Input type": json.dumps([profiler_type(str(k)) for k in _listed(node.inputs[2])])}
    built.add(lane, node.name, category, start, node.dur_us * 1000, args)


def _message(node: ChakraNode) -> dict[str, object]:
    """Return kind and size of a message; bytes where its element type is not known."""
    kind, size = node.attributes.get("comm_type"), node.attributes.get("comm_size")
    of_number = dict(enumerate(COLLECTIVES))
    name = _MESSAGES.get(node.kind) or (of_number.get(kind, "collective") if isinstance(kind, int) else "collective")
    types = [profiler_type(str(k)) for k in _listed(node.inputs[2])]
    width = _ITEMSIZE.get(types[0], 0) if len(types) == 1 else 0
    args: dict[str, object] = {"Collective name": name, "Process Group Name": node.attributes.get("pg_name")}
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        whole = width if width and size % width == 0 else 1
        args |= {"In msg nelems": size // whole, "dtype": types[0].removeprefix("c10::") if whole > 1 else "Byte", "comm_size": size}
    return args


def _notes(path: str, nodes: Sequence[ChakraNode], made_up: int, broken: int, launches: int) -> list[Note]:
    notes = []
    if made_up:
        text = (
            "start times are reconstructed from dependencies, not recorded: each node starts as early as its lane and what it needs allow"
        )
        notes.append(Note("starts-reconstructed", path, made_up, text, "convert the trace again with start times"))
    if broken:
        text = "dependencies on nodes that come later on the same lane, or in a circle, could not be kept"
        notes.append(Note("dependency-contradicted", path, broken, text))
    if launches:
        notes.append(
            Note(
                "launch-from-dependency", path, launches, "the call that launched a device node is taken from its dependency, not recorded"
            )
        )
    if nodes and not any(node.dur_us for node in nodes):
        notes.append(Note("no-durations", path, len(nodes), "no node has a duration: there is no measured time"))
    return notes
