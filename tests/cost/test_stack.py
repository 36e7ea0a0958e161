"""The cycle stack: parts by hand, fractions that add up, and infinitely fast parts against cards that really are faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench.cost.choices import Choices
from workbench.cost.cost import Bound
from workbench.cost.estimate import estimate
from workbench.cost.matrix import Priced
from workbench.cost.stack import FASTER, PARTS, margins, shares, stack
from workbench.cost.tiles import Tile
from workbench.errors import InvalidSpec
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind

EXTENT = st.integers(1, 5000)
CARDS = ("a100-sxm4-80gb", "ascend-910b2", "npu-x", "p100-pcie-16gb")


def priced(resource: dict[Bound, float], seconds: float, launch: float, fill: float, idle: float = 0.0) -> Priced:
    every = np.zeros((1, 1, len(Bound)))
    for bound, value in resource.items():
        every[0, 0, bound] = value
    detail, none = np.array([[[launch, fill, idle]]]), np.zeros((1, 1, 3), dtype=np.int32)
    return Priced(np.array([[seconds]]), every, np.zeros((1, 1, 3)), detail, np.zeros((1, 1), dtype=np.int8), none)


def test_fourth_powers_by_hand():
    """Matrix 2 s, memory 1 s joined by a fourth-power norm: 16/17 and 1/17 of the body, (16 + 1) ** 0.25 s, after 1 s of launch."""
    body = 17**0.25
    found = shares(priced({Bound.MATRIX: 2.0, Bound.MEMORY: 1.0, Bound.LAUNCH: 1.0}, 1.0 + body, 1.0, 0.0))[0, 0]
    named = dict(zip(PARTS, found, strict=True))
    assert named["matrix"] == pytest.approx(16 / 17 * body / (1 + body))
    assert named["memory"] == pytest.approx(1 / 17 * body / (1 + body))
    assert named["launch"] == pytest.approx(1 / (1 + body))


def test_what_runs_in_turn_keeps_its_own_time():
    """Loading 1 s and 2 s joined by the norm, then 3 s of arithmetic: 3 of 3 + 17 ** 0.25 s, as a clock would tell."""
    body = 17**0.25
    turns = priced({Bound.MATRIX: 3.0, Bound.SHARED: 1.0, Bound.MEMORY: 2.0}, 3.0 + body, 0.0, 0.0)
    named = dict(zip(PARTS, shares(turns, np.array([True]))[0, 0], strict=True))
    assert named["matrix"] == pytest.approx(3 / (3 + body))
    assert named["memory"] == pytest.approx(16 / 17 * body / (3 + body))
    assert sum(named.values()) == pytest.approx(1)


def test_a_tile_without_double_buffering_shows_its_arithmetic_whole():
    ops = table([(Kind.GEMM, Dtype.BF16, (1, 4096, 8192, 4096))])
    spec = load_npu("ascend-910b2")
    one, two = (stack(ops, spec, Choices(tile=Tile(128, 256, 64, double_buffer=on))) for on in (False, True))
    seconds = one.share[0, PARTS.index("matrix")] * one.seconds[0]
    ideal = ops.flops[0] / (spec.peak_flops("bf16"))
    assert one.share[0].sum() == pytest.approx(1)
    assert one.seconds[0] > two.seconds[0]
    assert seconds >= ideal * (1 - 1e-9)  # no less than the arithmetic takes at the card's peak


def test_shares_are_elasticities():
    """Euler: a part's share of the body is how much the body's logarithm falls with the part's."""
    times = np.array([3.0, 2.0, 1.0])
    body = (times**4).sum() ** 0.25
    found = shares(priced(dict(zip((Bound.MATRIX, Bound.SHARED, Bound.MEMORY), times, strict=True)), body, 0.0, 0.0))[0, 0]
    for at, part in enumerate(("matrix", "shared", "memory")):
        less = times.copy()
        less[at] *= 1 - 1e-6
        slope = np.log(body / (less**4).sum() ** 0.25) / -np.log(1 - 1e-6)
        assert found[PARTS.index(part)] == pytest.approx(slope, rel=1e-4)


def test_idle_cores_are_taken_from_the_cores():
    found = shares(priced({Bound.MATRIX: 4.0}, 5.0, 1.0, 0.0, idle=1.0))[0, 0]
    assert found[[PARTS.index("matrix"), PARTS.index("tail"), PARTS.index("launch")]].tolist() == pytest.approx([0.6, 0.2, 0.2])


def test_the_margin_is_the_ratio_to_the_next():
    first, second, ratio = margins(priced({Bound.MATRIX: 1.0, Bound.MEMORY: 3.0}, 3.0, 0.0, 0.0))
    assert (first[0, 0], second[0, 0], ratio[0, 0]) == (Bound.MEMORY, Bound.MATRIX, 3.0)
    first, second, ratio = margins(priced({Bound.MEMORY: 3.0}, 3.0, 0.0, 0.0))
    assert (first[0, 0], second[0, 0], ratio[0, 0]) == (Bound.MEMORY, Bound.UNKNOWN, np.inf)


def test_waves_by_hand():
    """33 tiles on 32 cores take two waves: 31 of 64 places are empty, and all of what cores do for themselves waits as long."""
    spec = load_npu("npu-x").with_(
        {"memory.hbm.bandwidth": "1e6 TB/s", "memory.l2.bandwidth": "1e6 TB/s", "memory.l1.bandwidth": "1e6 TB/s"}
    )
    spec = spec.with_({"memory.hbm.latency": "0 s", "memory.l2.latency": "0 s", "runtime.launch_overhead": "0 s"})
    found = stack(table([(Kind.GEMM, Dtype.BF16, (33, 128, 128, 4096))]), spec, Choices(Tile(128, 128, 64)))
    share = dict(zip(PARTS, found.share[0], strict=True))
    assert share["tail"] == pytest.approx(31 / 64, abs=0.01)
    assert share["matrix"] == pytest.approx(33 / 64, abs=0.01)


@given(EXTENT, EXTENT, EXTENT, st.integers(1, 16), st.sampled_from(CARDS))
def test_shares_add_up_and_nothing_infinitely_fast_is_slower(m, n, k, batch, name):
    dtype = Dtype.BF16 if "bf16" in load_npu(name).matrix.rate else Dtype.FP32
    rows = table([(Kind.GEMM, dtype, (batch, m, n, k)), (Kind.SOFTMAX, dtype, (m, n)), (Kind.ELEMENTWISE, dtype, (m * n,))])
    found = stack(rows, load_npu(name))
    assert np.allclose(found.share.sum(axis=1), 1.0)
    assert (found.share >= 0).all() and (found.share <= 1).all()
    assert (found.without_s <= found.seconds[:, None] * (1 + 1e-9)).all()
    assert np.array_equal(found.seconds, estimate(rows, [load_npu(name)]).seconds[:, 0])
    assert (found.margin >= 1).all()


def test_infinitely_fast_memory_is_a_card_with_endless_bandwidth():
    rows = table([(Kind.GEMM, Dtype.BF16, (1, 4096, 64, 4096)), (Kind.ELEMENTWISE, Dtype.BF16, (1 << 24,))])
    endless = load_npu("npu-x").with_({"memory.hbm.bandwidth": "1e9 TB/s"})
    found = stack(rows, load_npu("npu-x")).without_s[:, FASTER.index("memory")]
    assert found == pytest.approx(stack(rows, endless).seconds, rel=1e-6)


def test_rows_without_a_model_have_no_stack():
    found = stack(table([(Kind.UNKNOWN, Dtype.BF16, ()), (Kind.GEMM, Dtype.BF16, (1, 0, 8, 8))]), load_npu("npu-x"))
    assert np.isnan(found.share).all()
    assert np.isnan(found.seconds[0]) and found.seconds[1] == 0
    assert found.bound[0] == Bound.UNKNOWN


def test_a_fixed_tile_is_never_faster_than_the_best():
    rows = table([(Kind.GEMM, Dtype.BF16, (1, 4096, 10240, 8192))])
    spec = load_npu("npu-x")
    best = stack(rows, spec).seconds
    for tile in (Tile(128, 256, 64), Tile(256, 128, 64), Tile(16, 16, 64)):
        assert stack(rows, spec, Choices(tile)).seconds >= best


def test_a_cube_that_is_refused_says_why():
    from workbench.cost.tiles import check_tile, parse_tile

    with pytest.raises(InvalidSpec, match="sums take 4 MiB of 256 KiB in l0c"):
        check_tile(load_npu("npu-x"), "bf16", parse_tile("1024x1024x64"), (2.0, 2.0))
    for text in ("128x256", "0x16x16", "axbxc", "16x16x-1", ""):
        with pytest.raises(InvalidSpec, match="not a tile"):
            parse_tile(text)
    held = {(b.level, b.copies): b.used for b in check_tile(load_npu("npu-x"), "bf16", parse_tile("128x256x64"), (2.0, 2.0))}
    assert held["l0c", 1] == 128 * 256 * 4  # sums in fp32
    assert held["l1", 2] == 2 * (128 + 256) * 64 * 2  # this step and the next


def test_waiting_for_data_is_no_launch():
    """A small tile of a large product waits at every step: that is latency, and the launch is what the card states, whatever the work."""
    rows = table([(Kind.GEMM, Dtype.BF16, (1, 4096, 10240, 8192)), (Kind.GEMM, Dtype.BF16, (1, 16, 16, 16))])
    spec = load_npu("npu-x")
    cost = estimate(rows, [spec], choices=Choices(Tile(32, 32, 16)))
    assert cost.bound.tolist() == [[Bound.LATENCY], [Bound.LAUNCH]]
    assert (cost.resource_s[..., Bound.LAUNCH] < spec.runtime.launch_overhead + 2e-6).all()
