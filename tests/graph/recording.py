"""Kineto recordings written by hand, and what holds for the units of any recording."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from workbench.graph.units import price_units
from workbench.operators.table import OpTable
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace


class Recording:
    """Kineto records in the making."""

    def __init__(self) -> None:
        self.records: list[dict] = [
            {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Traces", "tid": "PyTorch Profiler", "ts": 0, "dur": 10000}
        ]

    def add(self, cat: str, name: str, ts: float, dur: float, tid: int = 1, pid: int = 10, **args: object) -> Recording:
        self.records.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})
        return self

    def op(
        self,
        name: str,
        ts: float,
        dur: float,
        dims: list | None = None,
        types: list | None = None,
        concrete: list | None = None,
        **args: object,
    ) -> Recording:
        shapes = {} if dims is None else {"Input Dims": dims, "Input type": types, "Concrete Inputs": concrete or [""] * len(dims)}
        return self.add("cpu_op", name, ts, dur, **shapes, **args)

    def launch(self, ts: float, correlation: int, name: str = "cudaLaunchKernel", dur: float = 2, tid: int = 1) -> Recording:
        return self.add("cuda_runtime", name, ts, dur, tid=tid, correlation=correlation)

    def kernel(self, name: str, ts: float, dur: float, correlation: int, stream: int = 7, cat: str = "kernel", **args: object) -> Recording:
        return self.add(cat, name, ts, dur, tid=stream, pid=0, correlation=correlation, device=0, stream=stream, **args)

    def trace(self, folder: Path) -> Trace:
        path = folder / "recording.json"
        path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": self.records}))
        return open_trace(str(path))


def priced(recording: Recording, folder: Path) -> tuple[Trace, OpTable, np.ndarray, np.ndarray, np.ndarray]:
    trace = recording.trace(folder)
    result = price_units(trace)
    laws(trace, *result)
    return trace, *result


def laws(trace: Trace, table: OpTable, op: np.ndarray, unit: np.ndarray, share: np.ndarray) -> None:
    """What holds for any recording: all device time is in the table once, shares sum to 1, members of a unit share a row and a stream."""
    work = trace.is_device_work
    inside = op >= 0
    assert np.array_equal(inside, unit >= 0)
    if work.any():
        assert np.array_equal(inside, work)
        total = np.maximum(trace.events.dur_ns[work], 0).sum()
        assert round(float((table.measured_s * table.count).sum()) * 1e9) == total
    n = int(unit.max()) + 1 if inside.any() else 0
    assert np.allclose(np.bincount(unit[inside], weights=share[inside], minlength=n), 1.0)
    assert np.array_equal(np.unique(unit[inside]), np.arange(n))
    assert int(table.count.sum()) == n
    for values in (op, trace.events.track if work.any() else op):
        low, high = np.full(n, 2**31), np.full(n, -1)
        np.minimum.at(low, unit[inside], values[inside])
        np.maximum.at(high, unit[inside], values[inside])
        assert np.array_equal(low, high)
    assert len(set(table.signature)) == len(table)
    for numbers in (table.flops, table.bytes_read, table.bytes_written):
        assert np.isfinite(numbers).all()
        assert (numbers >= 0).all()
