"""ClusterSpec: cards joined by ordered tiers, innermost first, as frozen data in SI units. No time is computed here."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from workbench import units
from workbench.errors import InvalidSpec, Note
from workbench.hardware.check import check_entry, unknown_key
from workbench.hardware.cluster_schema import GRIDS, MEDIA, POINT_TO_POINT, SPARSE, TIER


@dataclass(frozen=True)
class Tier:
    """One tier: ``size`` members (cards, or instances of the tier below) joined; keys and units in `cluster_schema.TIER`."""

    name: str
    size: int
    topology: str
    bandwidth_per_direction: float
    ports: float
    latency: float
    shape: str
    leaf: int | None
    oversubscription: float
    in_network_reduction: bool
    medium: str | None
    efficiency: float

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of a mesh or torus; of any other topology its size alone."""
        return tuple(int(part) for part in self.shape.split("x")) if self.shape else (self.size,)


@dataclass(frozen=True)
class ProtocolSpec:
    """One way a library moves data; keys and units in `cluster_schema.PROTOCOL`."""

    name: str
    share: float
    launch: float
    step_memory: float
    step_bus: float
    step_network: float
    message_share: float | None
    messages: bool
    in_network: bool

    def step(self, medium: str) -> float:
        """Time [s] added to every step across a medium."""
        return {"memory": self.step_memory, "bus": self.step_bus, "network": self.step_network}[medium]


@dataclass(frozen=True)
class Library:
    """A library of collectives: its algorithms and protocols."""

    name: str
    algorithms: tuple[str, ...]
    message_launch: float
    copy: float
    chunks: int
    protocols: tuple[ProtocolSpec, ...]
    sources: tuple[str, ...]
    weak: tuple[str, ...]


@dataclass(frozen=True)
class ClusterSpec:
    """Cards joined by tiers, innermost first."""

    name: str
    npu: str
    tiers: tuple[Tier, ...]
    library: Library
    launch_factor: float
    step_factor: float
    error: float | None
    confidence: str
    sources: tuple[str, ...]
    weak: tuple[str, ...]
    notes: tuple[Note, ...] = field(default=(), compare=False)

    @property
    def cards(self) -> int:
        """World size: cards alone, no switches and no hosts."""
        return math.prod(tier.size for tier in self.tiers)

    @cached_property
    def below(self) -> tuple[int, ...]:
        """Cards of one member of every tier, the whole last: for tiers of 8 cards, 4 and 4 members (1, 8, 32, 128)."""
        return tuple(math.prod(tier.size for tier in self.tiers[:level]) for level in range(len(self.tiers) + 1))

    @cached_property
    def digest(self) -> str:
        """Hash of everything that enters a time."""
        return hashlib.sha256(repr((self.tiers, self.library, self.launch_factor, self.step_factor)).encode()).hexdigest()[:16]

    def medium(self, level: int) -> str:
        """What a tier runs over: as stated, else memory for the innermost and a network above."""
        return self.tiers[level].medium or ("memory" if level == 0 else "network")

    def of(self, cards: int) -> ClusterSpec:
        """Return the cluster with fewer or more cards: the inner tiers as they are, the last one that is reached cut or grown.

        Raises
        ------
        InvalidSpec
            When the cards do not fill whole instances of the tiers below the outermost they reach.
        """
        if cards < 1:
            raise InvalidSpec(self.name, f"{cards} cards are no cluster", "ask for at least one")
        tiers: list[Tier] = []
        left = cards
        for level, tier in enumerate(self.tiers):
            last = level == len(self.tiers) - 1
            size = left if last or left <= tier.size else tier.size
            if left % size:
                whole = self.below[level + 1]
                raise InvalidSpec(
                    self.name,
                    f"{cards} cards do not fill whole instances of {tier.name!r} ({whole} cards)",
                    f"ask for a multiple of {whole}",
                )
            if size != tier.size and tier.topology in GRIDS:
                raise InvalidSpec(
                    self.name, f"a {tier.topology} of {tier.shape} cannot be cut to {size} members", "give another shape in the description"
                )
            tiers.append(tier if size == tier.size else replace(tier, size=size))
            left //= size
            if left == 1:
                break
        return replace(self, tiers=tuple(tiers))

    def with_(self, changes: Mapping[str, Any]) -> ClusterSpec:
        """Return the cluster with fields changed, e.g. ``{"tiers.node.bandwidth_per_direction": "50 GB/s"}``.

        Parameters
        ----------
        changes : mapping of str to value
            By path ``tiers.NAME.FIELD``; quantities as text with a unit or as SI floats.

        Raises
        ------
        InvalidSpec
            An unknown path, or a value that does not hold.
        """
        tiers = {tier.name: tier for tier in self.tiers}
        for path, value in changes.items():
            parts = path.split(".")
            known = [f"tiers.{name}.{key}" for name in tiers for key in TIER if key != "name"]
            if path not in known:
                raise unknown_key(path, known, self.name, "is not a field of this cluster")
            entry = TIER[parts[2]]
            if entry.unit and isinstance(value, str):
                value = units.parse(value, entry.unit, f"{self.name}: {path}")
            tiers[parts[1]] = replace(tiers[parts[1]], **{parts[2]: check_entry(entry, value, f"{self.name}: {path}")})
        changed = replace(self, tiers=tuple(tiers.values()))
        check_tiers(changed.tiers, lambda name: f"{self.name}: tiers.{name}")
        return changed


def check_tiers(tiers: tuple[Tier, ...], where: Any) -> None:
    """Refuse tiers that contradict themselves.

    Parameters
    ----------
    tiers : tuple of Tier
    where : callable
        From a tier's name to the place named in the refusal.

    Raises
    ------
    InvalidSpec
        A shape that is none or does not give the size, a leaf that does not divide it, two tiers of one name, a setting that the
        topology has no use for.
    """
    for index, tier in enumerate(tiers):
        place = where(tier.name)
        if tier.name in [other.name for other in tiers[:index]]:
            raise InvalidSpec(place, f"two tiers are called {tier.name!r}", "give each its own name")
        if (tier.topology in GRIDS) != bool(tier.shape):
            fix = "add e.g. shape: 4x4x4" if tier.topology in GRIDS else "leave shape out, or say topology: torus"
            raise InvalidSpec(place, f"a {tier.topology} with{'out' if not tier.shape else ''} a shape", fix)
        if tier.shape and not (
            all(part.isdecimal() and int(part) for part in tier.shape.split("x")) and math.prod(tier.extents) == tier.size
        ):
            raise InvalidSpec(place, f"the extents {tier.shape!r} do not give {tier.size} members", "write e.g. 4x4x4 for 64")
        if tier.topology in POINT_TO_POINT and tier.ports != 1:
            raise InvalidSpec(place, f"ports in a {tier.topology}", "its bandwidth is that of one link, a card has one to every neighbour")
        if (tier.leaf is not None or tier.oversubscription > 1) and tier.topology in (*POINT_TO_POINT, "full"):
            raise InvalidSpec(place, f"leaf or oversubscription in a {tier.topology}", "it has no switches to share; use fat_tree")
        if tier.leaf is not None and (tier.topology not in SPARSE or tier.size % tier.leaf):
            raise InvalidSpec(
                place,
                f"leaf {tier.leaf} does not divide {tier.size} members of a {tier.topology}",
                "use a fat_tree or dragonfly and a divisor",
            )
        if tier.in_network_reduction and tier.topology in (*POINT_TO_POINT, "full"):
            raise InvalidSpec(place, f"in-network reduction in a {tier.topology}", "it needs switches: switch, fat_tree, rail")
        if tier.medium is not None and tier.medium not in MEDIA:
            raise unknown_key(tier.medium, MEDIA, place, "is no medium")
