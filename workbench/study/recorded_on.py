"""What a recording was made on, from what it says of itself: the card by its device names, the host by its processor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from workbench.errors import Refused
from workbench.hardware.host import HostSpec, detect_host
from workbench.hardware.npu import NpuSpec, detect
from workbench.study.rewritten import as_recorded, edited
from workbench.study.scenario import Scenario
from workbench.study.unprofiled import without_profiler
from workbench.trace.trace import Trace

PROCESSOR_KEYS = ("cpu_model", "cpu_name", "processor_name", "brand_raw", "model name")
LSCPU = "model name:"
DEEPEST = 8


def with_source(scenario: Scenario) -> Scenario:
    """Return the scenario with all it leaves open settled.

    The card and the host of the recording are detected where they are not given; operators are anchored where the card is known and
    nothing else is asked; the profiler's cost is taken off where the step without it is stated.

    Raises
    ------
    Refused
        No scenario; or a step without profiler that the recording does not allow.
    """
    if not isinstance(scenario, Scenario):
        raise Refused("scenario", f"a {type(scenario).__name__} is no scenario", "pass Scenario(open_trace(...), npu=load_npu(...))")
    source = scenario.source or detect_source(scenario.workload.trace)
    host = scenario.source_host or detect_host_of(scenario.workload.trace)
    anchored = source is not None if scenario.anchored is None else scenario.anchored
    found = replace(scenario, source=source, source_host=host, anchored=anchored)
    workload = as_recorded(found.workload)
    if found.unprofiled_step_s is not None and workload.unprofiled_step_s != found.unprofiled_step_s:
        workload = without_profiler(workload, found.unprofiled_step_s)
    return replace(found, workload=edited(workload, found.rewrites, source, found.workload))


def detect_source(trace: Trace) -> NpuSpec | None:
    """Return the catalogue's card for the first recognised device name of the recording (None: not recognised)."""
    names = (name for rank in trace.ranks for name in rank.devices)
    return next((spec for spec in map(detect, dict.fromkeys(names)) if spec is not None), None)


def detect_host_of(trace: Trace) -> HostSpec | None:
    """Return the shipped host whose processor the recording names (None: it names none, or one that is not known)."""
    names = (name for rank in trace.ranks for name in _processors(rank.metadata, 0))
    return next((spec for spec in map(detect_host, dict.fromkeys(names)) if spec is not None), None)


def _processors(value: object, depth: int, key: str = "") -> Iterator[str]:
    """Yield the names of processors in a recording's metadata: lines of lscpu, and values of keys that name one."""
    if isinstance(value, str):
        if value.lower().startswith(LSCPU):
            yield value.partition(":")[2].strip()
        elif key.lower() in PROCESSOR_KEYS:
            yield value
    elif depth < DEEPEST and isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _processors(inner, depth + 1, str(name))
    elif depth < DEEPEST and isinstance(value, Sequence):
        for inner in value:
            yield from _processors(inner, depth + 1, key)
