"""Launch-bound regions: by hand, and on programs made to be bound by the host or by the device."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.graph.made import Built, built, event, kernel, launch, write
from tests.naive.actions import Launch, Program
from tests.naive.executor import execute
from tests.naive.kineto import document
from tests.naive.programs import launch_bound as program
from workbench.replay.launch_bound import launch_bound
from workbench.replay.replay import replay
from workbench.trace.open import open_trace


def test_by_hand(tmp_path: Path) -> None:
    """Step of 100 us: 'a' runs 10..15 and 'b' 30..55 as they arrive, 'c' is queued behind 'b' and runs 55..75, 'd' comes at 90..95.

    Regions: 0..55 (idle 10 + 15) and 75..95 (idle 15); 'c' waits for the device, not for the host.
    """
    events = [event("user_annotation", "ProfilerStep#3", 0, 100)]
    for i, (name, called, start, length) in enumerate((("a", 4, 10, 5), ("b", 24, 30, 25), ("c", 30, 55, 20), ("d", 84, 90, 5)), 1):
        events += [launch(i, called, 4), kernel(i, name, start, length)]
    b = built(write(tmp_path, events))
    found = launch_bound(b.graph, b.timeline)
    assert found.launches.tolist() == [2, 1]
    assert found.begin_s * 1e6 == pytest.approx([0, 75])
    assert found.end_s * 1e6 == pytest.approx([55, 95])
    assert found.idle_s * 1e6 == pytest.approx([25, 15])
    assert found.share == pytest.approx([0.75])


def _recorded(folder: Path, scale: float) -> Built:
    def shorter(action: object) -> object:
        return replace(action, ns=round(action.ns * scale)) if isinstance(action, Launch) else action

    base = program(steps=2)
    made: Program = replace(base, threads={name: tuple(map(shorter, actions)) for name, actions in base.threads.items()})
    path = folder / "made.json"
    path.write_text(json.dumps(document(execute(made), world_size=1)))
    return built(open_trace([path]))


def test_a_faster_host_gains_what_the_regions_say(tmp_path: Path) -> None:
    """Short kernels: bound by launches nearly throughout, and a host twice as fast halves the step. Long kernels: neither."""
    for scale, low, high in ((0.1, 0.9, 1.0), (20.0, 0.0, 0.1)):
        b = _recorded(tmp_path, scale)
        share = float(launch_bound(b.graph, b.timeline).share.mean())
        host = ~b.graph.resource_is_device[b.graph.resource]
        faster = b.graph.measured_s.copy()
        faster[host] *= 0.5
        gain = 1 - float(replay(b.graph, faster).step_s.mean() / b.timeline.step_s.mean())
        assert low <= share <= high
        assert gain == pytest.approx(0.5 * share, abs=0.12)
