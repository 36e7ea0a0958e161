"""Known answers of an execution, counted nanosecond interval by interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.naive.executor import Row

Spans = Sequence[tuple[int, int]]


def length_where(covered_by: Spans, but_not_by: Spans = ()) -> int:
    """Return the length covered by the first spans but not by the second [ns]: every piece between two neighbouring ends is asked."""
    ends = sorted({end for span in (*covered_by, *but_not_by) for end in span})
    total = 0
    for begin, end in pairwise(ends):
        inside = any(a <= begin and end <= b for a, b in covered_by)
        outside = not any(a <= begin and end <= b for a, b in but_not_by)
        total += (end - begin) * (inside and outside)
    return total


def spans(rows: Iterable[Row]) -> Spans:
    """Return start and end of rows [ns]."""
    return [(row.start_ns, row.end_ns) for row in rows]


def is_device(row: Row) -> bool:
    """Tell whether a row is device work."""
    return row.category in ("kernel", "gpu_memcpy", "gpu_memset")


def is_communication(row: Row) -> bool:
    """Tell whether a row is a collective's kernel."""
    return row.category == "kernel" and row.name.startswith("nccl")


def answers(rows: Sequence[Row]) -> dict[str, object]:
    """Return the known answers, all in integer nanoseconds.

    ``steps`` has one entry a mark: ``step_ns`` runs from the mark's start to the later of its end and the end of the
    device work launched in it; busy is the union over streams, ``exposed_ns`` the collectives' union outside all other kernels,
    both over the device work launched in the step.
    """
    device = [row for row in rows if is_device(row)]
    calls = {row.correlation: row for row in rows if row.category == "cuda_runtime"}
    marks = [row for row in rows if row.name.startswith("ProfilerStep#")]
    steps = []
    for mark in marks:
        own = [row for row in device if mark.start_ns <= calls[row.correlation].start_ns < mark.end_ns]
        steps.append(
            {
                "number": int(mark.name.split("#")[1]),
                "step_ns": max([mark.end_ns, *(row.end_ns for row in own)]) - mark.start_ns,
                "mark_ns": mark.end_ns - mark.start_ns,
                **_device_answers(own),
            }
        )
    whole = max(row.end_ns for row in rows) - min(row.start_ns for row in rows)
    return {"span_ns": whole, "kernels": sum(row.category == "kernel" for row in rows), **_device_answers(device), "steps": steps}


def _device_answers(device: Sequence[Row]) -> dict[str, int]:
    kernels = [row for row in device if row.category == "kernel"]
    communication = spans(row for row in kernels if is_communication(row))
    compute = spans(row for row in kernels if not is_communication(row))
    return {
        "busy_ns": length_where(spans(device)),
        "compute_ns": length_where(compute),
        "communication_ns": length_where(communication),
        "exposed_ns": length_where(communication, compute),
    }
