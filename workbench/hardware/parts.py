"""Parts of an NPU description as frozen dataclasses; keys, units and meaning are those of `workbench.hardware.schema`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class MatrixUnit:
    """Multiply-accumulate arrays of one core; keys and meaning in `schema.MATRIX`."""

    rows: int
    cols: int
    depth: int
    arrays_per_core: int
    dataflow: str
    rate: Mapping[str, float]
    tile_quantum: tuple[int, ...]
    accumulator: str | None
    operand_a: str | None
    operand_b: str | None
    staging: str | None
    peak: Mapping[str, float]
    layout: str | None = None
    asynchronous: bool | None = None
    sparse: Mapping[str, float] = field(default_factory=dict)

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-adds a cycle and core at rate 1."""
        return self.rows * self.cols * self.depth * self.arrays_per_core


@dataclass(frozen=True)
class VectorUnit:
    """Vector lanes of one core; `schema.VECTOR`."""

    lanes: int
    rate: Mapping[str, float]
    special: float
    buffer: str | None
    exchange: str | None = None
    contexts: int | None = None


@dataclass(frozen=True)
class MemoryLevel:
    """One level of memory; `schema.LEVEL`. ``bandwidth`` is in B/clk where ``per_clock``, else in B/s, of one instance."""

    size: float
    bandwidth: float | None
    write_bandwidth: float | None
    latency: float
    scope: str
    type: str
    double_buffer: bool
    multicast: float
    per_clock: bool = False
    cores: int | None = None
    energy: float | None = None
    replicas: int = 1
    reach: float | None = None
    efficiency: float | None = None


@dataclass(frozen=True)
class Runtime:
    """What launching and distributing work costs; `schema.RUNTIME`."""

    launch_overhead: float
    issue: float
    split_k: bool
    partition: str


@dataclass(frozen=True)
class Power:
    """Power limit and energies; `schema.POWER`. ``energy`` and ``vector_energy`` by dtype [J/FLOP], at full clock."""

    tdp: float | None
    sustained_clock: float | None
    idle: float | None = None
    process: str | None = None
    energy: Mapping[str, float] = field(default_factory=dict)
    vector_energy: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Fallback:
    """Control processors of the card that run what its cores cannot; `schema.FALLBACK`."""

    operators: tuple[str, ...]
    rate: float
    bandwidth: float
    launch: float


@dataclass(frozen=True)
class Link:
    """Link between cards, or to the host; `schema.LINK`."""

    bandwidth: float
    latency: float
    group_size: int


@dataclass(frozen=True)
class Calibration:
    """Three fitted scalars of one dtype and their cross-validated error; `schema.CALIBRATION`.

    ``errors`` maps kinds of operators (`schema.ERROR_GROUPS`) to (low, high): 80 % of measured times that were left out of the
    fit lie between predicted x (1 + low) and predicted x (1 + high).
    """

    compute: float
    memory: float
    launch: float
    error: float
    source: str
    errors: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def wider(low: float, high: float, power: float) -> tuple[float, float]:
    """Return an interval of relative errors that is wider about its middle, which need not be the predicted time.

    Parameters
    ----------
    low, high : float
        Measured times lie between predicted x (1 + low) and predicted x (1 + high) [1].
    power : float
        Of the ratio (1 + high) / (1 + low); 1: as it is.
    """
    more = ((1.0 + high) / (1.0 + low)) ** ((power - 1.0) / 2.0)
    return (1.0 + low) / more - 1.0, (1.0 + high) * more - 1.0


@dataclass(frozen=True)
class Partition:
    """A part of a card that works alone; `schema.PARTITION`."""

    cores: int
    memory: float
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A number of a spec that an editor or a sweep may change; ``value``, ``low`` and ``high`` in ``unit`` (empty: a plain number)."""

    path: str
    value: float
    unit: str
    label: str
    help: str
    low: float
    high: float
