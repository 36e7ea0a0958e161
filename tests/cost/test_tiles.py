"""Fixed tilings and levels: traffic and stalls by hand, what single buffering costs and saves, cards too small for any tile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench.cost.cost import LEVELS, Bound, level_names
from workbench.cost.estimate import estimate
from workbench.cost.matrix import products
from workbench.cost.pack import pack
from workbench.cost.tiles import Tile, check_tile, parse_tile, stepping
from workbench.errors import InvalidSpec
from workbench.hardware.npu import load_npu
from workbench.hardware.spec import NpuSpec
from workbench.hardware.text import read_yaml
from workbench.operators.table import Dtype, Kind

EXTENT = st.integers(1, 5000)
SUMMER = (4096, 10240, 8192)  # question 3.2 of the acceptance list


def price(spec: NpuSpec, shape: tuple[int, ...], tile: Tile | None = None, dtype: str = "bf16"):
    """Price one product, its tile fixed or not."""
    cards = pack([spec], [dtype])
    fixed = None if tile is None else (tile.tm, tile.tn, tile.split)
    cards = cards if tile is None else stepping(cards, tile)
    return products(np.array([[1, *shape]], float), np.full((1, 3), 2.0), np.zeros(1, int), cards, tile=fixed)[0]


def traffic(spec: NpuSpec, shape: tuple[int, ...], tile: Tile) -> dict[str, float]:
    return dict(zip(LEVELS, price(spec, shape, tile).level[0, 0], strict=True))


def test_bytes_of_every_level_by_hand():
    """32 x 40 tiles of 128 x 256; each takes (128 + 256) x 8192 elements, and L2 serves two cores with a read."""
    spec = load_npu("npu-x").with_({"memory.l1.size": "512 KiB"})
    found = traffic(spec, SUMMER, Tile(128, 256, 64))
    tiles, results = 32 * 40, 4096 * 10240
    assert found["local"] == tiles * 384 * 8192 * 2
    assert found["shared"] == tiles * 384 * 8192 * 2 / 2 + results * 2
    assert found["operand_a"] == tiles * 128 * 8192 * 2 * (256 / 16)  # A passes once for each of 16 blocks of columns
    assert found["operand_b"] == tiles * 256 * 8192 * 2 * (128 / 16)
    assert found["accumulator"] == results * 4 * 2 * (8192 / 32)  # sums read and written every 32 products
    assert found["memory"] >= (4096 * 8192 + 8192 * 10240 + results) * 2


@pytest.mark.parametrize(("flow", "a", "b", "sums"), [("os", 4, 2, 1), ("ws", 4, 1, 2 * 8 - 1), ("is", 1, 2, 2 * 8 - 1)])
def test_feeds_of_a_systolic_array_are_scalesims_accesses(flow, a, b, sums):
    """One tile of 32 x 64 x 128 on 16 x 16: ifmap c(N,C) M K, filter c(M,R) N K, the stationary one once; sums once a fold of K."""
    spec = load_npu("tpu-v4").with_si({"matrix.rows": 16, "matrix.cols": 16, "matrix.dataflow": flow, "matrix.tile_quantum": [16, 16, 16]})
    found = traffic(spec, (32, 64, 128), Tile(32, 64, 128))
    assert found["operand_a"] == 32 * 128 * 2 * a
    assert found["operand_b"] == 64 * 128 * 2 * b
    assert found["accumulator"] == 32 * 64 * 4 * sums


def test_a_level_of_clusters_by_hand():
    """MI300X: 8 dies of 38 CUs, each with an L2. The results are cut in 8 squares, so each operand enters sqrt(8) of them."""
    found = traffic(load_npu("mi300x"), (4096, 4096, 4096), Tile(256, 256, 16))
    mega = 2.0**20
    assert found["cluster"] == 256 * 512 * 4096 * 2  # all 256 tiles read their panels from their L2
    assert found["shared"] == pytest.approx(64 * mega * 8**0.5 + 32 * mega)
    assert found["memory"] == 96 * mega  # both operands fit the Infinity Cache


def deep(*sizes, rate="8 TB/s"):
    """An invented card with levels of so many MiB between its cores and its L2."""
    level = '  s{}:\n    size: "{} MiB"\n    bandwidth: "{}"\n    scope: "chip"\n'
    between = "".join(level.format(at, size, rate) for at, size in enumerate(sizes))
    return read_yaml(load_npu("npu-x").to_yaml().replace("  l2:\n", between + "  l2:\n"), "deep.yaml")


def panels(extent, k, size):
    """Panels of an operand's rows that a level of ``size`` MiB makes of all."""
    return extent / (size * 2**20 // (k * 2))


def test_bytes_through_any_number_of_levels_by_hand():
    """4096^3 in 256x256 tiles: 16 tiles a side, all 32 cores work on one block of them; so a level keeps at least panels of root 32 tiles
    of one operand (or what it can hold) and fetches the other anew for each, but never more than it was asked for."""
    sizes, m = (8, 16, 24, 28), 4096
    one = m * m * 2.0
    found = price(deep(*sizes), (m, m, m), Tile(256, 256, 64))
    got = dict(zip(level_names(found.level.shape[2]), found.level[0, 0], strict=True))
    asked = 16 * 16 * m * (256 + 256) * 2.0
    for name, size in zip(("cluster", "cluster_2", "cluster_3", "cluster_4"), sizes, strict=True):
        assert got[name] == asked
        again = math.ceil(max(1.0, min(16 / 32**0.5, panels(m, m, size))))
        asked = min(asked, one * again + one)
    assert got["shared"] == asked / 2 + one  # L2 serves two cores with a read
    assert {name for name in got if name.startswith("cluster")} == {"cluster", "cluster_2", "cluster_3", "cluster_4"}


def test_levels_between_bound_by_their_own_rate():
    """The slowest of several levels sets the pace, wherever it stands; one that gives as fast as it is asked costs nothing."""
    shape = (4096, 4096, 4096)
    fast = price(deep(8, 16, 24, rate="1 PB/s"), shape).seconds[0, 0]
    assert fast <= price(load_npu("npu-x"), shape).seconds[0, 0] * (1 + 1e-9)
    for at in range(3):
        slow = price(deep(8, 16, 24, rate="1 PB/s").with_({f"memory.s{at}.bandwidth": "0.1 TB/s"}), shape)
        assert slow.seconds[0, 0] > 1.5 * fast
        assert slow.resource[0, 0].argmax() == Bound.SHARED


def test_streams_pass_every_level_between():
    """A copy on a card whose narrowest level stands between cores and L2 runs at that level's sustained rate."""
    spec = deep(8, 16, 24, rate="1 PB/s").with_({"memory.s1.bandwidth": "0.5 TB/s"})
    rows = table([(Kind.COPY, Dtype.FP16, (1 << 28, 0))])
    found = estimate(rows, [spec])
    moved = float(rows.bytes_read[0] + rows.bytes_written[0])
    assert found.level_bytes[0, 0, [1, 6, 8, 9]] == pytest.approx(moved)
    assert moved / found.seconds[0, 0] == pytest.approx(0.85 * 0.5e12, rel=0.02)


def test_cards_of_different_depth_stand_side_by_side():
    """What a card says alone it says beside deeper ones."""
    rows = table([(Kind.GEMM, Dtype.BF16, (1, 1000, 2000, 3000))])
    cards = [load_npu("npu-x"), deep(8), deep(8, 16, 24), load_npu("mi300x")]
    found = estimate(rows, cards)
    assert found.levels[8:] == ("cluster_2", "cluster_3")
    for at, card in enumerate(cards):
        alone = estimate(rows, [card])
        assert found.seconds[0, at] == alone.seconds[0, 0]
        width = alone.level_bytes.shape[2]
        assert found.level_bytes[0, at, :width].tolist() == alone.level_bytes[0, 0].tolist()
        assert (found.level_bytes[0, at, width:] == 0).all()


def test_clusters_say_how_many_cores_they_have():
    text = load_npu("mi300x").to_yaml()
    with pytest.raises(InvalidSpec, match="cores are not stated"):
        read_yaml(text.replace("    cores: 38\n", ""), "a.yaml")
    with pytest.raises(InvalidSpec, match="l2 belongs to a chip"):
        read_yaml(text.replace('scope: "cluster"', 'scope: "chip"'), "b.yaml")
    few = load_npu("mi300x").with_({"cores": 19})  # half a die: one L2, not shared further
    assert price(few, (4096, 4096, 4096)).seconds[0, 0] > price(load_npu("mi300x"), (4096, 4096, 4096)).seconds[0, 0]


@given(EXTENT, EXTENT, EXTENT, st.sampled_from(["memory.l2.bandwidth", "memory.l2.size", "memory.mall.bandwidth", "memory.mall.size"]))
def test_better_middle_levels_are_never_slower(m, n, k, path):
    base = load_npu("mi300x")
    better = base.with_si({path: base.get(path) * 1.9})
    assert price(better, (m, n, k)).seconds[0, 0] <= price(base, (m, n, k)).seconds[0, 0] * (1 + 1e-9)


def test_a_stated_feed_bounds_the_time():
    slow = load_npu("npu-x").with_({"memory.l0a.bandwidth": "1 GB/s"})
    found = price(slow, SUMMER, Tile(128, 256, 64))
    assert found.resource[0, 0, Bound.LOCAL] == pytest.approx(found.level[0, 0, 3] / 32 / 1e9)


def test_latency_of_steps_in_flight_by_hand():
    """40 tiles a core, 8192 products each; with two steps of 64 on the way, 128 of them wait 650 ns (L2 and HBM)."""
    spec = load_npu("npu-x").with_({"memory.l1.size": "512 KiB"})
    launch = price(spec, SUMMER, Tile(128, 256, 64))
    fill = launch.detail[0, 0, 0] + launch.detail[0, 0, 1]
    assert launch.resource[0, 0, Bound.LAUNCH] - fill == pytest.approx(40 * 8192 / 128 * 650e-9)


def test_single_buffering_adds_load_to_compute_and_halves_the_room():
    spec = load_npu("npu-x")
    one, two = (price(spec, SUMMER, Tile(128, 256, 64, double_buffer=on)) for on in (False, True))
    body = one.seconds - one.detail[..., 0] - one.detail[..., 1]
    assert body[0, 0] > one.resource[0, 0, Bound.MATRIX] + one.resource[0, 0, [3, 4, 5]].max()
    assert one.seconds[0, 0] > two.seconds[0, 0]
    room = [check_tile(spec, "bf16", Tile(128, 256, 64, double_buffer=on), (2.0, 2.0))[1].used for on in (False, True)]
    assert room == [384 * 64 * 2, 2 * 384 * 64 * 2]
    with pytest.raises(InvalidSpec, match=r"steps of A and B \(double-buffered\)"):
        check_tile(spec, "bf16", Tile(128, 256, 1024), (2.0, 2.0))
    check_tile(spec, "bf16", Tile(128, 256, 1024, double_buffer=False), (2.0, 2.0))


@given(EXTENT, EXTENT, EXTENT, st.integers(1, 4), st.sampled_from(["npu-x", "ascend-910b2", "a100-sxm4-80gb", "tpu-v4", "mi300x"]))
def test_more_steps_in_flight_are_never_slower(m, n, k, unroll, name):
    spec = load_npu(name)
    less, more, single = (
        price(spec, (m, n, k), Tile(64, 64, 32, 1, steps, double)).seconds[0, 0]
        for steps, double in ((unroll, True), (unroll + 1, True), (unroll, False))
    )
    assert more <= less * (1 + 1e-12) <= single * (1 + 1e-11)


def test_unroll_and_buffering_are_read_and_named():
    tile = parse_tile("128x256x64x2", 4, double_buffer=False)
    assert (tile.split, tile.unroll, tile.copies) == (2, 4, 1)
    assert str(tile) == "128x256x64x2 unroll 4 single-buffered"
    with pytest.raises(InvalidSpec, match="unroll 0"):
        parse_tile("128x256x64", 0)


@pytest.mark.parametrize(("level", "size"), [("l1", "1 B"), ("l0c", "512 B"), ("l0a", "1 KiB"), ("l0b", "1 KiB")])
def test_a_level_too_small_for_one_tile_is_named(level, size):
    with pytest.raises(InvalidSpec, match=rf"memory\.{level}\.size: .*of the smallest bf16 tile \(16x16x32\)"):
        pack([load_npu("npu-x").with_({f"memory.{level}.size": size})], ["bf16"])
