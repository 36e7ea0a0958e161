"""Health checks of what the device waits for: launches that come late, messages nothing hides; costs by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.graph.made import kernel, launch
from tests.study.findings_of import found, step
from workbench.study.health import OF_STARTS, findings
from workbench.study.seen import Seen
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

US = 1e-6


def test_launch_bound_stretches(tmp_path: Path) -> None:
    """60 kernels of 3 us, each launched 10 us after the one before, start as soon as their launch lets them: pauses of 6 and 59 of 7 us."""
    events = [one for i in range(60) for one in (launch(i + 1, 10 * i, 5), kernel(i + 1, "tiny", 10 * i + 6, 3))]
    got = found(tmp_path, events)["launch-bound"]
    assert got.count == 60, "the first waits for its launch from the begin of the step on"
    assert got.cost_s == pytest.approx((6 + 59 * 7) * US)
    queued = [one for i in range(60) for one in (launch(i + 1, 5 * i, 4), kernel(i + 1, "tiny", 400 + 10 * i, 3))]
    assert "launch-bound" not in found(tmp_path, queued)


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@pytest.mark.parametrize(("hidden", "exposed"), [(0, 40), (30, 10), (36, None)])
def test_exposed_messages(tmp_path: Path, hidden: float, exposed: float | None) -> None:
    """A message of 40 us in a step of 100 us runs beside ``hidden`` us of a kernel; 4 us alone are less than a twentieth."""
    beside = [launch(3, 12, 2), kernel(3, "beside", 50, hidden, stream=8)] if hidden else []
    events = [step(1, 0, 100), launch(1, 2, 2), kernel(1, "first", 10, 40), launch(2, 6, 2), kernel(2, NCCL, 50, 40, stream=20), *beside]
    got = found(tmp_path, events)
    assert ("exposed-messages" in got) == (exposed is not None)
    if exposed:
        one = got["exposed-messages"]
        assert one.cost_s == pytest.approx(exposed * US)
        assert (one.count, one.certainty) == (1, "certain")
        assert "may be waiting for peers" in one.what, "one rank alone cannot tell"
        assert one.where == NCCL


def test_exposed_messages_of_a_kernel_table(shared: Path) -> None:
    """The table's tasks on an Ascend card: messages fill two thirds of it; times from the file's own columns."""
    path = shared / "traces" / "ascend" / "kernel_details.csv"
    workload = Workload(open_trace([path]))
    got = {one.code: one for one in findings(Seen(workload))}["exposed-messages"]
    assert got.share == pytest.approx(float(workload.measured_account.exposed_communication_s.sum() / workload.graph.measured_step_s.sum()))
    assert got.share > 0.6
    assert "hcom_allReduce" in got.where
    assert "__" not in got.where, "numbers of the producer are no names"


def test_reconstructed_starts_make_nothing_certain(shared: Path) -> None:
    """A Chakra file without start times: findings that rest on them are possible at most, and say so."""
    (path,) = (shared / "traces" / "chakra").glob("*.et.gz")
    got = {one.code: one for one in findings(Seen(Workload(open_trace([path]))))}
    assert got["launch-bound"].certainty == "possible"
    assert "reconstructed" in got["launch-bound"].what
    rests = [one for code, one in got.items() if code in OF_STARTS]
    assert all(one.certainty == "possible" for one in rests)
