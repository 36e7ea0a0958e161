"""A partition of a card (a MIG instance, one core of a chip) as a spec of its own."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from workbench.errors import InvalidSpec
from workbench.hardware.check import check_entry, cross_check, unknown_key
from workbench.hardware.parts import Calibration, MemoryLevel, Partition, wider
from workbench.hardware.schema import PARTITION

if TYPE_CHECKING:
    from workbench.hardware.spec import NpuSpec

WIDER = 1.25  # error of a fit of the whole card when it is used for a part of it: widened by judgement
LOWER = {"high": "medium", "medium": "weak"}  # nobody measured the part


def named_partition(spec: NpuSpec, name: str) -> NpuSpec:
    """Return a partition by the name the card's description gives it, e.g. ``"3g.40gb"`` (case does not matter).

    Raises
    ------
    InvalidSpec
        No partition of this name; the nearest is named.
    """
    found = {known.lower(): known for known in spec.partitions}.get(name.lower())
    if found is None:
        if not spec.partitions:
            raise InvalidSpec(
                f"{spec.name}:{name}", f"{spec.name} describes no partitions", "leave it out, or add partitions: to the card's description"
            )
        raise unknown_key(name, spec.partitions, spec.name, "is not a partition of this card")
    return _derive(spec, found, spec.partitions[found])


def shared_partition(spec: NpuSpec, compute: str | float, memory: str | float) -> NpuSpec:
    """Return a partition that holds a share of a card's cores (whole cores, rounded down) and of its chip-wide memory levels.

    Raises
    ------
    InvalidSpec
        A share that is not in ]0, 1].
    """
    entry = PARTITION["memory"]
    shares = [check_entry(entry, share, f"{spec.name}: {key}") for key, share in (("compute", compute), ("memory", memory))]
    cores = max(1, int(Fraction(shares[0]).limit_denominator(10**6) * spec.cores))
    return _derive(spec, f"{compute}-{memory}", Partition(cores, shares[1], ()))


def _derive(spec: NpuSpec, name: str, part: Partition) -> NpuSpec:
    """Return the part: its cores at the card's clock, its share of capacity and bandwidth of every level that belongs to the chip."""
    memory = {level: _scaled(old, part.memory) if old.scope == "chip" else old for level, old in spec.memory.items()}
    share = part.cores / spec.cores
    tdp, idle = (None if watts is None else watts * share for watts in (spec.power.tdp, spec.power.idle))
    fits = {dtype: _widened(fit) for dtype, fit in spec.calibration.items()}
    out = replace(
        spec,
        name=f"{spec.name}:{name}",
        aliases=partition_aliases(spec, name) if name in spec.partitions else (),
        cores=part.cores,
        confidence=LOWER.get(spec.confidence, spec.confidence),
        sources=(f"derived from {spec.name}: {part.cores} of {spec.cores} cores, {part.memory:.4g} of its chip-wide memory", *spec.sources),
        weak=(
            "no measurement stands behind the partition: its share of power, shared levels and host link is assumed",
            "links between cards are left out",
            *spec.weak,
        ),
        matrix=replace(spec.matrix, peak={}),
        memory=memory,
        power=replace(spec.power, tdp=tdp, idle=idle),
        link=None,
        calibration=fits,
        partitions={},
        notes=(),
    )
    return replace(out, notes=cross_check(out, lambda path: f"{out.name}: {path}"))


def _widened(fit: Calibration) -> Calibration:
    """Return a fit of the whole card with wider errors: nobody measured the part."""
    errors = {group: wider(low, high, WIDER) for group, (low, high) in fit.errors.items()}
    source = f"error widened by judgement; as fitted on the whole card: {fit.source}"
    return replace(fit, error=fit.error * WIDER, errors=errors, source=source)


def _scaled(level: MemoryLevel, share: float) -> MemoryLevel:
    def part(value: float | None) -> float | None:
        return None if value is None else value * share

    return replace(level, size=level.size * share, bandwidth=part(level.bandwidth), write_bandwidth=part(level.write_bandwidth))


def partition_aliases(spec: NpuSpec, name: str) -> tuple[str, ...]:
    """Return how traces name a partition: its own aliases, else the card's followed by ``MIG`` and the profile."""
    own = spec.partitions[name].aliases
    return own or tuple(f"{alias} MIG {name}{media}" for alias in spec.aliases if not alias.endswith("*") for media in ("", "+me"))
