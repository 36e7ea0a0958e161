"""Comparing jobs of several ranks: rank by rank, the typical one in full; and what is said where two recordings do not match."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.graph.test_rank_interventions import SKEW_NS, job
from tests.naive.actions import Program
from tests.naive.answers import answers
from tests.naive.executor import execute_job
from tests.naive.kineto import document, packed
from tests.naive.programs import GELU, GEMM, launch_bound
from tests.study.test_compare_traces import NS, adds_up
from workbench.data import data_path
from workbench.errors import Refused
from workbench.study.compare_summary import signed
from workbench.study.compare_traces import comparison
from workbench.study.terminal_compare import comparison_text, kernel_name, merged
from workbench.study.workload import Workload
from workbench.trace.open import open_trace


def opened(programs: list[Program], folder: Path) -> tuple[Workload, np.ndarray]:
    """Execute a job and open its files; also each rank's steps by the executor [s]."""
    paths, steps = [], []
    for rank, execution in enumerate(execute_job(programs)):
        steps.append([step["step_ns"] * NS for step in answers(execution)["steps"]])  # type: ignore[attr-defined]
        paths.append(folder / f"rank{rank}.json.gz")
        skewed = [replace(row, start_ns=row.start_ns + SKEW_NS[rank], end_ns=row.end_ns + SKEW_NS[rank]) for row in execution]
        paths[-1].write_bytes(packed(document(skewed, rank=rank, world_size=len(programs))))
    return Workload(open_trace(paths)), np.array(steps)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Workload, np.ndarray]]:
    base = job()
    slow = [program.scaled(GEMM.format("tn"), 1.5) if rank == 2 else program for rank, program in enumerate(base)]
    return {name: opened(programs, tmp_path_factory.mktemp(name)) for name, programs in (("base", base), ("slow", slow))}


def test_every_rank_is_compared_and_the_typical_one_in_full(jobs: dict[str, tuple[Workload, np.ndarray]]) -> None:
    """Rank 2 computes slower: by the executor all ranks' steps grow, because all wait for it."""
    (a, before), (b, after) = jobs["base"], jobs["slow"]
    found = comparison(a, b)
    adds_up(found)
    change = np.median(after, axis=1) - np.median(before, axis=1)
    assert [pair.rank for pair in found.ranks] == [0, 1, 2, 3]
    np.testing.assert_allclose([pair.delta_s for pair in found.ranks], change, atol=2e-6)  # clocks are laid on one
    typical = int(np.argmin(np.abs(change - np.median(change))))
    assert found.a.rank == found.b.rank == typical
    assert "typical-rank" in {note.code for note in found.notes}
    other = comparison(a, b, rank=2)
    adds_up(other)
    assert other.a.rank == 2
    assert "typical-rank" not in {note.code for note in other.notes}
    assert other.operators[0].label == "aten::addmm"  # what was made slower
    with pytest.raises(Refused, match="no steps of rank 7"):
        comparison(a, b, rank=7)


def test_another_number_of_ranks_is_said(jobs: dict[str, tuple[Workload, np.ndarray]]) -> None:
    a = jobs["base"][0]
    alone = Workload(open_trace([a.trace.ranks[1].path]))
    found = comparison(a, alone)
    assert (found.a.rank, found.b.rank, len(found.ranks)) == (1, 1, 1)
    assert "ranks on one side only are left out" in next(note.text for note in found.notes if note.code == "ranks-differ")
    other = comparison(alone, Workload(open_trace([a.trace.ranks[3].path])))
    assert (other.a.rank, other.b.rank, other.ranks) == (1, 3, [])
    assert "no rank is on both sides" in next(note.text for note in other.notes if note.code == "ranks-differ")


def sample(name: str) -> Workload:
    return Workload(open_trace([data_path("traces", f"{name}.json.gz")]))


def test_what_cannot_be_compared_is_said() -> None:
    """A convolutional network on a CPU beside a token of a language model on a GPU."""
    codes = {note.code for note in comparison(sample("cpu_resnet_b8"), sample("synthetic_launch_bound")).notes}
    assert codes >= {"other-model", "host-and-device"}
    same = {note.code for note in comparison(sample("cpu_resnet_b8"), sample("cpu_resnet_b16")).notes}
    assert not same & {"other-model", "host-and-device", "ranks-differ", "steps-differ"}


def test_two_vendors_runtimes_stand_side_by_side(tmp_path: Path) -> None:
    """The same program with HIP's names: launches are one row, and nothing appears or vanishes."""
    program = launch_bound(steps=2, layers=2)
    [execution] = execute_job([program])
    text = document(execution)
    for name, content in (("a", text), ("b", text)):
        for event in content["traceEvents"] if name == "b" else ():
            event["name"] = event["name"].replace("cudaLaunchKernel", "hipExtModuleLaunchKernel").replace("cuda", "hip")
        (tmp_path / f"{name}.json.gz").write_bytes(packed(content))
        if name == "a":
            text = document(execution)
    found = comparison(open_trace([tmp_path / "a.json.gz"]), open_trace([tmp_path / "b.json.gz"]))
    launches = [row for row in found.host if row.part == "launch calls" and "LaunchKernel" in row.name]
    assert [(row.name, row.delta_count) for row in launches] == [("cudaLaunchKernel | hipExtModuleLaunchKernel", 0)]
    assert not any(row.a_count == 0 or row.b_count == 0 for row in found.host)


def test_a_fused_chain_appears_and_vanishes(tmp_path: Path) -> None:
    """On one card a kernel that went and one that came are not taken for each other, though both are element-wise."""
    base = launch_bound(steps=2, layers=2)
    fused = base.edited(
        lambda action: replace(action, name=action.name.replace("gelu", "fused_gelu")) if hasattr(action, "name") else action
    )
    loads = []
    for name, program in (("a", base), ("b", fused)):
        [execution] = execute_job([program])
        (tmp_path / f"{name}.json.gz").write_bytes(packed(document(execution)))
        loads.append(Workload(open_trace([tmp_path / f"{name}.json.gz"])))
    found = comparison(*loads)
    alone = {(row.label, row.a is None, row.b is None) for row in found.operators if row.a is None or row.b is None}
    assert alone == {("aten::gelu", False, True), ("aten::fused_gelu", True, False)}
    shown = "\n".join(str(part) for part in comparison_text(found))
    assert "only in A: 1 operator, 2 calls" in shown


def test_words_of_the_table() -> None:
    assert merged("[8,16,32]x[4,16]", "[16,16,32]x[4,16]") == "[8>16,16,32]x[4,16]"
    assert merged("[8]", "[8]x[4]") == "[8] | [8]x[4]"
    assert kernel_name(GELU, 60) == "at::native::vectorized_elementwise_kernel"
    assert kernel_name("Cijk_Ailk_Bljk_B_BS_BH_Bias_HA_S", 20) == "Cijk_Ailk_Bljk_B_..."
    assert (signed(1.5e-3), signed(-2e-6), signed(0.0)) == ("+1.5 ms", "-2 us", "0")
