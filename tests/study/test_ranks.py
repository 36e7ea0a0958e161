"""Stragglers and slow links by hand, of Megatron, and on another fabric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.graph.jobs import group, job, message
from workbench.cli import cli
from workbench.graph.graph import NodeKind
from workbench.hardware.npu import load_npu
from workbench.network.recorded import reprice_transfer
from workbench.operators.table import Kind
from workbench.study.predict import predict
from workbench.study.ranks import bus_factor, links, ranks_document, stragglers
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace

MIB = 1 << 20


def three(tmp_path: Path) -> Trace:
    """Rank 1 is last twice (by 40 and 60 us for both others), rank 2 once by 10; 4 MiB in 100, 200 and 100 us; a send of 1 MiB in 50."""
    arrive = [(0, 40, 0), (0, 60, 20), (0, 0, 10)]
    length = [100, 200, 100]
    both = {"Group_size": 3, "Process_Group_Ranks": "[0, 1, 2]", "Process_Group_Name": "pp"}
    ranks: dict[int, list[Any]] = {
        r: [
            message(1000 * i + late[r], max(late) - late[r] + length[i], elements=MIB, **group((0, 1, 2), 5 + i, "dp"))
            for i, late in enumerate(arrive)
        ]
        for r in range(3)
    }
    ranks[0].append(message(5000, 50, "send", MIB // 4, Dst_Rank=2, **both))
    ranks[2].append(message(5000, 50, "recv", MIB // 4, Src_Rank=0, **both))
    return job(tmp_path, ranks, clock={2: 1e6})


def test_stragglers_by_hand(tmp_path: Path) -> None:
    """Waiting: 40 + 40, then 60 + 40, then 10 + 10, of which rank 1 caused 180 and rank 2 the last 20."""
    found = stragglers(three(tmp_path))
    np.testing.assert_allclose(found.caused_s, [0, 180e-6, 20e-6])
    np.testing.assert_allclose(found.caused_share, [0, 0.9, 0.1])
    np.testing.assert_allclose(found.waiting_s, [110e-6, 10e-6, 80e-6])
    np.testing.assert_allclose(found.transfer_s, [450e-6, 400e-6, 450e-6])
    np.testing.assert_allclose(found.clock_offset_s, [0, 0, 1.0])
    assert found.matched.values.tolist() == found.messages.values.tolist() == [4, 3, 4]


def test_links_by_hand(tmp_path: Path) -> None:
    """All-reduce: 12 MiB in 400 us, times 2 * 2 / 3 on the bus; the second one is the slowest. The send: 1 MiB in 50 us."""
    found = links(three(tmp_path))
    assert found.link.values.tolist() == ["rank 0 to rank 2", "group dp of ranks 0-2"]
    np.testing.assert_allclose(found.algorithm_bandwidth, [MIB / 50e-6, 12 * MIB / 400e-6])
    np.testing.assert_allclose(found.bus_bandwidth, [MIB / 50e-6, 12 * MIB / 400e-6 * 4 / 3])
    assert found.slowest_number.values[1] == 6
    np.testing.assert_allclose(found.slowest_bandwidth.values[1], 4 * MIB / 200e-6)
    np.testing.assert_allclose(found.slowest_at_s.values[1], 1000e-6)


def test_bus_factors() -> None:
    """nccl-tests, doc/PERFORMANCE.md: all-reduce 2 (n - 1) / n; all-gather, reduce-scatter, all-to-all (n - 1) / n; broadcast 1."""
    assert bus_factor(Kind.ALL_REDUCE, 8) == 1.75
    assert {bus_factor(k, 8) for k in (Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL)} == {0.875}
    assert bus_factor(Kind.BROADCAST, 8) == bus_factor(Kind.SEND_RECV, 2) == 1.0


def test_megatron_document(shared: Path) -> None:
    """Waiting caused adds up to waiting done; transfers are 50.099 ms a rank (facts.json)."""
    trace = open_trace(str(shared / "traces" / "megatron_a100_tp8" / "kineto*.gz"))
    document, notes = ranks_document(trace)
    assert document is not None
    assert sum(r.caused_s for r in document.ranks) == pytest.approx(sum(r.waiting_s for r in document.ranks))
    assert {round(r.transfer_s, 9) for r in document.ranks} == {0.050099}
    assert [(link.name, link.kind, link.messages) for link in document.links] == [("ranks 0-7", "all-reduce", 84)]
    assert "clocks-aligned" in {note.code for note in notes}


def test_inspect_prints_and_writes_ranks(tmp_path: Path) -> None:
    three(tmp_path)
    result = CliRunner().invoke(cli, ["inspect", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    ranks = json.loads(result.output)["ranks"]
    assert [r["caused_s"] for r in ranks["ranks"]] == pytest.approx([0, 180e-6, 20e-6])
    text = CliRunner().invoke(cli, ["inspect", str(tmp_path / "job_*.json")], env={"COLUMNS": "300"}).output
    assert "who waits for whom" in text
    assert "group dp of ranks 0-2" in text


def test_ranks_without_a_common_clock_are_still_inspected(tmp_path: Path) -> None:
    trace = job(tmp_path, {r: [message(0, 100, **group((r, r + 8), 0, str(r)))] for r in (0, 1)}, world=16)
    document, notes = ranks_document(trace)
    assert document is None
    assert [note.code for note in notes] == ["ranks-not-compared"]


def test_another_fabric_moves_the_transfer_alone(tmp_path: Path) -> None:
    """Links of half the speed; rank 0's waiting of 3 ms stays what rank 1's lateness makes it.

    By hand: an all-reduce of two ranks moves its 64 MiB once over each link, in two hops, so the transfer grows by
    (2 t + 2 l) / (t + 2 l), t = 64 MiB by bandwidth, l = latency.
    """
    big = 16 * MIB
    ranks = {
        0: [message(0, 4000, elements=big, **group((0, 1), 0, "dp"))],
        1: [message(3000, 1000, elements=big, **group((0, 1), 0, "dp"))],
    }
    workload = Workload(job(tmp_path, ranks))
    source = load_npu("a100-sxm4-80gb")
    assert source.link is not None
    slower = source.with_({"link.bandwidth": f"{source.link.bandwidth / 2e9} GB/s"})
    same = predict(Scenario(workload, npu=source, source=source))
    other = predict(Scenario(workload, npu=slower, source=source))
    graph = workload.graph
    at = np.flatnonzero(graph.kind == NodeKind.COMMUNICATION)
    np.testing.assert_allclose(same.node_s[at], 1000e-6)
    t, hop = 64 * MIB / source.link.bandwidth, source.link.latency
    np.testing.assert_allclose(other.node_s[at], 1000e-6 * (2 * t + 2 * hop) / (t + 2 * hop))
    arrival = np.flatnonzero(graph.kind == NodeKind.ARRIVAL)
    waited = np.sort(other.timeline.start_s[at].max() - other.timeline.start_s[arrival])
    np.testing.assert_allclose(waited, [0, 3000e-6], atol=1e-9)


def test_reprice_transfer() -> None:
    """Ratio of the models on the recorded transfer; between that and the target's model alone; nothing moves on the same fabric."""
    nominal, low, high = reprice_transfer(np.array([3.0, 3.0]), np.array([2.0, 2.0]), np.array([4.0, 2.0]))
    np.testing.assert_allclose((nominal, low, high), [[6.0, 3.0], [4.0, 3.0], [6.0, 3.0]])


def test_period_is_between_steps_of_one_rank(tmp_path: Path) -> None:
    """Two ranks whose steps begin 100 us apart, each 1000 us long, one every 1500 us: the period is 1500 us."""
    paths = []
    for rank in (0, 1):
        events: list[dict[str, Any]] = []
        for step in range(3):
            at = 1500 * step + 100 * rank
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": 1000})
            events.append({"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": at + 10, "dur": 900})
        paths.append(tmp_path / f"{rank}.json")
        info = {"rank": rank, "world_size": 2}
        paths[-1].write_text(json.dumps({"distributedInfo": info, "baseTimeNanoseconds": 0, "traceEvents": events}))
    prediction = predict(Scenario(Workload(open_trace(paths))))
    assert prediction.period_s == pytest.approx(1500e-6)
    assert prediction.step_time_s == pytest.approx(1000e-6)


def test_one_rank_of_several_is_flagged(shared: Path) -> None:
    result = CliRunner().invoke(cli, ["inspect", str(shared / "cases" / "traces" / "missing_peer_rank0.json"), "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["ranks"] is None
    assert [note["count"] for note in document["notes"] if note["code"] == "missing-peers"] == [1]
