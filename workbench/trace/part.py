"""What a reader hands over: one file in columns, before ranks are settled and files are joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from workbench.errors import Note
from workbench.trace import kernels
from workbench.trace.trace import ArgColumn, Events, Flows, Track


@dataclass
class Part:
    """One file. Ranks inside are numbered from 0: more than one when a file holds several merged ranks.

    Parameters
    ----------
    path : str
    events, flows, args, strings : as in `Trace`
    tracks : list of Track
        With ``rank`` = number within the file.
    rank : int or None
        The rank the file states, if it does.
    """

    path: str
    events: Events
    flows: Flows
    args: Mapping[str, ArgColumn]
    strings: list[str]
    tracks: list[Track]
    digest: str
    rank: int | None = None
    world_size: int | None = None
    base_time_ns: int | None = None
    devices: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    inner_ranks: int = 1


def frozen(array: np.ndarray) -> np.ndarray:
    """Return the array, made read-only."""
    array.flags.writeable = False
    return array


def group(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct rows of two or three integer columns by first appearance.

    Returns
    -------
    group : int32 [N]
    first : int64 [G], the first row of each group
    """
    columns = [np.ascontiguousarray(x, np.int64) for x in (a, b, b if c is None else c)]
    out, size = np.empty(len(a), np.int32), 256
    while True:
        first = np.zeros(size, np.int64)
        count = kernels.group_into(*columns, np.full(2 * size, -1, np.int32), first, out)
        if count >= 0:
            return out, first[:count]
        size *= 8


def numbers(column: ArgColumn | None, strings: list[str], count: int, default: int = -1) -> np.ndarray:
    """Return an argument as a dense int64 column [count]; text that is a whole number is read as one."""
    dense = np.full(count, default, np.int64)
    if column is None:
        return dense
    rows = ~column.is_text
    dense[column.event[rows]] = column.value[rows]
    texts = column.value[column.is_text]
    if len(texts):
        unique, inverse = np.unique(texts, return_inverse=True)
        values = np.array([_whole(strings[i], default) for i in unique], np.int64)
        dense[column.event[column.is_text]] = values[inverse]
    return dense


def _whole(text: str, default: int) -> int:
    digits = text.strip().removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else default
    return value if -(2**63) <= value < 2**63 else default
