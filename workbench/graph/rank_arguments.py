"""Arguments of messages, read where the producer wrote them: on the kernel, else on its operator."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.trace.trace import Trace

_WHOLE = re.compile(r"-?\d{1,18}")
MOST = 1 << 20
"""Ranks a job has at most: larger numbers are none."""
_ADDRESS = 1 << 24
"""A communicator's number at or above this is an address of the process: it names a group on its own rank only."""


def as_int(value: object, default: int = -1) -> int:
    """Return a whole number, also one written as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value.strip()) else default


class Arguments:
    """What N messages say of themselves.

    Parameters
    ----------
    trace : Trace
    event : int [N]
        Device work.
    operator : int [N]
        Operator that carries the same arguments (-1: none).
    label : list of str
        Annotation around the launch ("": none).
    """

    def __init__(self, trace: Trace, event: np.ndarray, operator: np.ndarray, label: list[str]) -> None:
        self.trace, self.event, self.operator, self.label = trace, event, operator, label
        self.concrete = [_listed(value) for value in self._values("Concrete Inputs", operator)]

    def _values(self, key: str, rows: np.ndarray) -> list[object]:
        """Value of an argument of some events: a number, a text, or None."""
        column = self.trace.args.get(key)
        if column is None or not len(column.event):
            return [None] * len(rows)
        at = np.minimum(np.searchsorted(column.event, rows), len(column.event) - 1)
        hit = column.event[at] == rows
        strings = self.trace.strings
        return [
            (strings[column.value[k]] if column.is_text[k] else int(column.value[k])) if ok else None
            for k, ok in zip(at.tolist(), hit.tolist(), strict=True)
        ]

    def values(self, key: str) -> list[object]:
        """Value of an argument of each message, of its kernel first."""
        own, outer = self._values(key, self.event), self._values(key, self.operator)
        return [b if a is None else a for a, b in zip(own, outer, strict=True)]

    def integers(self, key: str, default: int = -1) -> np.ndarray:
        """Return a numeric argument, int64 [N]."""
        return np.array([as_int(value, default) for value in self.values(key)], dtype=np.int64)

    def texts(self, key: str) -> list[str]:
        """Return an argument as text ("": absent)."""
        return ["" if value is None else str(value).strip() for value in self.values(key)]

    def sequence(self) -> np.ndarray:
        """Return the number of each message within its process group, int64 [N] (-1: not said)."""
        stated = self.integers("Seq")
        inputs = [as_int(c[1]) if len(c) >= 7 and not c[0] else -1 for c in self.concrete]  # tensors, number, communicator, rank ...
        return np.where(stated >= 0, stated, np.array(inputs, dtype=np.int64) if inputs else stated)

    def _communicator(self) -> list[str]:
        """Communicator among the inputs of the operator ("": not said)."""
        return [c[2] if len(c) >= 7 and not c[0] and as_int(c[2]) >= 0 else "" for c in self.concrete]

    def group_names(self) -> list[str]:
        """Return the name of each message's process group ("": not said), the same on all ranks."""
        numbered = ["" if as_int(text) >= _ADDRESS else text for text in self._communicator()]
        return [name or number for name, number in zip(self.texts("Process Group Name"), numbered, strict=True)]

    def local(self) -> list[str]:
        """Return what tells apart the groups of one rank: communicator, else device and stream."""
        device, stream = self.integers("device"), self.integers("stream")
        track = self.trace.events.track[self.event]
        lanes = [f"{d}/{s}" if s >= 0 else f"lane {t}" for d, s, t in zip(device.tolist(), stream.tolist(), track.tolist(), strict=True)]
        return [pointer or lane for pointer, lane in zip(self._communicator(), lanes, strict=True)]

    def members(self, size: np.ndarray, rank: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the ranks of each message's group: listed, counted from a start, or of the job's table of groups ((): not said).

        Parameters
        ----------
        size : int [N]
            Ranks of each group (0: not said).
        rank : sequence of int, length N
            Whose message it is.
        """
        first, stride = self.integers("Global rank start"), self.integers("Global rank stride")
        tables = {r.rank: _configured(r.metadata) for r in self.trace.ranks}
        known: dict[str, tuple[int, ...]] = {}
        out = []
        rows = zip(self.texts("Process Group Ranks"), first.tolist(), stride.tolist(), size.tolist(), self.group_names(), rank, strict=True)
        for text, low, step, many, name, mine in rows:
            if text not in known:
                known[text] = () if "..." in text else tuple(sorted({int(n) for n in re.findall(r"\d{1,9}", text)}))
            ranks = known[text]
            if not ranks and low >= 0 and step > 0 and 0 < many <= MOST:
                ranks = tuple(range(low, low + step * many, step))
            ranks = ranks or tables.get(mine, {}).get(name, ())
            out.append(ranks if mine in ranks else ())
        return out


def _listed(value: object) -> list[str]:
    if not isinstance(value, str):
        return []
    try:
        found = json.loads(value)
    except ValueError:
        return []
    return [str(item) for item in found] if isinstance(found, list) else []


def _configured(metadata: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    """Return the ranks of each process group the file lists (``distributedInfo.pg_config``)."""
    info = metadata.get("distributedInfo")
    rows = info.get("pg_config") if isinstance(info, dict) else None
    out: dict[str, tuple[int, ...]] = {}
    for row in rows if isinstance(rows, list) else []:
        ranks = row.get("ranks") if isinstance(row, dict) else None
        if isinstance(ranks, list) and ranks and all(isinstance(r, int) and r >= 0 for r in ranks):
            out[str(row.get("pg_name"))] = tuple(sorted(set(ranks)))
    return out
