"""Estimate: which evidence prices which row, what is kept, and laws every kind obeys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench.cost.cost import Bound, Evidence
from workbench.cost.estimate import estimate
from workbench.cost.vendor import VendorTimes
from workbench.errors import Refused
from workbench.hardware.npu import catalogue, load_npu
from workbench.operators.table import COLLECTIVES, DIMS, Dtype, Kind

CONV = (8, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1)
PRODUCT = (1, 1024, 1024, 1024)
MODELLED = [
    (Kind.GEMM, Dtype.BF16, PRODUCT),
    (Kind.BATCHED_GEMM, Dtype.FP16, (16, 512, 512, 64)),
    (Kind.CONV_FORWARD, Dtype.FP16, CONV),
    (Kind.CONV_BACKWARD_DATA, Dtype.FP32, CONV),
    (Kind.CONV_BACKWARD_WEIGHT, Dtype.FP32, CONV),
    (Kind.CONV_BACKWARD, Dtype.FP32, CONV),
    (Kind.ATTENTION_FORWARD, Dtype.BF16, (2, 16, 16, 1024, 1024, 64, 64, 1, 0)),
    (Kind.ATTENTION_BACKWARD, Dtype.BF16, (2, 16, 16, 1024, 1024, 64, 64, 1, 0)),
    (Kind.ATTENTION_FORWARD, Dtype.BF16, (8, 64, 8, 1, 16384, 128, 128, 0, 0)),
    (Kind.ELEMENTWISE, Dtype.FP32, (1 << 20,)),
    (Kind.REDUCTION, Dtype.FP32, (1024, 1024)),
    (Kind.SOFTMAX, Dtype.FP16, (4096, 2048)),
    (Kind.NORM, Dtype.BF16, (4096, 4096)),
    (Kind.EMBEDDING, Dtype.FP32, (4096, 1024)),
    (Kind.POOLING, Dtype.FP32, (1 << 20, 9)),
    (Kind.COPY, Dtype.FP32, (1 << 20, 0)),
    (Kind.COPY, Dtype.FP32, (1 << 20, 1)),
    (Kind.SET, Dtype.FP32, (1 << 20,)),
    (Kind.OPTIMIZER, Dtype.FP32, (1 << 20, 100)),
    (Kind.RNN, Dtype.FP16, (512, 16, 25)),
    (Kind.SORT, Dtype.INT64, (16, 65536)),
    (Kind.GROUPED_GEMM, Dtype.BF16, (8, 4096, 1024, 512, 1024)),
]
FLOPS = [2.0 * 2 * 16 * (1024 * 1025 // 2) * 128 * (1 + i) for i in range(2)]

BETTER = ["clock", "memory.hbm.bandwidth", "vector.lanes", "vector.special", "host.bandwidth"]


def everything():
    made = table(MODELLED)
    flops = made.flops.copy()
    flops[6], flops[7] = FLOPS
    flops[8] = 4294967296.0  # field case 17, decode
    flops[19] = 2.0 * 16 * 25 * 8 * 512 * 512
    return table(MODELLED, flops=flops.tolist())


@pytest.mark.parametrize("name", catalogue())
def test_every_kind_with_a_formula_is_modelled_on_every_card(name):
    spec = load_npu(name)
    cost = estimate(everything(), [spec])
    assert (cost.evidence == Evidence.MODEL).all()
    assert np.isfinite(cost.seconds).all()
    assert (cost.seconds > 0).all()
    assert (cost.low_s < cost.seconds).all()
    assert (cost.high_s > cost.seconds).all()
    assert np.isfinite(cost.resource_s).all()
    assert (cost.resource_s >= 0).all()
    assert np.isfinite(cost.level_bytes).all()
    assert (cost.bound > Bound.UNKNOWN).all()
    assert cost.reasons[0] == ""


def test_all_cards_at_once_are_what_each_is_alone():
    specs = [load_npu(name) for name in catalogue()]
    together = estimate(everything(), specs)
    for s, spec in enumerate(specs):
        np.testing.assert_array_equal(together.seconds[:, s], estimate(everything(), [spec]).seconds[:, 0])


def test_winograd_pays_for_many_channels_only():
    """F(4x4, 3x3) saves 4x of the products: no gain beyond that, none where the layer is bound by memory."""
    spec = load_npu("v100-sxm2-32gb")
    wide = (32, 512, 28, 28, 512, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    strided = (*wide[:9], 2, 2, *wide[11:])
    cost = estimate(table([(Kind.CONV_FORWARD, Dtype.FP32, wide), (Kind.CONV_FORWARD, Dtype.FP32, strided)]), [spec])
    macs = 32 * 28 * 28 * 512 * 512 * 9
    direct = 2 * macs / spec.peak_flops("fp32")
    assert direct / 4.0 < cost.seconds[0, 0] < direct / spec.calibration["fp32"].compute
    assert cost.seconds[1, 0] > direct / 4  # stride 2: a quarter of the outputs, no Winograd


@pytest.mark.parametrize(("stride", "pad", "deep"), [(1, 1, 16), (1, 0, 14), (2, 1, 8)])
@pytest.mark.parametrize("kind", [Kind.CONV_FORWARD, Kind.CONV_BACKWARD_WEIGHT])
def test_a_third_axis_has_stride_and_padding_too(kind, stride, pad, deep):
    """3x3x3 over 16 planes of 32 x 32, 256 -> 256 channels: the product it comes to, n p q d outputs by 27 c terms, in larger tiles."""
    spec = load_npu("a100-sxm4-80gb")
    side = (32 + 2 * pad - 3) // stride + 1
    m, n, k = 4 * side * side * deep, 256, 256 * 27
    shape = (1, m, n, k) if kind == Kind.CONV_FORWARD else (1, k, n, m)
    layer = (4, 256, 32, 32, 256, 3, 3, pad, pad, stride, stride, 1, 1, 1, 16, 3)
    cost = estimate(table([(kind, Dtype.BF16, layer), (Kind.GEMM, Dtype.BF16, shape)], flops=[2.0 * m * n * k] * 2), [spec])
    assert cost.seconds[0, 0] == pytest.approx(cost.seconds[1, 0], rel=0.12)


def test_a_layer_faster_than_its_flops_says_why():
    """Stated FLOPs are those of the direct algorithm; only Winograd may lie above the peak, and it is noted."""
    spec = load_npu("v100-sxm2-32gb")
    wide = (32, 512, 28, 28, 512, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    flops = 2.0 * 32 * 28 * 28 * 512 * 512 * 9
    cost = estimate(table([(Kind.CONV_FORWARD, Dtype.FP32, wide)], flops=[flops]), [spec])
    assert cost.seconds[0, 0] < flops / spec.peak_flops("fp32")
    assert "Winograd" in cost.reasons[cost.note_code[0]]


@given(
    st.integers(1, 64), st.integers(1, 32), st.integers(1, 4096), st.integers(1, 8192), st.sampled_from([64, 128, 256]),
    st.booleans(), st.sampled_from(["h100-sxm", "npu-x"]),
)  # fmt: skip
def test_attention_stays_under_its_roofs(batch, heads, queries, keys, head, backward, name):
    spec = load_npu(name)
    kind = Kind.ATTENTION_BACKWARD if backward else Kind.ATTENTION_FORWARD
    flops = (4.0 if backward else 2.0) * batch * heads * queries * keys * 2 * head
    cost = estimate(table([(kind, Dtype.BF16, (batch, heads, heads, queries, keys, head, head, 0, 0))], flops=[flops]), [spec])
    assert cost.seconds[0, 0] >= flops / spec.peak_flops("bf16")
    assert cost.seconds[0, 0] >= 2.0 * batch * heads * 2 * head * (queries + keys) / spec.bandwidth("hbm")


def test_collectives_are_left_to_the_network():
    cost = estimate(table([(kind, Dtype.BF16, (1 << 20, 8)) for kind in COLLECTIVES]), [load_npu("npu-x")])
    assert np.isnan(cost.seconds).all()
    assert (cost.bound == Bound.NETWORK).all()


def test_unknown_rows_are_scaled_within_the_ratios_of_the_cards():
    rows = table([(Kind.UNKNOWN, Dtype.FP32, ())], measured_s=[1e-3])
    source, target = load_npu("a100-sxm4-80gb"), load_npu("h200-sxm")
    same = estimate(rows, [source], source=source)
    assert same.seconds[0, 0] == same.low_s[0, 0] == same.high_s[0, 0] == pytest.approx(1e-3)
    cost = estimate(rows, [target], source=source)
    assert cost.evidence[0] == Evidence.SCALED
    assert cost.low_s[0, 0] < cost.seconds[0, 0] < cost.high_s[0, 0]
    bandwidth = 1e-3 * 2039 / 4800  # one of the ratios, launch aside
    assert cost.low_s[0, 0] * 0.98 <= bandwidth <= cost.high_s[0, 0] * 1.02
    assert "scaled" in cost.reasons[cost.note_code[0]]


def test_unknown_rows_without_a_source_are_kept_and_flagged():
    cost = estimate(table([(Kind.UNKNOWN, Dtype.UNKNOWN, ())] * 2, measured_s=[1e-3, np.nan]), [load_npu("npu-x")])
    assert cost.seconds[0, 0] == 1e-3
    assert cost.high_s[0, 0] / cost.low_s[0, 0] == pytest.approx(16)
    assert np.isnan(cost.seconds[1, 0])
    assert "no source card" in cost.reasons[cost.note_code[0]]


def test_anchored_prices_move_the_measurement():
    source, target = load_npu("a100-sxm4-80gb"), load_npu("h100-sxm")
    rows = table([(Kind.GEMM, Dtype.BF16, PRODUCT)], measured_s=[20e-6])
    assert estimate(rows, [source], source=source, anchored=True).seconds[0, 0] == pytest.approx(20e-6)
    ratio = estimate(rows, [target]).seconds[0, 0] / estimate(rows, [source]).seconds[0, 0]
    cost = estimate(rows, [target], source=source, anchored=True)
    assert cost.seconds[0, 0] == pytest.approx(20e-6 * ratio)
    assert cost.evidence[0] == Evidence.ANCHORED
    with pytest.raises(Refused):
        estimate(rows, [target], anchored=True)


def test_vendor_times_take_precedence():
    rows = table([(Kind.GEMM, Dtype.BF16, PRODUCT), (Kind.GEMM, Dtype.BF16, (1, 64, 64, 64))])
    vendor = VendorTimes("t.csv", {("gemm", "bf16", PRODUCT): 7e-6}, {}, "d")
    cost = estimate(rows, [load_npu("npu-x")], vendor=vendor)
    assert cost.seconds[0, 0] == cost.low_s[0, 0] == 7e-6
    assert list(cost.evidence) == [Evidence.VENDOR, Evidence.MODEL]


def test_a_dtype_the_card_lacks_is_substituted_and_said():
    v100 = load_npu("v100-sxm2-32gb")
    rows = table([(Kind.GEMM, dtype, PRODUCT) for dtype in (Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.TF32)])
    cost = estimate(rows, [v100])
    assert [cost.reasons[code].partition(" has no ")[2].split(":")[0] for code in cost.note_code] == [
        "bf16 matrix rate", "", "fp8 matrix rate", "tf32 matrix rate",
    ]  # fmt: skip
    assert cost.seconds[0, 0] == cost.seconds[1, 0]


def test_a_dtype_nothing_can_run_is_no_number():
    cost = estimate(table([(Kind.GEMM, Dtype.FP64, PRODUCT)]), [load_npu("npu-x")])
    assert np.isnan(cost.seconds[0, 0])


def test_invented_cards_are_trusted_less():
    rows = table([(Kind.GEMM, Dtype.BF16, PRODUCT)])
    base = load_npu("a100-sxm4-80gb")
    known, changed = estimate(rows, [base]), estimate(rows, [base.with_({"memory.l2.size": "41 MiB"})])
    assert changed.high_s[0, 0] / changed.seconds[0, 0] > known.high_s[0, 0] / known.seconds[0, 0]


def test_nothing_costs_nothing():
    assert estimate(everything(), []).seconds.shape == (len(MODELLED), 0)
    assert estimate(table([]), [load_npu("npu-x")]).seconds.shape == (0, 1)
    empty = table([(Kind.GEMM, Dtype.BF16, (1, 0, 64, 64))])
    assert estimate(empty, [load_npu("npu-x")]).seconds[0, 0] == 0.0


@given(
    st.sampled_from(range(len(MODELLED))),
    st.sampled_from(BETTER),
)
def test_a_better_card_is_never_slower_in_any_kind(row, path):
    base, made = load_npu("npu-x"), everything()
    better = base.with_si({path: base.get(path) * 2})
    one, two = (estimate(made, [spec]).seconds[row, 0] for spec in (base, better))
    assert two <= one * (1 + 1e-12)


def test_every_dimension_named_by_the_table_is_a_kind_priced_here():
    priced = {row[0] for row in MODELLED} | set(COLLECTIVES) | {Kind.UNKNOWN}
    assert set(DIMS) == priced


@pytest.mark.parametrize("card", ["npu-x", "h100-sxm"])
@pytest.mark.parametrize("anchored", [False, True])
def test_a_recording_without_operators_costs_nothing(card: str, anchored: bool) -> None:
    """A window of host calls only: no rows, no seconds, for fitted and invented cards."""
    cost = estimate(table([]), [load_npu(card)], source=load_npu("a100-sxm4-80gb"), anchored=anchored)
    assert cost.seconds.shape == (0, 1)
