"""Write what the naive executor did as a PyTorch profiler document (Kineto form)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.naive.actions import Begin, Launch, Record, Synchronize
from tests.naive.executor import Row

PID, DEVICE = 4242, 0
EPOCH_NS = 1_700_000_000_000_000_000  # baseTimeNanoseconds: an arbitrary, round instant
OFFSET_NS = 5_000_000_000_000  # the profiler's clock does not start at zero
SYNC_NAMES = {"cudaStreamSynchronize": "Stream Sync", "cudaEventSynchronize": "Event Sync", "cudaDeviceSynchronize": "Context Sync"}
CALLBACK_ID = {"cudaLaunchKernel": 211, "cudaMemcpyAsync": 41, "cudaMemsetAsync": 51, "cudaEventRecord": 135}
CALLBACK_ID |= {"cudaStreamWaitEvent": 147, "cudaStreamSynchronize": 131, "cudaEventSynchronize": 137, "cudaDeviceSynchronize": 165}
A100 = {"id": DEVICE, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85174583296, "computeMajor": 8, "computeMinor": 0, "numSms": 108}


def microseconds(ns: int) -> float:
    """Return a time or duration as Kineto writes it: microseconds with three digits, exact for the clock used here."""
    return ns / 1000


def document(rows: Iterable[Row], *, sync_records: bool = True, world_size: int = 8, rank: int = 0) -> dict[str, Any]:
    """Return the profiler's document.

    Parameters
    ----------
    rows : iterable of Row
        What `execute` returned.
    sync_records : bool
        Write ``cuda_sync`` records (the profiler does so only when asked).
    world_size : int
        Ranks of the job.
    rank : int
        Which of them this is.

    Returns
    -------
    dict
        For ``json.dumps``.
    """
    rows = list(rows)
    threads = {name: PID + 58 * index for index, name in enumerate(dict.fromkeys(row.thread for row in rows))}
    events = [event for index, row in enumerate(rows) for event in _complete(row, threads[row.thread], index, sync_records)]
    events += [flow for row in rows for flow in _launch_flow(row, threads[row.thread])]
    events += _backward_flows(rows, threads)
    return {
        "schemaVersion": 1,
        "deviceProperties": [A100],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size},
        "record_shapes": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": EPOCH_NS,
        "traceEvents": _metadata(rows, threads) + events + _window(rows),
    }


def packed(content: Mapping[str, Any]) -> bytes:
    """Return the document as ``.json.gz``, the same bytes every time."""
    return gzip.compress(json.dumps(content, separators=(",", ":")).encode(), mtime=0)


def _event(category: str, name: str, place: tuple[object, object], start_ns: int, dur_ns: int, args: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": microseconds(OFFSET_NS + start_ns), "dur": microseconds(dur_ns)}
    return {"ph": "X", "cat": category, "name": name, "pid": place[0], "tid": place[1], **times, "args": args}


def _complete(row: Row, tid: int, index: int, sync_records: bool) -> list[dict[str, Any]]:
    """Return the complete events of a row."""
    dur, external = row.end_ns - row.start_ns, {"External id": row.external_id} if row.external_id >= 0 else {}
    if isinstance(row.action, Begin):
        args: dict[str, Any] = {**external, "Record function id": 0}
        if row.action.dims is not None:
            args |= {"Input Dims": row.action.dims, "Input type": row.action.types}
        if row.action.sequence >= 0:
            args["Sequence number"] = row.action.sequence
        return [_event(row.category, row.name, (PID, tid), row.start_ns, dur, {**args, **row.action.args, "Ev Idx": index})]
    if row.category == "cuda_runtime":
        args = {**external, "cbid": CALLBACK_ID.get(row.name, 0), "correlation": row.correlation}
        call = _event(row.category, row.name, (PID, tid), row.start_ns, dur, args)
        return [call, *(_sync_record(row) if sync_records else [])]
    assert isinstance(row.action, Launch)
    args = {**external, "device": DEVICE, "context": 1, "stream": row.stream, "correlation": row.correlation}
    if row.category == "kernel":
        args |= {"queued": 0, "registers per thread": 32, "shared memory": 0, "grid": [432, 1, 1], "block": [256, 1, 1]}
    return [_event(row.category, row.name, (DEVICE, row.stream), row.start_ns, dur, {**args, **row.action.args})]


def _sync_record(row: Row) -> list[dict[str, Any]]:
    """Return the synchronisation record that belongs to a runtime call, if any."""
    args: dict[str, Any] = {"stream": row.stream, "correlation": row.correlation, "device": DEVICE, "context": 1}
    if row.waits_on is not None:
        stream, correlation = row.waits_on
        args |= {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": correlation, "wait_on_cuda_event_id": correlation % 64}
    if row.name == "cudaStreamWaitEvent" and row.waits_on is not None:
        name, dur = "Stream Wait Event", 0
    elif isinstance(row.action, Synchronize):
        name, dur = SYNC_NAMES[row.name], row.end_ns - row.start_ns
    else:
        return []
    return [_event("cuda_sync", name, (DEVICE, row.stream), row.start_ns, dur, {"cuda_sync_kind": name, **args})]


def _flow(phase: str, category: str, flow: int, place: tuple[object, object], start_ns: int) -> dict[str, Any]:
    bind = {"bp": "e"} if phase == "f" else {}
    at = microseconds(OFFSET_NS + start_ns)
    return {"ph": phase, "id": flow, "pid": place[0], "tid": place[1], "ts": at, "cat": category, "name": category, **bind}


def _launch_flow(row: Row, tid: int) -> list[dict[str, Any]]:
    """Return this row's end of the arrow from a launch call to its device work."""
    if row.category == "cuda_runtime":
        phase = "f" if isinstance(row.action, Record) else "s"  # as Kineto does: an event record only ever ends an arrow
        return [_flow(phase, "ac2g", row.correlation, (PID, tid), row.start_ns)]
    if isinstance(row.action, Launch):
        return [_flow("f", "ac2g", row.correlation, (DEVICE, row.stream), row.start_ns)]
    return []


def _backward_flows(rows: list[Row], threads: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the arrows from forward operators to their backward ones: the first and last holder of a sequence number."""
    holders: dict[int, list[Row]] = {}
    for row in rows:
        if isinstance(row.action, Begin) and row.action.sequence >= 0:
            holders.setdefault(row.action.sequence, []).append(row)
    out = []
    for sequence, (first, *rest) in holders.items():
        for phase, row in zip("sf", (first, *rest[-1:]), strict=False):
            if rest:
                out.append(_flow(phase, "fwdbwd", sequence, (PID, threads[row.thread]), row.start_ns))
    return out


def _metadata(rows: list[Row], threads: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return process and thread names."""
    named: list[tuple[str, object, object, dict[str, Any]]] = [
        ("process_name", PID, 0, {"name": "python"}),
        ("process_labels", PID, 0, {"labels": "CPU"}),
        ("process_name", DEVICE, 0, {"name": "python"}),
        ("process_labels", DEVICE, 0, {"labels": f"GPU {DEVICE}"}),
        *(("thread_name", PID, tid, {"name": f"thread {tid} ({name})"}) for name, tid in threads.items()),
        *(("thread_name", DEVICE, s, {"name": f"stream {s} "}) for s in sorted({r.stream for r in rows if r.stream >= 0})),
    ]
    begin = microseconds(OFFSET_NS)
    return [{"ph": "M", "name": name, "ts": begin, "pid": pid, "tid": tid, "args": args} for name, pid, tid, args in named]


def _window(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the records of the profiling window itself, which are nobody's work."""
    end = max(row.end_ns for row in rows)
    at = microseconds(OFFSET_NS + end + 50_000)
    return [
        _event("Trace", "PyTorch Profiler (0)", ("Spans", "PyTorch Profiler"), -20_000, end + 40_000, {"Op count": 0}),
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": at},
    ]
