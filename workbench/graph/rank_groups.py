"""Process groups of a recording: which messages of which ranks belong to one group."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from workbench.graph.rank_messages import Messages

APART = 4.0
"""Ends of one group agree at least this many times better than those of ranks of different groups."""


@dataclass(frozen=True)
class Group:
    """One process group.

    Parameters
    ----------
    name : str
        As recorded ("": not said).
    ranks : tuple of int
        Its ranks; those recorded, where the members are not said.
    size : int
        Ranks it has, recorded or not.
    clear : bool
        False: more ranks than it has could belong to it, so that nothing in it is matched.
    """

    name: str
    ranks: tuple[int, ...]
    size: int
    clear: bool = True

    @property
    def label(self) -> str:
        """Name for a person."""
        many = len(self.ranks)
        shown = ", ".join(map(str, self.ranks[:8])) + (f", ... {self.ranks[-1]}" if many > 8 else "")
        if many > 2 and self.ranks == tuple(range(self.ranks[0], self.ranks[0] + many)):
            shown = f"{self.ranks[0]}-{self.ranks[-1]}"
        return (f"group {self.name} of " if self.name else "") + f"ranks {shown}" + (f" of {self.size}" if self.size > many else "")


def groups(m: Messages, world: int) -> tuple[np.ndarray, tuple[Group, ...]]:
    """Return the group of each message, int32 [N], and all groups.

    Parameters
    ----------
    m : Messages
    world : int
        Ranks of the job (0: not said).

    Notes
    -----
    Groups are told apart by their ranks and name, else by name and size, else by size and the order in which a rank first uses its
    communicators, or its streams.
    """
    keys = _keys(m)
    holders: dict[tuple[object, ...], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, (key, rank) in enumerate(zip(keys, m.rank.tolist(), strict=True)):
        holders[key][rank].append(row)
    of = np.full(len(m), -1, dtype=np.int32)
    out: list[Group] = []
    for key, rows in holders.items():
        for group, mine in _resolved(m, key, rows, world):
            of[[row for rank in mine for row in rows[rank]]] = len(out)
            out.append(group)
    return of, tuple(out)


def _keys(m: Messages) -> list[tuple[object, ...]]:
    order: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    out: list[tuple[object, ...]] = []
    for rank, name, members, size, local in zip(m.rank.tolist(), m.name, m.members, m.size.tolist(), m.local, strict=True):
        if members:
            out.append(("ranks", name, members))
        elif name:
            out.append(("name", name, size))
        else:
            seen = order[rank, size]
            out.append(("local", seen.setdefault(local, len(seen)), size))
    return out


def _resolved(m: Messages, key: tuple[object, ...], rows: dict[int, list[int]], world: int) -> list[tuple[Group, list[int]]]:
    """Return the groups behind one key, each with its recorded ranks."""
    have = sorted(rows)
    if key[0] == "ranks":
        ranks = key[2]
        assert isinstance(ranks, tuple)
        return [(Group(str(key[1]), ranks, len(ranks)), have)]
    name = str(key[1]) if key[0] == "name" else ""
    size = int(m.size[rows[have[0]][0]]) or max(world, len(have))
    if len(have) <= size:
        return [(Group(name, tuple(range(world)) if size == world else tuple(have), size), have)]
    if size == 1:
        return [(Group(name, (rank,), 1), [rank]) for rank in have]
    parts = _by_ends(m, {rank: np.array(r) for rank, r in rows.items()}, size)
    if not parts:
        return [(Group(name, tuple(have), size, clear=False), have)]
    return [(Group(name, tuple(part), size), part) for part in parts]


def _by_ends(m: Messages, rows: dict[int, np.ndarray], size: int) -> list[list[int]]:
    """Split ranks into groups of a size whose messages end together, whatever their clocks say ([]: not clear).

    Members of a group end together: the difference of their clocks is the same at each message. Ranks of other groups differ.
    """
    have = sorted(rows)
    if len(have) % size or len({len(r) for r in rows.values()}) > 1 or len(rows[have[0]]) < 3:
        return []
    ends = np.array([m.end[rows[rank]] for rank in have])
    ends = ends - ends[:, :1]
    spread = np.array([[np.median(np.abs(a - b - np.median(a - b))) for b in ends] for a in ends])
    left, out = list(range(len(have))), []
    while left:
        near = sorted(left, key=lambda i: (spread[left[0], i], i))
        mine, others = near[:size], near[size:]
        inside = max(spread[i, j] for i in mine for j in mine)
        if others and min(spread[i, j] for i in mine for j in others) <= APART * inside:
            return []
        out.append(sorted(have[i] for i in mine))
        left = [i for i in left if i not in mine]
    return sorted(out)
