"""A naive discrete-event simulator of host threads, streams and events.

A priority queue of (time, callback) over resources: threads are coroutines that sleep or wait for a flag, streams are
first-in-first-out queues that start their head when its conditions hold. Nothing is shared with the replay of the package,
neither code nor algorithm: there is no graph here and no longest path.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.naive.actions import Action, Await, Begin, End, Launch, Program, Record, Replay, Signal, Synchronize, Wait, Work


@dataclass(slots=True)
class Row:
    """Something that happened: a host operator, a runtime call, or device work."""

    category: str
    name: str
    start_ns: int
    end_ns: int = -1
    thread: str = ""
    stream: int = -1
    correlation: int = -1
    external_id: int = -1  # the innermost open operator's id; an operator's own
    action: Action | None = None
    waits_on: tuple[int, int] | None = None  # stream and correlation of the event record that is waited for


@dataclass(slots=True)
class Flag:
    """A condition: not yet true, then true for ever."""

    done: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)


@dataclass(slots=True)
class Recorded:
    """One record of an event."""

    flag: Flag
    stream: int
    correlation: int


@dataclass(slots=True)
class Item:
    """An entry of a stream's queue: work (a row), an event to complete, or a flag to wait for."""

    ready_ns: int
    row: Row | None = None
    ns: int = 0
    completes: Flag | None = None
    needs: Flag | None = None


class World:
    """What the machines of a job share: time, the agenda, and work that meets."""

    def __init__(self) -> None:
        self.now = 0
        self.agenda: list[tuple[int, int, Callable[[], None]]] = []
        self.order = 0
        self.met: dict[str, list[Callable[[], None]]] = {}

    def at(self, time_ns: int, callback: Callable[[], None]) -> None:
        """Call back at a time, in order of asking."""
        self.order += 1
        heapq.heappush(self.agenda, (time_ns, self.order, callback))

    def run(self) -> None:
        """Work off the agenda."""
        while self.agenda:
            self.now, _, callback = heapq.heappop(self.agenda)
            callback()

    def meet(self, name: str, members: int, go: Callable[[], None]) -> None:
        """Let all members go when the last of them has come."""
        self.met.setdefault(name, []).append(go)
        if len(self.met[name]) == members:
            for one in self.met.pop(name):
                one()


class Machine:
    """Executes one program once."""

    def __init__(self, program: Program, world: World | None = None) -> None:
        self.program = program
        self.world = world or World()
        self.rows: list[Row] = []
        self._queues: dict[int, deque[Item]] = {}
        self._busy: dict[int, bool] = {}
        self._free: dict[int, int] = {}  # earliest start of a stream's next work [ns]
        self._unfinished: dict[int, int] = {}  # launches of a stream that still hold a slot
        self._slot: dict[int, Flag] = {}
        self._events: dict[str, Recorded] = {}
        self._flags: dict[str, Flag] = {}
        self._correlation = 0
        self._external = 0

    @property
    def now(self) -> int:
        """Time of the world [ns]."""
        return self.world.now

    def begin(self) -> None:
        """Put the start of every thread on the agenda."""
        threads = [self._thread(name, actions) for name, actions in self.program.threads.items()]
        for thread in threads:
            self._at(0, partial(self._resume, thread))

    def happened(self) -> list[Row]:
        """Return what happened, by start, once every thread has ended and every stream is dry."""
        stuck = [row.name for row in self.rows if row.end_ns < 0] + [name for name, flag in self._flags.items() if not flag.done]
        if stuck or any(self._queues.values()):
            raise RuntimeError(f"the program never ends: {stuck[:5]} still open or awaited")
        return sorted(self.rows, key=lambda row: row.start_ns)

    # -- agenda ---------------------------------------------------------------------------------------------------------
    def _at(self, time_ns: int, callback: Callable[[], None]) -> None:
        self.world.at(time_ns, callback)

    def _fire(self, flag: Flag) -> None:
        flag.done = True
        waiting, flag.waiting = flag.waiting, []
        for callback in waiting:
            self._at(self.now, callback)

    def _when(self, flag: Flag, callback: Callable[[], None]) -> None:
        if flag.done:
            self._at(self.now, callback)
        else:
            flag.waiting.append(callback)

    def _resume(self, thread: Iterator[int | Flag]) -> None:
        need = next(thread, None)
        if isinstance(need, Flag):
            self._when(need, partial(self._resume, thread))
        elif need is not None:
            self._at(self.now + need, partial(self._resume, thread))

    # -- host -----------------------------------------------------------------------------------------------------------
    def _thread(self, name: str, actions: tuple[Action, ...]) -> Iterator[int | Flag]:
        """Yield, action by action, how long the thread is busy [ns] or what it waits for."""
        opened: list[Row] = []
        for action in actions:
            match action:
                case Work(ns):
                    yield ns
                case Begin():
                    self._external += 1
                    opened.append(Row(action.category, action.name, self.now, -1, name, external_id=self._external, action=action))
                    self.rows.append(opened[-1])
                case End():
                    opened.pop().end_ns = self.now
                case Signal(flag):
                    self._fire(self._flags.setdefault(flag, Flag()))
                case Await(flag):
                    yield self._flags.setdefault(flag, Flag())
                    yield self.program.handover_ns
                case _:
                    inner = next((row.external_id for row in reversed(opened) if row.category == "cpu_op"), -1)
                    yield from self._call(name, inner, action)

    def _call(self, thread: str, external_id: int, action: Action) -> Iterator[int | Flag]:
        """Yield through one runtime call, and record it."""
        self._correlation += 1
        call = Row("cuda_runtime", "", self.now, -1, thread, -1, self._correlation, external_id, action)
        self.rows.append(call)
        match action:
            case Launch():
                call.name = action.call
                yield from self._launch(call, action)
            case Replay(launches):
                call.name, call.stream = "cudaGraphLaunch", launches[0].stream
                yield self.program.issue_ns
                for launch in launches:
                    self._queue(call, launch)
            case Record(event, stream):
                call.name, call.stream = "cudaEventRecord", stream
                yield self.program.call_ns
                recorded = self._events[event] = Recorded(Flag(), stream, call.correlation)
                self._enqueue(stream, Item(self.now, completes=recorded.flag))
            case Wait(event, stream):
                call.name, call.stream = "cudaStreamWaitEvent", stream
                yield self.program.call_ns
                if event in self._events:
                    call.waits_on = (self._events[event].stream, self._events[event].correlation)
                    self._enqueue(stream, Item(self.now, needs=self._events[event].flag))
            case Synchronize():
                yield from self._synchronize(call, action)
        call.end_ns = self.now

    def _launch(self, call: Row, action: Launch) -> Iterator[int | Flag]:
        stream = call.stream = action.stream
        while self._unfinished.get(stream, 0) >= self.program.queue_depth:
            yield self._slot.setdefault(stream, Flag())
        yield self.program.issue_ns
        done = self._queue(call, action)
        if action.blocking:
            yield done
            yield self.program.return_ns

    def _queue(self, call: Row, action: Launch) -> Flag:
        """Queue device work of a call; the flag tells its end."""
        row = Row(action.category, action.name, -1, -1, call.thread, action.stream, call.correlation, call.external_id, action)
        self._unfinished[action.stream] = self._unfinished.get(action.stream, 0) + 1
        done = Flag()
        self._enqueue(action.stream, Item(self.now + self.program.latency_ns, row=row, ns=action.ns, completes=done))
        return done

    def _synchronize(self, call: Row, action: Synchronize) -> Iterator[int | Flag]:
        yield self.program.call_ns
        if action.event is not None:
            recorded = self._events[action.event]
            call.name, call.waits_on = "cudaEventSynchronize", (recorded.stream, recorded.correlation)
            pending = [recorded.flag]
        else:
            call.name = "cudaDeviceSynchronize" if action.stream is None else "cudaStreamSynchronize"
            call.stream = -1 if action.stream is None else action.stream
            streams = list(self._queues) if action.stream is None else [action.stream]
            pending = [Flag() for _ in streams]
            for stream, flag in zip(streams, pending, strict=True):
                self._enqueue(stream, Item(self.now, completes=flag))
        waited = False
        for flag in pending:
            waited |= not flag.done
            yield flag
        if waited:
            yield self.program.return_ns

    # -- device ---------------------------------------------------------------------------------------------------------
    def _enqueue(self, stream: int, item: Item) -> None:
        self._queues.setdefault(stream, deque()).append(item)
        self._advance(stream)

    def _advance(self, stream: int) -> None:
        """Start what can start at the head of a stream's queue."""
        queue = self._queues[stream]
        while queue and not self._busy.get(stream):
            item = queue[0]
            if item.needs is not None and not item.needs.done:
                self._when(item.needs, partial(self._released, stream))
                return
            ready = item.ready_ns if item.row is None else max(item.ready_ns, self._free.get(stream, 0))
            if ready > self.now:
                self._at(ready, partial(self._advance, stream))
                return
            queue.popleft()
            if item.row is not None:
                item.row.start_ns, self._busy[stream] = self.now, True
                self._work(stream, item)
            elif item.completes is not None:
                self._fire(item.completes)

    def _work(self, stream: int, item: Item) -> None:
        """Start an item's work: at once, or when all the ranks it meets have come this far."""
        action = item.row.action if item.row is not None else None
        if isinstance(action, Launch) and action.meets:
            self.world.meet(action.meets, action.members, lambda: self._at(self.now + item.ns, partial(self._finish, stream, item)))
        else:
            self._at(self.now + item.ns, partial(self._finish, stream, item))

    def _released(self, stream: int) -> None:
        """Go on with a stream that stood waiting for an event."""
        self._free[stream] = max(self._free.get(stream, 0), self.now + self.program.wait_ns)
        self._advance(stream)

    def _finish(self, stream: int, item: Item) -> None:
        assert item.row is not None
        assert item.completes is not None
        item.row.end_ns, self._busy[stream], self._free[stream] = self.now, False, self.now + self.program.gap_ns
        self.rows.append(item.row)
        self._unfinished[stream] -= 1
        self._fire(item.completes)
        if stream in self._slot:
            self._fire(self._slot.pop(stream))
        self._advance(stream)


def execute(program: Program) -> list[Row]:
    """Return what happens when a program runs, by start."""
    return execute_job([program])[0]


def execute_job(programs: Sequence[Program]) -> list[list[Row]]:
    """Return what happens when the ranks of a job run, one program each, by start."""
    world = World()
    machines = [Machine(program, world) for program in programs]
    for machine in machines:
        machine.begin()
    world.run()
    return [machine.happened() for machine in machines]
