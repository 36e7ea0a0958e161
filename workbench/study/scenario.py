"""Scenario: one frozen question. A widget, a flag or a sweep cell makes a *new* one with `Scenario.with_`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.cost.vendor import VendorTimes
from workbench.errors import Refused
from workbench.hardware.npu import NpuSpec
from workbench.study.workload import Workload
from workbench.trace.trace import Trace

MOST_FACTOR = 1e12
FIELDS = ("npu", "source", "vendor", "host_factor", "anchored", "scale")


@dataclass(frozen=True)
class Scenario:
    """What is asked.

    Parameters
    ----------
    workload : Workload or Trace
        The recording (one rank is replayed); a Trace is wrapped.
    npu : NpuSpec or None
        The candidate card; None replays the recording as measured (identity).
    source : NpuSpec or None
        The card the recording was made on; None: detected from the recording.
    vendor : VendorTimes or None
        A vendor's operator times for the candidate; they take precedence over every model.
    host_factor : float
        Host work and unexplained host gaps take this many times as long (1: as recorded).
    anchored : bool
        Price modelled operators as measured x model(target) / model(source) instead of by the model alone.
    scale : tuple of (pattern, factor)
        What-if on operator times: device work whose operator or kernel name matches the pattern (``*`` is a
        wildcard) takes ``factor`` times as long.
    """

    workload: Workload = field(repr=False)
    npu: NpuSpec | None = None
    source: NpuSpec | None = None
    vendor: VendorTimes | None = None
    host_factor: float = 1.0
    anchored: bool = False
    scale: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.workload, Trace):
            object.__setattr__(self, "workload", Workload(self.workload))
        self._check()

    def _check(self) -> None:
        if not isinstance(self.workload, Workload):
            raise Refused("workload", f"a {type(self.workload).__name__} is not a recording", "pass what open_trace returns")
        for name in ("npu", "source"):
            card = getattr(self, name)
            if card is not None and not isinstance(card, NpuSpec):
                raise Refused(name, f"{card!r} is not a card", "pass what load_npu returns")
        if self.vendor is not None and not isinstance(self.vendor, VendorTimes):
            raise Refused("vendor", f"{self.vendor!r} is not a table of operator times", "pass what read_vendor returns")
        if not isinstance(self.anchored, bool):
            raise Refused("anchored", f"{self.anchored!r} is neither true nor false", "write true or false")
        if not (isinstance(self.scale, tuple) and all(isinstance(s, tuple) and len(s) == 2 and isinstance(s[0], str) for s in self.scale)):
            raise Refused("scale", f"{self.scale!r} does not pair patterns with factors", 'write e.g. (("aten::mm", 0.5),)')
        factors = (("host_factor", self.host_factor), *((f"scale {pattern}", factor) for pattern, factor in self.scale))
        for name, factor in factors:
            number = isinstance(factor, int | float | np.integer | np.floating) and not isinstance(factor, bool)
            if not (number and 0 <= factor <= MOST_FACTOR):
                raise Refused(name, f"{factor!r} is not a factor on a time", f"give a number from 0 to {MOST_FACTOR:g}")

    def with_(self, changes: Mapping[str, object]) -> Scenario:
        """Return a scenario with some fields changed.

        Keys are ``npu``, ``source``, ``vendor``, ``host_factor``, ``anchored``, ``scale`` or a dotted path into a spec
        such as ``npu.memory.l1.size``; quantities are text with a unit.
        """
        if not isinstance(changes, Mapping) or not all(isinstance(path, str) for path in changes):
            raise Refused("with_", f"{changes!r} does not name fields", 'write e.g. {"npu.cores": 32}')
        fields: dict[str, Any] = {path: value for path, value in changes.items() if path in FIELDS}
        out: Scenario = replace(self, **fields)
        nested: dict[str, dict[str, object]] = {}
        for path, value in changes.items():
            if path not in fields:
                head, _, tail = path.partition(".")
                nested.setdefault(head, {})[tail] = value
        for head, inner in nested.items():
            spec = getattr(out, head, None) if head in ("npu", "source") else None
            if not isinstance(spec, NpuSpec):
                known = f"use one of {', '.join(FIELDS)}, or npu.<path> after choosing a card"
                raise Refused(f"{head}.{next(iter(inner))}".rstrip("."), "no such field in this scenario", known)
            card: dict[str, Any] = {head: spec.with_(inner)}
            out = replace(out, **card)
        return out

    @property
    def digest(self) -> str:
        """Hex digest that changes when any input of the prediction changes."""
        parts = [
            self.workload.digest,
            *("-" if s is None else s.digest for s in (self.npu, self.source, self.vendor)),
            repr(self.host_factor),
            repr(self.anchored),
            repr(self.scale),
        ]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
