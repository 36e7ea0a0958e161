"""One card with a stream of computation and a stream of messages, event by event: other code than `workbench.scale.overlap`.

Work is a stock that is used up at a rate; the rate of computation depends on whether a message is under way. Nothing is computed ahead.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass


@dataclass
class Layer:
    """One layer in one pass."""

    work: float
    ready: float = 0.0
    gather: float | None = None  # a message it needs
    reduce: float | None = None  # a message it sends


def play(layers: list[Layer], ahead: int, slowdown: float = 0.0) -> tuple[float, list[float]]:
    """Return when all is done, and when every layer started."""
    now, starts, queue = 0.0, [], deque[tuple[float, int]]()  # messages: what is left, the layer they serve (-1: none)
    present = {j for j, layer in enumerate(layers) if layer.gather is None}
    asked = 0

    def ask(upto: int) -> None:
        nonlocal asked
        for j in range(asked, min(upto + 1, len(layers))):
            if layers[j].gather is not None:
                queue.append((layers[j].gather or 0.0, j))
        asked = max(asked, upto + 1)

    def advance(by: float) -> None:
        nonlocal now
        now += by
        if queue:
            left, serves = queue.popleft()
            left -= by
            if left > 1e-12:
                queue.appendleft((left, serves))
            else:
                present.add(serves)

    for j, layer in enumerate(layers):
        ask(j + ahead)
        while j not in present or now < layer.ready - 1e-12:
            advance(min(queue[0][0] if queue else math.inf, layer.ready - now if now < layer.ready - 1e-12 else math.inf))
        starts.append(now)
        left = layer.work
        while left > 1e-12:
            rate = 1.0 / (1.0 + slowdown) if queue else 1.0
            step = min(left / rate, queue[0][0] if queue else math.inf)
            left -= step * rate
            advance(step)
        if layer.reduce is not None:
            queue.append((layer.reduce, -1))
    while queue:
        advance(queue[0][0])
    return now, starts
