"""Memory of a recording from the storages of its execution trace: how much lives when, who holds it, and what must not be.

All of it follows from what operators mention: a storage lives from its allocation to its last mention, so that the footprint is a lower
bound (what an allocator keeps in reserve, and what no operator mentions again, is not seen). Storages older than the recording
(parameters, states, inputs) are taken to live throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from workbench.trace.storages import STRIDED, Life, Mention, Role, lives
from workbench.trace.trace import Trace

HELD = 10
"""Storages that are named at the peak, the largest first."""
Certainty = Literal["certain", "likely", "possible"]


@dataclass(frozen=True)
class Fault:
    """A tensor that should not be read as it is."""

    kind: str  # "aliased-storage", "read-past-storage" or, from an allocator, "overlapping-allocation"
    event: int  # where it is seen
    other: int  # who wrote over it, or who allocated the storage
    nbytes: int  # [B] concerned
    certainty: Certainty


@dataclass(frozen=True)
class Footprint:
    """Memory of one device of one rank, over time; arrays of length N ascend in time.

    ``resident`` [B] is what is older than the recording. ``held`` lists (bytes, event that made it, resident) at the peak.
    """

    rank: int
    device: str
    at_ns: np.ndarray  # int64 [ns]
    nbytes: np.ndarray  # int64 [B], live from then on
    resident: int
    allocated: int  # [B] in all, over the recording
    storages: int
    in_place: int  # writes in place
    views: int
    held: tuple[tuple[int, int, bool], ...]

    @property
    def peak(self) -> int:
        """Most bytes that live at once [B]."""
        return int(self.nbytes.max(initial=0))

    @property
    def peak_ns(self) -> int:
        """When [ns]."""
        return int(self.at_ns[int(np.argmax(self.nbytes))]) if len(self.nbytes) else 0


def footprints(trace: Trace, found: list[Life] | None = None) -> tuple[list[Footprint], list[Fault]]:
    """Return the memory of every device that operators name, and the faults among all tensors.

    Parameters
    ----------
    trace : Trace
        With the tensors of execution traces (`workbench.trace.storages.has_tensors`).
    found : list of Life, optional
        Lives of its storages, where they are known already.
    """
    found = lives(trace) if found is None else found
    places = sorted({(life.storage[0], life.storage[2]) for life in found})
    out = []
    for rank, device in places:
        mine = [life for life in found if (life.storage[0], life.storage[2]) == (rank, device)]
        out.append(_footprint(trace, rank, device, mine))
    return out, [*_aliased(found), *_past(trace, found)]


def _footprint(trace: Trace, rank: int, device: str, own: list[Life]) -> Footprint:
    e = trace.events
    stop = e.start_ns + np.maximum(e.dur_ns, 0)
    size = np.array([life.size for life in own], dtype=np.int64)
    resident = np.array([life.resident for life in own], dtype=bool)
    begin = np.array([e.start_ns[life.maker] for life in own], dtype=np.int64)
    end = np.array([max(int(stop[one.event]) for one in life.mentions) for life in own], dtype=np.int64)
    begin[resident], end[resident] = begin.min(initial=0), end.max(initial=0)
    times = np.concatenate([begin, end])
    change = np.concatenate([size, -size])
    order = np.lexsort((np.repeat([0, 1], len(own)), times))  # at one moment allocations first: an upper edge
    level = np.cumsum(change[order])
    at = times[order]
    peak = int(at[int(np.argmax(level))]) if len(at) else 0
    live = np.flatnonzero((begin <= peak) & (end >= peak))
    live = live[np.argsort(-size[live], kind="stable")][:HELD]
    roles = [one.role for life in own for one in life.mentions]
    return Footprint(
        rank=rank,
        device=device,
        at_ns=at,
        nbytes=level,
        resident=int(size[resident].sum()),
        allocated=int(size[~resident].sum()),
        storages=len(own),
        in_place=roles.count(Role.WRITE),
        views=roles.count(Role.VIEW),
        held=tuple((int(size[i]), own[i].maker, bool(resident[i])) for i in live),
    )


def _aliased(found: list[Life]) -> list[Fault]:
    """Reads of a tensor whose bytes an operator that knew nothing of it has written: two live tensors on one region of a storage.

    The later writer has no operand on the storage, so it is no view and no update in place. A tensor that the new life itself mentions as
    made anew is another one under a returned id.
    """
    out = []
    earlier: dict[tuple[int, int, str], dict[int, Mention]] = {}
    for life in found:
        known = earlier.setdefault(life.storage, {})
        made = {life.mentions[0].tensor}
        writer = life.mentions[0]
        for one in life.mentions[1:]:
            old = known.get(one.tensor)
            if one.role == Role.READ and old is not None and one.tensor not in made and (one.low, one.high) == (old.low, old.high):
                low, high = max(writer.low, old.low), min(writer.high, old.high)
                if high > low and writer.role == Role.CREATE:
                    out.append(Fault("aliased-storage", one.event, writer.event, high - low, "likely"))
            made.add(one.tensor)
        for one in life.mentions:
            known[one.tensor] = one
    return out


def _past(trace: Trace, found: list[Life]) -> list[Fault]:
    """Tensors that reach past the end of a storage whose allocation is recorded.

    A view made of a tensor that fits does so for certain if it begins behind the end, and likely if it ends there were it contiguous. A
    tensor of unknown origin may lie on another storage under a returned id: possible, and likely if a tensor that fits is used again.
    """
    out = []
    for life in found:
        if life.resident or life.mentions[0].role not in (Role.ALLOCATE, Role.CREATE):
            continue
        fits = [one.high <= life.size for one in life.mentions]
        last_fit = max(i for i, fit in enumerate(fits) if fit) if any(fits) else -1
        operands = {one.event for one, fit in zip(life.mentions, fits, strict=True) if fit and one.role == Role.READ}
        views = (one for one, fit in zip(life.mentions, fits, strict=True) if one.role == Role.VIEW and not fit)
        strided = {one.tensor for one in views if STRIDED.match(trace.name_of(one.event))}
        told: set[int] = set()
        for i, one in enumerate(life.mentions):
            behind = one.least > life.size
            if fits[i] or one.tensor in told or (one.tensor in strided and not behind):
                continue
            told.add(one.tensor)
            known = one.role == Role.VIEW and one.event in operands
            sure: Certainty = "certain" if known and behind else "likely" if known or last_fit > i else "possible"
            out.append(Fault("read-past-storage", one.event, life.maker, one.high - life.size, sure))
    return out
