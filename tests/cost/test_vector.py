"""Streams: times and bytes by hand, what makes one slower than its bytes, and laws that hold for every kind and card."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench.cost.choices import Choices
from workbench.cost.cost import Bound
from workbench.cost.estimate import estimate
from workbench.cost.pack import calibration as scalars
from workbench.cost.pack import pack, stream_launch
from workbench.cost.rowwise import LOADED
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind

WARM = Choices(copies=(1.0, 1.0))
STREAMS = (
    Kind.ELEMENTWISE, Kind.SOFTMAX, Kind.NORM, Kind.REDUCTION, Kind.EMBEDDING, Kind.POOLING, Kind.COPY, Kind.SET, Kind.OPTIMIZER, Kind.SORT,
)  # fmt: skip
CARDS = ("a100-sxm4-80gb", "ascend-910b2", "npu-x", "p100-pcie-16gb", "tpu-v4", "t4")


def cost(kind, dims, name="a100-sxm4-80gb", dtype=Dtype.FP32, choices=None, called=None):
    rows = table([(kind, dtype, dims)])
    rows = rows if called is None else replace(rows, name=(called,))
    return estimate(rows, [load_npu(name)], choices=choices or Choices())


def seconds(*args, **more):
    return float(cost(*args, **more).seconds[0, 0])


def test_by_hand():
    """16 MiB read and written on an Ascend 910B2, on paper: four resources joined by a fourth-power norm after launch and one trip."""
    found = cost(Kind.ELEMENTWISE, (4 << 20,), "ascend-910b2")
    moved = 2 * 4 * (4 << 20)
    memory = moved / (0.85 * 1.6e12)  # 0.85 of 1.6 TB/s
    shared = moved / (0.9 * 2640 * 1.8e9)  # 0.9 of 2640 B/clk, as its file says
    vector = (4 << 20) / (0.9 * 24 * 128 * 1.8e9)
    flown = moved / 24 / (384 * 1024) * 750e-9  # the vector buffers of 24 cores are on their way for 750 ns
    body = (memory**4 + shared**4 + vector**4 + flown**4) ** 0.25
    assert found.seconds[0, 0] == pytest.approx(0.5e-6 + 750e-9 + body)
    assert found.bound[0, 0] == Bound.MEMORY
    assert found.level_bytes[0, 0, 2] == moved


def test_rows_that_no_level_keeps_are_read_twice():
    """24 cores work on rows of 16 MiB: 384 MiB between two passes, in an L2 of 192 MiB. Rows of 256 KiB fit the vector buffer."""
    short, long = (cost(Kind.SOFTMAX, dims, "ascend-910b2") for dims in ((4096, 65536), (64, 4 << 20)))
    assert long.level_bytes[0, 0, 2] == pytest.approx(1.5 * short.level_bytes[0, 0, 2])
    between = cost(Kind.SOFTMAX, (1024, 262144), "ascend-910b2")  # rows of 1 MiB: 24 MiB between two passes, an eighth of the L2
    assert 1.0 < between.level_bytes[0, 0, 2] / short.level_bytes[0, 0, 2] < 1.05
    assert between.level_bytes[0, 0, 1] == pytest.approx(1.5 * short.level_bytes[0, 0, 1])


def test_passes_of_a_gpu():
    """PyTorch: a warp holds 1024 elements of a softmax; longer rows are read for maximum, sum and result. Norms are read twice."""
    elements = 1 << 24
    for kind, cols, reads in ((Kind.SOFTMAX, 1024, 1), (Kind.SOFTMAX, 2048, 3), (Kind.NORM, 1024, 2)):
        found = cost(kind, (elements // cols, cols), "a100-sxm4-80gb")
        assert found.level_bytes[0, 0, 1] == pytest.approx((reads + 1) * 4 * elements)


def test_a_ragged_end_is_fetched_element_by_element():
    """Of 512 lanes with four elements each, 3072 columns are one wide and two narrow accesses, 4096 columns two wide ones."""
    ragged, whole = (seconds(Kind.SOFTMAX, (1 << 15, cols)) / cols for cols in (3072, 4096))
    assert ragged > 1.03 * whole


def test_element_by_element_kernels_wait_for_each_step():
    """vLLM's RMSNorm of 4736 rows of 4096 in fp16 on A100 takes 111 us (vidur): two rows a core, four steps, two passes."""
    spec = load_npu("a100-sxm4-80gb")
    found = cost(Kind.NORM, (4736, 4096), dtype=Dtype.FP16, called="rms_norm")
    near, far = spec.memory["l2"].latency, spec.memory["hbm"].latency
    again = np.clip((108 * 2 * 4096 * 2 / (40 * 2**20) - 0.1) / 0.9, 0, 1)
    trips = 4736 / (108 * 2) * 4 * LOADED * (2 * near + (1 + again) * far)
    assert found.resource_s[0, 0, Bound.LATENCY] == pytest.approx(trips)
    assert found.resource_s[0, 0, Bound.LAUNCH] == pytest.approx(near + far + stream_launch(spec, "fp16"))
    assert found.seconds[0, 0] == pytest.approx(111e-6, rel=0.2)
    assert seconds(Kind.NORM, (4736, 4096), dtype=Dtype.FP16, called="layer_norm") < 0.8 * found.seconds[0, 0]


def test_norms_of_odd_rows_are_two_kernels():
    even, odd = (seconds(Kind.NORM, (8192, cols)) for cols in (4096, 4095))
    assert odd > 1.2 * even


def test_one_row_keeps_one_core_busy():
    """A softmax over one row of a million elements cannot use 108 cores."""
    assert seconds(Kind.SOFTMAX, (1, 1 << 20)) > 10 * seconds(Kind.SOFTMAX, (1024, 1024))


def test_short_rows_of_a_table_move_whole_accesses():
    """Rows of 4 bytes from anywhere: a sector of 32 bytes each comes from outside, and 4 are written."""
    found = cost(Kind.EMBEDDING, (1 << 20, 1))
    assert found.level_bytes[0, 0, 2] == (32 + 4) * (1 << 20)
    whole = cost(Kind.EMBEDDING, (1 << 14, 1024))
    assert whole.level_bytes[0, 0, 2] == 2 * 4096 * (1 << 14)


def test_many_tensors_are_many_launches():
    """360 tensors at 36 a launch: nine launches and nine trips more than one tensor of as many elements."""
    spec = load_npu("a100-sxm4-80gb")
    rows = table([(Kind.OPTIMIZER, Dtype.FP32, (1 << 20, 1)), (Kind.OPTIMIZER, Dtype.FP32, (1 << 20, 360))])
    rows = replace(rows, **{name: np.full(2, float(1 << 20)) for name in ("flops", "bytes_read", "bytes_written")})
    one, many = estimate(rows, [spec]).seconds[:, 0]
    trip = spec.memory["l2"].latency + spec.memory["hbm"].latency
    assert many - one == pytest.approx(9 * (stream_launch(spec, "fp32") + trip))


def test_warm_operands_stay_inside():
    """2 x 1 MiB in an L2 of 40 MiB comes from it, 2 x 64 MiB does not; a job that finds them cold pays for both."""
    small, large = (1 << 18,), (1 << 24,)
    assert cost(Kind.ELEMENTWISE, small, choices=WARM).level_bytes[0, 0, 2] == 0
    assert cost(Kind.ELEMENTWISE, small).level_bytes[0, 0, 2] == 2 << 20
    assert cost(Kind.ELEMENTWISE, large, choices=WARM).level_bytes[0, 0, 2] == 2 << 26
    assert seconds(Kind.ELEMENTWISE, small, choices=WARM) < seconds(Kind.ELEMENTWISE, small)


def test_functions_made_of_many_instructions():
    """pow takes 45 instructions an element: on 56 cores of 64 lanes at 1.3 GHz more than a P100's memory; relu does not."""
    spec, elements = load_npu("p100-pcie-16gb"), 1 << 26
    found = cost(Kind.ELEMENTWISE, (elements,), spec.name, called="aten::pow")
    assert found.resource_s[0, 0, Bound.VECTOR] == pytest.approx(45 * elements / (56 * 64 * spec.clock * scalars(spec, "fp32")[0]))
    assert seconds(Kind.ELEMENTWISE, (elements,), spec.name, called="aten::pow") > 1.1 * seconds(
        Kind.ELEMENTWISE, (elements,), spec.name, called="aten::relu"
    )


def test_addresses_of_a_gather():
    """aten::index_select of 8192 rows of 4096 fp16 on A100 takes 410 us (Megatron-LM): 95 instructions an element, 64 lanes, 108 cores."""
    spec = load_npu("a100-sxm4-80gb")
    found = cost(Kind.EMBEDDING, (8192, 4096), spec.name, Dtype.FP16, called="aten::index_select")
    assert found.resource_s[0, 0, Bound.VECTOR] == pytest.approx(95 * 8192 * 4096 / (108 * 64 * spec.clock * scalars(spec, "fp16")[0]))
    assert found.seconds[0, 0] == pytest.approx(410e-6, rel=0.2)
    moved = cost(Kind.EMBEDDING, (8192, 4096), "ascend-910b2", Dtype.FP16, called="aten::index_select")
    assert moved.bound[0, 0] == Bound.MEMORY  # rows go by DMA


def test_few_results_are_summed_in_two_stages():
    """A million elements summed to one: all cores share the work as for 1024 sums, unlike a softmax, and meet once."""
    one, many = seconds(Kind.REDUCTION, (1, 1 << 20)), seconds(Kind.REDUCTION, (1024, 1024))
    assert one == pytest.approx(many, rel=0.01)
    assert 10 * one < seconds(Kind.SOFTMAX, (1, 1 << 20))


def test_wider_keys_take_more_passes():
    narrow, wide = (cost(Kind.SORT, (16, 1 << 20), dtype=dtype).level_bytes[0, 0, 2] for dtype in (Dtype.INT32, Dtype.INT64))
    assert wide == 4 * narrow  # twice the bytes, twice the passes


BETTER = {
    "memory.hbm.bandwidth": 2.0, "memory.l2.bandwidth": 2.0, "memory.l2.latency": 0.5, "memory.hbm.latency": 0.5, "vector.lanes": 2.0,
    "vector.special": 2.0, "clock": 1.5,
}  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(STREAMS),
    st.integers(1, 20000),
    st.integers(1, 20000),
    st.sampled_from(["a100-sxm4-80gb", "ascend-910b2", "npu-x"]),
    st.sampled_from(sorted(BETTER)),
    st.booleans(),
)
def test_a_better_card_is_never_slower(kind, rows, cols, name, path, warm):
    spec = load_npu(name)
    value = spec.get(path) * BETTER[path]
    better = spec.with_si({path: round(value) if path == "vector.lanes" else value})
    ops = table([(kind, Dtype.FP32, (rows, cols) if kind != Kind.COPY else (rows, 0))])
    base, after = estimate(ops, [spec, better], choices=WARM if warm else Choices()).seconds[0]
    assert after <= base * (1 + 1e-9)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(STREAMS), st.integers(1, 20000), st.integers(1, 20000), st.sampled_from(CARDS))
def test_laws_of_every_stream(kind, rows, cols, name):
    """Compulsory bytes at least; never above a roof; more rows never faster; the bound's time is within the whole."""
    spec = load_npu(name)
    dims = [(rows * times, cols) if kind != Kind.COPY else (rows * times, 0) for times in (1, 2)]
    ops = table([(kind, Dtype.FP32, each) for each in dims])
    found = estimate(ops, [spec])
    least = ops.bytes_read + ops.bytes_written
    assert (found.level_bytes[:, 0, 2] >= least * (1 - 1e-12)).all()
    assert (found.level_bytes[:, 0, 1] >= least * (1 - 1e-12)).all()
    assert (found.seconds[:, 0] >= found.level_bytes[:, 0, 2] / spec.bandwidth(list(spec.memory)[-1])).all()
    assert (found.seconds[:, 0] >= found.resource_s[:, 0].max(axis=1) * (1 - 1e-12)).all()
    assert found.seconds[1, 0] >= found.seconds[0, 0] * (1 - 1e-12)


def test_a_fit_of_products_alone_does_not_slow_streams():
    """A kernel that only streams has no prologue: where a fit says that it saw products only, the runtime's overhead is the most."""
    spec = load_npu("a100-sxm4-80gb")
    alone = replace(scalars_of(spec), launch=5e-6, errors={"gemm": (-0.1, 0.1)})
    for fit, launch in (
        (alone, 2e-6),
        (replace(alone, errors={"gemm": (-0.1, 0.1), "norm": (-0.1, 0.1)}), 5e-6),
        (replace(alone, errors={}), 5e-6),
    ):
        card = replace(spec, calibration={"bf16": fit})
        assert pack([card], ["bf16"]).launch[0, 0] == launch
        assert scalars(card, "bf16")[2] == 5e-6  # of products


def scalars_of(spec):
    return next(iter(spec.calibration.values()))
