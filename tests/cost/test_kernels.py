"""The tile model: golden cycles, bounds that cannot be broken, laws of monotony, and the pruned search against the plain one."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from workbench.cost import kernels
from workbench.cost.matrix import products
from workbench.cost.pack import pack
from workbench.hardware.npu import load_npu
from workbench.hardware.spec import NpuSpec
from workbench.hardware.text import read_yaml

FLOW = {"os": kernels.OS, "ws": kernels.WS, "is": kernels.IS}
EXTENT = st.integers(1, 5000)
REST = np.empty((1, 6))  # no card here has more than one level between its cores and the shared one


def price(spec: NpuSpec, *shape: int, dtype: str = "bf16"):
    """Seconds, parts and bytes of one product."""
    out, choice = products(np.array([shape], float), np.full((1, 3), 2.0), np.zeros(1, int), pack([spec], [dtype]))
    return out.seconds[0, 0], out.resource[0, 0], out.level[0, 0], choice[0, 0]


def test_systolic_cycles_by_hand():
    # a 2 x 2 output-stationary array, 2 x 2 x 3 product: 3 products stream in, skewed by one row and one column: 2 + 2 + 3 - 2 - 1
    assert kernels.systolic_cycles(kernels.OS, 2, 2, 2, 2, 3) == 4
    assert kernels.systolic_cycles(kernels.WS, 4, 4, 0, 4, 4) == 0


def test_systolic_cycles_equal_scalesim(shared):
    with (shared / "golden" / "scalesim.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 487
    for row in rows:
        size = (int(row["array_h"]), int(row["array_w"]), int(row["M"]), int(row["N"]), int(row["K"]))
        assert kernels.systolic_cycles(FLOW[row["dataflow"]], *size) == float(row["compute_cycles"]), row["layer"]


ARRAY = """\
name: array-16
cores: 1
clock: 1.0 GHz
matrix: {rows: 16, cols: 16, depth: 1, rate: {fp16: 1}}
vector: {lanes: 16, rate: {fp32: 1}}
memory:
  l1: {size: 1 MiB, bandwidth: 1.0e6 TB/s}
  hbm: {size: 64 GiB, bandwidth: 1.0e6 TB/s}
runtime: {launch_overhead: 0 s, split_k: false}
calibration: {fp16: {compute: 1.0, memory: 1.0, launch: 0 s, error: 0.2}}
"""
LAYERS = [  # field case 19: layer, groups, m, n, k, fewest cycles
    ("a", 1, 1, 1, 1, 1),
    ("b", 1, 17, 17, 17, 20),
    ("c", 1, 4096, 4096, 4096, 268435456),
    ("d", 64, 3136, 1, 9, 7056),
    ("e", 1, 4096, 1, 4096, 65536),
    ("f", 1, 12544, 32, 27, 42336),
    ("g", 1, 0, 64, 64, 0),
]


@pytest.mark.parametrize("flow", ["cube", "os", "ws", "is"])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer[0])
def test_case_19_no_more_products_than_multipliers(layer, flow):
    _, groups, m, n, k, fewest = layer
    spec = read_yaml(ARRAY.replace("depth: 1,", f"depth: 1, dataflow: {flow},"), "array.yaml")
    assert fewest == math.ceil(groups * m * n * k / 256)  # the case's own figure: MACs over multipliers
    seconds, parts, _, _ = price(spec, groups, m, n, k, dtype="fp16")
    assert seconds * 1e9 >= fewest * (1 - 1e-12)
    assert parts[1] * 1e9 >= fewest * (1 - 1e-12)


@pytest.mark.parametrize("layer", [*LAYERS, ("h", 1, 12544, 32, 27, 0)], ids=lambda layer: layer[0])
def test_case_21_memory_that_never_limits_stalls_nothing(layer):
    # the case's card translated: 1e6 TB/s outside a 6 TB/s shared level; every counter finite and >= 0, no memory time
    spec = load_npu("npu-x").with_({"memory.hbm.bandwidth": "1.0e6 TB/s", "memory.hbm.latency": "0 s"})
    _, groups, m, n, k, _ = layer
    seconds, parts, bytes_, _ = price(spec, groups, m, n, k)
    for counter in (seconds, *parts, *bytes_):
        assert math.isfinite(counter)
        assert 0 <= counter < 2**53
    assert parts[5] <= 1e-3 * max(seconds, 1e-12)


@given(EXTENT, EXTENT, EXTENT, st.integers(1, 16), st.sampled_from(["a100-sxm4-80gb", "ascend-910b2", "npu-x", "p100-pcie-16gb"]))
def test_no_point_lies_above_a_roof(m, n, k, batch, name):
    spec = load_npu(name)
    dtype = "bf16" if "bf16" in spec.matrix.rate else "fp32"
    seconds, _, bytes_, _ = price(spec, batch, m, n, k, dtype=dtype)
    compulsory = 2.0 * batch * (m * k + k * n + m * n)
    assert seconds >= 2.0 * batch * m * n * k / spec.peak_flops(dtype)
    assert bytes_[2] >= compulsory * (1 - 1e-12)
    assert seconds >= compulsory / spec.bandwidth(list(spec.memory)[-1])
    assert seconds >= bytes_[1] / spec.bandwidth("l2") * (1 - 1e-12) or spec.memory["l2"].multicast > 1


BETTER = [
    ("clock", 1.3), ("memory.hbm.bandwidth", 1.7), ("memory.l2.bandwidth", 1.7), ("memory.l1.bandwidth", 1.7),
    ("memory.hbm.latency", 0.5), ("memory.l2.latency", 0.5), ("memory.l1.size", 2.0), ("memory.l2.size", 2.0),
    ("memory.l0c.size", 2.0), ("memory.l0a.size", 2.0), ("runtime.launch_overhead", 0.5), ("matrix.rate.bf16", 2.0),
    ("cores", 2.0),
]  # fmt: skip


@given(EXTENT, EXTENT, EXTENT, st.sampled_from(BETTER), st.sampled_from(["npu-x", "ascend-910b2"]))
def test_a_better_part_is_never_slower(m, n, k, part, name):
    base = load_npu(name)
    path, factor = part
    value = base.get(path) * factor
    better = base.with_si({path: int(value) if path == "cores" else value})
    assert price(better, 1, m, n, k)[0] <= price(base, 1, m, n, k)[0] * (1 + 1e-9)


TINY = """\
name: tiny
cores: 5
clock: 1.0 GHz
matrix: {rows: 8, cols: 8, depth: 8, rate: {bf16: 1}, accumulator: l0c, staging: l1}
vector: {lanes: 16, rate: {fp32: 1}}
memory:
  l0c: {size: 3 KiB, double_buffer: false}
  l1: {size: 5 KiB, bandwidth: 64 B/clk, latency: 10 ns}
  l2: {size: 256 KiB, bandwidth: 128 B/clk, latency: 90 ns, scope: chip}
  hbm: {size: 1 GiB, bandwidth: 20 GB/s, latency: 300 ns}
"""
SEARCHED = ("a100-sxm4-80gb", "ascend-910b2", "npu-x", "tpu-v4", "mi300x", "gaudi3", "tiny")


def card_of(name: str) -> NpuSpec:
    return read_yaml(TINY, "tiny.yaml") if name == "tiny" else load_npu(name)


@njit
def allowed(quanta):
    """A power of two, or thrice one: what equal warps, a power of two of them, can work on."""
    while quanta % 2 == 0:
        quanta //= 2
    return quanta == 1 or quanta == 3


@njit(error_model="numpy")
def exhaustive(card, shape, operand, total):
    """Fastest of every multiple of the quanta up to the first that covers the axis, and of every split: nothing is left out.

    On a GPU, of those that a power of two of warps can work on, and of splits that are powers of two.
    """
    rest = np.empty((1, 6))
    job = kernels.prepare(card, shape, operand, total, 1.0, 1.0, rest)
    best, warps = math.inf, card[kernels.DOUBLING] > 0
    reach = 2 if warps else 1
    for i in range(reach * math.ceil(job.m / card[kernels.QM])):
        for j in range(reach * math.ceil(job.n / card[kernels.QN])):
            tm, tn = (i + 1) * card[kernels.QM], (j + 1) * card[kernels.QN]
            if (i + j > 0 and not kernels.feasible(card, operand, tm, tn)) or (warps and not (allowed(i + 1) and allowed(j + 1))):
                continue
            for split in range(1, int(job.most) + 1):
                if warps and split & (split - 1):
                    continue
                t = kernels.evaluate(job, rest, tm, tn, math.ceil(job.m / tm), math.ceil(job.n / tn), float(split), True)
                best = min(best, kernels.seconds_of(job, t))
    return best


@pytest.mark.parametrize("name", SEARCHED)
def test_the_search_finds_what_trying_everything_finds(name):
    """Not within the 1 % that is asked for, but exactly: dominated tiles and pruned splits cannot win."""
    cards = pack([card_of(name)], ["bf16"])
    rng = np.random.default_rng(7)
    for batch in (1, 1, 1, 1, 1, 3, 40):
        m, n, k = np.round(2 ** rng.uniform(0, 11.5, 3))
        shape, total = np.array([batch, m, n, k], float), np.array([batch * m * k, batch * k * n, batch * m * n]) * 2.0
        best = exhaustive(cards.matrix[0, 0], shape, np.full(3, 2.0), total)
        assert products(shape[None], np.full((1, 3), 2.0), np.zeros(1, int), cards)[0].seconds[0, 0] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("extent", [(100_000, 64, 512), (33_000, 33_000, 4096), (7, 400_000, 100)])
def test_thinned_sizes_of_long_axes_lose_less_than_a_percent(extent):
    cards = pack([load_npu("npu-x")], ["bf16"])
    m, n, k = extent
    shape, total = np.array([1, m, n, k], float), np.array([m * k, k * n, m * n]) * 2.0
    found = products(shape[None], np.full((1, 3), 2.0), np.zeros(1, int), cards)[0].seconds[0, 0]
    assert 1 - 1e-9 <= found / exhaustive(cards.matrix[0, 0], shape, np.full(3, 2.0), total) <= 1.01


@given(st.integers(1, 10**9), st.integers(1, 64), st.floats(1, 1e6), st.integers(0, 50))
def test_sizes_of_an_axis_are_the_smallest_for_their_count(extent, quantum, limit, at):
    room = np.zeros(9 * kernels.TILES)
    end = kernels.axis(float(quantum), float(extent), limit, room, at)
    sizes, counts = room[at:end], room[kernels.TILES + at : kernels.TILES + end]
    assert 1 <= len(sizes) <= 128
    assert (sizes % quantum == 0).all() and (np.diff(sizes) > 0).all()
    assert (counts == np.ceil(extent / sizes)).all()
    assert ((sizes == quantum) | (np.ceil(extent / np.maximum(sizes - quantum, 1)) > counts)).all()
    assert sizes[0] == quantum and (sizes[1:] <= limit).all()


@given(EXTENT, EXTENT, EXTENT, st.integers(1, 4), st.sampled_from(SEARCHED), st.integers(1, 300), st.integers(1, 300), st.integers(2, 64))
def test_no_split_undercuts_the_bound(m, n, k, batch, name, i, j, most):
    card = pack([card_of(name)], ["bf16"]).matrix[0, 0]
    total = np.array([batch * m * k, batch * k * n, batch * m * n]) * 2.0
    job = kernels.prepare(card, np.array([batch, m, n, k], float), np.full(3, 2.0), total, 1.0, 1.0, REST)
    tm, tn = i * card[kernels.QM], j * card[kernels.QN]
    tall, wide = math.ceil(m / tm), math.ceil(n / tn)
    least = kernels.seconds_of(job, kernels.bound(job, REST, tm, tn, tall, wide, float(most), True))
    for split in range(2, most + 1):
        assert kernels.seconds_of(job, kernels.evaluate(job, REST, tm, tn, tall, wide, float(split), True)) >= least * (1 - 1e-12)


def test_two_tilings_can_be_compared():
    """Question 3.2 of the acceptance list: fixed tiles are priced as given, and never beat the search."""
    spec = load_npu("npu-x").with_({"memory.l1.size": "512 KiB"})
    cards, shape = pack([spec], ["bf16"]), np.array([[1, 4096, 10240, 8192]], float)
    free, chosen = products(shape, np.full((1, 3), 2.0), np.zeros(1, int), cards)
    for tile in ((128, 256, 1), (256, 128, 1), (16, 16, 1)):
        fixed, used = products(shape, np.full((1, 3), 2.0), np.zeros(1, int), cards, tile=tile)
        assert tuple(used[0, 0]) == tile
        assert fixed.seconds[0, 0] >= free.seconds[0, 0]
    assert (chosen[0, 0, 0] * chosen[0, 0, 1]) * 4 <= 256 * 1024  # the sums fit the accumulator


@pytest.mark.parametrize(("dtype", "size", "width"), [("fp64", 8.0, 8.0), ("bf16", 2.0, 4.0)])
def test_partial_sums_are_as_wide_as_they_must_be(dtype, size, width):
    """256 x 256 x 1024 in tiles of 64 x 64, split in 2: 32 units move (64 + 64) 512 elements; 2 partial results are written and read."""
    cards = pack([load_npu("a100-sxm4-80gb")], [dtype])
    out, _ = products(np.array([[1, 256, 256, 1024]], float), np.full((1, 3), size), np.zeros(1, int), cards, tile=(64, 64, 2))
    assert out.level[0, 0, 1] == 32 * 128 * 512 * size + 256 * 256 * size + 2 * 2 * width * 256 * 256


def test_rows_that_span_more_than_a_core_translates_are_walked():
    """64 KiB of sums are 128 x 128: 128 rows of A and B, 400 kB each, span 102.4 MB; of that 25.6 MB, a quarter, are known."""
    card = np.zeros(kernels.SIZE)
    card[[kernels.ACCUMULATOR, kernels.REACH, kernels.LATENCY_MEMORY]] = 128 * 128 * 4.0, 25.6e6, 400e-9
    walk = 400e-9 / (kernels.WALK_BYTES * kernels.WALKS)

    def walks(k: float, shared: float = 1.0) -> float:
        shape = np.array([2.0, 1000.0, 500.0, k])
        stored = np.array([2.0 * 1000.0 * k * 4.0 * shared, 2.0 * 500.0 * k * 4.0 * shared, 0.0])
        return kernels.page_walks(card, shape, stored, 4.0)

    assert walks(100_000.0) == pytest.approx(0.75 * walk)
    assert walks(100_000.0, shared=1 / 9) == 0.0  # windows of 3 x 3 that overlap: a ninth is stored
    assert walks(25_000.0) == 0.0  # all of it is known
    card[kernels.REACH] = 0.0
    assert walks(1e9) == 0.0  # nobody stated a reach


def test_a_shorter_reach_is_never_faster():
    shape = np.array([[1, 4096, 4096, k] for k in (512, 8192, 65536, 262144)], float)
    seconds = []
    for reach in ("16 MiB", "64 MiB", "1 TiB"):
        cards = pack([load_npu("p100-pcie-16gb").with_({"memory.hbm.reach": reach})], ["fp32"])
        seconds.append(products(shape, np.full((4, 3), 4.0), np.zeros(4, int), cards)[0].seconds[:, 0])
    assert (np.diff(seconds, axis=0) <= 0).all()
    assert seconds[0][3] > 1.5 * seconds[2][3]
