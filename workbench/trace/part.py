"""What a reader hands over: one file in columns, before ranks are settled and files are joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from workbench.errors import Note
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
