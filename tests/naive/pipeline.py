"""A pipeline executed by a queue of events, with resources that are taken and given back: other code than `workbench.replay.schedule`.

Operations are tuples (what, chunk, microbatch) in lists by stage; what a stage sends is told by rules on places, not by rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Operation = tuple[str, int, int]  # "F", "B", "I" or "W"; chunk; microbatch
Place = Callable[[int, int], int]  # stage, chunk -> place in the pipeline


@dataclass
class Pipeline:
    """Stages that do their operations in order, and links that carry one message at a time, first come first served."""

    orders: Sequence[Sequence[Operation]]
    place: Place
    duration: Callable[[int, Operation], float]
    latency: float = 0.0
    occupancy: float = 0.0
    blocking: bool = False
    finished: dict[tuple[int, Operation], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chunks = range(1 + max(chunk for order in self.orders for _, chunk, _ in order))
        self._home = {self.place(stage, chunk): (stage, chunk) for stage in range(len(self.orders)) for chunk in chunks}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._here: set[tuple[str, int, int]] = set()  # (way, place, microbatch) that has arrived
        self._at = [0] * len(self.orders)
        self._busy = [False] * len(self.orders)
        self._link_busy: dict[tuple[int, int], bool] = {}
        self._queue: dict[tuple[int, int], list[tuple[tuple[str, int, int], int]]] = {}
        self._count, self.now = 0, 0.0

    def run(self) -> float:
        """Return when the last operation has finished; operations that never run are missing from ``finished``."""
        for stage in range(len(self.orders)):
            self._try(stage)
        while self._events:
            self.now, _, action = heapq.heappop(self._events)
            action()
        return max(self.finished.values())

    def _later(self, delay: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, action))

    def _needs(self, stage: int, operation: Operation) -> tuple[str, int, int] | None:
        what, chunk, microbatch = operation
        place = self.place(stage, chunk)
        if what == "F" and place > 0:
            return "F", place, microbatch
        if what in "BI" and place < len(self._home) - 1:
            return "G", place, microbatch
        return None

    def _try(self, stage: int) -> None:
        if self._busy[stage] or self._at[stage] == len(self.orders[stage]):
            return
        operation = self.orders[stage][self._at[stage]]
        need = self._needs(stage, operation)
        if need is not None and need not in self._here:
            return
        self._busy[stage] = True
        self._at[stage] += 1
        self._later(self.duration(stage, operation), lambda: self._finish(stage, operation))

    def _finish(self, stage: int, operation: Operation) -> None:
        self.finished[stage, operation] = self.now
        what, chunk, microbatch = operation
        step = {"F": 1, "B": -1, "I": -1, "W": 0}[what]
        target = self.place(stage, chunk) + step
        if step and 0 <= target < len(self._home):
            token = ("F" if step > 0 else "G", target, microbatch)
            if self._home[target][0] == stage:
                self._here.add(token)
            else:
                self._queue.setdefault((stage, self._home[target][0]), []).append((token, stage))
                self._send((stage, self._home[target][0]))
                if self.blocking:
                    return  # goes on when the message has arrived
        self._busy[stage] = False
        self._try(stage)

    def _send(self, link: tuple[int, int]) -> None:
        if self._link_busy.get(link) or not self._queue.get(link):
            return
        token, sender = self._queue[link].pop(0)
        self._link_busy[link] = True

        def sent() -> None:
            self._link_busy[link] = False
            self._later(self.latency, arrived)
            self._send(link)

        def arrived() -> None:
            self._here.add(token)
            self._try(link[1])
            if self.blocking:
                self._busy[sender] = False
                self._try(sender)

        self._later(self.occupancy, sent)


def by_hand(name: str, stages: int, microbatches: int) -> list[list[Operation]]:
    """Return GPipe or 1F1B as loops that are written down as the papers draw them."""
    orders: list[list[Operation]] = []
    for stage in range(stages):
        ahead = microbatches if name == "gpipe" else min(stages - 1 - stage, microbatches)
        order: list[Operation] = [("F", 0, k) for k in range(ahead)]
        for k in range(microbatches - ahead):
            order += [("F", 0, ahead + k), ("B", 0, k)]
        order += [("B", 0, k) for k in range(microbatches - ahead, microbatches)]
        orders.append(order)
    return orders


def megatron(stages: int, microbatches: int, virtual: int) -> list[list[Operation]]:
    """Return interleaved 1F1B by the counters of Megatron-LM's schedules.py (get_model_chunk_id and what goes with it)."""
    total = microbatches * virtual
    orders: list[list[Operation]] = []
    for stage in range(stages):
        ahead = min((stages - stage - 1) * 2 + (virtual - 1) * stages, total)
        seen: Mapping[str, dict[int, int]] = {"F": {}, "B": {}}
        order: list[Operation] = []

        def do(what: str, number: int, order: list[Operation] = order, seen: Mapping[str, dict[int, int]] = seen) -> None:
            chunk = number % (stages * virtual) // stages
            chunk = chunk if what == "F" else virtual - 1 - chunk
            microbatch = seen[what].get(chunk, 0)
            seen[what][chunk] = microbatch + 1
            order.append((what, chunk, microbatch))

        for k in range(ahead):
            do("F", k)
        for k in range(total - ahead):
            do("F", ahead + k)
            do("B", k)
        for k in range(total - ahead, total):
            do("B", k)
        orders.append(order)
    return orders
