"""A writer of Nsight Systems databases for tests: the tables and columns of NVIDIA's SQLite schema reference, filled by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

SESSION = 1_700_000_000_000_000_000
PID, MAIN, OTHER = 1234, 1234, 1240
Rows = Mapping[str, Sequence[Mapping[str, object]]]


def process(pid: int = PID) -> int:
    return 1 << 56 | pid << 24


def thread(tid: int, pid: int = PID) -> int:
    return process(pid) | tid


STRINGS = (
    "gemm<float>", "gemm", "cudaLaunchKernel_v7000", "cudaMemcpyAsync_ptsz_v7000", "cudaDeviceSynchronize_v3020", "cuLaunchKernel", "step",
    "aten::mm, seq = 7, op_id = 3, sizes = [[8, 16], [16, 16]]", "main", "relu", "cudaEventRecord_v3020", "cudaStreamWaitEvent_v3020",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "cudaGraphLaunch_v10000",
)  # fmt: skip


def text(name: str) -> int:
    return 100 + STRINGS.index(name)


def call(name: str, start: int, dur: int, correlation: int, tid: int = MAIN, pid: int = PID) -> dict[str, object]:
    return {"start": start, "end": start + dur, "globalTid": thread(tid, pid), "correlationId": correlation, "nameId": text(name)}


def work(start: int, dur: int, stream: int, correlation: int, pid: int = PID, device: int = 0, **more: object) -> dict[str, object]:
    where = {"deviceId": device, "contextId": 1, "streamId": stream, "correlationId": correlation, "globalPid": process(pid)}
    return {"start": start, "end": start + dur, **where, **more}


def kernel(name: str, start: int, dur: int, stream: int, correlation: int, **more: object) -> dict[str, object]:
    sizes = {"gridX": 4, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1, "registersPerThread": 32}
    return work(start, dur, stream, correlation, demangledName=text(name), shortName=text(name), **{**sizes, **more})  # type: ignore[arg-type]


def nvtx(name: str, start: int, dur: int | None, kind: int = 59, tid: int = MAIN, inline: bool = False) -> dict[str, object]:
    row: dict[str, object] = {"start": start, "end": None if dur is None else start + dur, "eventType": kind, "globalTid": thread(tid)}
    return row | ({"text": name} if inline else {"textId": text(name)})


def job() -> dict[str, list[dict[str, object]]]:
    """Return two steps of 1 000 ns; in each an operator launches a product on stream 7, and a message on stream 20 waits for it; a copy.

    Device work of a step: 300 (product) + 200 (message) + 50 (copy) ns.
    """
    tables: dict[str, list[dict[str, object]]] = {
        f"CUPTI_ACTIVITY_KIND_{kind}": [] for kind in ("KERNEL", "MEMCPY", "RUNTIME", "SYNCHRONIZATION")
    }
    tables |= {"CUPTI_ACTIVITY_KIND_CUDA_EVENT": [], "NVTX_EVENTS": [nvtx("main", 0, 3000)]}
    for at in range(2):
        t, c = 1000 + 1000 * at, 10 * at
        tables["NVTX_EVENTS"] += [nvtx("step", t, 990), nvtx(STRINGS[7], t + 10, 100), nvtx("mark", t, None, 34, inline=True)]
        tables["CUPTI_ACTIVITY_KIND_RUNTIME"] += [
            call("cudaLaunchKernel_v7000", t + 20, 30, c + 1), call("cudaEventRecord_v3020", t + 120, 5, c + 2),
            call("cudaStreamWaitEvent_v3020", t + 130, 5, c + 3), call("cuLaunchKernel", t + 140, 10, c + 4),
            call("cudaMemcpyAsync_ptsz_v7000", t + 160, 10, c + 5), call("cudaDeviceSynchronize_v3020", t + 180, 780, c + 6),
        ]  # fmt: skip
        tables["CUPTI_ACTIVITY_KIND_KERNEL"] += [
            kernel("gemm<float>", t + 100, 300, 7, c + 1),
            kernel(STRINGS[12], t + 420, 200, 20, c + 4),
        ]
        tables["CUPTI_ACTIVITY_KIND_MEMCPY"].append(work(t + 650, 50, 7, c + 5, bytes=4096, copyKind=2, srcKind=2, dstKind=0))
        tables["CUPTI_ACTIVITY_KIND_CUDA_EVENT"].append({**work(0, 0, 7, c + 2, eventId=9)})
        tables["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"] += [
            work(t + 130, 5, 20, c + 3, syncType=2, eventId=9), work(t + 180, 780, 2**32 - 1, c + 6, syncType=4, eventId=2**32 - 1),
        ]  # fmt: skip
    tables["ThreadNames"] = [{"nameId": text("main"), "globalTid": thread(MAIN)}]
    tables["TARGET_INFO_GPU"] = [{"id": 3, "name": "NVIDIA H100 80GB HBM3"}]
    tables["TARGET_INFO_CUDA_DEVICE"] = [{"gpuId": 3, "cudaId": 0, "pid": PID}]
    tables["TARGET_INFO_SESSION_START_TIME"] = [{"utcEpochNs": SESSION}]
    return tables


def write(path: Path, tables: Rows) -> Path:
    """Write a database; a table has the columns its rows have, and texts are added."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(100 + at, value) for at, value in enumerate(STRINGS)])
    for name, rows in tables.items():
        columns = list(dict.fromkeys(key for row in rows for key in row)) or ["start"]
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {name} VALUES ({places})", [[row.get(key) for key in columns] for row in rows])
    connection.commit()
    connection.close()
    return path
