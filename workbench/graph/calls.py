"""What a runtime call does to the order of things, by its name. Rules are data; the first that matches wins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

import numpy as np


class Call(IntEnum):
    """Role of a runtime or driver call."""

    PLAIN = 0
    LAUNCH = 1  # asks for a kernel or a graph of kernels
    COPY = 2  # asks for a copy or a fill and returns at once (pageable copies excepted)
    COPY_SYNC = 3  # returns when the copy is done
    DEVICE_SYNC = 4  # waits for everything launched before
    STREAM_SYNC = 5
    EVENT_SYNC = 6
    FREE = 7  # waits for the device where the allocator has to
    RECORD = 8  # marks a point on a stream
    WAIT = 9  # lets a stream wait for such a mark


RULES: tuple[tuple[str, Call], ...] = (
    (r"(Device|Ctx|Context|Thread)Synchronize|SynchronizeDevice", Call.DEVICE_SYNC),
    (r"StreamSynchronize|SynchronizeStream", Call.STREAM_SYNC),
    (r"EventSynchronize|SynchronizeEvent", Call.EVENT_SYNC),
    (r"EventRecord(?!ing)|RecordEvent", Call.RECORD),
    (r"StreamWaitEvent", Call.WAIT),
    (r"^(cuda|hip|cu|aclrt)(Mem)?(Free|FreeHost|HostFree)(_v\d)?$", Call.FREE),
    (r"Mem(cpy|set).*Async|Memset|MemsetD\d", Call.COPY),
    (r"Memcpy", Call.COPY_SYNC),
    (r"Launch(Cooperative)?(Kernel|HostFunc)|GraphLaunch|LaunchKernel|^cuLaunch|submit_for_execution", Call.LAUNCH),
)
"""Pattern searched in the call's name, and what such a call is (CUDA, HIP, MTIA and ACL spellings)."""

WAITING = (Call.DEVICE_SYNC, Call.STREAM_SYNC, Call.EVENT_SYNC, Call.FREE)


def call_of(name: str) -> Call:
    """Return the role of a runtime call from its name."""
    return next((call for pattern, call in RULES if re.search(pattern, name)), Call.PLAIN)


def classify(names: np.ndarray, strings: Sequence[str]) -> np.ndarray:
    """Return the role of each call.

    Parameters
    ----------
    names : int32 [N]
        Index into ``strings``.
    strings : sequence of str
        Interned names.

    Returns
    -------
    int8 [N], `Call`
    """
    used, inverse = np.unique(names, return_inverse=True)
    roles = np.array([call_of(strings[i]) for i in used.tolist()], dtype=np.int8)
    return roles[inverse] if len(used) else np.zeros(0, dtype=np.int8)
