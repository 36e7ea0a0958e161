"""Attention whose scores go from core to core: bytes by hand, nothing where units share a buffer, and what an endless level gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cost.tables import table
from workbench.cost.cost import Bound
from workbench.cost.estimate import estimate
from workbench.cost.stack import FASTER, PARTS, stack
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind

PREFILL = (8, 16, 16, 2048, 2048, 64, 64, 0, 0)
PAIRS = 8 * 16 * 2048.0 * 2048.0


def attention(spec, kind=Kind.ATTENTION_FORWARD, dims=PREFILL, pairs=PAIRS):
    work = 2.0 * 2.0 * dims[5] * pairs * (2.0 if kind == Kind.ATTENTION_BACKWARD else 1.0)
    return table([(kind, Dtype.FP16, dims)], flops=[work]), estimate(table([(kind, Dtype.FP16, dims)], flops=[work]), [spec])


def test_bytes_by_hand():
    """Scores 4 B and weights 2 B a pair, results of 64 fp32 for every row and 384 keys (two tiles of 128 x 384 x 4 B in 384 KiB)."""
    spec = load_npu("ascend-910b2")
    bare = replace(spec, vector=replace(spec.vector, exchange=None))
    (_, found), (_, plain) = attention(spec), attention(bare)
    moved = PAIRS * (4 + 2) + PAIRS / 384 * 64 * 4
    assert found.level_bytes[0, 0, 1] - plain.level_bytes[0, 0, 1] == pytest.approx(2 * moved)  # written and read
    assert found.seconds[0, 0] > plain.seconds[0, 0]
    assert found.seconds[0, 0] >= moved / (0.85 * spec.bandwidth("l2", True))
    assert found.resource_s[0, 0, Bound.HANDOVER] == pytest.approx(found.seconds[0, 0] - plain.seconds[0, 0])
    assert found.level_bytes[0, 0, 2] == plain.level_bytes[0, 0, 2]  # nothing of it leaves the chip
    assert "handed over between the separate cores of ascend-910b2" in found.reasons[found.note_code[0]]
    assert plain.note_code[0] == 0


def test_backward_hands_over_gradients_too():
    spec = load_npu("ascend-910b2")
    bare = replace(spec, vector=replace(spec.vector, exchange=None))
    (_, found), (_, plain) = attention(spec, Kind.ATTENTION_BACKWARD), attention(bare, Kind.ATTENTION_BACKWARD)
    assert found.level_bytes[0, 0, 1] - plain.level_bytes[0, 0, 1] == pytest.approx(2 * PAIRS * 2 * (4 + 2))


@pytest.mark.parametrize("name", ["ascend-910a", "a100-sxm4-80gb", "tpu-v4"])
def test_units_that_share_a_buffer_hand_nothing_over(name):
    _, found = attention(load_npu(name))
    assert found.resource_s[0, 0, Bound.HANDOVER] == 0


def test_the_stack_shows_it_and_says_what_it_costs():
    spec = load_npu("ascend-910b2")
    ops, found = attention(spec)
    shown = stack(ops, spec)
    part = dict(zip(PARTS, shown.share[0], strict=True))
    assert sum(part.values()) == pytest.approx(1.0)
    assert part["handover"] == pytest.approx(found.resource_s[0, 0, Bound.HANDOVER] / found.seconds[0, 0])
    bare = replace(spec, vector=replace(spec.vector, exchange=None))
    assert shown.without_s[0, FASTER.index("handover")] == pytest.approx(attention(bare)[1].seconds[0, 0], rel=1e-3)


def test_a_faster_level_or_shorter_latency_is_never_slower():
    spec = load_npu("ascend-910b2")
    base = attention(spec)[1].seconds[0, 0]
    for change in ({"memory.l2.write_bandwidth": "2600 B/clk"}, {"memory.l2.latency": "100 ns"}, {"memory.ub.size": "768 KiB"}):
        assert attention(spec.with_(change))[1].seconds[0, 0] <= base * (1 + 1e-9)


def test_decode_hands_over_little():
    """One query a sequence: memory sets the pace, the exchange hides behind it."""
    spec = load_npu("ascend-910b2")
    bare = replace(spec, vector=replace(spec.vector, exchange=None))
    dims, pairs = (8, 64, 8, 1, 16384, 128, 128, 0, 0), 8 * 64 * 16384.0
    times = [attention(card, dims=dims, pairs=pairs)[1].seconds[0, 0] for card in (bare, spec)]
    assert times[0] <= times[1] < 1.1 * times[0]
    assert np.isfinite(times).all()


def test_narrow_weights_are_widened_by_the_vector_cores():
    """4096 x 4096 weights of 8 bits in a decode step: 32 MiB of fp16 written to and read from L2, where a shared buffer needs none."""
    spec = load_npu("ascend-910b2")
    bare = replace(spec, vector=replace(spec.vector, exchange=None))
    ops = table([(Kind.GEMM, Dtype.INT8_WO, (1, 16, 4096, 4096)), (Kind.GEMM, Dtype.FP16, (1, 16, 4096, 4096))])
    found, plain = estimate(ops, [spec]), estimate(ops, [bare])
    assert found.level_bytes[0, 0, 1] - plain.level_bytes[0, 0, 1] == pytest.approx(2 * 2 * 4096 * 4096)
    assert found.seconds[0, 0] >= 2 * 4096 * 4096 / (0.85 * spec.bandwidth("l2", True))
    assert found.resource_s[0, 0, Bound.HANDOVER] > 0
    assert found.resource_s[1, 0, Bound.HANDOVER] == 0
