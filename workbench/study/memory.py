"""Memory of a recording, and tensors that are not what their reader takes them for."""

from __future__ import annotations

import numpy as np

from workbench.errors import Note, WorkbenchError
from workbench.study.documents_health import Certainty, FindingDocument
from workbench.study.documents_memory import HeldDocument, MemoryDocument
from workbench.study.findings import finding, names_of
from workbench.study.seen import Seen
from workbench.trace.allocations import NONE, allocations, held
from workbench.trace.footprint import Fault, Footprint, footprints
from workbench.trace.storages import Life, has_tensors
from workbench.trace.trace import Category, Rank, Trace

LEVELS: tuple[Certainty, ...] = ("certain", "likely", "possible")
FEW = 3
"""A profile without records of allocators has at most so many instants."""
MANY = 5000
"""Of more instants the records are read on demand only."""
POINTS = 200
"""Points of a curve that a document keeps: of each stretch the highest."""
_TEXTS = {
    "aliased-storage": (
        "tensors are read after an operator that has no operand on their storage wrote over their bytes: two live tensors on one region",
        "keep a reference to the tensor until its last reader ran; look for raw pointers, wrong record_stream calls and early frees",
    ),
    "overlapping-allocation": (
        "memory is allocated inside an allocation that still lives",
        "check the allocator: its records say that two owners hold the same addresses",
    ),
    "read-past-storage": (
        "tensors reach past the end of the storage they lie on",
        "check sizes, strides and offsets of the views (as_strided, from_blob) and of the operators that made them",
    ),
}


def memory_of(trace: Trace, always: bool = False, found: list[Life] | None = None) -> tuple[list[MemoryDocument], list[Fault], list[Note]]:
    """Return the memory of every device, from allocators' records and from execution traces, the faults among tensors, and notes.

    Parameters
    ----------
    trace : Trace
        Profiled with ``profile_memory=True``, or opened together with the execution traces of its ranks; else nothing is known.
    always : bool
        Read the allocators' records of long profiles too, which takes about as long as opening them.
    found : list of Life, optional
        Lives of the storages, where they are known already.
    """
    documents: list[MemoryDocument] = []
    faults: list[Fault] = []
    notes: list[Note] = []
    for rank in trace.ranks:
        count = _instants(trace, rank)
        if count > MANY and not always:
            text = "records of the memory allocator are left unread, which takes as long as opening"
            notes.append(Note("memory-unread", rank.path, count, text, "inspect --memory reads them"))
        elif count > FEW:
            try:
                told, clashes = _allocators(trace, rank)
            except WorkbenchError as fault:  # moved or changed since it was opened
                notes.append(
                    Note("memory-unread", rank.path, count, f"records of the memory allocator cannot be read: {fault.what}", fault.fix)
                )
                continue
            documents += told
            faults += clashes
    if has_tensors(trace):
        places, more = footprints(trace, found)
        origin = int(trace.events.start_ns.min(initial=0)) if len(trace.events) else 0
        documents += [_document(trace, one, origin) for one in places]
        faults += more
    return documents, faults, notes


def _instants(trace: Trace, rank: Rank) -> int:
    """Instants of a file that may be records of allocators: it says that it has some, or does not say anything."""
    told = bool(rank.metadata.get("profile_memory", True))
    return trace.counts.get(rank.path, {}).get("ph:i", 0) if told else 0


def _allocators(trace: Trace, rank: Rank) -> tuple[list[MemoryDocument], list[Fault]]:
    documents: list[MemoryDocument] = []
    faults: list[Fault] = []
    base = rank.metadata.get("baseTimeNanoseconds")
    shift = base - rank.base_time_ns if isinstance(base, int) and rank.base_time_ns is not None else 0
    origin = int(trace.events.start_ns.min(initial=2**62))
    for one in allocations(rank.path):
        at = one.at_ns + shift - origin
        facts = held(one)
        reserved = one.reserved[one.reserved != NONE]
        of_live = _operators_at(trace, rank.rank, np.array([time + shift for _, time in facts.live], dtype=np.int64))
        rows = [(size, _name(trace, event)) for (size, _), event in zip(facts.live, of_live, strict=True)]
        of_clash = _operators_at(trace, rank.rank, np.array([time + shift for time, _ in facts.clashes], dtype=np.int64))
        for (_, size), event in zip(facts.clashes, of_clash, strict=True):
            faults.append(Fault("overlapping-allocation", event, event, size, "certain"))
        documents.append(
            MemoryDocument(
                rank=rank.rank,
                device=one.device,
                basis="allocator",
                peak_bytes=int(facts.level.max(initial=0)),
                peak_at_s=float(at[facts.peak]) / 1e9,
                reserved_peak_bytes=int(reserved.max()) if len(reserved) else None,
                resident_bytes=facts.before,
                allocated_bytes=int(one.nbytes[one.nbytes > 0].sum()),
                storages=int((one.nbytes > 0).sum()),
                in_place=None,
                views=None,
                held=[HeldDocument(bytes=size, made_by=name, resident=False) for size, name in rows],
                curve=_curve(at, facts.level),
            )
        )
    return documents, faults


def _operators_at(trace: Trace, rank: int, moments: np.ndarray) -> list[int]:
    """Return the innermost operator of a rank at each of some moments [ns], the shortest of several threads (-1: none).

    On a thread the innermost is the last to start before the moment that has not ended: it, or one of those around it.
    """
    e = trace.events
    best = np.full(len(moments), -1, dtype=np.int64)
    length = np.full(len(moments), np.iinfo(np.int64).max)
    operators = np.flatnonzero(e.category == Category.CPU_OP)
    for number, track in enumerate(trace.tracks):
        rows = operators[e.track[operators] == number] if track.rank == rank and len(moments) else operators[:0]
        rows = rows[np.lexsort((-e.dur_ns[rows], e.start_ns[rows]))]
        if not len(rows):
            continue
        place = np.searchsorted(e.start_ns[rows], moments, side="right") - 1
        at = np.where(place >= 0, rows[place], -1)
        while (away := (at >= 0) & ((e.start_ns[at] + e.dur_ns[at] < moments) | (e.category[at] != Category.CPU_OP))).any():
            at[away] = e.parent[at[away]]
        better = (at >= 0) & (e.dur_ns[at] < length)
        best[better], length[better] = at[better], e.dur_ns[at[better]]
    return best.tolist()


def _name(trace: Trace, event: int) -> str:
    return trace.name_of(event) if event >= 0 else "nothing that is recorded"


def tensor_faults(seen: Seen, faults: list[Fault]) -> list[FindingDocument]:
    """Return the faults among tensors as findings, one a kind."""
    out = []
    for kind, (text, fix) in _TEXTS.items():
        mine = [fault for fault in faults if fault.kind == kind]
        if mine:
            pairs = [f"{_name(seen.trace, one.event)} after {_name(seen.trace, one.other)}" for one in mine]
            where = names_of(pairs, np.array([float(one.nbytes) for one in mine]))
            sure = next(level for level in LEVELS if any(one.certainty == level for one in mine))
            out.append(finding(seen, kind, text, where, len(mine), 0.0, fix, sure))
    return out


def _document(trace: Trace, one: Footprint, origin: int) -> MemoryDocument:
    return MemoryDocument(
        rank=one.rank,
        device=one.device,
        basis="storages",
        peak_bytes=one.peak,
        peak_at_s=(one.peak_ns - origin) / 1e9,
        reserved_peak_bytes=None,
        resident_bytes=one.resident,
        allocated_bytes=one.allocated,
        storages=one.storages,
        in_place=one.in_place,
        views=one.views,
        held=[HeldDocument(bytes=size, made_by=trace.name_of(event), resident=old) for size, event, old in one.held],
        curve=_curve(one.at_ns - origin, one.nbytes),
    )


def _curve(at_ns: np.ndarray, level: np.ndarray) -> list[tuple[float, int]]:
    """Return a curve in few points: of each stretch of changes the highest."""
    pieces = np.array_split(np.arange(len(at_ns)), min(POINTS, max(len(at_ns), 1)))
    picked = [int(piece[np.argmax(level[piece])]) for piece in pieces if len(piece)]
    return [(float(at_ns[i]) / 1e9, int(level[i])) for i in picked]
