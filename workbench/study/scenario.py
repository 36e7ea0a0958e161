"""Scenario: one frozen question. A widget, a flag or a sweep cell makes a *new* one with `Scenario.with_`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.cost.vendor import VendorTimes
from workbench.errors import Refused
from workbench.graph.rewrite import Rewrite
from workbench.hardware.host import HostSpec
from workbench.hardware.npu import NpuSpec
from workbench.study.workload import Workload
from workbench.trace.trace import Trace

MOST_FACTOR = 1e12
FIELDS = ("npu", "source", "vendor", "host", "source_host", "host_factor", "anchored", "scale", "unprofiled_step_s", "rewrites")


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
    host : HostSpec or None
        The machine around the candidate; None: the recording's host, of unknown speed where the card is another.
    source_host : HostSpec or None
        The machine the recording was made on; None: detected from the recording.
    host_factor : float
        Host work and unexplained host gaps take this many times as long (1: as recorded), besides what ``host`` says.
    anchored : bool or None
        Price modelled operators as measured x model(target) / model(source) instead of by the model alone. None: where the
        recording's card is known.
    scale : tuple of (pattern, factor)
        What-if on operator times: device work whose operator or kernel name matches the pattern (``*`` is a
        wildcard) takes ``factor`` times as long.
    unprofiled_step_s : float or None
        What a step takes without the profiler [s]: what it cost is taken off the host, and the prediction is of the unprofiled job.
    rewrites : tuple of Rewrite
        What-if edits of the recording, applied in order (see `workbench.graph.rewrite`): ``(Fuse("aten::addmm > aten::gelu"),)``.
    """

    workload: Workload = field(repr=False)
    npu: NpuSpec | None = None
    source: NpuSpec | None = None
    vendor: VendorTimes | None = None
    host_factor: float = 1.0
    anchored: bool | None = None
    scale: tuple[tuple[str, float], ...] = ()
    host: HostSpec | None = None
    source_host: HostSpec | None = None
    unprofiled_step_s: float | None = None
    rewrites: tuple[Rewrite, ...] = ()

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
        for name in ("host", "source_host"):
            host = getattr(self, name)
            if host is not None and not isinstance(host, HostSpec):
                raise Refused(name, f"{host!r} is not a host", "pass what load_host returns, or give a number as host_factor")
        if not (self.anchored is None or isinstance(self.anchored, bool)):
            raise Refused("anchored", f"{self.anchored!r} is neither true nor false", "write true or false")
        if self.unprofiled_step_s is not None and not (_number(self.unprofiled_step_s) and 0 < self.unprofiled_step_s < MOST_FACTOR):
            raise Refused("unprofiled_step_s", f"{self.unprofiled_step_s!r} is not the time of a step", "give seconds, e.g. 0.0123")
        if not (isinstance(self.scale, tuple) and all(isinstance(s, tuple) and len(s) == 2 and isinstance(s[0], str) for s in self.scale)):
            raise Refused("scale", f"{self.scale!r} does not pair patterns with factors", 'write e.g. (("aten::mm", 0.5),)')
        _check_edits(self.rewrites)
        factors = (("host_factor", self.host_factor), *((f"scale {pattern}", factor) for pattern, factor in self.scale))
        for name, factor in factors:
            if not (_number(factor) and 0 <= factor <= MOST_FACTOR):
                raise Refused(name, f"{factor!r} is not a factor on a time", f"give a number from 0 to {MOST_FACTOR:g}")

    def with_(self, changes: Mapping[str, object]) -> Scenario:
        """Return a scenario with some fields changed.

        Keys are the fields (``npu``, ``source``, ``vendor``, ``host``, ``host_factor``, ``anchored``, ``scale`` ...) or a dotted path
        into a spec such as ``npu.memory.l1.size``; quantities are text with a unit.
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
            *("-" if s is None else s.digest for s in (self.npu, self.source, self.vendor, self.host, self.source_host)),
            repr(self.host_factor),
            repr(self.anchored),
            repr(self.scale),
            repr(self.unprofiled_step_s),
            *(edit.text for edit in self.rewrites),
        ]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def _number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _check_edits(edits: object) -> None:
    if not (isinstance(edits, tuple) and all(isinstance(edit, Rewrite) for edit in edits)):
        raise Refused("rewrites", f"{edits!r} is no tuple of edits", 'write e.g. (Fuse("aten::addmm > aten::gelu"),)')
