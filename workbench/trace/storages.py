"""Which storages the operators of an execution trace allocate, write, read and view, in the order of the host.

A tensor of an execution trace is [tensor id, storage id, offset, elements, bytes an element, device] (see
`workbench.trace.execution_trace`); offset and elements count elements. Ids follow the addresses of PyTorch's objects: the id of a
storage that was freed may return for another one, which then begins another life.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from workbench.trace.execution_trace import TENSORS_IN, TENSORS_OUT
from workbench.trace.trace import Category, Trace

ALLOCATORS = re.compile(r"^aten::(new_)?empty(_like|_strided|_permuted)?$|^aten::_empty_affine_quantized$")
"""Operators that reserve memory and write nothing."""
RESIZES = re.compile(r"^aten::resize_(as_)?$|storage_resize_$|^aten::set_$")
STRIDED = re.compile(r"^aten::(as_strided|expand(_as)?|broadcast_to|unfold|_reshape_alias|view_as_real|_unsafe_view|reshape)$")
"""Operators whose result may have more elements than its storage: an extent cannot be told from the number of elements."""
IN_PLACE = re.compile(r"[^_]_$|\.out$|_out$|^c10d::|^nccl:|^record_param_comms$")
"""Operators that write one of their operands."""


class Role(IntEnum):
    """What an operator does to a tensor."""

    READ = 0
    ALLOCATE = 1  # reserves it, writes nothing
    CREATE = 2  # a fresh tensor on a storage of which no operand is: allocated and written
    WRITE = 3  # in place
    VIEW = 4  # a new tensor on the storage of an operand
    RESIZE = 5  # changes how much its storage holds


@dataclass(frozen=True, slots=True)
class Mention:
    """One tensor at one operator."""

    event: int
    role: Role
    tensor: int
    storage: tuple[int, int, str]  # rank, storage id, device
    low: int  # first byte [B]
    high: int  # behind the last, were the tensor contiguous [B]
    least: int  # behind the first element: no layout reaches less far [B]


@dataclass(slots=True)
class Life:
    """A storage from its allocation to its last mention.

    ``size`` is what was allocated [B]; of a storage that is older than the recording (``resident``) what its first tensor spans.
    """

    storage: tuple[int, int, str]
    resident: bool
    size: int
    mentions: list[Mention] = field(default_factory=list)
    tensors: set[int] = field(default_factory=set)
    born: int = 0  # storages made by its last mention

    @property
    def maker(self) -> int:
        """Event that allocated or first mentioned it."""
        return self.mentions[0].event


def has_tensors(trace: Trace) -> bool:
    """Whether operators of a recording carry the tensors of an execution trace."""
    return TENSORS_IN in trace.args or TENSORS_OUT in trace.args


def mentions(trace: Trace) -> Iterator[Mention]:
    """Yield what each operator does to which tensor, in the order of the host: operands when it starts, results when it ends.

    A result that an operator within it has already given is not counted again.
    """
    e = trace.events
    read, written = trace.text_arg(TENSORS_IN), trace.text_arg(TENSORS_OUT)
    rows = np.flatnonzero((e.category == Category.CPU_OP) & ((read >= 0) | (written >= 0)))
    parsed = {int(i): _tensors(trace.strings[i]) for i in np.unique(np.concatenate([read[rows], written[rows]])) if i >= 0}
    rank = np.array([track.rank for track in trace.tracks], dtype=np.int64)
    depth = _depth(e.parent, rows)
    end = e.start_ns[rows] + np.maximum(e.dur_ns[rows], 0)
    at = np.concatenate([e.start_ns[rows], end])
    closes = np.repeat([0, 1], len(rows))
    nested = np.concatenate([depth, -depth])  # outer operators open first, inner ones close first
    inner: dict[int, set[int]] = {}
    for place in np.lexsort((nested, closes, at)).tolist():
        row = int(rows[place % len(rows)])
        name, own = trace.name_of(row), int(rank[e.track[row]])
        operands = parsed.get(int(read[row]), ())
        if place < len(rows):
            yield from (_mention(row, Role.READ, own, one) for one in operands)
            continue
        results = parsed.get(int(written[row]), ())
        told = inner.pop(row, set())
        fresh = [one for one in results if one[0] not in told]
        up = int(e.parent[row])
        if up >= 0:
            inner.setdefault(up, set()).update(told, (one[0] for one in results))
        yield from (_mention(row, role, own, one) for role, one in _roles(name, operands, fresh))


def _depth(parent: np.ndarray, rows: np.ndarray) -> np.ndarray:
    depth, at = np.zeros(len(rows), dtype=np.int64), parent[rows]
    while (at >= 0).any():
        depth += at >= 0
        at = np.where(at >= 0, parent[at], -1)
    return depth


Tensor = tuple[int, int, int, int, int, str]


def _tensors(text: str) -> tuple[Tensor, ...]:
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    rows = (row for row in found if isinstance(row, list) and len(row) == 6) if isinstance(found, list) else ()
    return tuple(
        (row[0], row[1], row[2], row[3], row[4], str(row[5]))
        for row in rows
        if all(isinstance(n, int) for n in row[:5]) and row[1] > 0 and min(row[2:5]) >= 0
    )


def _mention(event: int, role: Role, rank: int, one: Tensor) -> Mention:
    tensor, storage, offset, count, size, device = one
    low = offset * size
    return Mention(event, role, tensor, (rank, storage, device), low, low + count * size, low + (size if count else 0))


def _roles(name: str, operands: tuple[Tensor, ...], results: list[Tensor]) -> Iterator[tuple[Role, Tensor]]:
    """Yield what an operator does to its results, and to operands that it writes in place."""
    storages = {(one[1], one[5]) for one in operands}
    tensors = {one[0] for one in operands}
    in_place = IN_PLACE.search(name) is not None
    for one in results:
        if (one[1], one[5]) not in storages:
            yield (Role.ALLOCATE if ALLOCATORS.match(name) else Role.CREATE), one
        elif one[0] not in tensors:
            yield Role.VIEW, one
        elif in_place:
            yield (Role.RESIZE if RESIZES.search(name) else Role.WRITE), one
    if in_place and not results:
        yield from ((Role.WRITE, one) for one in operands[:1] if not name.startswith(("c10d", "nccl", "record")))


def lives(trace: Trace) -> list[Life]:
    """Return the lives of all storages, by first mention.

    An id returns without a sign where memory is allocated out of the sight of operators: an unknown tensor that is larger than the
    storage, after other storages were made since its last mention, begins another life.
    """
    out: list[Life] = []
    current: dict[tuple[int, int, str], Life] = {}
    born = 0
    for one in mentions(trace):
        life = current.get(one.storage)
        begins = one.role in (Role.ALLOCATE, Role.CREATE)
        returned = (
            life is not None and one.role == Role.READ and one.high > life.size and one.tensor not in life.tensors and born > life.born
        )
        if life is None or begins or returned:
            life = Life(one.storage, not begins and not returned, one.high)
            out.append(life)
            current[one.storage] = life
        if one.role == Role.RESIZE:
            life.size = max(life.size, one.high)
        born += begins
        life.born = born
        life.tensors.add(one.tensor)
        life.mentions.append(one)
    return out
