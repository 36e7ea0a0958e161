"""Every count and sum of the public traces equals the one an independent script computed (traces/facts.json)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from workbench.trace.facts import facts as facts_of
from workbench.trace.open import open_trace

SHARED = Path(os.environ.get("WORKBENCH_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
DOCUMENT = SHARED / "traces" / "facts.json"
KINETO = (
    [k for k in json.loads(DOCUMENT.read_text())["traces"] if "/" not in k or k.startswith(("mega", "pairs"))]
    if DOCUMENT.is_file()
    else [""]
)


@pytest.mark.parametrize("name", KINETO)
def test_facts_are_reproduced_exactly(name: str, shared: Path, facts: dict[str, Any]) -> None:
    path = str(shared / "traces" / name)
    want = {key: value for key, value in facts["traces"][name].items() if key != "reference_tool"}
    got = facts_of(open_trace(path))[path]
    assert {key: got.get(key) for key in want} == want


def test_eight_ranks_open_as_one_trace(shared: Path, facts: dict[str, Any]) -> None:
    """Joined, each file keeps its own facts; the step marks of the eight ranks are those of `across_ranks`."""
    folder = shared / "traces" / "megatron_a100_tp8"
    paths = [folder / f"kineto_rank{rank}.json.gz" for rank in (3, 0, 1, 2, 7, 6, 5, 4)]
    trace = open_trace(paths)
    assert [r.rank for r in trace.ranks] == [3, 0, 1, 2, 7, 6, 5, 4]
    found = facts_of(trace)
    for path in paths:
        want = {k: v for k, v in facts["traces"][f"megatron_a100_tp8/{path.name}"].items() if k != "reference_tool"}
        assert {key: found[str(path)].get(key) for key in want} == want
    steps = facts["across_ranks"]["megatron_a100_tp8"]["profiler_step_ns"]
    assert {path.name: found[str(path)]["profiler_steps"] for path in paths} == steps


def test_communication_of_the_traces_is_the_same_by_name_and_by_arguments(shared: Path) -> None:
    """None of these recordings carries collective arguments: both rules must then agree."""
    path = str(shared / "traces" / "a100_ddp_six_steps.json.gz")
    found = facts_of(open_trace(path))[path]
    assert found["comm_kernels_by_args"] == found["comm_kernels"] == 60
    assert found["exposed_comm_ns_by_args"] == found["exposed_comm_ns"]
