"""Two machines measured on programs recorded on both: their figures as descriptions that ``--host`` takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from workbench import units
from workbench.cost.host import HostTimes, host_times
from workbench.cost.host_fit import fit_hosts
from workbench.errors import Refused
from workbench.hardware.host import CALLS, KINDS, HostSpec
from workbench.study.documents_hosts import FigureDocument, HostsDocument, ProgramDocument
from workbench.study.workload import Workload
from workbench.trace.trace import Category, Trace

ALIKE = 0.5
"""Recordings that have a smaller share of their operators in common, by name and number, are not of one program [1]."""


def measured_hosts(pairs: Sequence[tuple[Trace, Trace]], names: tuple[str, str]) -> tuple[HostSpec, HostSpec, HostsDocument]:
    """Measure two hosts.

    Parameters
    ----------
    pairs : sequence of (Trace, Trace)
        Of one program each, on the first and on the second machine.
    names : (str, str)

    Returns
    -------
    first, second : HostSpec
        See `workbench.cost.host_fit.fit_hosts`; the first is the reference.
    document : HostsDocument

    Raises
    ------
    Refused
        No pair, equal names, recordings of different programs, or too little host work to say anything.
    """
    if not pairs:
        raise Refused("hosts", "no recordings", "give two recordings of each program, one on each machine")
    if names[0] == names[1] or not all(names):
        raise Refused("hosts", f"{names[0]!r} and {names[1]!r} do not tell two machines apart", "give two names")
    told, programs = [], []
    for first, second in pairs:
        works = Workload(first), Workload(second)
        shared = alike(first, second)
        if shared < ALIKE:
            text = f"only {shared:.0%} of their operators are the same: not recordings of one program"
            raise Refused(f"{works[0].path}, {works[1].path}", text, "give two recordings of the same program and batch")
        times = tuple(host_times(work.host_kinds, work.graph.measured_s) for work in works)
        told.append((times[0], times[1]))
        programs.append(_program(works, told[-1], shared))
    specs = fit_hosts(told, names)
    if not (specs[1].takes or specs[1].calls):
        raise Refused("hosts", "the recordings hold too little host work of any kind", "record whole steps with activity CPU")
    source = f"measured by workbench hosts on {units.count(len(pairs), 'program')}: {', '.join(program.first for program in programs)}"
    first_spec, second_spec = (replace(spec, sources=(source,), weak=("every figure: from these recordings alone",)) for spec in specs)
    figures = [_figure(kind, first_spec, second_spec) for kind in KINDS if first_spec.figure(kind) is not None]
    return first_spec, second_spec, HostsDocument(first=names[0], second=names[1], figures=figures, programs=programs, out=[])


def alike(first: Trace, second: Trace) -> float:
    """Return the share of operators two recordings have in common, by name and number, 0 to 1 [1]."""
    counts = []
    for trace in (first, second):
        mine = trace.events.name[trace.events.category == Category.CPU_OP]
        counts.append(Counter(trace.strings[i] for i in mine.tolist()))
    whole = sum(counts[0].values()) + sum(counts[1].values())
    return 2.0 * sum((counts[0] & counts[1]).values()) / whole if whole else 0.0


def description(spec: HostSpec) -> str:
    """Return a host as the YAML text that `workbench.hardware.host.read_host` reads."""
    calls = ", ".join(f'{kind}: "{units.format(value, "s", 4)}"' for kind, value in spec.calls.items())
    work, spread = (", ".join(f"{kind}: {value:.4g}" for kind, value in part.items()) for part in (spec.takes, spec.spread))
    lines = [f'name: "{spec.name}"', f'confidence: "{spec.confidence}"', "sources:", *(f"  - {text!r}" for text in spec.sources)]
    lines += ["weak:", *(f"  - {text!r}" for text in spec.weak)]
    return "\n".join([*lines, f"takes: {{{work}}}", f"calls: {{{calls}}}", f"spread: {{{spread}}}"]) + "\n"


def _figure(kind: str, first: HostSpec, second: HostSpec) -> FigureDocument:
    here, there = first.figure(kind) or 0.0, second.figure(kind) or 0.0
    return FigureDocument(kind=kind, first=here, second=there, ratio=there / here, spread=second.spread[kind], seconds=kind in CALLS)


def _program(works: tuple[Workload, Workload], times: tuple[HostTimes, HostTimes], shared: float) -> ProgramDocument:
    a, b = times
    ratios = {}
    for k, kind in enumerate(KINDS):
        if min(a.count[k], b.count[k]) > 0 and a.figure(kind) > 0:
            ratios[kind] = b.figure(kind) / a.figure(kind)
    return ProgramDocument(first=works[0].path, second=works[1].path, alike=shared, ratio=ratios)
