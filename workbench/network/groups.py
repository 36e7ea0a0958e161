"""Which cards talk to each other, and where they sit: members of a group by tier, and the crossings of its ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec


@dataclass(frozen=True)
class Group:
    """A group of cards on a cluster.

    ``counts[t]`` is how many instances of the tier below (cards for t = 0) one instance of tier t holds of it at most;
    ``edges[t]`` how many messages of its ring cross tier t, ``crossings[t]`` how many at most of them leave one such instance (1: the
    ring enters and leaves once);
    ``beside[t]`` how many equal groups at most share one instance of the tier below, this one counted: they share its ports.
    """

    size: int
    counts: tuple[int, ...]
    edges: tuple[int, ...]
    crossings: tuple[int, ...]
    beside: tuple[int, ...]
    whole: bool  # every instance it touches holds the same number of members


def group_of(cluster: ClusterSpec, ranks: Sequence[int], alone: bool = False) -> Group:
    """Return where the members of a group sit.

    Parameters
    ----------
    cluster : ClusterSpec
    ranks : sequence of int
        Members in the order of their ring; rank r is card r, cards of an instance follow each other.
    alone : bool
        No other group of the same kind communicates at the same time; else all cards of the cluster do.

    Returns
    -------
    Group

    Raises
    ------
    Refused
        No member, one twice, or one that is no card of the cluster.
    """
    members = np.asarray(ranks, dtype=np.int64)
    if members.size == 0 or members.min() < 0 or members.max() >= cluster.cards or len(np.unique(members)) != len(members):
        raise Refused(cluster.name, f"ranks {list(ranks)[:8]} are no group of its {cluster.cards} cards", "name each card once, from 0")
    counts, edges, crossings, beside, whole = [], [], [], [], True
    follower = np.roll(members, -1)
    for level in range(len(cluster.tiers)):
        inner, outer = members // cluster.below[level], members // cluster.below[level + 1]
        touched = np.unique(inner)
        held = np.bincount(np.unique(np.stack((touched // cluster.tiers[level].size, touched)), axis=1)[0])
        counts.append(int(held.max()))
        whole &= len(np.unique(held[held > 0])) == 1
        leaves = (inner != follower // cluster.below[level]) & (outer == follower // cluster.below[level + 1])
        edges.append(int(leaves.sum()) if len(members) > 1 else 0)
        crossings.append(int(np.bincount(inner[leaves]).max()) if leaves.any() and len(members) > 1 else 0)
        within = int(np.bincount(inner).max())
        beside.append(1 if alone else max(1, cluster.below[level] // within))
    return Group(len(members), tuple(counts), tuple(edges), tuple(crossings), tuple(beside), whole)


@lru_cache(maxsize=4096)
def strided(cluster: ClusterSpec, size: int, stride: int = 1, alone: bool = False) -> Group:
    """Return the group of ``size`` cards that are ``stride`` apart, from card 0: tensor parallel 1, data parallel tp x pp, and so on."""
    return group_of(cluster, range(0, size * stride, stride), alone)
