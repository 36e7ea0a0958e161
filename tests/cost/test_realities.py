"""Layout conversion and control processors: sizes and times by hand, cards without them untouched, stacks that show them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cost.tables import table
from workbench.cost.cost import Bound, Evidence
from workbench.cost.estimate import estimate
from workbench.cost.pack import pack
from workbench.cost.realities import falls_back, fractal_elements
from workbench.cost.stack import PARTS, stack
from workbench.hardware.npu import catalogue, load_npu
from workbench.operators.table import Dtype, Kind

CONV = (8, 3, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1)


def without(spec):
    return replace(spec, matrix=replace(spec.matrix, layout=None), fallback=None)


def test_padded_sizes():
    """Ascend transformer boost library, TransdataOperation: ND {8, 100, 30} in fp16 is NZ {8, 2, 112, 16}; int8 pads to 32 columns."""
    assert fractal_elements(np.array(8.0), np.array(100.0), np.array(30.0), np.array([16.0, 16.0])) == 8 * 2 * 112 * 16
    assert fractal_elements(np.array(8.0), np.array(100.0), np.array(30.0), np.array([16.0, 32.0])) == 8 * 112 * 32


def test_a_product_is_preceded_and_followed_by_conversions():
    """A (1000 x 4096) in and C (1000 x 500) out, each an operator that reads it plain and writes it padded, or the other way round."""
    spec = load_npu("ascend-910a")
    ops = table([(Kind.GEMM, Dtype.FP16, (1, 1000, 500, 4096))])
    found, bare = estimate(ops, [spec]), estimate(ops, [without(spec)])
    added = found.seconds[0, 0] - bare.seconds[0, 0]
    assert found.resource_s[0, 0, Bound.CONVERSION] == pytest.approx(added)
    moved = 2 * ((1000 + 1008) * 4096 + 1000 * 500 + 1008 * 512)
    assert found.level_bytes[0, 0, 2] - bare.level_bytes[0, 0, 2] == pytest.approx(moved)
    trip = spec.memory["l2"].latency + spec.memory["hbm"].latency
    least = moved / spec.bandwidth("hbm") + 2 * (spec.runtime.launch_overhead + trip)
    assert least < added < 1.5 * least
    assert "conversion" in found.reasons[found.note_code[0]]
    share = dict(zip(PARTS, stack(ops, spec).share[0], strict=True))
    assert share["conversion"] == pytest.approx(added / found.seconds[0, 0])


def test_batched_products_convert_both_operands_and_convolutions_pad_channels():
    spec = load_npu("ascend-910a")
    ops = table([(Kind.BATCHED_GEMM, Dtype.FP16, (4, 64, 64, 64)), (Kind.CONV_FORWARD, Dtype.FP16, CONV)])
    more = estimate(ops, [spec]).level_bytes - estimate(ops, [without(spec)]).level_bytes
    assert more[0, 0, 2] == 3 * 2 * 4 * 64 * 64 * 2
    image, result = 8 * 56 * 56, 8 * 56 * 56  # 3 channels are 16 in NC1HWC0, 64 stay 64
    assert more[1, 0, 2] == 2 * (image * (3 + 16) + result * (64 + 64))


def test_what_falls_back_is_priced_by_hand():
    """2^20 fp64 elements on control processors of 1 GFLOP/s and 10 GB/s: 16 MiB take 1.68 ms, 2^20 operations 1.05 ms, launch 50 us."""
    spec = load_npu("ascend-910b2")
    ops = table([(Kind.ELEMENTWISE, Dtype.FP64, (1 << 20,)), (Kind.SORT, Dtype.INT64, (1, 1024)), (Kind.SORT, Dtype.FP16, (1, 1024))])
    found = estimate(ops, [spec])
    assert found.seconds[0, 0] == pytest.approx(50e-6 + (16 << 20) / 10e9)
    assert found.seconds[1, 0] == pytest.approx(50e-6 + 2 * 8 * 1024 / 10e9)
    assert found.bound[0, 0] == Bound.FALLBACK
    assert found.bound[1, 0] == Bound.LAUNCH
    assert found.seconds[2, 0] < 20e-6  # fp16 keys are sorted by the cores
    assert found.evidence[0] == Evidence.MODEL
    assert found.high_s[0, 0] >= 3 * found.seconds[0, 0] >= 9 * found.low_s[0, 0] * (1 - 1e-12)  # assumed numbers, a wide interval
    assert found.high_s[2, 0] < 2.9 * found.seconds[2, 0]
    assert "control processors of ascend-910b2" in found.reasons[found.note_code[0]]
    assert found.note_code[2] == 0
    shown = stack(ops, spec).share
    assert shown.sum(axis=1) == pytest.approx(1.0)
    assert shown[0, PARTS.index("fallback")] == pytest.approx(1 - 50e-6 / found.seconds[0, 0])


def test_a_product_no_unit_can_run_falls_back_where_the_card_says_so():
    """fp64 products have no rate on Ascend cores: unpriced without control processors, 2 m n k over their rate with them."""
    spec = load_npu("ascend-910b2")
    ops = table([(Kind.GEMM, Dtype.FP64, (1, 64, 64, 64))], measured_s=[1e-3])
    assert estimate(ops, [spec]).seconds[0, 0] == pytest.approx(50e-6 + 2 * 64**3 / 1e9)
    assert estimate(ops, [replace(spec, fallback=None)]).evidence[0] != Evidence.MODEL


def test_faster_control_processors_are_faster():
    spec = load_npu("ascend-910c")
    ops = table([(Kind.ELEMENTWISE, Dtype.FP64, (1 << 16,))])
    base = estimate(ops, [spec]).seconds[0, 0]
    for change in ({"fallback.bandwidth": "20 GB/s"}, {"fallback.launch": "10 us"}, {"fallback.rate": "4 GFLOP/s"}):
        assert estimate(ops, [spec.with_(change)]).seconds[0, 0] <= base


@pytest.mark.parametrize("name", [name for name in catalogue() if not name.startswith("ascend")])
def test_cards_that_say_nothing_are_priced_as_without_all_this(name):
    spec = load_npu(name)
    ops = table(
        [(Kind.ELEMENTWISE, Dtype.FP64, (1 << 16,)), (Kind.SORT, Dtype.INT64, (16, 1024)), (Kind.GEMM, Dtype.FP32, (1, 64, 64, 64))]
    )
    assert not falls_back(ops, pack([spec], ["fp64", "int64", "fp32"])).any()
    found = estimate(ops, [spec])
    assert (found.resource_s[..., [Bound.HANDOVER, Bound.CONVERSION, Bound.FALLBACK]] == 0).all()
