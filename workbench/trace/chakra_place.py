"""When nodes of a Chakra trace ran, where it does not say: as early as their lane and their dependencies allow."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence

from workbench.trace.chakra_nodes import ChakraNode


def starts_of(nodes: Sequence[ChakraNode], lanes: Sequence[Hashable]) -> tuple[list[int], int, int]:
    """Return the start of each node [ns], how many starts were made up, and how many dependencies could not be kept.

    Parameters
    ----------
    nodes : sequence of ChakraNode
        In the order of the file, which is the order of each lane.
    lanes : sequence
        The lane of each node.

    Notes
    -----
    A node starts when the node before it on its lane and all it depends on have ended. What it depends on is ``data_deps``; a file
    that has none states its order in ``ctrl_deps``. Where a node waits for one that comes later on its own lane (or in a circle), the
    first such node of the file goes ahead. Stated starts are kept; a file that states a start somewhere states them all, but for the
    zero that is not written.
    """
    if any(node.start_us > 0 for node in nodes):
        return [max(node.start_us, 0) * 1000 for node in nodes], 0, 0
    by_data = any(node.data for node in nodes)
    place = {node.id: at for at, node in reversed(list(enumerate(nodes)))}
    before: list[set[int]] = [
        {place[d] for d in (node.data if by_data else node.controls) if d in place} - {at} for at, node in enumerate(nodes)
    ]
    last: dict[Hashable, int] = {}
    for at, lane in enumerate(lanes):
        if lane in last:
            before[at].add(last[lane])
        last[lane] = at
    after: list[list[int]] = [[] for _ in nodes]
    for at, needed in enumerate(before):
        for other in needed:
            after[other].append(at)
    return _places(nodes, before, after)


def _places(nodes: Sequence[ChakraNode], before: list[set[int]], after: list[list[int]]) -> tuple[list[int], int, int]:
    start, waiting = [-1] * len(nodes), [len(needed) for needed in before]
    ready = [at for at, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    broken, lowest, earliest = 0, 0, [0] * len(nodes)
    for _ in nodes:
        if not ready:
            while start[lowest] >= 0:
                lowest += 1
            broken += waiting[lowest]
            ready = [lowest]
        at = heapq.heappop(ready)
        start[at] = earliest[at]
        end = start[at] + nodes[at].dur_us * 1000
        for other in after[at]:
            waiting[other] -= 1
            earliest[other] = max(earliest[other], end)
            if waiting[other] == 0 and start[other] < 0:
                heapq.heappush(ready, other)
    return start, len(nodes), broken
