"""Device work grouped into priced units: recordings written by hand, and laws on random ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graph.recording import Recording, priced
from workbench.operators.table import Dtype, Kind

GEMM = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


MM = {"dims": [[64, 32], [32, 16]], "types": ["c10::BFloat16", "c10::BFloat16"]}


def test_the_innermost_operator_with_a_formula(tmp_path: Path) -> None:
    """linear > mm: the kernel and the workspace fill below it are one unit of mm, shared 9 : 1."""
    r = Recording().op("aten::linear", 100, 50, [[64, 32], [16, 32]], ["c10::BFloat16", "c10::BFloat16"]).op("aten::mm", 105, 40, **MM)
    r.launch(110, 1, "cudaMemsetAsync").launch(120, 2).kernel("Memset (Device)", 130, 1, 1, cat="gpu_memset", bytes=64).kernel(
        GEMM, 140, 9, 2
    )
    trace, table, _, _, share = priced(r, tmp_path)
    assert table.name == ("aten::mm",)
    assert table.kind[0] == Kind.GEMM
    assert table.dtype[0] == Dtype.BF16
    assert table.dim("k")[0] == 32
    assert table.measured_s[0] == pytest.approx(10e-6)
    assert list(share[trace.is_device_work]) == [0.1, 0.9]
    assert table.signature[0] == "aten::mm|bf16|[64,32]x[32,16]"


@pytest.mark.parametrize("reused", [0, 77])
def test_a_correlation_that_returns_names_the_call_last_made_under_it(tmp_path: Path, reused: int) -> None:
    """Three products under one id (0 is written where a producer has none): three executions, not one three times as long."""
    r = Recording()
    for i in range(3):
        r.op("aten::mm", 100 + 50 * i, 20, **MM).launch(105 + 50 * i, reused).kernel(GEMM, 115 + 50 * i, 9, reused)
    _, table, *_ = priced(r, tmp_path)
    assert (table.name, table.count.tolist()) == (("aten::mm",), [3])
    assert table.measured_s[0] == pytest.approx(9e-6)


def test_work_before_its_launch_belongs_to_the_first_call_of_its_id(tmp_path: Path) -> None:
    """The device clock is ahead: the kernel starts before both the runtime call and the driver call within it."""
    r = Recording().op("aten::mm", 100, 20, **MM).launch(105, 5, dur=10).launch(107, 5, "cuLaunchKernel", dur=4).kernel(GEMM, 90, 9, 5)
    _, table, *_ = priced(r, tmp_path)
    assert (table.name, table.count.tolist()) == (("aten::mm",), [1])


def test_a_wrapper_that_launches_by_itself_has_the_formula(tmp_path: Path) -> None:
    r = (
        Recording()
        .op("aten::linear", 100, 50, [[64, 32], [16, 32], []], ["float", "float", ""])
        .launch(110, 1)
        .kernel("volta_sgemm_64x32_tn", 120, 5, 1)
    )
    _, table, *_ = priced(r, tmp_path)
    assert (table.name[0], table.flops[0]) == ("aten::linear", 2 * 64 * 16 * 32)


def test_what_a_wrapper_launches_beside_its_work_is_not_the_work_again(tmp_path: Path) -> None:
    """A stray kernel under aten::linear, whose product ran in aten::mm: no second product appears."""
    r = (
        Recording()
        .op("aten::linear", 100, 80, [[64, 32], [16, 32]], ["float", "float"])
        .op("aten::mm", 105, 20, [[64, 32], [32, 16]], ["float", "float"])
    )
    r.launch(110, 1).launch(150, 2).kernel("volta_sgemm_64x32_tn", 120, 5, 1).kernel("stray", 160, 1, 2)
    _, table, *_ = priced(r, tmp_path)
    assert sorted(zip(table.name, table.kind.tolist(), strict=True)) == [("aten::mm", Kind.GEMM), ("stray", Kind.UNKNOWN)]


def test_equal_calls_are_one_row(tmp_path: Path) -> None:
    """Two executions of 5 and 7 us: one row, count 2, mean 6 us."""
    r = Recording()
    for i, dur in enumerate((5, 7)):
        r.op("aten::mm", 100 + 100 * i, 50, **MM).launch(110 + 100 * i, i + 1).kernel(GEMM, 120 + 100 * i, dur, i + 1)
    _, table, *_ = priced(r, tmp_path)
    assert table.count.tolist() == [2]
    assert table.measured_s[0] == pytest.approx(6e-6)


def test_the_type_that_ran_tells_rows_apart(tmp_path: Path) -> None:
    """The same fp32 call on a TF32 kernel and on an fp32 kernel: two rows."""
    r = Recording()
    for i, name in enumerate(("cutlass_80_tensorop_s1688gemm_64x64", "ampere_sgemm_32x32")):
        r.op("aten::mm", 100 + 100 * i, 50, [[64, 32], [32, 16]], ["float", "float"]).launch(110 + 100 * i, i + 1).kernel(
            name, 120 + 100 * i, 5, i + 1
        )
    _, table, *_ = priced(r, tmp_path)
    assert sorted(table.dtype.tolist()) == [Dtype.FP32, Dtype.TF32]


def test_graph_launches_are_priced_kernel_by_kernel(tmp_path: Path) -> None:
    r = Recording().op("aten::mm", 100, 50, **MM).launch(110, 1, "cudaGraphLaunch")
    for i in range(3):
        r.kernel(f"node_{i % 2}", 120 + 10 * i, 5, 1)
    _, table, _, unit, _ = priced(r, tmp_path)
    assert sorted(table.name) == ["node_0", "node_1"]
    assert (table.kind == Kind.UNKNOWN).all()
    assert not table.has_shapes.any()
    assert len(np.unique(unit[unit >= 0])) == 3


def test_an_operator_over_two_streams_falls_apart(tmp_path: Path) -> None:
    r = (
        Recording()
        .op("aten::mm", 100, 50, **MM)
        .launch(110, 1)
        .launch(120, 2)
        .kernel(GEMM, 130, 5, 1, stream=7)
        .kernel(GEMM, 130, 5, 2, stream=8)
    )
    _, table, *_ = priced(r, tmp_path)
    assert table.kind.tolist() == [Kind.UNKNOWN]
    assert table.count.tolist() == [2]


def test_orphans_and_copies_by_their_bytes(tmp_path: Path) -> None:
    """A kernel without a launch is a row of its own; a copy and a fill without an operator are known by their recorded bytes."""
    r = Recording().kernel("lonely", 100, 5, 99).launch(110, 1, "cudaMemcpyAsync").launch(120, 2, "cudaMemsetAsync")
    r.kernel("Memcpy HtoD (Pinned -> Device)", 130, 5, 1, cat="gpu_memcpy", bytes=4096).kernel(
        "Memset (Device)", 140, 5, 2, cat="gpu_memset", bytes=512
    )
    _, table, *_ = priced(r, tmp_path)
    rows = {Kind(k): i for i, k in enumerate(table.kind.tolist())}
    assert table.bytes_read[rows[Kind.COPY]] == table.bytes_written[rows[Kind.COPY]] == 4096
    assert table.dim("direction")[rows[Kind.COPY]] == 1
    assert table.bytes_written[rows[Kind.SET]] == 512
    assert not table.has_shapes[rows[Kind.UNKNOWN]]


def test_unknown_operators_with_shapes_are_listed_by_name(tmp_path: Path) -> None:
    r = (
        Recording()
        .op("my::odd", 100, 50, [[4, 4]], ["float"])
        .launch(110, 1)
        .launch(115, 2)
        .kernel("odd_a", 120, 5, 1)
        .kernel("odd_b", 130, 5, 2)
    )
    _, table, *_ = priced(r, tmp_path)
    assert table.name == ("my::odd",)
    assert table.kind[0] == Kind.UNKNOWN
    assert table.has_shapes[0]
    assert table.signature == ("my::odd|fp32|[4,4]",)


def test_an_operator_without_a_rule_is_known_by_its_kernels(tmp_path: Path) -> None:
    r = Recording().op("my::odd", 100, 50, [[4, 4], [4, 4]], ["float", "float"]).launch(110, 1).kernel(POINTWISE, 120, 5, 1)
    _, table, *_ = priced(r, tmp_path)
    assert table.kind.tolist() == [Kind.ELEMENTWISE]


def test_calls_on_another_thread_are_joined_by_external_id(tmp_path: Path) -> None:
    """2021 recordings: the runtime call lies on a thread of its own; the kernel carries the operator's External id."""
    r = Recording().op("aten::mm", 100, 50, **MM, **{"External id": 17}).launch(110, 1, tid=99)
    r.kernel(GEMM, 120, 5, 1, **{"External id": 17})
    _, table, *_ = priced(r, tmp_path)
    assert table.name == ("aten::mm",)


def test_flow_arrows_stand_in_for_correlation(tmp_path: Path) -> None:
    """A kernel without a correlation, an arrow with the id of the runtime call ending at its start."""
    r = Recording().op("aten::mm", 100, 50, **MM).launch(110, 5)
    r.records.append(
        {"ph": "X", "cat": "kernel", "name": GEMM, "pid": 0, "tid": 7, "ts": 120, "dur": 5, "args": {"device": 0, "stream": 7}}
    )
    r.records.append({"ph": "f", "id": 5, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 120, "bp": "e"})
    _, table, *_ = priced(r, tmp_path)
    assert table.name == ("aten::mm",)


def test_the_innermost_call_of_a_correlation_launches(tmp_path: Path) -> None:
    """A runtime call around its driver call share a correlation; both lead to the same operator."""
    r = (
        Recording()
        .op("aten::mm", 100, 50, **MM)
        .launch(110, 1, dur=10)
        .add("cuda_driver", "cuLaunchKernel", 112, 5, correlation=1)
        .kernel(GEMM, 130, 5, 1)
    )
    _, table, *_ = priced(r, tmp_path)
    assert table.name == ("aten::mm",)


def test_messages_of_old_and_new_recordings(tmp_path: Path) -> None:
    """2023: shapes on record_param_comms; 2024: arguments on the kernel itself. All-gather of 4 x 8 ranks is 32 elements of 2 B."""
    r = Recording().op("record_param_comms", 100, 50, [[[4, 8]], [], []], ["TensorList", "Scalar", "Scalar"], ["", "1", "8"])
    r.launch(110, 1).kernel("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)", 120, 5, 1)
    r.launch(210, 2).kernel(
        "ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", 220, 5, 2,
        **{"Collective name": "_allgather_base", "In msg nelems": 4, "Out msg nelems": 32, "Group size": 8, "dtype": "BFloat16"},
    )  # fmt: skip
    _, table, *_ = priced(r, tmp_path)
    rows = {Kind(k): i for i, k in enumerate(table.kind.tolist())}
    assert table.dim("bytes")[rows[Kind.ALL_REDUCE]] == 64
    assert table.dim("bytes")[rows[Kind.ALL_GATHER]] == 64
    assert set(table.dim("group_size").tolist()) == {8}


def test_stride_of_a_2021_convolution_from_what_follows(tmp_path: Path) -> None:
    """No concrete arguments: the batch norm that follows shows the output; the gradient finds its weight by sequence number."""
    types = ["float", "float"]
    r = Recording().op("aten::conv2d", 100, 50, [[2, 3, 8, 8], [4, 3, 3, 3]], types, **{"Sequence number": 7})
    r.op("aten::cudnn_convolution", 105, 40, [[2, 3, 8, 8], [4, 3, 3, 3]], types, **{"Sequence number": 7})
    r.op("aten::cudnn_batch_norm", 200, 50, [[2, 4, 4, 4], [4]], types)
    r.op("CudnnConvolutionBackward", 300, 90, [[2, 4, 4, 4]], ["float"], **{"Sequence number": 7, "Fwd thread id": 1})
    r.op("aten::cudnn_convolution_backward_weight", 310, 50, [[], [2, 4, 4, 4], [2, 3, 8, 8]], ["GenericList", "float", "float"])
    for i, ts in enumerate((110, 210, 320)):
        r.launch(ts, i + 1).kernel(f"k{i}", ts + 10, 5, i + 1)
    _, table, *_ = priced(r, tmp_path)
    macs = 2 * 4 * 16 * 3 * 9
    rows = {Kind(k): i for i, k in enumerate(table.kind.tolist())}
    assert table.flops[rows[Kind.CONV_FORWARD]] == table.flops[rows[Kind.CONV_BACKWARD_WEIGHT]] == 2 * macs
    assert table.dim("stride_h")[rows[Kind.CONV_FORWARD]] == 2


def test_units_without_time_share_equally(tmp_path: Path) -> None:
    r = Recording().op("aten::mm", 100, 50, **MM).launch(110, 1).launch(120, 2).kernel(GEMM, 130, 0, 1).kernel(GEMM, 140, 0, 2)
    trace, _, _, _, share = priced(r, tmp_path)
    assert share[trace.is_device_work].tolist() == [0.5, 0.5]


def test_host_recordings_are_priced_by_their_own_time(tmp_path: Path) -> None:
    """No device: addmm (self 30 us) with a helper inside (10 us) is one unit of 40 us; what surrounds it is host work."""
    r = Recording().op("my::layer", 100, 100, [[4, 4]], ["float"])
    r.op(
        "aten::addmm", 110, 40, [[16], [64, 32], [32, 16], [], []], ["float", "float", "float", "Scalar", "Scalar"], ["", "", "", "1", "1"]
    )
    r.op("aten::expand", 120, 10, [[16], []], ["float", "ScalarList"])
    trace, table, op, _, share = priced(r, tmp_path)
    assert table.name == ("aten::addmm",)
    assert table.measured_s[0] == pytest.approx(40e-6)
    assert {trace.name_of(int(e)): float(share[e]) for e in np.flatnonzero(op >= 0)} == {"aten::addmm": 0.75, "aten::expand": 0.25}


def test_a_host_wrapper_is_not_priced_twice(tmp_path: Path) -> None:
    r = (
        Recording()
        .op("aten::matmul", 100, 100, [[64, 32], [32, 16]], ["float", "float"])
        .op("aten::mm", 110, 40, [[64, 32], [32, 16]], ["float", "float"])
    )
    _, table, *_ = priced(r, tmp_path)
    assert (table.name, table.measured_s.tolist()) == (("aten::mm",), [pytest.approx(40e-6)])


def test_nothing_recorded_gives_an_empty_table(tmp_path: Path) -> None:
    _, table, op, *_ = priced(Recording(), tmp_path)
    assert len(table) == 0
    assert (op == -1).all()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_laws_on_random_recordings(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever is launched from wherever onto whichever stream, no device time is lost or counted twice."""
    r = Recording()
    names = ["aten::linear", "aten::mm", "aten::cat", "my::odd", "record_param_comms", "aten::copy_"]
    dims = [[[64, 32], [32, 16]], [[8], [8]], [[], []], [[[4, 8]], [], []]]
    for i in range(data.draw(st.integers(1, 12))):
        base = 1000 * i
        for depth in range(data.draw(st.integers(0, 3))):
            shapes = data.draw(st.sampled_from([None, *dims]))
            r.op(data.draw(st.sampled_from(names)), base + depth, 900 - 2 * depth, shapes, ["float"] * len(shapes or []))
        for k in range(data.draw(st.integers(0, 3))):
            r.launch(base + 10 + 5 * k, 10 * i + k, data.draw(st.sampled_from(["cudaLaunchKernel", "cudaGraphLaunch"])))
            for _ in range(data.draw(st.integers(0, 2))):
                kind = data.draw(st.sampled_from(["kernel", "gpu_memcpy", "gpu_memset"]))
                name = {"kernel": GEMM, "gpu_memcpy": "Memcpy DtoH (Device -> Pinned)", "gpu_memset": "Memset (Device)"}[kind]
                r.kernel(
                    name,
                    base + data.draw(st.integers(0, 500)),
                    data.draw(st.integers(0, 50)),
                    10 * i + k,
                    data.draw(st.integers(7, 8)),
                    kind,
                    bytes=64,
                )
    priced(r, tmp_path)
