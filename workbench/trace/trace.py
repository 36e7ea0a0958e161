"""A trace in columns: what every reader produces and everything later reads.

Times are int64 nanoseconds exactly as recorded (raw facts stay raw). Text is interned: columns hold
indices into ``Trace.strings``. Nothing of an event's arguments is dropped: see `ArgColumn`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np

from workbench.errors import Note


class Category(IntEnum):
    """What an event is, whatever its producer called it."""

    OTHER = 0
    CPU_OP = 1  # framework operator on a host thread
    RUNTIME = 2  # CUDA / HIP / MTIA / ... runtime call
    DRIVER = 3  # CUDA driver call
    KERNEL = 4
    MEMCPY = 5
    MEMSET = 6
    SYNC = 7  # synchronisation record (cuda_sync): neither work nor busy time
    ANNOTATION = 8  # user annotation on a host thread
    GPU_ANNOTATION = 9  # its projection on the device: a label, never work
    PYTHON = 10  # Python frame: a label, never a node
    OVERHEAD = 11  # profiler overhead
    TRACE = 12  # the record of the profiling window itself


DEVICE_WORK = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)
HOST_CALLS = (Category.RUNTIME, Category.DRIVER)


@dataclass(frozen=True, slots=True)
class Events:
    """Complete events, one row each, in file order. All arrays have length E and are read-only.

    ``parent`` is the innermost event that encloses this one on the same track (-1: none); nesting is
    deterministic: by start, then longer first, then kind, recorded id and name, then file order. ``correlation`` and ``external_id``
    are -1 where absent. ``name`` and ``raw_category`` index ``Trace.strings``; ``track`` indexes ``Trace.tracks``.
    """

    start_ns: np.ndarray  # int64 [ns]
    dur_ns: np.ndarray  # int64 [ns], as recorded (may be negative: cleaned later, with a note)
    track: np.ndarray  # int32
    name: np.ndarray  # int32
    category: np.ndarray  # int8, Category
    raw_category: np.ndarray  # int32
    correlation: np.ndarray  # int64
    external_id: np.ndarray  # int64
    parent: np.ndarray  # int32

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class ArgColumn:
    """One argument key, sparse: row ``event[i]`` has value ``value[i]``.

    ``is_text[i]`` false: an integer. True: an index into ``Trace.strings``, whose text is the *string
    value* for JSON strings and the *raw JSON text* for everything else (arrays, objects, floats, booleans).
    """

    event: np.ndarray  # int32 [K], ascending
    value: np.ndarray  # int64 [K]
    is_text: np.ndarray  # bool [K]


@dataclass(frozen=True, slots=True)
class Track:
    """A lane of events: a host thread, or a stream of a device."""

    rank: int
    kind: str  # "host", "device" or "other"
    pid: str  # as recorded
    tid: str  # as recorded
    device: int = -1  # device tracks only
    stream: int = -1  # device tracks only
    label: str = ""  # thread or process name from the metadata


@dataclass(frozen=True, slots=True)
class Steps:
    """Profiler step marks on the host, in time order; arrays of length S (0 when the trace has none)."""

    number: np.ndarray  # int64
    start_ns: np.ndarray  # int64 [ns]
    dur_ns: np.ndarray  # int64 [ns]
    event: np.ndarray  # int32, the annotation's row in Events
    rank: np.ndarray  # int32

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True)
class Flows:
    """Flow records (arrows) in file order; arrays of length F."""

    id: np.ndarray  # int64
    start_ns: np.ndarray  # int64 [ns]
    track: np.ndarray  # int32
    category: np.ndarray  # int32, index into Trace.strings
    phase: np.ndarray  # uint8, ord of "s", "t" or "f"


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of the job."""

    rank: int
    path: str
    world_size: int | None = None
    base_time_ns: int | None = None
    devices: tuple[str, ...] = ()  # device names by device id, as the producer wrote them
    stated: bool = True  # False: the rank was assumed (said in a note)
    metadata: Mapping[str, object] = field(default_factory=dict)  # top-level keys of the file


@dataclass(frozen=True)
class Trace:
    """A recording of one or many ranks. See the module's text for the meaning of columns."""

    events: Events
    strings: tuple[str, ...]
    args: Mapping[str, ArgColumn]
    tracks: tuple[Track, ...]
    steps: Steps
    flows: Flows
    ranks: tuple[Rank, ...]
    counts: Mapping[str, Mapping[str, int]]  # per path: raw record counts ("events", "ph:X", "cat:kernel", "flow:ac2g:s", ...)
    notes: tuple[Note, ...]
    digest: str  # of the decompressed bytes; identifies the trace in caches and predictions

    def name_of(self, event: int) -> str:
        """Return the name of one event."""
        return self.strings[self.events.name[event]]

    def integer_arg(self, key: str, default: int = -1) -> np.ndarray:
        """Return one argument as a dense int64 column [E]; text values read as ``default``."""
        dense = np.full(len(self.events), default, dtype=np.int64)
        column = self.args.get(key)
        if column is not None:
            rows = ~column.is_text
            dense[column.event[rows]] = column.value[rows]
        return dense

    def text_arg(self, key: str) -> np.ndarray:
        """Return one argument as a dense int32 column [E] of string indices (-1: absent or an integer)."""
        dense = np.full(len(self.events), -1, dtype=np.int32)
        column = self.args.get(key)
        if column is not None:
            dense[column.event[column.is_text]] = column.value[column.is_text]
        return dense

    @cached_property
    def is_device_work(self) -> np.ndarray:
        """Bool [E]: kernels, copies and sets."""
        return np.isin(self.events.category, DEVICE_WORK)
