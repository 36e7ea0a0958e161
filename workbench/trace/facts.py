"""Counts and sums of a trace as recorded: nothing cleaned, nothing clipped, integer nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.trace import kernels
from workbench.trace.comm import comm, comm_by_name
from workbench.trace.part import group
from workbench.trace.trace import DEVICE_WORK, HOST_CALLS, Category, Trace

Facts = dict[str, object]


def facts(trace: Trace) -> dict[str, Facts]:
    """Count and sum up each file of the trace.

    Parameters
    ----------
    trace : Trace
        As opened: nothing is cleaned here.

    Returns
    -------
    dict
        {path: facts}. ``*_ns`` are integer nanoseconds; ``span_ns`` leaves out records of category ``Trace``. Busy, compute,
        communication and memory times are lengths of unions of intervals over all streams of the file. ``comm_*`` go by kernel
        names, ``*_by_args`` by arguments first and names second. ``per_stream`` is keyed by the recorded "device/stream".
    """
    rank_of = np.array([t.rank for t in trace.tracks], np.int64)
    by_name, by_args = comm_by_name(trace), comm(trace)
    result: dict[str, Facts] = {}
    for path, counts in trace.counts.items():
        mine = [r for r in trace.ranks if r.path == path]
        rows = np.isin(rank_of, [r.rank for r in mine])[trace.events.track] if len(rank_of) else np.empty(0, bool)
        file = _File(trace, np.flatnonzero(rows), rank_of)
        found: Facts = {
            "events": counts.get("events", len(file.rows)),
            "complete_events": len(file.rows),
            "cats": _prefixed(counts, "cat:"),
            "flows": _prefixed(counts, "flow:"),
            "span_ns": _span(*file.times(file.category != Category.TRACE)),
            "neg_dur": int((file.dur < 0).sum()),
            "zero_dur": int((file.dur == 0).sum()),
            "x_without_dur": counts.get("x_without_dur", 0),
            "profiler_steps": _steps(trace, [r.rank for r in mine]),
        }
        found |= file.device() | file.split(by_name[file.rows]) | file.causes()
        found |= {f"{k}_by_args": v for k, v in file.split(by_args[file.rows]).items() if k.startswith(("comm", "compute", "exposed"))}
        metadata = mine[0].metadata if mine else {}
        unit = metadata.get("displayTimeUnit")
        base = metadata.get("baseTimeNanoseconds")
        found |= {
            "rank": mine[0].rank if len(mine) == 1 and mine[0].stated else None,
            "world_size": mine[0].world_size if mine else None,
            "base_time_ns": base if isinstance(base, int) else None,
            "displayTimeUnit": unit if isinstance(unit, str) else None,
        }
        result[path] = found
    return result


def _prefixed(counts: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {key.removeprefix(prefix): n for key, n in counts.items() if key.startswith(prefix) and key != prefix}


def _span(start: np.ndarray, stop: np.ndarray) -> int:
    return int(stop.max() - start.min()) if len(start) else 0


def _steps(trace: Trace, ranks: list[int]) -> list[list[int]]:
    rows = np.isin(trace.steps.rank, ranks)
    return [[int(n), int(d)] for n, d in zip(trace.steps.number[rows], trace.steps.dur_ns[rows], strict=True)]


@dataclass
class _File:
    """The events of one file."""

    trace: Trace
    rows: np.ndarray  # int64 [K]
    rank_of: np.ndarray  # int64 [T]

    def __post_init__(self) -> None:
        e = self.trace.events
        self.start, self.dur, self.category = e.start_ns[self.rows], e.dur_ns[self.rows], e.category[self.rows]
        self.stop = self.start + self.dur
        self.work = np.isin(self.category, DEVICE_WORK)
        self.rank = self.rank_of[e.track[self.rows]] if len(self.rank_of) else np.empty(0, np.int64)

    def times(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.start[which], self.stop[which]

    def union(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        start, stop = self.times(which)
        order = np.argsort(start, kind="stable")
        return kernels.merged(start[order], stop[order])

    def count(self, category: Category) -> int:
        return int((self.category == category).sum())

    def device(self) -> Facts:
        """Counts and sums of device work, in all and by stream."""
        start, stop = self.times(self.work)
        overlaps, longest = self._overlaps()
        return {
            "gpu_events": int(self.work.sum()),
            "kernels": self.count(Category.KERNEL),
            "memcpy": self.count(Category.MEMCPY),
            "memset": self.count(Category.MEMSET),
            "per_stream": self._per_stream(),
            "total_gpu_dur_ns": int(self.dur[self.work].sum()),
            "total_kernel_dur_ns": int(self.dur[self.category == Category.KERNEL].sum()),
            "gpu_span_ns": _span(start, stop),
            "same_stream_overlaps": overlaps,
            "max_same_stream_overlap_ns": longest,
        }

    def split(self, is_comm: np.ndarray) -> Facts:
        """Busy time by what it is spent on."""
        kernel = self.category == Category.KERNEL
        busy, compute, communication = self.union(self.work), self.union(kernel & ~is_comm), self.union(kernel & is_comm)
        length = {name: int((b - a).sum()) for name, (a, b) in (("busy", busy), ("compute", compute), ("comm", communication))}
        overlap = int(kernels.overlap_ns(*communication, *compute))
        return {
            "comm_kernels": int(is_comm.sum()),
            "busy_ns": length["busy"],
            "idle_ns": _span(*self.times(self.work)) - length["busy"],
            "compute_ns": length["compute"],
            "comm_ns": length["comm"],
            "mem_ns": int(np.subtract(*self.union(self.work & ~kernel)[::-1]).sum()),
            "comm_overlap_compute_ns": overlap,
            "exposed_comm_ns": length["comm"] - overlap,
        }

    def causes(self) -> Facts:
        """How device work is tied to the calls that launched it."""
        e = self.trace.events
        correlation = e.correlation[self.rows]
        device = np.flatnonzero(self.work & (correlation >= 0))
        host = np.flatnonzero(np.isin(self.category, HOST_CALLS) & (correlation >= 0))
        both = np.concatenate((device, host))
        member, first = group(self.rank[both], correlation[both])
        on_device = np.bincount(member[: len(device)], minlength=len(first))
        on_host = np.bincount(member[len(device) :], minlength=len(first))
        launch = np.full(len(first), np.iinfo(np.int64).min)
        np.maximum.at(launch, member[len(device) :], self.start[host])
        early = self.start[device] < launch[member[: len(device)]]
        return {
            "gpu_with_correlation": len(device),
            "gpu_matched_to_runtime": int((on_host[member[: len(device)]] > 0).sum()),
            "distinct_gpu_correlations": int((on_device > 0).sum()),
            "runtime_dup_correlations": int((on_host > 1).sum()),
            "max_gpu_events_per_correlation": int(on_device.max()) if len(on_device) else 0,
            "launch_before_kernel_violations": int(early.sum()),
        }

    def _lanes(self) -> tuple[np.ndarray, np.ndarray]:
        """Group device work by its recorded (device, stream); a missing one is -2**63."""
        missing = np.iinfo(np.int64).min
        device = self.trace.integer_arg("device", missing)[self.rows][self.work]
        stream = self.trace.integer_arg("stream", missing)[self.rows][self.work]
        return group(self.rank[self.work], device, stream)

    def _per_stream(self) -> dict[str, dict[str, int]]:
        missing = np.iinfo(np.int64).min
        group, first = self._lanes()
        rows = np.flatnonzero(self.work)
        device, stream = (self.trace.integer_arg(key, missing)[self.rows] for key in ("device", "stream"))
        result: dict[str, dict[str, int]] = {}
        for g, i in enumerate(first):
            inside = rows[group == g]
            name = "/".join("None" if v[rows[i]] == missing else str(v[rows[i]]) for v in (device, stream))
            kinds = (("kernel", Category.KERNEL), ("memcpy", Category.MEMCPY), ("memset", Category.MEMSET))
            found = {label: int((self.category[inside] == kind).sum()) for label, kind in kinds}
            found["dur_ns"] = int(self.dur[inside].sum())
            known = result.setdefault(name, dict.fromkeys(found, 0))
            result[name] = {key: known[key] + found[key] for key in found}
        return result

    def _overlaps(self) -> tuple[int, int]:
        """Count device rows that start before an earlier one on their stream has ended, and the longest such overlap [ns]."""
        group, _ = self._lanes()
        start, stop = self.times(self.work)
        order = np.lexsort((stop, start, group))
        return kernels.overlaps(group[order], start[order], stop[order])
