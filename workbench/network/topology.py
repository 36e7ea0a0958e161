"""How heavily a pattern of traffic loads the links of a topology.

Every rule returns two numbers for a tier, per byte that leaves a member. ``link``: bytes over the busiest link between members, in units
of what one link (ring, mesh, torus) or all ports of a member together (elsewhere) carry; routes are shortest paths, dimension by
dimension. ``uplink``: bytes over the links above a leaf switch, in units of what all ports of the members below it carry; more than 1
needs an oversubscribed tier, and slows what leaves the leaf. Where no leaf is stated, every member has a leaf of its own.

Sources: Dally, Towles, Principles and Practices of Interconnection Networks (2004), chapters 3 and 5 (channel load of uniform and of
permutation traffic on tori and meshes); Leiserson, Fat-trees (IEEE ToC 1985); Kim et al., Technology-Driven, Highly-Scalable Dragonfly
Topology (ISCA 2008).
"""

from __future__ import annotations

import math

from workbench.hardware.cluster import Tier
from workbench.hardware.cluster_schema import GRIDS, POINT_TO_POINT


def neighbour_load(tier: Tier, members: int) -> tuple[float, float]:
    """Return (link, uplink) of a ring over the members, each sending to the next, members in the order of the topology.

    Parameters
    ----------
    tier : Tier
    members : int
        Members of the tier that take part.

    Returns
    -------
    link, uplink : float
        1, for neighbours have links of their own or switches join all (on a mesh or a part of a ring the last message goes back against
        the others; both ways are free). Fully connected: rings in every order load all links between members alike, see `_linked`. Of
        every leaf's members one sends to another leaf: oversubscription / leaf.
    """
    return _linked(tier, members), _above(tier) / min(tier.leaf or 1, members)


def uniform_load(tier: Tier, members: int) -> tuple[float, float]:
    """Return (link, uplink) when every member sends equal shares to all others (direct algorithms, all-to-all).

    Parameters
    ----------
    tier : Tier
    members : int
        Members that take part; contiguous ones.

    Returns
    -------
    link, uplink : float
        With ``n`` members and extents ``a``: torus max over dimensions of n/(n-1) a/8 (odd a: (a^2-1)/(8 a)); mesh, and a part of a
        ring or torus, which is open, the middle link, n/(n-1) floor(a/2) ceil(a/2)/a;
        fully connected (size - 1)/(n - 1); elsewhere 1. Uplink: oversubscription (n - leaf)/(n - 1).
    """
    n = members
    if n <= 1:
        return 1.0, 0.0
    uplink = _above(tier) * max(0, n - (tier.leaf or 1)) / (n - 1)
    if tier.topology in POINT_TO_POINT:
        middle = [
            (a * a - a % 2) / (8 * a) if tier.topology != "mesh" and a == whole > 2 else (a // 2) * ((a + 1) // 2) / a
            for a, whole in zip(used_extents(tier, n), tier.extents, strict=False)
        ]
        return n / (n - 1) * max(middle), uplink
    return _linked(tier, n), uplink


def pair_load(tier: Tier, members: int, distance: int) -> tuple[float, float]:
    """Return (link, uplink) when every member exchanges with one other, ``distance`` ranks away (halving-doubling, send and receive).

    Parameters
    ----------
    tier : Tier
    members : int
    distance : int
        Ranks between partners, at least 1.

    Returns
    -------
    link, uplink : float
        Fully connected: ``size - 1``, for one of a card's links serves the pair. Ring: ``distance``, the messages of so many pairs
        share the middle link. Mesh, torus: the same within the dimension that separates the partners. Elsewhere 1. Uplink: the
        oversubscription once partners lie in different leaves.
    """
    uplink = _above(tier) if distance >= (tier.leaf or 1) else 0.0
    if members <= 1:
        return 1.0, 0.0
    if tier.topology == "full":
        return float(max(1, tier.size - 1)), uplink
    if tier.topology not in POINT_TO_POINT:
        return 1.0, uplink
    step = distance
    for a in used_extents(tier, members):
        if step < a:
            break
        step //= a
    return float(max(1, step)), uplink


def _linked(tier: Tier, members: int) -> float:
    """Links a member has over those that lead to other members: of a fully connected tier ``(size - 1)/(members - 1)``, elsewhere 1."""
    return (tier.size - 1) / (members - 1) if tier.topology == "full" and members > 1 else 1.0


def _above(tier: Tier) -> float:
    """Oversubscription above a leaf; 0 where there are no switches to share."""
    return 0.0 if tier.topology in (*POINT_TO_POINT, "full") else tier.oversubscription


def dimensions(tier: Tier, members: int) -> tuple[int, int] | None:
    """Return (messages that follow each other, links of a card that work at once) of rings along every dimension of a grid.

    Each part of the message takes the dimensions in another order, so that all links work: sum of (extent - 1) messages, on two links a
    dimension of a torus and one of a mesh, whose other way the last message takes back. None where the tier is no grid or the members
    do not fill it. Jain, Sabharwal, Optimal bucket algorithms for large MPI collectives on torus interconnects (ICS 2010).
    """
    if tier.topology not in GRIDS or members != tier.size:
        return None
    wide = [a for a in tier.extents if a > 1]
    ways = [2 if tier.topology == "torus" and a > 2 else 1 for a in wide]
    return sum(a - 1 for a in wide), min(ways) * len(wide)


def parallel_rings(tier: Tier, members: int) -> int:
    """Return how many rings over all members share no link in one direction.

    Two (one each way round) on a ring; two for every dimension of a torus that all members fill (Aubert, Schneider, Decomposition of
    the Cartesian product of cycles into Hamiltonian cycles, Discrete Mathematics 1981); one elsewhere, where the ports of a card
    count together.
    """
    if tier.topology == "ring" and members == tier.size > 2:
        return 2
    if tier.topology == "torus" and members == tier.size:
        return 2 * sum(1 for a in tier.extents if a > 2) or 1
    return 1


def used_extents(tier: Tier, members: int) -> tuple[int, ...]:
    """Return the extents of the block of a grid that contiguous members fill, dimension by dimension; at least one."""
    out = []
    left = members
    for a in tier.extents if tier.shape else (members,):
        out.append(min(a, left))
        left = math.ceil(left / a)
        if left <= 1:
            break
    return tuple(out)
