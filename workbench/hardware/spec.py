"""NpuSpec: what a card is, as frozen data in SI units. No time is computed here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from workbench import units
from workbench.errors import InvalidSpec, Note
from workbench.hardware import schema
from workbench.hardware.check import check_entry, cross_check, unknown_key
from workbench.hardware.parts import Calibration, Fallback, Field, Link, MatrixUnit, MemoryLevel, Partition, Power, Runtime, VectorUnit


@dataclass(frozen=True)
class NpuSpec:
    """A card, real or invented; all quantities are SI floats.

    ``memory`` maps level names to levels from the core outward; the last one is the outermost memory.
    ``calibration`` maps dtype names to fitted scalars, ``partitions`` names to parts that work alone.
    ``notes`` tells what was tolerated when it was read.
    """

    name: str
    vendor: str
    aliases: tuple[str, ...]
    cores: int
    clock: float
    confidence: str
    sources: tuple[str, ...]
    weak: tuple[str, ...]
    matrix: MatrixUnit
    vector: VectorUnit
    memory: Mapping[str, MemoryLevel]
    runtime: Runtime
    power: Power
    link: Link | None
    host: Link | None
    calibration: Mapping[str, Calibration]
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    fallback: Fallback | None = None
    notes: tuple[Note, ...] = field(default=(), compare=False)
    PARTS: ClassVar[Mapping[str, type]] = {
        "matrix": MatrixUnit,
        "vector": VectorUnit,
        "runtime": Runtime,
        "power": Power,
        "link": Link,
        "host": Link,
        "fallback": Fallback,
    }

    def bandwidth(self, level: str, write: bool = False) -> float:
        """Return the bandwidth of one instance of a level [B/s]; infinite where none is stated."""
        memory = self.memory[level]
        value = memory.write_bandwidth if write and memory.write_bandwidth is not None else memory.bandwidth
        if value is None:
            return float("inf")
        return value * self.clock if memory.per_clock else value

    def peak_flops(self, dtype: str) -> float:
        """Return the dense peak of a dtype [FLOP/s], matrix or vector unit, whichever is faster; a dtype neither states runs as fp32.

        Parameters
        ----------
        dtype : str
            Name as in spec files, e.g. ``"bf16"``.
        """
        found = max(self.unit_peak("matrix", dtype), self.unit_peak("vector", dtype))
        return found or self.unit_peak("vector", "fp32")

    def unit_peak(self, unit: str, dtype: str) -> float:
        """Return the dense peak of one unit [FLOP/s]: 2 x multiply-adds a cycle and core x cores x rate x clock; 0 without a rate.

        Parameters
        ----------
        unit : {"matrix", "vector"}
        dtype : str
        """
        macs, rate = (self.matrix.macs_per_cycle, self.matrix.rate) if unit == "matrix" else (self.vector.lanes, self.vector.rate)
        return 2.0 * macs * self.cores * rate.get(dtype, 0.0) * self.clock

    def get(self, path: str) -> float:
        """Return one number by its dotted path in SI units, e.g. ``get("memory.hbm.bandwidth")`` [B/s].

        Raises
        ------
        InvalidSpec
            No such number; the nearest path is named.
        """
        value = self._value(path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise unknown_key(path, [f.path for f in self.fields()], f"{self.name}: {path}", "is not a number of this card")
        return float(value)

    def _value(self, path: str) -> Any:
        entry, parts = schema.entry_of(path), path.split(".")
        if entry is None:
            return None
        if parts[0] == "memory" and parts[1] in self.memory:
            if parts[2] in ("bandwidth", "write_bandwidth"):
                stated = getattr(self.memory[parts[1]], parts[2])
                return None if stated is None else self.bandwidth(parts[1], parts[2] == "write_bandwidth")
            return getattr(self.memory[parts[1]], parts[2])
        value: Any = self
        for part in parts:
            value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
        return value

    def with_(self, changes: Mapping[str, object]) -> NpuSpec:
        """Return a checked spec with some fields changed.

        Parameters
        ----------
        changes : mapping of str to object
            Dotted path to new value. Quantities are text with a unit (``{"memory.l1.size": "512 KiB"}``), counts and ratios plain numbers.

        Raises
        ------
        InvalidSpec
            Unknown path (the nearest is named), bare number for a quantity, or a spec that contradicts itself.
        """
        values: dict[str, object] = {}
        for path, value in changes.items():
            where = f"{self.name}: {path}"
            entry = self._entry(path)
            if entry.unit == "B/s" and isinstance(value, str) and value.rstrip().endswith("clk"):
                value = units.parse(value, "B/clk", where) * self.clock
            elif entry.unit and isinstance(value, str):
                value = units.parse(value, entry.unit, where)
            elif entry.unit and value is not None:
                raise InvalidSpec(
                    where, f"{value!r} is a bare number, its unit is unknown", f'write it with a unit, e.g. "{units.EXAMPLES[entry.unit]}"'
                )
            values[path] = value
        return self.with_si(values)

    def with_si(self, changes: Mapping[str, object]) -> NpuSpec:
        """Return a checked spec like `with_`, but with quantities as SI floats: for sweeps and editors whose unit is `Field.unit`.

        A spec that differs from its card has confidence ``invented``: no measurement stands behind it.
        """
        parts: dict[str, Any] = {}
        for path, value in changes.items():
            entry, keys = self._entry(path), path.split(".")
            checked = check_entry(entry, value, f"{self.name}: {path}")
            head = keys[0]
            if len(keys) == 1:
                parts[head] = checked
                continue
            old = parts.get(head, getattr(self, head))
            if head in schema.GROUPS:
                key: dict[str, Any] = {keys[2]: checked}
                if keys[2] == "bandwidth" and old[keys[1]].per_clock:
                    stated = old[keys[1]].write_bandwidth
                    key |= {"per_clock": False, "write_bandwidth": None if stated is None else stated * self.clock}
                parts[head] = {**old, keys[1]: replace(old[keys[1]], **key)}
            elif len(keys) == 3:
                parts[head] = replace(old, **{keys[1]: {**(getattr(old, keys[1]) or {}), keys[2]: checked}})
            else:
                parts[head] = replace(old, **{keys[1]: checked})
        spec = replace(self, **parts)
        if spec == self:
            return self
        if any(path.startswith(("matrix.", "cores", "clock")) for path in changes) and spec.matrix.peak:
            spec = replace(spec, matrix=replace(spec.matrix, peak={}))  # the stated peak was that of the unchanged card
        spec = replace(spec, confidence="invented", partitions={} if "cores" in changes else spec.partitions)
        cross_check(spec, lambda path: f"{self.name}: {path}")
        return spec

    def _entry(self, path: str) -> schema.Entry:
        entry, parts = schema.entry_of(path), path.split(".")
        known = len(parts) == 1 or parts[0] not in schema.GROUPS or parts[1] in getattr(self, parts[0])
        if entry is None or not known or (parts[0] in schema.OPTIONAL and getattr(self, parts[0]) is None):
            raise unknown_key(path, [f.path for f in self.fields()], f"{self.name}: {path}", "is not a field of this card")
        return entry

    def fields(self) -> tuple[Field, ...]:
        """Return every number an editor or a sweep may change, from the core outward."""
        out = []
        for path in self.paths():
            entry = schema.entry_of(path)
            assert entry is not None
            value = self._value(path)
            if entry.type not in ("quantity", "int", "float", "table") or value is None or path.startswith("matrix.peak"):
                continue
            low, high = (min(entry.low, float(value)), max(entry.high, float(value)))
            if path.startswith("memory.") and entry.type == "quantity" and value > 0:
                low, high = float(value) / 8, float(value) * 8
            out.append(Field(path, float(value), entry.unit, _label(path, entry), entry.help, low, high))
        return tuple(out)

    def paths(self) -> tuple[str, ...]:
        """Return the dotted paths of everything this spec states, in the order of its file."""
        out = list(schema.TOP)
        for section, entries in schema.SECTIONS.items():
            part = getattr(self, section)
            if part is None:
                continue
            for key, entry in entries.items():
                value = getattr(part, key)
                if entry.type == "table":
                    out += [f"{section}.{key}.{dtype}" for dtype in value or ()]
                elif value is not None:
                    out.append(f"{section}.{key}")
            if section == "vector":
                out += [f"memory.{level}.{key}" for level, m in self.memory.items() for key in schema.LEVEL if getattr(m, key) is not None]
        out += [f"calibration.{dtype}.{key}" for dtype in self.calibration for key in schema.CALIBRATION]
        return tuple(out)

    def partition(self, name: str = "", *, compute: str | float = 1.0, memory: str | float = 1.0) -> NpuSpec:
        """Return a part of the card that works alone, as a derived spec.

        Parameters
        ----------
        name : str
            One of ``partitions``, e.g. a MIG profile ``"3g.40gb"``. Without it the shares decide.
        compute : str or float
            Share of the cores, ``"3/7"`` or 0.43; whole cores, rounded down.
        memory : str or float
            Share of size and bandwidth of every level of the chip.

        Returns
        -------
        NpuSpec
            One grade less confident than the card, fits with a wider error, without links between cards.

        Raises
        ------
        InvalidSpec
            No such partition, or a share that is not in ]0, 1].
        """
        from workbench.hardware.partition import named_partition, shared_partition

        return named_partition(self, name) if name else shared_partition(self, compute, memory)

    def to_yaml(self) -> str:
        """Return the description as YAML text that reads back to an equal spec."""
        from workbench.hardware.text import to_yaml

        return to_yaml(self)

    @cached_property
    def digest(self) -> str:
        """Hex digest of everything that prices an operator."""
        return hashlib.sha256(self.to_yaml().encode()).hexdigest()[:16]


def _label(path: str, entry: schema.Entry) -> str:
    """Return a short name for people: ``HBM bandwidth``, ``Matrix rate bf16``."""
    head, *rest = path.split(".")
    if head == "memory":
        name = rest[0] if len(rest[0]) > 4 else rest[0].upper()
        return f"{name[0].upper()}{name[1:]} {entry.label}"
    if head == "calibration":
        return f"{rest[0]} {entry.label}"
    if entry.type == "table":
        return f"{entry.label} {rest[-1]}" if head == "power" or rest[0] == "sparse" else f"{head.capitalize()} rate {rest[-1]}"
    return f"{head.capitalize()} link {entry.label}" if head == "host" else f"Link {entry.label}" if head == "link" else entry.label
