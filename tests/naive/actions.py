"""What a program for the naive executor is made of: per host thread, a list of actions. Times are integer nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Work:
    """The thread computes for ``ns``."""

    ns: int


@dataclass(frozen=True, slots=True)
class Begin:
    """Open a framework operator or annotation on this thread; `End` closes the innermost open one.

    ``dims`` and ``types`` are the recorded shapes and dtypes of its inputs; ``sequence`` links a forward operator and its backward.
    """

    name: str
    dims: tuple[tuple[int, ...], ...] | None = None
    types: tuple[str, ...] = ()
    category: str = "cpu_op"
    sequence: int = -1
    args: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """Close the innermost open operator or annotation of this thread."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Call the runtime to queue ``ns`` of device work on a stream.

    The call takes ``issue_ns`` of the program, after waiting for a free slot of the stream's queue. A ``blocking`` call
    (a copy to pageable memory) returns only when the work is done. Work that ``meets`` others (of ``members`` ranks, itself included)
    holds its stream until all of them have started, and takes ``ns`` from then on.
    """

    name: str
    stream: int
    ns: int
    category: str = "kernel"  # or gpu_memcpy, gpu_memset
    call: str = "cudaLaunchKernel"
    blocking: bool = False
    args: Mapping[str, object] = field(default_factory=dict)
    meets: str = ""
    members: int = 1


@dataclass(frozen=True, slots=True)
class Replay:
    """Call the runtime once to queue all the device work of a captured graph; the call takes ``issue_ns`` of the program."""

    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """Record an event on a stream: it is complete when everything queued there so far is."""

    event: str
    stream: int


@dataclass(frozen=True, slots=True)
class Wait:
    """What is queued on the stream from now on waits for the event's latest record (for nothing, if there is none)."""

    event: str
    stream: int


@dataclass(frozen=True, slots=True)
class Synchronize:
    """The thread waits for an event's latest record, or a stream, or (neither given) the whole device."""

    event: str | None = None
    stream: int | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """Let the threads that await this flag go on (invisible in a trace)."""

    flag: str


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for another thread's `Signal` (invisible in a trace)."""

    flag: str


Action = Work | Begin | End | Launch | Replay | Record | Wait | Synchronize | Signal | Await


@dataclass(frozen=True, slots=True)
class Program:
    """Actions by host thread, and the machine's constants [ns]."""

    threads: Mapping[str, tuple[Action, ...]]
    issue_ns: int = 4_000  # a launch call's own work
    latency_ns: int = 3_000  # from the end of a launch call to the earliest start on the device
    call_ns: int = 1_000  # any other runtime call's own work
    return_ns: int = 2_000  # from the end of device work to the return of a call that waits for it
    handover_ns: int = 5_000  # from a signal to the awaiting thread's next action
    gap_ns: int = 0  # from the end of a stream's work to the earliest start of its next
    wait_ns: int = 0  # from an event's completion to the earliest start of work on a stream that stood waiting for it
    queue_depth: int = 1_024  # launches a stream's queue holds, the running one included

    def edited(self, change: Callable[[Action], Action | None]) -> Program:
        """Return the program with every action replaced by what ``change`` returns for it (None: left out)."""
        threads = {name: tuple(new for old in actions if (new := change(old)) is not None) for name, actions in self.threads.items()}
        return replace(self, threads=threads)

    def _nth(self, name: str, occurrence: int | None, change: Callable[[Launch], Action | None]) -> Program:
        """Change the ``occurrence``-th launch of this device work (None: every one), counted thread after thread."""
        seen = -1

        def one(action: Action) -> Action | None:
            nonlocal seen
            if not isinstance(action, Launch) or action.name != name:
                return action
            seen += 1
            return change(action) if occurrence in (None, seen) else action

        out = self.edited(one)
        if seen < (occurrence or 0):
            raise LookupError(f"{name!r} is launched {seen + 1} times only")
        return out

    def scaled(self, name: str, factor: float, occurrence: int | None = None) -> Program:
        """Return the program in which device work of this name lasts ``factor`` times as long."""
        return self._nth(name, occurrence, lambda launch: replace(launch, ns=round(launch.ns * factor)))

    def without(self, name: str, occurrence: int | None = None) -> Program:
        """Return the program in which device work of this name is not launched."""
        return self._nth(name, occurrence, lambda launch: None)

    def delayed(self, thread: str, index: int, ns: int) -> Program:
        """Return the program in which a thread computes for ``ns`` more before its ``index``-th action."""
        actions = self.threads[thread]
        return replace(self, threads={**self.threads, thread: (*actions[:index], Work(ns), *actions[index:])})
