"""A cluster drawn as a graph of cards, switches and links -> tiers. Cards alone count; switches join them.

Links of equal bandwidth form one class. The fastest class joins cards into instances of the innermost tier, every slower class joins
those into the next: all instances must come out equally large, or the graph is refused and tiers have to be written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import InvalidSpec
from workbench.hardware.cluster import Tier
from workbench.hardware.cluster_schema import TIER

KINDS = ("npu", "switch")


@dataclass(frozen=True)
class Wire:
    """A link of the graph: two node names, its bandwidth each way [B/s]."""

    one: str
    other: str
    bandwidth: float


def tiers_of(kinds: Mapping[str, str], wires: Sequence[Wire], latency: float, where: str) -> tuple[Tier, ...]:
    """Return the tiers that a graph of cards and switches amounts to, innermost first.

    Parameters
    ----------
    kinds : mapping of str to str
        ``"npu"`` or ``"switch"`` by node.
    wires : sequence of Wire
    latency : float
        Of a step across any tier [s].
    where : str
        File, for messages.

    Returns
    -------
    tuple of Tier

    Raises
    ------
    InvalidSpec
        No card, a link to a node that is not there, switches joined to switches, cards that are not all joined, or instances of unequal
        size.
    """
    cards = [node for node, kind in kinds.items() if kind == "npu"]
    _check(kinds, wires, cards, where)
    joined = {card: card for card in cards}
    size = 1
    tiers: list[Tier] = []
    for rate in sorted({wire.bandwidth for wire in wires}, reverse=True):
        mine = [wire for wire in wires if wire.bandwidth == rate]
        own = _joined({card: card for card in cards}, mine)
        joined = _joined(joined, mine)
        instances = Counter(_root(joined, card) for card in cards)
        sizes = set(instances.values())
        if len(sizes) != 1:
            raise InvalidSpec(
                where, f"links of {rate:g} B/s join {sorted(sizes)} cards: unequal instances", "describe the cluster as tiers"
            )
        grown = sizes.pop()
        if grown == size:
            continue
        ports = _ports(mine, cards)
        if ports is None:
            raise InvalidSpec(where, f"not every card has as many links of {rate:g} B/s", "describe the cluster as tiers")
        alone = len({_root(own, card) for card in cards}) == len(instances)
        tiers.append(_tier(len(tiers), grown // size, rate, ports, latency, _topology(mine, kinds, grown // size, alone, where)))
        size = grown
    if size != len(cards):
        raise InvalidSpec(where, f"links join {size} of {len(cards)} cards at most", "join all cards, or leave the others out")
    return tuple(tiers)


def _check(kinds: Mapping[str, str], wires: Sequence[Wire], cards: Sequence[str], where: str) -> None:
    if not cards:
        raise InvalidSpec(where, "no node is an npu", "write - {id: 0, kind: npu}")
    for wire in wires:
        absent = [end for end in (wire.one, wire.other) if end not in kinds]
        if absent:
            raise InvalidSpec(where, f"a link names {absent[0]!r}, which is no node", "mend the link or add the node")
        if kinds[wire.one] == kinds[wire.other] == "switch":
            raise InvalidSpec(
                where, f"switches {wire.one!r} and {wire.other!r} are joined", "describe a network of switches as a tier: fat_tree"
            )


def _root(parent: Mapping[str, str], node: str) -> str:
    while parent[node] != node:
        node = parent[node]
    return node


def _joined(parent: Mapping[str, str], wires: Iterable[Wire]) -> dict[str, str]:
    """Return the forest with the ends of links, cards and switches, in one tree each."""
    out = dict(parent)
    for wire in wires:
        for end in (wire.one, wire.other):
            out.setdefault(end, end)
        out[_root(out, wire.one)] = _root(out, wire.other)
    return out


def _ports(wires: Iterable[Wire], cards: Sequence[str]) -> int | None:
    """Links a card has, None where cards differ."""
    ends = Counter(end for wire in wires for end in (wire.one, wire.other))
    found = {ends[card] for card in cards}
    return found.pop() if len(found) == 1 else None


def _topology(wires: Sequence[Wire], kinds: Mapping[str, str], members: int, alone: bool, where: str) -> str:
    """Name how links join instances: by switches (each of them all members, or one rail), or card to card."""
    if any(kinds[end] == "switch" for wire in wires for end in (wire.one, wire.other)):
        return "switch" if alone else "rail"
    neighbours: dict[str, set[str]] = defaultdict(set)
    for wire in wires:
        neighbours[wire.one].add(wire.other)
        neighbours[wire.other].add(wire.one)
    degrees = {len(found) for found in neighbours.values()}
    if degrees == {members - 1}:
        return "full"
    if degrees == {2}:
        return "ring"
    raise InvalidSpec(
        where, f"{members} members joined card to card are neither a ring nor fully connected", "describe a tier: torus, mesh"
    )


def _tier(level: int, size: int, rate: float, ports: int, latency: float, topology: str) -> Tier:
    given: dict[str, Any] = {"name": f"tier{level}", "size": size, "topology": topology, "latency": latency}
    given["bandwidth_per_direction"] = rate
    given["ports"] = 1.0 if topology == "ring" else float(ports)
    return Tier(**{key: given.get(key, entry.default) for key, entry in TIER.items()})
