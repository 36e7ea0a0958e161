"""Names of communication kernels by library, and names that only look like one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.study.inspect import inspect
from workbench.trace.comm import comm, is_comm_name, suspects
from workbench.trace.open import open_trace


@pytest.mark.parametrize("name", [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
    "rcclGenericKernel", "hcom_allReduce__445_5", "void mscclpp::allreduce<float>", "nvshmemi_transfer", "oneccl_allreduce_small",
    "cnclAllReduceKernel", "mcclKernel_AllReduce", "ecclAllGather", "flagcxKernel", "vllm::cross_device_reduce_1stage<float>",
    "void deep_ep::intranode::dispatch<4>", "all-reduce.17", "all-gather-start.2", "collective-permute-done", "reduce-scatter.1.2",
])  # fmt: skip
def test_names_of_libraries(name: str) -> None:
    assert is_comm_name(name)


@pytest.mark.parametrize("name", [
    "__amd_rocclr_copyBuffer.kd", "void at::native::reduce_kernel<512>", "all-reduce-scatter-fusion-of-nothing", "allocate_accumulator",
    "Cijk_Alik_Bljk_BBS", "accumulate", "occlusion_kernel", "reduce.3", "send_mail", "volta_sgemm_128x64_nn",
])  # fmt: skip
def test_names_of_others(name: str) -> None:
    assert not is_comm_name(name)


def test_what_only_looks_like_one_is_listed_with_its_time(tmp_path: Path) -> None:
    """A library no rule knows is listed, not guessed; the buffers of ROCclr, AMD's runtime, are no messages."""
    rows = [("acmeccl_exchange", 5), ("acmeccl_exchange", 7), ("__amd_rocclr_copyBuffer.kd", 9), ("gemm", 100)]
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 200 * i, "dur": dur, "args": {"device": 0, "stream": 7}}
        for i, (name, dur) in enumerate(rows)
    ]
    path = tmp_path / "names.json"
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}))
    trace = open_trace(path)
    assert suspects(trace, comm(trace)) == {"acmeccl_exchange": 12_000}
    found = {one.code: one for one in inspect(trace).findings}
    assert found["unknown-communication"].where == "acmeccl_exchange 12 us"
    assert found["unknown-operators"].where.startswith("gemm 100 us, acmeccl_exchange 12 us")
