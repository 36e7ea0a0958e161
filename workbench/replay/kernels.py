"""All loops over nodes and edges in time: earliest start, latest finish, critical paths, blocks of scenarios.

Edges into node v are ``ptr[v]:ptr[v + 1]``; nodes are in topological order. Seconds throughout.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LANES = 16
"""Scenarios that go through the graph side by side."""


@njit(cache=True, nogil=True)
def forward(ptr: np.ndarray, source: np.ndarray, lag: np.ndarray, node_s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (start, finish, binding edge) of every node; without edges a node starts at 0."""
    n = len(node_s)
    start = np.zeros(n)
    finish = np.empty(n)
    binding = np.full(n, -1, np.int64)
    for v in range(n):
        begin = 0.0
        edge = -1
        for e in range(ptr[v], ptr[v + 1]):
            t = finish[source[e]] + lag[e]
            if edge < 0 or t > begin:
                begin = t
                edge = e
        start[v] = begin
        finish[v] = begin + node_s[v]
        binding[v] = edge
    return start, finish, binding


@njit(cache=True, nogil=True)
def step_ends(finish: np.ndarray, ends_step: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (end, node) of every step: the latest finish among the nodes that may end it (``ends_step[v]``: its step, or -1)."""
    end = np.full(count, -1.0)
    node = np.full(count, -1, np.int64)
    for v in range(len(finish)):
        s = ends_step[v]
        if s >= 0 and finish[v] >= end[s]:
            end[s] = finish[v]
            node[s] = v
    return end, node


@njit(cache=True, nogil=True)
def backward(
    ptr: np.ndarray,
    source: np.ndarray,
    lag: np.ndarray,
    node_s: np.ndarray,
    finish: np.ndarray,
    ends_step: np.ndarray,
    end: np.ndarray,
    makespan: float,
) -> np.ndarray:
    """Return the slack of every node: how much longer it could take without moving the end of any step or of the recording."""
    n = len(node_s)
    latest = np.full(n, makespan)
    for v in range(n - 1, -1, -1):
        s = ends_step[v]
        if s >= 0 and end[s] < latest[v]:
            latest[v] = end[s]
        begin = latest[v] - node_s[v]
        for e in range(ptr[v], ptr[v + 1]):
            limit = begin - lag[e]
            if limit < latest[source[e]]:
                latest[source[e]] = limit
    slack = np.empty(n)
    for v in range(n):
        slack[v] = max(0.0, latest[v] - finish[v])
    return slack


@njit(cache=True, nogil=True)
def critical_paths(source: np.ndarray, binding: np.ndarray, finish: np.ndarray, last: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Mark, for every step, the chain of binding edges from the node that ends it back to the step's begin."""
    critical = np.zeros(len(finish), np.bool_)
    for s in range(len(last)):
        v = last[s]
        while v >= 0:
            critical[v] = True
            if v == begin[s] or finish[v] < finish[begin[s]] or binding[v] < 0:
                break
            v = np.int64(source[binding[v]])
    return critical


@njit(cache=True, nogil=True)
def slots(ptr: np.ndarray, source: np.ndarray, keep: np.ndarray) -> tuple[np.ndarray, int]:
    """Give every node a slot for its finish that is free again after its last reader; return (slot, number of slots).

    ``keep[v]`` is a later node that also reads v (or v itself).
    """
    n = len(ptr) - 1
    reader = keep.copy()
    for v in range(n):
        for e in range(ptr[v], ptr[v + 1]):
            reader[source[e]] = max(reader[source[e]], v)
    head = np.full(n, -1, np.int64)
    nxt = np.full(n, -1, np.int64)
    for v in range(n):
        nxt[v] = head[reader[v]]
        head[reader[v]] = v
    slot = np.empty(n, np.int32)
    free = np.empty(n, np.int32)
    count = 0
    spare = 0
    for v in range(n):
        if spare > 0:
            spare -= 1
            slot[v] = free[spare]
        else:
            slot[v] = count
            count += 1
        u = head[v]
        while u >= 0:
            free[spare] = slot[u]
            spare += 1
            u = nxt[u]
    return slot, count


@njit(cache=True, nogil=True, error_model="numpy")
def block(
    ptr: np.ndarray,
    from_slot: np.ndarray,
    lag: np.ndarray,
    slot: np.ndarray,
    weight: np.ndarray,
    row: np.ndarray,
    value: np.ndarray,
    ends_step: np.ndarray,
    begin_step: np.ndarray,
    finish: np.ndarray,
    out: np.ndarray,
) -> None:
    """Replay LANES scenarios at once: ``out[s, c]`` becomes the seconds of step s in scenario c.

    Parameters
    ----------
    value : float64 [R, LANES]
        Node v lasts ``weight[v] * value[row[v], c]``.
    ends_step, begin_step : int32 [V]
        Step a node may end, and the step it begins (-1: none).
    finish : float64 [slots, LANES]
        Scratch memory.
    out : float64 [S, LANES]
    """
    begin = np.zeros(out.shape)
    out[:] = 0.0
    acc = np.empty(LANES)
    for v in range(len(weight)):
        first, last = ptr[v], ptr[v + 1]
        if first < last:
            u, d = from_slot[first], lag[first]
            for c in range(LANES):
                acc[c] = finish[u, c] + d
            for e in range(first + 1, last):
                u, d = from_slot[e], lag[e]
                for c in range(LANES):
                    t = finish[u, c] + d
                    acc[c] = t if t > acc[c] else acc[c]
        else:
            for c in range(LANES):
                acc[c] = 0.0
        s = begin_step[v]
        if s >= 0:
            for c in range(LANES):
                begin[s, c] = acc[c]
        w, r, k = weight[v], row[v], slot[v]
        for c in range(LANES):
            finish[k, c] = acc[c] + w * value[r, c]
        s = ends_step[v]
        if s >= 0:
            for c in range(LANES):
                t = finish[k, c]
                out[s, c] = t if t > out[s, c] else out[s, c]
    for s in range(out.shape[0]):
        for c in range(LANES):
            out[s, c] -= begin[s, c]
