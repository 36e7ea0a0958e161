"""Which host call launched a piece of device work."""

from __future__ import annotations

import numpy as np

from workbench.graph.kernels_units import enclosing
from workbench.trace.part import group
from workbench.trace.trace import HOST_CALLS, Category, Trace


def event_ranks(trace: Trace) -> np.ndarray:
    """Rank of each event, int64 [E]."""
    ranks = np.array([track.rank for track in trace.tracks] or [0], dtype=np.int64)
    return ranks[trace.events.track] if len(trace.events) else np.zeros(0, dtype=np.int64)


def _join(keys: np.ndarray, rank: np.ndarray, prefer: np.ndarray, rows: np.ndarray, ask: np.ndarray) -> np.ndarray:
    """Match rows of ``ask`` to ``rows`` on equal (rank, key); of several the one with the smallest ``prefer`` wins (-1: none)."""
    out = np.full(len(ask), -1, dtype=np.int32)
    if not len(rows) or not len(ask):
        return out
    order = np.lexsort((rows, prefer[rows], keys[rows], rank[rows]))
    rows = rows[order]
    pair = np.rec.fromarrays([rank[rows], keys[rows]])
    head = np.ones(len(rows), dtype=bool)
    head[1:] = (pair.f0[1:] != pair.f0[:-1]) | (pair.f1[1:] != pair.f1[:-1])
    unique = rows[head]
    ids, inverse = np.unique(np.concatenate([rank[unique], rank[ask]]), return_inverse=True)
    known, asked = inverse[: len(unique)], inverse[len(unique) :]
    for number in range(len(ids)):  # a handful of ranks
        mine, yours = unique[known == number], np.flatnonzero(asked == number)
        at = np.searchsorted(keys[mine], keys[ask[yours]])
        inside = at < len(mine)
        hit = np.zeros(len(yours), dtype=bool)
        hit[inside] = keys[mine[at[inside]]] == keys[ask[yours[inside]]]
        out[yours[hit]] = mine[at[hit]]
    return out


def _latest(keys: np.ndarray, rank: np.ndarray, start: np.ndarray, dur: np.ndarray, rows: np.ndarray, ask: np.ndarray) -> np.ndarray:
    """Match rows of ``ask`` to ``rows`` on equal (rank, key): of several the innermost that starts last before it, else the first.

    Ids may return: a key names the call that was last made under it (the same rule as `workbench.graph.links`).
    """
    out = np.full(len(ask), -1, dtype=np.int32)
    if not len(rows) or not len(ask):
        return out
    both = np.concatenate((rows, ask))
    asks = np.arange(len(both)) >= len(rows)
    order = np.lexsort((-dur[both], asks, start[both], keys[both], rank[both]))
    sorted_rows, is_ask = both[order], asks[order]
    head = np.ones(len(both), dtype=bool)
    head[1:] = (rank[sorted_rows][1:] != rank[sorted_rows][:-1]) | (keys[sorted_rows][1:] != keys[sorted_rows][:-1])
    first = np.flatnonzero(head)[np.cumsum(head) - 1]
    place = np.arange(len(both))
    before = np.maximum.accumulate(np.where(is_ask, -1, place))
    after = np.minimum.accumulate(np.where(is_ask, len(both), place)[::-1])[::-1]
    last = np.append(np.flatnonzero(head)[1:], len(both))[np.cumsum(head) - 1]
    found = np.where(before >= first, before, np.where(after < last, after, -1))
    out[order[is_ask] - len(rows)] = np.where(found >= 0, sorted_rows[found], -1)[is_ask]
    return out


def launch_calls(trace: Trace) -> np.ndarray:
    """Return the launching host call of each device event: same rank and correlation, innermost call; else its flow.

    Returns
    -------
    numpy.ndarray
        int32 [E], event index; -1 for host events and where no launch is recorded.
    """
    events = trace.events
    out = np.full(len(events), -1, dtype=np.int32)
    device = np.flatnonzero(trace.is_device_work)
    if not len(device):
        return out
    rank = event_ranks(trace)
    host = np.flatnonzero(np.isin(events.category, HOST_CALLS) & (events.correlation >= 0))
    linked = device[events.correlation[device] >= 0]
    out[linked] = _latest(events.correlation, rank, events.start_ns, events.dur_ns, host, linked)
    rest = device[out[device] < 0]
    if len(rest) and len(trace.flows.id):
        out[rest] = _by_flow(trace, rest)
    return out


def _by_flow(trace: Trace, rest: np.ndarray) -> np.ndarray:
    """Follow the arrow ending at a device event: to the host call whose correlation is its id, else to where it begins."""
    flows, events = trace.flows, trace.events
    out = np.full(len(rest), -1, dtype=np.int32)
    arrivals = np.flatnonzero(flows.phase == ord("f"))
    flow = _last(arrivals, (flows.track, flows.start_ns), (events.track[rest], events.start_ns[rest]))
    known = np.flatnonzero(flow >= 0)
    if not len(known):
        return out
    keys = events.correlation.copy()
    keys[rest[known]] = flows.id[flow[known]]
    host = np.flatnonzero(np.isin(events.category, HOST_CALLS) & (events.correlation >= 0))
    out[known] = _latest(keys, event_ranks(trace), events.start_ns, events.dur_ns, host, rest[known])
    known = known[out[known] < 0]
    departures = np.flatnonzero(flows.phase == ord("s"))
    origin = _last(departures, (flows.category, flows.id), (flows.category[flow[known]], flows.id[flow[known]]))
    known, origin = known[origin >= 0], origin[origin >= 0]
    if len(known):
        out[known] = _covering(trace, flows.start_ns[origin], flows.track[origin])
    return out


def _last(rows: np.ndarray, keys: tuple[np.ndarray, np.ndarray], ask: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the last of ``rows`` whose pair of ``keys`` is the asked one, int64 (-1: none)."""
    number, first = group(np.concatenate((keys[0][rows], ask[0])), np.concatenate((keys[1][rows], ask[1])))
    last = np.full(len(first), -1, dtype=np.int64)
    np.maximum.at(last, number[: len(rows)], rows)
    return last[number[len(rows) :]]


def _covering(trace: Trace, time: np.ndarray, track: np.ndarray) -> np.ndarray:
    """Return the innermost host call or operator that covers each point of a track (-1: none)."""
    events = trace.events
    finish = events.start_ns + np.maximum(events.dur_ns, 0)
    order = np.lexsort((np.arange(len(events)), -events.dur_ns, events.start_ns, events.track))
    first = np.searchsorted(events.track[order], np.arange(len(trace.tracks) + 1))
    found = enclosing(time, track, order, first, events.start_ns, finish, events.parent)
    call = (found >= 0) & np.isin(events.category[found], (*HOST_CALLS, Category.CPU_OP))
    return np.where(call, found, -1).astype(np.int32)


def operators_by_id(trace: Trace, ask: np.ndarray) -> np.ndarray:
    """Return the framework operator with the same rank and ``External id`` as each event of ``ask`` (-1: none; of several the shortest)."""
    events = trace.events
    rows = np.flatnonzero((events.category == Category.CPU_OP) & (events.external_id >= 0))
    rank = event_ranks(trace)
    known = np.flatnonzero(events.external_id[ask] >= 0)
    out = np.full(len(ask), -1, dtype=np.int32)
    out[known] = _join(events.external_id, rank, events.dur_ns, rows, ask[known])
    return out
