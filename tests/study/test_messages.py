"""Communication of one rank: every message keeps its own waiting, only the transfer moves to the other fabric."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench.cost.scale import NO_SOURCE
from workbench.graph.graph import NodeKind
from workbench.hardware.npu import load_npu
from workbench.network.recorded import reprice_recorded
from workbench.study.messages import message_times
from workbench.study.predict import predict
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.open import open_trace


def test_waiting_is_kept_and_transfer_is_repriced() -> None:
    """By hand: 5 ms recorded with 2 ms of transfer on the source is 3 ms of waiting; half the transfer gives 4 ms."""
    nominal, low, high = reprice_recorded(np.array([5e-3, 1e-3]), np.array([2e-3, 2e-3]), np.array([1e-3, 1e-3]))
    assert nominal == pytest.approx([4e-3, 0.5e-3])
    assert low == pytest.approx([1e-3, 0.5e-3])
    assert (high >= nominal).all()


def test_the_same_fabric_returns_the_recording() -> None:
    measured, transfer = np.array([5e-3, 1e-3]), np.array([2e-3, 2e-3])
    assert reprice_recorded(measured, transfer, transfer)[0] == pytest.approx(measured)


@pytest.fixture(scope="module")
def megatron(shared) -> Workload:
    """One rank of a tensor-parallel step: 84 all-reduces whose recorded times differ by their waiting."""
    return Workload(open_trace(shared / "traces" / "megatron_a100_tp8" / "kineto_rank0.json.gz"))


def test_every_message_differs_from_its_recording_by_the_transfer_only(megatron: Workload) -> None:
    """All-reduces of one size are one operator, but an average of their waiting would belong to none of them."""
    prediction = predict(Scenario(megatron, npu=load_npu("h100-sxm")))
    graph = prediction.graph
    nodes = np.flatnonzero(graph.kind == NodeKind.COMMUNICATION)
    change = prediction.node_s[nodes] - graph.measured_s[nodes]
    largest = nodes[np.isin(graph.op[nodes], np.flatnonzero(prediction.table.dim("bytes") == 67108864))]
    assert len(largest) == 81
    assert (change <= 1e-12).all(), "the candidate's link is faster"
    waited = graph.measured_s[largest] > 2e-3
    differences = (prediction.node_s - graph.measured_s)[largest][waited]
    assert np.ptp(differences) < 1e-9, "one size, one difference, however long each waited"


def test_the_table_row_is_the_mean_of_its_messages(megatron: Workload) -> None:
    prediction = predict(Scenario(megatron, npu=load_npu("h100-sxm")))
    graph = prediction.graph
    nodes = np.flatnonzero(graph.kind == NodeKind.COMMUNICATION)
    for row in np.unique(graph.op[nodes]):
        mine = nodes[graph.op[nodes] == row]
        assert prediction.op_seconds[row] == pytest.approx(prediction.node_s[mine].mean())


def test_a_message_between_unknown_links_is_not_certain(megatron: Workload) -> None:
    """Without the source's link nothing moves the recorded time to the candidate: it is kept, and its interval says how little is known."""
    h100 = load_npu("h100-sxm")
    source = replace(load_npu("a100-sxm4-80gb"), link=None)
    found = message_times(megatron.graph, megatron.table, [h100], source)
    assert not found.known.any()
    assert found.seconds[:, 0] == pytest.approx(megatron.graph.measured_s[found.node])
    assert found.low_s == pytest.approx(found.seconds / NO_SOURCE)
    assert found.high_s == pytest.approx(found.seconds * NO_SOURCE)
