"""Small whole files of every producer, and ways to damage them: bytes, JSON values, containers."""

from __future__ import annotations

import gzip
import json
import zlib
from copy import deepcopy as copy
from pathlib import Path
from random import Random
from typing import Any

from tests.trace import ascend_files, nsight_files, test_chakra, xspace

Files = dict[str, bytes]
"""Content by name below a folder."""

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**31 - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, -(10**30), 0.5, -0.0, 1e308,
    -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), "", "0", "-1", "1e9", "nan", "NaN", "Infinity", "1.5.2", " 7 ", "٣",
    "\ud800", "\udfff\ud800", "a" * 5000, "\0", "\x1f", "é漢😀", "stream 7", "stream 99999999999999999999", "GPU 0", "GPU 99999999999",
    "ProfilerStep#5", "ProfilerStep#" + "9" * 30, "9" * 400, "nccl", "cuda:0", [], {}, [[]], [None], [1, 2, 3], [[1, [2, [3]]]],
    {"a": 1}, {"": {}}, [{}], "[[1, 2], [3]]", "[[", "[1e999]", "[-1]", "{}", "['x'", "[" * 200, "([1],)",
)  # fmt: skip
"""Values that fit nowhere."""

PIECES = (b'"', b"\\", b"{", b"[", b"1e400", b"-", b"NaN", b"\xed\xa0\x80", b"\\ud800", b'"ts":1,', b'"dur":"x",')
PHASES = ("X", "B", "E", "i", "I", "M", "C", "s", "t", "f", "b", "e", "n", "N", "P", "R", "", "XX", "é")


def kineto() -> dict[str, Any]:
    """Return a profile of one step: two operators, launches, kernels on two streams, a copy, a message, synchronisation, arrows, frames."""
    rows: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "GPU 0"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0, "args": {"name": "stream 7 "}},
    ]

    def add(cat: str, name: str, pid: Any, tid: Any, ts: Any, dur: Any, **args: Any) -> None:
        rows.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})

    shape = {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
    shape["Input Strides"] = [[16, 1], [4, 1]]
    add("user_annotation", "ProfilerStep#5", 10, 10, 0, 400.5, **{"External id": 1})
    add("python_function", "train.py(3): step", 10, 10, 1, 390, **{"Python id": 1, "Python parent id": None})
    for i, stream in enumerate((7, 7, 20)):
        ids = {"External id": 2 + i, "Record function id": 0, "Sequence number": i, "Ev Idx": i}
        add("cpu_op", "aten::mm", 10, 10, 10 + 50 * i, 30.125, **ids, **shape)
        add("cuda_runtime", "cudaLaunchKernel", 10, 10, 20 + 50 * i, 5, **{"cbid": 211, "correlation": 100 + i, "External id": 2 + i})
        where = {"device": 0, "stream": stream, "correlation": 100 + i, "grid": [4, 1, 1], "block": [128, 1, 1], "External id": 2 + i}
        add("kernel", f"gemm{i}", 0, stream, 30 + 60 * i, 55.75, **where, **{"est. achieved occupancy %": 50, "shared memory": 0.5})
        rows.append({"ph": "s", "id": 100 + i, "pid": 10, "tid": 10, "ts": 20 + 50 * i, "cat": "ac2g", "name": "ac2g"})
        rows.append({"ph": "f", "id": 100 + i, "pid": 0, "tid": stream, "ts": 30 + 60 * i, "cat": "ac2g", "name": "ac2g", "bp": "e"})
    message = {"Collective name": "allreduce", "In msg nelems": 64, "Out msg nelems": 64, "dtype": "Float", "Group size": 2}
    message |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "device": 0, "stream": 20, "correlation": 110}
    add("cuda_runtime", "cudaLaunchKernelExC", 10, 10, 180, 5, correlation=110)
    add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 0, 20, 215, 40, **message)
    add("cuda_runtime", "cudaMemcpyAsync", 10, 10, 190, 4, correlation=111)
    add("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 0, 7, 220, 3, device=0, stream=7, correlation=111, bytes=256)
    add("cuda_runtime", "cudaStreamSynchronize", 10, 10, 230, 30, correlation=112)
    sync = {"stream": 7, "correlation": 112, "device": 0, "wait_on_stream": 20, "wait_on_cuda_event_id": 1}
    sync["wait_on_cuda_event_record_corr_id"] = 110
    add("cuda_sync", "Stream Synchronize", 0, 7, 230, 30, **sync)
    rows.append({"ph": "i", "s": "t", "name": "[memory]", "pid": 10, "tid": 10, "ts": 40, "args": {"Addr": 1, "Bytes": 512}})
    rows.append({"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "pid": "Traces", "tid": "Trace", "ts": 0})
    top = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1700000000000000000, "traceName": "/x/y.json"}
    device = {"id": 0, "name": "NVIDIA A100", "totalGlobalMem": 42, "numSms": 108}
    return {**top, "deviceProperties": [device], "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}, "traceEvents": rows}


def execution() -> dict[str, Any]:
    """Return the execution trace of that profile in both schemas."""
    a, b = [11, 1, 0, 128, 4, "cuda:0"], [12, 2, 0, 64, 4, "cuda:0"]
    shapes, types = [[8, 16], [16, 4]], ["Tensor(float)", "Tensor(float)"]
    node: dict[str, Any] = {"name": "aten::mm", "id": 3, "rf_id": 2, "parent": 1, "inputs": [a, b], "input_shapes": shapes}
    node |= {"input_types": types, "outputs": [a], "output_shapes": [[8, 4]], "output_types": ["Tensor(float)"]}
    newer = {"name": "aten::mm", "id": 4, "ctrl_deps": 1, "inputs": {"values": [[a, b], 3], "shapes": shapes, "types": types}}
    newer |= {"outputs": {"values": [a], "shapes": [[8, 4]], "types": types[:1]}}
    newer |= {"attrs": [{"name": "rf_id", "type": "uint64", "value": 3}]}
    return {"schema": "1.1.1-chakra.0.0.4", "pid": 10, "time": "now", "start_ts": 1, "nodes": [node, newer, {**node, "rf_id": 4}]}


def viewer() -> dict[str, Any]:
    """Return a trace as TensorFlow and JAX write it: no categories, a last empty record."""
    names = [("/device:GPU:0", 1, "Stream #13(MemcpyD2H,Compute)", 13), ("/host:CPU", 701, "tf_XLAEigen/1", 2)]
    metas = [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}} for name, pid, _, _ in names]
    metas += [{"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}} for _, pid, name, tid in names]
    rows = [
        {"ph": "X", "pid": 701, "tid": 2, "ts": 1.5, "dur": 3.25, "name": "cuLaunchKernel", "args": {"correlation_id": "7"}},
        {"ph": "X", "pid": 1, "tid": 13, "ts": 5.0, "dur": 9.0, "name": "fusion", "args": {"correlation_id": "7", "hlo_op": "fusion.1"}},
        {"ph": "X", "pid": 1, "tid": 13, "ts": 15.0, "dur": 2.0, "name": "MemcpyD2H", "args": {"memcpy_details": "kind:d2h size:4"}},
        {},
    ]
    return {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": metas + rows}


def chrome() -> list[dict[str, Any]]:
    """Return a bare array whose lanes say what they are."""
    names = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "Stream 2"}}]
    names.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "NPU 0"}})
    rows = [{"ph": "X", "name": f"k{i}", "pid": 1, "tid": 2, "ts": str(100 + 10 * i) + ".125", "dur": 4} for i in range(4)]
    return [*names, *rows, {"ph": "C", "name": "power", "pid": 1, "ts": 3, "args": {"W": 3.5}}]


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def ascend(folder: Path) -> Files:
    """Return the output of one Ascend rank, written below a folder."""
    home = ascend_files.write_rank(folder, 0)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def whole(folder: Path) -> dict[str, Files]:
    """Return small whole recordings of every producer by name."""
    nodes = test_chakra.file(folder / "nodes.et", *test_chakra.job()).read_bytes()
    host = {"python": [("cuLaunchKernel", 1_000, 2_000, {"correlation_id": 7})]}
    device = {"Stream #13": [("fusion", 4_000, 9_000, {"correlation_id": 7, "hlo_op": "f.1"}), ("MemcpyD2H", 20_000, 500, {"bytes": 4})]}
    profile = xspace.plane("/host:CPU", host, 100) + xspace.plane("/device:GPU:0", device, 100)
    return {
        "kineto": {"a.json": _json(kineto())},
        "kineto gzip": {"a.json.gz": gzip.compress(_json(kineto()), mtime=0)},
        "execution trace": {"a.json": _json(kineto()), "et.json": _json(execution())},
        "viewer": {"a.json": _json(viewer())},
        "chrome": {"a.json": _json(chrome())},
        "chakra": {"nodes.et": nodes},
        "xplane": {"a.pb": profile},
        "ascend folder": ascend(folder / "rank"),
        "nsight": {"report.sqlite": nsight_files.write(folder / "report.sqlite", nsight_files.job()).read_bytes()},
        "nsight values": {"report.sqlite": b""},
        "kernel table": {"kernel_details.csv": ascend_files.details().encode()},
        "op summary": {"op_summary.csv": ascend_files.summary().encode()},
        "ascend timeline": {"trace_view.json": _json(ascend_files.timeline())},
    }


def of_bytes(raw: bytes, random: Random) -> bytes:
    """Return bytes with a few of them changed, cut out, doubled or exchanged."""
    data = bytearray(raw)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        if not data:
            break
        at, length = random.randrange(len(data)), random.choice((1, 1, 2, 8, 64, 1000))
        kind = random.randrange(8)
        if kind == 0:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            data[at] = random.choice((0, 34, 44, 45, 48, 91, 92, 93, 123, 125, 127, 128, 255, random.randrange(256)))
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length]
        elif kind == 4:
            data[at:at] = bytes(random.randrange(256) for _ in range(min(length, 8)))
        elif kind == 5:
            other = random.randrange(len(data))
            data[at : at + length] = data[other : other + length]
        elif kind == 6:
            del data[at:]
        else:
            data[at:at] = random.choice(PIECES)
    return bytes(data)


def of_value(document: Any, random: Random) -> Any:
    """Return a JSON document with a few values dropped, exchanged, repeated or replaced by what fits nowhere."""
    places: list[tuple[Any, Any]] = []

    def visit(value: Any) -> None:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in list(inner):
            places.append((value, key))
            visit(item)

    document = copy(document)
    visit(document)
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        holder, key = random.choice(places)
        kind = random.randrange(6)
        if isinstance(holder, list) and not -len(holder) <= key < len(holder):
            continue
        if isinstance(holder, dict) and key not in holder:
            continue
        if kind == 0:
            del holder[key]
        elif kind == 1:
            there, other = random.choice(places)
            if (isinstance(there, dict) and other in there) or (isinstance(there, list) and other < len(there)):
                holder[key] = copy(there[other])
        elif kind == 2 and isinstance(holder, list):
            holder.insert(random.randrange(len(holder) + 1), copy(holder[key]))
        elif kind == 3 and key == "ph":
            holder[key] = random.choice(PHASES)
        elif kind == 4 and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = random.choice((-holder[key], holder[key] * 10**9, str(holder[key]), holder[key] + 0.0005, holder[key] - 1))
        else:
            holder[key] = copy(random.choice(ODD))
    return document


def text_of(document: Any, random: Random) -> bytes:
    """Return JSON text of a document, in one of the spellings that writers use; sometimes with a repeated key."""
    text = json.dumps(document, indent=random.choice((None, None, 1)), ensure_ascii=random.random() < 0.7)
    if random.random() < 0.2:
        text = text.replace('"dur":', random.choice(('"dur": 3, "dur":', '"ts": 1, "dur":', '"args": {}, "dur":', '"ph": "X", "dur":')))
    return text.encode("utf-8", "surrogatepass")


def contained(raw: bytes, random: Random) -> bytes:
    """Return bytes in some container: compressed with something behind, in several members, in another encoding, in an archive."""
    kind = random.randrange(11)
    packed = gzip.compress(raw, random.choice((0, 1, 9)), mtime=0)
    half = len(raw) // 2
    if kind == 0:
        return packed + random.choice((b"\0" * 100, b"garbage", b"\x1f\x8b", b"\x1f\x8b\x08\x00", packed[:20]))
    if kind == 1:
        return gzip.compress(raw[:half], mtime=0) + b"\0" * random.choice((0, 3)) + gzip.compress(raw[half:], mtime=0)
    if kind == 2:
        return b"\xef\xbb\xbf" + raw
    if kind == 3:
        return raw.decode("latin-1").encode(random.choice(("utf-16", "utf-16-le", "utf-32")))
    if kind == 4:
        return packed[: random.randrange(len(packed) + 1)]
    if kind == 5:
        return gzip.compress(packed, mtime=0)
    if kind == 6:
        return zlib.compress(raw)
    if kind == 7:
        return b"PK\x03\x04" + raw
    if kind == 8:
        return raw + random.choice((b"\n\n", b"\0", b"{}", raw, b"]", b","))
    if kind == 9:
        return random.choice((b"", b" ", b"\n", b"[", b"{", b"[]", b"{}", b"null", b"\xef\xbb\xbf", b"[" * 100_000, b'{"a":' * 100_000))
    changed = bytearray(packed)
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def database(path: Path, random: Random) -> bytes:
    """Return a database of Nsight Systems in which a few values, columns or tables are something else."""
    tables = nsight_files.job()
    for _ in range(random.choice((1, 2, 5))):
        name = random.choice(sorted(tables))
        rows = tables.get(name, [])
        kind = random.randrange(5)
        if kind == 0:
            tables.pop(name, None)
        elif kind == 1 and rows:
            key = random.choice(sorted(rows[0]))
            tables[name] = [{k: v for k, v in row.items() if k != key} for row in rows]
        elif rows:
            row = random.choice(rows)
            value = random.choice((None, -1, 0, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**32 - 1, 1.5, "x", b"\xff", "[" * 999, 59, 60))
            row[random.choice(sorted(row))] = value
    return nsight_files.write(path, tables).read_bytes()


def damaged(files: Files, random: Random) -> Files:
    """Return the files of a recording, one or all of them damaged in some way."""
    out, victims = dict(files), random.sample(sorted(files), random.choice((1, 1, len(files))))
    for name in victims:
        raw = files[name]
        plain = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        kind = random.randrange(4)
        if kind < 2 and plain[:1] in b"[{" and plain:
            raw = text_of(of_value(json.loads(plain), random), random)
            if random.random() < 0.2:
                raw = of_bytes(raw, random)
        elif kind == 2:
            raw = contained(plain, random)
        else:
            raw = of_bytes(random.choice((raw, plain)), random)
        out[name] = raw
    if random.random() < 0.05:
        del out[random.choice(sorted(out))]
    return out
