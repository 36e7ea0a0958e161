"""The same message on several ranks, by process group, number, kind and size; point-to-point messages by pair and order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from workbench.errors import Note
from workbench.graph.rank_groups import Group, groups
from workbench.graph.rank_messages import Messages, Sense
from workbench.graph.rank_order import paired
from workbench.operators.table import Kind

PAIRS = (Sense.SEND, Sense.RECEIVE)


@dataclass(frozen=True)
class Matches:
    """Messages that several ranks recorded; arrays of length N (messages) or C (matches)."""

    of: np.ndarray  # int32 [N], match of each message (-1: none)
    group: np.ndarray  # int32 [N], group of each message
    groups: tuple[Group, ...]
    first: np.ndarray  # int32 [C], a message of each match
    expected: np.ndarray  # int32 [C], how many ranks take part
    present: np.ndarray  # int32 [C], how many of them are recorded
    alone: np.ndarray  # bool [N], messages in groups of one rank: they have no peers
    notes: tuple[Note, ...]

    @property
    def complete(self) -> np.ndarray:
        """Bool [C]: all members are recorded."""
        return self.present == self.expected


def match(m: Messages, world: int) -> Matches:
    """Match the messages of all ranks.

    Parameters
    ----------
    m : Messages
    world : int
        Ranks of the job (0: not said).

    Returns
    -------
    Matches
        Every message is in one match at most; a match holds a rank once at most.
    """
    of_group, found = groups(m, world)
    sets: list[tuple[list[int], int]] = []
    refused: dict[str, int] = defaultdict(int)
    for number, group in enumerate(found):
        mine = np.flatnonzero(of_group == number)
        if not group.clear or group.size == 1:
            refused["group-unclear"] += 0 if group.size == 1 else len(mine)
            continue
        pair = _is_pair(m, mine, group)
        for rows in _split(m, mine[~pair]):
            sets += [(found_rows, group.size) for found_rows in _matched(m, rows, refused)]
        sets += [(found_rows, 2) for found_rows in _point_to_point(m, mine[pair], group, refused)]
    of = np.full(len(m), -1, dtype=np.int32)
    for number, (members, _) in enumerate(sets):
        of[members] = number
    first = np.array([members[0] for members, _ in sets], dtype=np.int32)
    expected = np.array([count for _, count in sets], dtype=np.int32)
    present = np.array([len(members) for members, _ in sets], dtype=np.int32)
    alone = np.array([found[g].size == 1 for g in of_group.tolist()], dtype=bool)
    return Matches(of, of_group, found, first, expected, present, alone, tuple(_notes(m, of, alone, expected, present, refused)))


def _is_pair(m: Messages, rows: np.ndarray, group: Group) -> np.ndarray:
    """Bool [K]: messages between two ranks of a group (in a group of two without directions both sides are one exchange)."""
    kind = (m.kind[rows] == Kind.SEND_RECV) | np.isin(m.sense[rows], PAIRS)
    return kind & ((group.size > 2) | np.isin(m.sense[rows], PAIRS))


def _split(m: Messages, rows: np.ndarray) -> Iterable[dict[int, np.ndarray]]:
    """Rows by rank."""
    by_rank = {int(r): rows[m.rank[rows] == r] for r in np.unique(m.rank[rows])}
    return [by_rank] if len(by_rank) > 1 else []


def _token(m: Messages, row: int) -> tuple[int, int]:
    """Kind and, where all members must have the same, size."""
    return int(m.kind[row]), int(m.bytes[row]) if m.sense[row] == Sense.ALL else 0


def _matched(m: Messages, rows: dict[int, np.ndarray], refused: dict[str, int]) -> list[list[int]]:
    """Sets of rows of one group that are one collective."""
    numbered = all((m.seq[r] >= 0).all() for r in rows.values())
    if numbered:
        shared = defaultdict(set)
        for rank, mine in rows.items():
            for row in mine.tolist():
                shared[int(m.seq[row]), int(m.kind[row])].add(rank)
        if any(len(ranks) > 1 for ranks in shared.values()):
            return _by_number(m, rows, refused)
        refused["numbers-disagree"] += sum(len(r) for r in rows.values())
    return _by_order(m, rows, refused)


def _by_number(m: Messages, rows: dict[int, np.ndarray], refused: dict[str, int]) -> list[list[int]]:
    keyed: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for mine in rows.values():
        seen: dict[tuple[int, int], int] = defaultdict(int)
        for row in mine.tolist():
            key = int(m.seq[row]), int(m.kind[row])
            keyed[*key, seen[key]].append(row)
            refused["repeated"] += seen[key] > 0
            seen[key] += 1
    out = []
    for found in keyed.values():
        sizes = {_token(m, row)[1] for row in found} - {0}
        if len(sizes) > 1:
            refused["sizes-disagree"] += len(found)
        elif len(found) > 1:
            out.append(found)
    return out


def _by_order(m: Messages, rows: dict[int, np.ndarray], refused: dict[str, int]) -> list[list[int]]:
    """Lay every rank beside the longest one."""
    code: dict[tuple[int, int], int] = {}
    tokens = {rank: np.array([code.setdefault(_token(m, row), len(code)) for row in mine.tolist()]) for rank, mine in rows.items()}
    reference = max(rows, key=lambda rank: (len(rows[rank]), -rank))
    sets = [[int(row)] for row in rows[reference]]
    for rank, mine in rows.items():
        if rank == reference:
            continue
        here, there = paired(tokens[reference], m.end[rows[reference]], tokens[rank], m.end[mine])
        for a, b in zip(here.tolist(), there.tolist(), strict=True):
            sets[a].append(int(mine[b]))
    out = [s for s in sets if len(s) > 1]
    refused["by-order"] += sum(map(len, out))
    return out


def _point_to_point(m: Messages, rows: np.ndarray, group: Group, refused: dict[str, int]) -> list[list[int]]:
    """Sends and receives of a group by pair of ranks; in a group of two the other rank is the peer."""
    lanes: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows.tolist():
        rank, peer, sense = int(m.rank[row]), int(m.peer[row]), int(m.sense[row])
        if peer < 0 and len(group.ranks) == group.size == 2:
            peer = next(r for r in group.ranks if r != rank)
        if peer < 0 or peer == rank or sense not in PAIRS:
            refused["peer-unknown"] += 1
            continue
        lanes[(rank, peer) if sense == Sense.SEND else (peer, rank)][rank].append(row)
    out = []
    for sides in lanes.values():
        if len(sides) == 2:
            (a, mine), (_, other) = sorted(sides.items())
            del a
            here, there = paired(m.bytes[mine], m.end[mine], m.bytes[other], m.end[other])
            out += [[mine[i], other[j]] for i, j in zip(here.tolist(), there.tolist(), strict=True)]
    return out


def _notes(
    m: Messages, of: np.ndarray, alone: np.ndarray, expected: np.ndarray, present: np.ndarray, refused: dict[str, int]
) -> Iterable[Note]:
    where = "ranks"
    loose = (of < 0) & ~alone
    if loose.any():
        ranks = ", ".join(str(r) for r in np.unique(m.rank[loose])[:8])
        text = f"messages without a recorded counterpart on another rank (ranks {ranks}) keep their recorded time"
        yield Note("message-unmatched", where, int(loose.sum()), text, "open the recordings of all ranks together")
    partial = int((present < expected).sum())
    if partial:
        text = "messages of which some members are not recorded keep their recorded time: absent ranks are not waited for"
        yield Note("missing-peers", where, partial, text, "open the recordings of all ranks together")
    told = (
        ("by-order", "messages-by-order", "messages without a number in their group are matched by order, kind and size"),
        ("numbers-disagree", "numbers-disagree", "messages whose numbers in the group have nothing in common across ranks: order decides"),
        ("repeated", "message-repeated", "messages with a number their rank has used before: matched in order of appearance"),
        ("sizes-disagree", "sizes-disagree", "messages of one group and number whose sizes differ between ranks: not matched"),
        ("group-unclear", "group-unclear", "messages that could belong to several groups of the same size: not matched"),
        ("peer-unknown", "peer-unknown", "point-to-point messages that do not say with whom: not matched"),
    )
    for key, code, text in told:
        if refused[key]:
            yield Note(code, where, refused[key], text, "record with a profiler that writes process groups" if "unknown" in code else "")
