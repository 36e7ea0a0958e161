"""Memory of a recording, and tensors that are not what their reader takes them for."""

from __future__ import annotations

import numpy as np

from workbench.study.documents_health import Certainty, FindingDocument
from workbench.study.documents_memory import HeldDocument, MemoryDocument
from workbench.study.findings import finding, names_of
from workbench.study.seen import Seen
from workbench.trace.footprint import Fault, Footprint, footprints
from workbench.trace.storages import has_tensors
from workbench.trace.trace import Trace

LEVELS: tuple[Certainty, ...] = ("certain", "likely", "possible")
POINTS = 200
"""Points of a curve that a document keeps: of each stretch the highest."""
_TEXTS = {
    "aliased-storage": (
        "tensors are read after an operator that has no operand on their storage wrote over their bytes: two live tensors on one region",
        "keep a reference to the tensor until its last reader ran; look for raw pointers, wrong record_stream calls and early frees",
    ),
    "read-past-storage": (
        "tensors reach past the end of the storage they lie on",
        "check sizes, strides and offsets of the views (as_strided, from_blob) and of the operators that made them",
    ),
}


def memory_of(trace: Trace) -> tuple[list[MemoryDocument], list[Fault]]:
    """Return the memory of every device the operators name, and the faults among tensors; nothing without execution traces.

    Parameters
    ----------
    trace : Trace
        Opened together with the execution traces of its ranks.
    """
    if not has_tensors(trace):
        return [], []
    found, faults = footprints(trace)
    origin = int(trace.events.start_ns.min(initial=0)) if len(trace.events) else 0
    return [_document(trace, one, origin) for one in found], faults


def tensor_faults(seen: Seen, faults: list[Fault]) -> list[FindingDocument]:
    """Return the faults among tensors as findings, one a kind."""
    out = []
    for kind, (text, fix) in _TEXTS.items():
        mine = [fault for fault in faults if fault.kind == kind]
        if mine:
            pairs = [f"{seen.name(one.event)} after {seen.name(one.other)}" for one in mine]
            where = names_of(pairs, np.array([float(one.nbytes) for one in mine]))
            sure = next(level for level in LEVELS if any(one.certainty == level for one in mine))
            out.append(finding(seen, kind, text, where, len(mine), 0.0, fix, sure))
    return out


def _document(trace: Trace, one: Footprint, origin: int) -> MemoryDocument:
    return MemoryDocument(
        rank=one.rank,
        device=one.device,
        peak_bytes=one.peak,
        peak_at_s=(one.peak_ns - origin) / 1e9,
        resident_bytes=one.resident,
        allocated_bytes=one.allocated,
        storages=one.storages,
        in_place=one.in_place,
        views=one.views,
        held=[HeldDocument(bytes=size, made_by=trace.name_of(event), resident=old) for size, event, old in one.held],
        curve=_curve(one, origin),
    )


def _curve(one: Footprint, origin: int) -> list[tuple[float, int]]:
    """Return the curve in few points: of each stretch of changes the highest."""
    pieces = np.array_split(np.arange(len(one.at_ns)), min(POINTS, max(len(one.at_ns), 1)))
    picked = [int(piece[np.argmax(one.nbytes[piece])]) for piece in pieces if len(piece)]
    return [(float(one.at_ns[i] - origin) / 1e9, int(one.nbytes[i])) for i in picked]
