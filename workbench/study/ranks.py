"""Stragglers and slow links: who the others wait for, and what every group and pair of ranks achieves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import xarray as xr

from workbench.errors import Note, Refused
from workbench.graph.rank_match import PAIRS
from workbench.graph.ranks import Ranks, ranks_of
from workbench.operators.table import Kind
from workbench.study.documents_ranks import LinkDocument, RankDocument, RanksDocument
from workbench.trace.trace import DEVICE_WORK, Trace

LARGE = 0.5
"""Messages of at least this part of a link's largest compete for the slowest: small ones are bound by latency [1]."""


def stragglers(trace: Trace) -> xr.Dataset:
    """Return who waits for whom.

    Parameters
    ----------
    trace : Trace
        Several ranks.

    Returns
    -------
    xarray.Dataset
        Dim ``rank``; ``recorded_s``, ``waiting_s`` and ``transfer_s`` of its messages, ``caused_s`` that others waited for it and its
        ``caused_share`` of all waiting, its clock (``clock_offset_s``, ``clock_uncertainty_s``, ``clock_drift``), counts.

    Raises
    ------
    Refused
        No clock is common to the ranks.
    """
    rows = _rank_rows(trace, ranks_of(trace))
    return _dataset("rank", [row.model_dump() for row in rows], RankDocument.model_fields.keys() - {"rank"}, [row.rank for row in rows])


def links(trace: Trace) -> xr.Dataset:
    """Return what every process group, by kind of message, and every pair of ranks achieves.

    Parameters
    ----------
    trace : Trace
        Several ranks.

    Returns
    -------
    xarray.Dataset
        Dim ``link``, the slowest first; ``bytes``, ``transfer_s``, ``algorithm_bandwidth`` and ``bus_bandwidth`` [B/s], the slowest
        large message. Only messages of known size all of whose members are recorded.

    Raises
    ------
    Refused
        No clock is common to the ranks.
    """
    rows = _link_rows(trace, ranks_of(trace))
    return _dataset("link", [row.model_dump() for row in rows], LinkDocument.model_fields.keys() - {"name"}, [row.name for row in rows])


def ranks_document(trace: Trace) -> tuple[RanksDocument | None, list[Note]]:
    """Return stragglers and links as a document, and notes; None, and a note why, where no clock is common to the ranks."""
    try:
        found = ranks_of(trace)
    except Refused as fault:
        return None, [Note("ranks-not-compared", fault.where, len(trace.ranks), fault.what, fault.fix)]
    return RanksDocument(ranks=_rank_rows(trace, found), links=_link_rows(trace, found)), list(found.notes)


def _dataset(dim: str, rows: list[dict[str, object]], names: set[str], labels: list[object]) -> xr.Dataset:
    data = {name: (dim, np.array([row[name] for row in rows])) for name in sorted(names)}
    return xr.Dataset({n: (d, v.astype(np.float64) if v.dtype == object else v) for n, (d, v) in data.items()}, coords={dim: labels})


def _rank_rows(trace: Trace, found: Ranks) -> list[RankDocument]:
    m, parts, clocks = found.messages, found.split, found.clocks
    known = parts.known
    caused: dict[int, int] = defaultdict(int)
    for last, wait in zip(parts.last[known].tolist(), parts.wait_ns[known].tolist(), strict=True):
        caused[int(m.rank[last])] += wait
    total = sum(caused.values())
    out = []
    for i, rank in enumerate(clocks.rank.tolist()):
        mine = m.rank == rank
        own = mine & known
        itself = clocks.reference[i] == rank
        out.append(
            RankDocument(
                rank=rank,
                path=next(r.path for r in trace.ranks if r.rank == rank),
                clock_reference=int(clocks.reference[i]),
                clock_offset_s=float(found.shift_ns[i] - found.shift_ns[clocks.row(clocks.reference[i])]) / 1e9,
                clock_uncertainty_s=float(clocks.spread_ns[i]) / 1e9
                if clocks.ends[i] or (itself and (clocks.reference == rank).sum() > 1)
                else None,
                clock_drift=float(clocks.drift[i]),
                common_ends=int(clocks.ends[i]),
                messages=int(mine.sum()),
                matched=int(own.sum()),
                recorded_s=float((m.end - m.start)[mine].sum()) / 1e9,
                waiting_s=float(parts.wait_ns[own].sum()) / 1e9,
                transfer_s=float(parts.transfer_ns[own].sum()) / 1e9,
                caused_s=caused[rank] / 1e9,
                caused_share=caused[rank] / total if total else None,
            )
        )
    return out


@dataclass(frozen=True)
class _One:
    """One message as a whole."""

    bytes: float
    seconds: float
    number: int
    start_ns: int
    ranks: int
    kind: Kind

    @property
    def rate(self) -> float:
        return self.bytes / self.seconds


def _link_rows(trace: Trace, found: Ranks) -> list[LinkDocument]:
    """Rows of links, the slowest first; messages without size or transfer are left out."""
    m, matches, parts = found.messages, found.matches, found.split
    rows = np.flatnonzero(parts.known & m.exact & (m.bytes > 0))
    rows = rows[np.lexsort((m.rank[rows], matches.of[rows]))]
    heads, first = np.unique(matches.of[rows], return_index=True)
    by_link: dict[tuple[str, Kind], list[_One]] = defaultdict(list)
    for mine in np.split(rows, first[1:]) if len(heads) else []:
        seconds = float(parts.transfer_ns[mine].max()) / 1e9
        kind = Kind(int(m.kind[mine[0]]))
        if seconds <= 0 or kind == Kind.BARRIER:
            continue
        group = matches.groups[matches.group[mine[0]]]
        name = group.label
        if m.sense[mine[0]] in PAIRS:
            way = {int(m.sense[row]): int(m.rank[row]) for row in mine}
            name = "rank {} to rank {}".format(*(way.get(int(side), -1) for side in PAIRS))
        start = int((m.start[mine] - found.shift_ns[found.clocks.row(m.rank[mine])]).min())
        by_link[name, kind].append(_One(float(m.bytes[mine].max()), seconds, int(m.seq[mine[0]]), start, len(mine), kind))
    origin = _origin(trace, found)
    out = [_link(name, kind, ones, origin) for (name, kind), ones in by_link.items()]
    return sorted(out, key=lambda link: (link.bus_bandwidth or 0.0, link.name, link.kind))


def _link(name: str, kind: Kind, ones: list[_One], origin: int) -> LinkDocument:
    size, seconds = sum(one.bytes for one in ones), sum(one.seconds for one in ones)
    largest = max(one.bytes for one in ones)
    slow = min((one for one in ones if one.bytes >= LARGE * largest), key=lambda one: (one.rate, one.start_ns))
    rate = size / seconds
    return LinkDocument(
        name=name,
        kind=kind.name.lower().replace("_", "-"),
        ranks=ones[0].ranks,
        messages=len(ones),
        bytes=size,
        transfer_s=seconds,
        algorithm_bandwidth=rate,
        bus_bandwidth=rate * bus_factor(kind, ones[0].ranks),
        slowest_number=slow.number,
        slowest_bytes=slow.bytes,
        slowest_bandwidth=slow.rate,
        slowest_at_s=(slow.start_ns - origin) / 1e9,
    )


def bus_factor(kind: Kind, ranks: int) -> float:
    """Return what a ring moves over each link by the size of the message [1] (NVIDIA nccl-tests, doc/PERFORMANCE.md).

    Parameters
    ----------
    kind : Kind
    ranks : int
        Members of the group.
    """
    if kind == Kind.ALL_REDUCE:
        return 2.0 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if kind in (Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL) else 1.0


def _origin(trace: Trace, found: Ranks) -> int:
    """First device work of the job on the common clock [ns]."""
    e = trace.events
    work = np.flatnonzero(np.isin(e.category, DEVICE_WORK))
    rank = np.array([t.rank for t in trace.tracks], dtype=np.int32)[e.track[work]]
    return int((e.start_ns[work] - found.shift_ns[found.clocks.row(rank)]).min()) if len(work) else 0
