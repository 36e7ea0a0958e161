"""Chakra traces: the handed one against counts by other code, made ones by hand, damaged ones refused with their byte."""

from __future__ import annotations

import contextlib
import gzip
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from workbench.errors import UnreadableInput, WorkbenchError
from workbench.graph.build import build_graph
from workbench.operators.table import Kind
from workbench.trace.comm import comm
from workbench.trace.open import open_trace
from workbench.trace.trace import Category, Trace


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name: str, value: bool | int | str) -> bytes:
    kind = number(27, value) if isinstance(value, bool) else number(9, value) if isinstance(value, int) else block(29, value)
    return block(10, block(1, name) + kind)


def ends(values: str, shapes: str, types: str) -> bytes:
    return block(1, values) + block(2, shapes) + block(3, types)


def node(
    id: int, name: str, kind: int, dur: int, needs: Sequence[int] = (), start: int = 0, inputs: bytes = b"", **attributes: bool | int | str
) -> bytes:
    data = number(1, id) + block(2, name) + number(3, kind)
    data += block(5, b"".join(map(varint, needs))) if needs else b""
    data += (number(6, start) if start else b"") + number(7, dur) + (block(8, inputs) if inputs else b"")
    return data + b"".join(attribute(key, value) for key, value in attributes.items())


def file(path: Path, *nodes: bytes) -> Path:
    metadata = block(1, "0.0.4") + block(2, block(1, "schema") + block(29, "1.0"))
    path.write_bytes(b"".join(varint(len(part)) + part for part in (metadata, *nodes)))
    return path


PRODUCT = ends("[[1, 2, 0, 128, 4, 'cuda:0'], [3, 4, 0, 256, 4, 'cuda:0']]", "[[8, 16], [16, 16]]", "['Tensor(float)', 'Tensor(float)']")
FLOATS = ends("[]", "[[64]]", "['Tensor(float)']")


def job() -> tuple[bytes, ...]:
    """Return an operator in two parts that launches a kernel, a message that needs the kernel, and another thread's operator."""
    return (
        node(1, "aten::mm(0)", 4, 10, inputs=PRODUCT, is_cpu_op=True, tid=1, rf_id=5),
        node(2, "sgemm", 4, 40, [1], inputs=PRODUCT, is_cpu_op=False, tid=7),
        node(3, "aten::mm(1)", 4, 5, [1], inputs=PRODUCT, is_cpu_op=True, tid=1, rf_id=5),
        node(4, "c10d::allreduce_", 7, 8, [3], is_cpu_op=True, tid=1, rf_id=6),
        node(5, "ring", 7, 30, [4, 2], inputs=FLOATS, is_cpu_op=False, tid=9, comm_type=0, comm_size=256),
        node(6, "aten::relu", 4, 3, [4], is_cpu_op=True, tid=2, rf_id=7),
    )  # fmt: skip


def times(trace: Trace) -> dict[str, tuple[int, int]]:
    e = trace.events
    return {trace.name_of(i): (int(e.start_ns[i]) // 1000, int(e.dur_ns[i]) // 1000) for i in range(len(e))}


def codes(trace: Trace) -> dict[str, int]:
    return {note.code: note.count for note in trace.notes}


def test_the_handed_trace(shared: Path) -> None:
    """3 664 nodes: 1 216 on the device of 329 543 us in all, 7 of them messages; counted from the bytes by other code."""
    trace = open_trace(shared / "traces" / "chakra" / "host_and_device.0.et.gz")
    e, work = trace.events, trace.is_device_work
    assert int(work.sum()) == 1216
    assert int(e.dur_ns[work].sum()) == 329_543_000
    assert codes(trace)["starts-reconstructed"] == 3664
    lanes = np.bincount(e.track[work], minlength=len(trace.tracks))
    assert {trace.tracks[i].stream: int(n) for i, n in enumerate(lanes) if n} == {7: 1209, 14: 7}
    assert int(comm(trace).sum()) == 7
    size = trace.args["comm_size"]
    assert size.value.tolist()[0] == 53120 * 4  # the first broadcast: 53 120 floats
    graph, table = build_graph(trace)
    assert not {"orphan-kernel", "same-stream-overlap"} & {n.code for n in (*graph.notes, *trace.notes)}
    total = table.measured_s * table.count
    messages = np.array([name.startswith("ncclKernel") for name in table.name])
    assert total[table.kind == Kind.UNKNOWN].sum() == pytest.approx(total[messages].sum())  # every kernel has its operator's formula


def test_nodes_lie_as_early_as_lane_and_dependencies_allow(tmp_path: Path) -> None:
    """mm: 0-10 and 10-15; sgemm after its part: 10-50; allreduce_ 15-23; ring needs sgemm: 50-80; relu on thread 2 after 23."""
    trace = open_trace(file(tmp_path / "a.et", *job()))
    assert {k: v for k, v in times(trace).items() if not k.startswith("dependency")} == {
        "aten::mm": (0, 15), "sgemm": (10, 40), "c10d::allreduce_": (15, 8), "ring": (50, 30), "aten::relu": (23, 3),
    }  # fmt: skip
    assert codes(trace)["starts-reconstructed"] == 6
    graph, table = build_graph(trace)
    assert 2 * 8 * 16 * 16 in table.flops.tolist()
    assert graph.measured_step_s[0] == pytest.approx(80e-6)
    message = next(i for i in range(len(trace.events)) if trace.name_of(i) == "ring")
    assert comm(trace)[message]
    assert trace.integer_arg("In msg nelems")[message] == 64


def test_recorded_starts_are_kept(tmp_path: Path) -> None:
    nodes = (
        node(1, "aten::mm", 4, 10, start=100, is_cpu_op=True, tid=1, rf_id=5),
        node(2, "sgemm", 4, 40, [1], start=130, is_cpu_op=False, tid=1, stream=7),
    )  # fmt: skip
    trace = open_trace(file(tmp_path / "a.et", *nodes))
    assert (times(trace)["aten::mm"], times(trace)["sgemm"]) == ((100, 10), (130, 40))
    assert "starts-reconstructed" not in codes(trace)
    assert [t.stream for t in trace.tracks if t.kind == "device"] == [7]


def test_a_circle_is_said_and_ends(tmp_path: Path) -> None:
    """1 needs 2 and 2 needs 1: the first of the file goes ahead."""
    trace = open_trace(
        file(tmp_path / "a.et", node(1, "a", 4, 10, [2], is_cpu_op=True, tid=1), node(2, "b", 4, 5, [1], is_cpu_op=True, tid=2))
    )
    assert (times(trace)["a"], times(trace)["b"]) == ((0, 10), (10, 5))
    assert codes(trace)["dependency-contradicted"] == 1


def test_nodes_of_a_generator_have_no_host(tmp_path: Path) -> None:
    """Traces written for simulators say neither host nor stream: computation and messages have a lane each."""
    trace = open_trace(file(tmp_path / "a.et", node(0, "COMP", 4, 10), node(1, "COLL", 7, 20, [0], comm_type=2, comm_size=1024)))
    assert int(trace.is_device_work.sum()) == 2
    assert int(comm(trace).sum()) == 1
    assert (times(trace)["COMP"], times(trace)["COLL"]) == ((0, 10), (10, 20))


def test_a_cut_file_is_refused_with_its_byte_and_salvaged(tmp_path: Path) -> None:
    path = file(tmp_path / "a.et", *job())
    whole = path.read_bytes()
    last = len(whole) - len(job()[-1]) - 1
    path.write_bytes(whole[:-4])
    with pytest.raises(UnreadableInput, match=rf"Chakra trace that is damaged or cut short: .* byte {last} "):
        open_trace(path)
    trace = open_trace(path, salvage=True)
    assert len({*times(trace)} - {"dependency: LaunchKernel"}) == 4  # relu is lost
    assert codes(trace)["salvaged"] == 1


def test_a_gzip_of_it_is_the_same(tmp_path: Path) -> None:
    path = file(tmp_path / "a.et", *job())
    (tmp_path / "b.bin").write_bytes(gzip.compress(path.read_bytes()))
    assert times(open_trace(path)) == times(open_trace(tmp_path / "b.bin"))


def test_damage_is_never_a_traceback(tmp_path: Path) -> None:
    random.seed(7)
    whole = file(tmp_path / "a.et", *job()).read_bytes()
    for at in range(250):
        data = bytearray(whole)
        for _ in range(1 + at % 4):
            data[random.randrange(len(data))] = random.randrange(256)
        path = tmp_path / f"{at}.et"
        path.write_bytes(data[: random.randrange(20, len(data) + 1)] if at % 5 == 0 else data)
        for salvage in (False, True):
            with contextlib.suppress(WorkbenchError):
                trace = open_trace(path, salvage=salvage)
                assert (trace.events.category != Category.TRACE).all()
                build_graph(trace)
