"""Kinds of host work, by hand; and a host that is slower in one kind alone, executed and predicted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.graph.made import built, event, kernel, launch, write
from workbench.graph.host_kinds import host_kinds
from workbench.hardware.host import KINDS


@pytest.fixture
def kinds(tmp_path: Path) -> dict[str, set[str]]:
    """Times in us: an operator with a launch, a short and a long gap, a view, an operator on host memory, a copy, a query, a wait."""
    trace = write(
        tmp_path,
        [
            event("cpu_op", "aten::mm", 0, 20),
            launch(1, 5),
            kernel(1, "k", 12, 10),
            event("cpu_op", "aten::view", 30, 3),
            event("cpu_op", "aten::max", 2040, 400),
            event("cpu_op", "aten::to", 2450, 60),
            launch(2, 2455, 20, name="cudaMemcpyAsync"),
            kernel(2, "Memcpy HtoD", 2480, 5, category="gpu_memcpy"),
            event("cuda_runtime", "cudaFuncGetAttributes", 2515, 1),
            event("cuda_runtime", "cudaDeviceSynchronize", 2520, 10),
        ],
    )
    b = built(trace)
    found: dict[str, set[str]] = {}
    for node, kind in enumerate(host_kinds(b.graph, trace)):
        name = trace.name_of(int(b.graph.event[node])) if b.graph.event[node] >= 0 else f"gap of {b.graph.measured_s[node] * 1e6:.0f}"
        found.setdefault(KINDS[kind] if kind >= 0 else "fixed", set()).add(name)
    return found


def test_every_kind_by_hand(kinds: dict[str, set[str]]) -> None:
    assert kinds["operators"] == {"aten::mm", "aten::view", "aten::to"}
    assert kinds["compute"] == {"aten::max"}
    assert kinds["launch"] == {"cudaLaunchKernel"}
    assert kinds["copy"] == {"cudaMemcpyAsync"}
    assert kinds["call"] >= {"cudaFuncGetAttributes", "cudaDeviceSynchronize"}
    assert {"gap of 10", "gap of 4"} <= kinds["interpreter"]
    assert kinds["library"] == {"gap of 2007"}
    assert {"k", "Memcpy HtoD"} <= kinds["fixed"]
