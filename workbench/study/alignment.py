"""Which operators of one recording are those of another: by signature, else by name and place, else by name, else by kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from workbench.study.call_order import matched_calls
from workbench.study.one_step import Row

ALONE = "on one side only"
EXACT = "name, shapes, dtype"
GRID = "name, launch grid"
ORDER = "name, calling order"
NAME, KIND = "name", "kind"
IDENTIFIED = frozenset(
    ("gemm", "batched_gemm", "grouped_gemm", "conv_forward", "conv_backward_data", "conv_backward_weight", "conv_backward",
     "attention_forward", "attention_backward", "rnn")
)  # fmt: skip
"""Kinds whose dimensions say which operator it is, whatever it is called."""
Key = Callable[[Row], Hashable | None]


@dataclass(frozen=True)
class Pair:
    """Rows of both recordings that stand for the same work; one side is empty where nothing matches."""

    by: str
    a: tuple[Row, ...]
    b: tuple[Row, ...]


def align(a: Sequence[Row], b: Sequence[Row], other_card: bool = True) -> list[Pair]:
    """Align the operators of two steps.

    Parameters
    ----------
    a, b : sequence of Row
        In calling order.
    other_card : bool
        The recordings are of different cards, whose libraries call their kernels differently: rule 6 applies.

    Returns
    -------
    list of Pair
        Every row stands in exactly one pair. Each rule is tried on what the rules before it have left:

        1. name, shapes and dtype; without shapes, name and launch grid;
        2. name and shapes (another dtype);
        3. name and calling order: the k-th call of a name, where both sides call it as often; else the calls that match where all
           calls of both steps are laid side by side (`workbench.study.call_order`), so that an operator inserted or removed does not
           shift the others; operators whose calls meet on the other side in one operator stand together;
        4. kind and dimensions of products, convolutions and attention (another library's operator);
        5. name, all of that name together, but only those that the other side has too;
        6. kind, all of that kind together (kernels of another card; never those of unknown kind).
    """
    out: list[Pair] = []
    left, right = list(a), list(b)

    def pairing(by: str, keys: tuple[Key, Key]) -> None:
        nonlocal left, right
        first, second = _grouped(left, keys[0]), _grouped(right, keys[1])
        common = [key for key in first if key in second]
        out.extend(Pair(by, tuple(first[key]), tuple(second[key])) for key in common)
        used = {id(row) for key in common for row in (*first[key], *second[key])}
        left, right = ([row for row in rows if id(row) not in used] for rows in (left, right))

    pairing(EXACT, _both(lambda row: row.signature if row.shapes else None))
    pairing(GRID, _both(lambda row: row.signature))
    pairing("name, shapes", _both(lambda row: (row.name, row.shapes) if row.shapes else None))
    pairing(ORDER, _both(_order_key(a, b, left, right)))
    pairing("kind, dimensions", _both(lambda row: (row.kind, row.dims) if row.kind in IDENTIFIED and any(row.dims) else None))
    pairing(NAME, _both(lambda row: row.name))
    if other_card:
        pairing(KIND, _both(lambda row: row.kind if row.kind != "unknown" else None))
    out += [Pair(ALONE, (row,), ()) for row in left] + [Pair(ALONE, (), (row,)) for row in right]
    return out


def _both(key: Key) -> tuple[Key, Key]:
    return key, key


def _grouped(rows: Sequence[Row], key: Key) -> dict[Hashable, list[Row]]:
    out: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        found = key(row)
        if found is not None:
            out[found].append(row)
    return out


def _order_key(a: Sequence[Row], b: Sequence[Row], left: Sequence[Row], right: Sequence[Row]) -> Key:
    """Key what is left by the rows whose calls meet; rows that meet none get no key."""
    open_a, open_b = ({id(row) for row in rows} for rows in (left, right))
    count_a, count_b = (Counter(row.name for row in rows for _ in row.calls) for rows in (left, right))
    even = {name for name, count in count_a.items() if count == count_b[name]}
    meetings: list[tuple[Row, Row]] = []
    for name in even:
        sides = ([row for row in _calls(rows) if row.name == name] for rows in (left, right))
        meetings += zip(*sides, strict=True)
    if (count_a.keys() & count_b.keys()) - even:
        calls_a, calls_b = _calls(a), _calls(b)
        for i, j in matched_calls([row.name for row in calls_a], [row.name for row in calls_b]):
            row, other = calls_a[i], calls_b[j]
            if row.name not in even and id(row) in open_a and id(other) in open_b:
                meetings.append((row, other))
    group = _joined(meetings)
    return lambda row: group.get(id(row))


def _calls(rows: Sequence[Row]) -> list[Row]:
    """Return the row of every call, in calling order."""
    calls = [(place, at) for at, row in enumerate(rows) for place in row.calls]
    return [rows[at] for _, at in sorted(calls)]


def _joined(meetings: Sequence[tuple[Row, Row]]) -> dict[int, int]:
    """Return for every row that meets another the group of all rows it is joined with."""
    leader: dict[int, int] = {}

    def root(at: int) -> int:
        leader.setdefault(at, at)
        while leader[at] != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    for row, other in meetings:
        leader[root(id(row))] = root(id(other))
    return {at: root(at) for at in list(leader)}
