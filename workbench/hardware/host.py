"""Hosts: what the machine around a card needs for a program's host work, next to a reference host (data, no time of any program).

A host's time is of several kinds, and hosts differ by kind: Python between operators, the framework's operators on their way to a launch,
library code that no record explains, operators that compute on the host, and calls of the runtime, which belong to the card's
software (CUDA, HIP) as much as to the processor.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from workbench.hardware.check import unknown_key
from workbench.hardware.named import own_text, shipped, shipped_text, unknown_name
from workbench.hardware.schema import REQUIRED, Entry
from workbench.hardware.yaml_reader import Reader, mapping_of

WORK = ("interpreter", "operators", "library", "compute")
"""Kinds of host work, stated as times of the reference host's."""
CALLS = ("launch", "copy", "call")
"""Kinds of runtime calls, stated as the time of one call: kernel launches, copies and fills, all others."""
KINDS = (*WORK, *CALLS)
_TOP: Mapping[str, Entry] = {
    "name": Entry("text", REQUIRED, label="Name"),
    "aliases": Entry("texts", (), label="Aliases", help="Processor names as lscpu writes them."),
    "runtime": Entry("text", "", label="Runtime", help="Driver and runtime of the card behind the calls."),
    "confidence": Entry("choice", "weak", label="Confidence", choices=("high", "medium", "weak", "invented")),
    "sources": Entry("texts", (), label="Sources"),
    "weak": Entry("texts", (), label="Weak numbers"),
}
_WORK: Mapping[str, Entry] = {kind: Entry("float", None, label=kind, low=0.1, high=10.0) for kind in WORK}
_CALLS: Mapping[str, Entry] = {kind: Entry("quantity", None, "s", kind, "One call.", 1e-7, 1e-3) for kind in CALLS}
_SPREAD: Mapping[str, Entry] = {kind: Entry("float", None, label=kind, low=0.0, high=10.0, zero_ok=True) for kind in KINDS}
_SECTIONS = {"takes": _WORK, "calls": _CALLS, "spread": _SPREAD}


@dataclass(frozen=True)
class HostSpec:
    """A host. What is not stated is not known: it then takes as long as on the other host, with a wide interval.

    ``takes`` maps kinds of work to their time over the reference host's [1], ``calls`` kinds of calls to the time of one [s],
    ``spread`` a kind to the relative uncertainty of its figure [1].
    """

    name: str
    takes: Mapping[str, float]
    calls: Mapping[str, float]
    spread: Mapping[str, float]
    aliases: tuple[str, ...] = ()
    runtime: str = ""
    confidence: str = "weak"
    sources: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Hex digest that changes with any figure."""
        parts = (self.name, *(repr(sorted(part.items())) for part in (self.takes, self.calls, self.spread)))
        return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]

    def figure(self, kind: str) -> float | None:
        """Return the figure of a kind: a ratio of work or the seconds of a call (None: not stated)."""
        return self.takes.get(kind) if kind in WORK else self.calls.get(kind)


RECORDED = HostSpec("recorded", {}, {}, {})
"""The machine a recording was made on, whatever it is: its host keeps its time on every card."""


def hosts() -> tuple[str, ...]:
    """Return the sorted names of the hosts that come with the workbench."""
    return shipped("host")


def load_host(name_or_path: str | os.PathLike[str]) -> HostSpec:
    """Load a host.

    Parameters
    ----------
    name_or_path : str or path
        A name of `hosts` (case does not matter), the path of a YAML description, or ``"recorded"`` for `RECORDED`.

    Returns
    -------
    HostSpec

    Raises
    ------
    InvalidSpec
        Unknown name (the nearest are listed) or a description that does not hold.
    UnreadableInput
        A path that cannot be read.
    """
    text = str(name_or_path)
    if text.lower() == RECORDED.name:
        return RECORDED
    if text.lower() in hosts():
        return _shipped(text.lower())
    content = own_text(text)
    if content is not None:
        return read_host(content, text)
    raise unknown_name(text, (*hosts(), RECORDED.name), "host", "a factor, or the path of a YAML description")


def read_host(text: str, file: str = "host") -> HostSpec:
    """Read a host's description.

    Parameters
    ----------
    text : str
        YAML: ``name``, ``takes:`` (work over the reference host's), ``calls:`` (one call, with a unit), ``spread:``.
    file : str
        Its name, for messages.

    Raises
    ------
    InvalidSpec
        A key or value that does not hold; file and line are named.
    """
    reader = Reader(file)
    given = reader.items(mapping_of(text, file, "a host's description", "start with name:, takes:, calls:"), "")
    for key in given:
        if key not in _TOP and key not in _SECTIONS:
            raise unknown_key(key, (*_TOP, *_SECTIONS), reader.where(key), "is not a key of a host")
    top = reader.section({key: node for key, node in given.items() if key in _TOP}, _TOP, "")
    parts: dict[str, Any] = {}
    for name, entries in _SECTIONS.items():
        found = reader.section(reader.items(given[name], name), entries, name) if name in given else {}
        parts[name] = {kind: float(value) for kind, value in found.items() if value is not None}
    return HostSpec(**top, **parts)


@cache
def _shipped(name: str) -> HostSpec:
    return read_host(*shipped_text("host", name))


def detect_host(processor: str) -> HostSpec | None:
    """Return the shipped host whose alias a processor's name is, without regard to case and punctuation (None: none fits)."""
    wanted = _plain(processor)
    for name in hosts():
        spec = _shipped(name)
        if wanted and wanted in (_plain(alias) for alias in spec.aliases):
            return spec
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", re.sub(r"\((r|tm)\)", "", name.lower()))
