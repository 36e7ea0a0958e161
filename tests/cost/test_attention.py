"""The attention model: tiles, waves and splits by hand, and what changing one thing must change."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.cost import attention as model
from workbench.cost import kernels_attention as k
from workbench.cost.choices import COLD
from workbench.cost.cost import Bound
from workbench.cost.pack import pack
from workbench.hardware.npu import load_npu
from workbench.operators.attention import BOTTOM_RIGHT, FULL, TOP_LEFT, model_flops, pairs
from workbench.operators.table import DIMS, Kind

A100 = "a100-sxm4-80gb"
CARDS = (A100, "h200-sxm", "ascend-910b2", "tpu-v4", "mi300x")


def dims(batch, heads, kv_heads, queries, keys, head, value=0, causal=FULL, window=0, bits=0, page=0, splits=0, portable=0):
    return (batch, heads, kv_heads, queries, keys, head, value or head, causal, window, bits, page, splits, portable)


def priced(rows, spec, backward=False, size=2.0, copies=COLD, dtype="bf16"):
    """Price rows of dimensions on one card; also the parts the kernel leaves."""
    spec = load_npu(spec) if isinstance(spec, str) else spec
    cards, table = pack([spec], [dtype]), np.array(rows, dtype=np.int64)
    batch, heads, _, queries, keys, head, value, causal, window = table[:, :9].T
    flops = model_flops(batch, heads, pairs(queries, keys, causal, window), head, value, backward)
    sizes, column = np.full(len(rows), size), np.zeros(len(rows), dtype=np.int64)
    out = model.attention(table, flops, sizes, backward, column, cards, copies)
    seconds, part = np.zeros((len(rows), 1)), np.zeros((len(rows), 1, k.PARTS))
    k.price(model.operators(table, flops, sizes, backward, copies[0]), model.card_columns(cards), column, seconds, part)
    assert np.array_equal(seconds, out.seconds)
    return out, part[:, 0]


def seconds(row, spec=A100, **rest):
    return float(priced([row], spec, **rest)[0].seconds[0, 0])


def test_the_columns_are_those_of_the_table():
    assert len(model.NAMES) == len(DIMS[Kind.ATTENTION_FORWARD])


@pytest.mark.parametrize("ratio", [1.1, 1.5, 2.0, 4.0, 50.0])
def test_misses_solve_their_equation(ratio):
    """m = 1 - exp(-ratio m): the share of accesses that miss when a cache replaced at random is walked in circles."""
    share = k.missing(ratio)
    assert share == pytest.approx(1.0 - math.exp(-ratio * share), rel=5e-3)


def test_what_fits_is_found_again_and_what_is_cold_is_not():
    assert (k.missing(0.0), k.missing(1.0), k.missing(math.inf)) == (0.0, 0.0, 1.0)
    assert all(np.diff([k.missing(x) for x in np.linspace(0.5, 5.0, 40)]) >= 0)


def test_misses_agree_with_a_cache_that_is_simulated():
    """A cache of 400 lines with random replacement, walked in circles over 600: another implementation, the same share."""
    rng, lines, footprint = np.random.default_rng(1), 400, 600
    held, place, missed, rounds = {}, np.full(lines, -1), 0, 60
    for turn in range(rounds):
        for line in range(footprint):
            if line not in held:
                missed += turn >= 20
                at = int(rng.integers(lines))
                held.pop(int(place[at]), None)
                place[at], held[line] = line, at
    assert k.missing(footprint / lines) == pytest.approx(missed / (40 * footprint), abs=0.03)


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        (128, 128.0),  # 128 x (128 + 16) sums and scores of 4 B are 72 KiB of three quarters of 256 KiB
        (256, 128.0),  # 136 KiB
        (512, 64.0),  # 264 KiB do not fit, half of it does
    ],
)
def test_tiles_are_as_tall_as_the_registers_allow(head, rows):
    assert priced([dims(1, 8, 8, 1024, 1024, head)], A100)[1][0, k.TILE] == rows


def test_few_queries_take_the_rows_that_occupy_every_array():
    """Four arrays of 16 rows on A100; twice that where two halves of a tile take turns on an asynchronous unit."""
    decode = dims(64, 8, 1, 1, 4096, 128)
    assert [priced([decode], card)[1][0, k.TILE] for card in (A100, "h200-sxm")] == [64.0, 128.0]


def test_equal_tiles_go_in_whole_waves():
    """108 cores: the 109th tile costs as much as another 107 would. Splitting is fixed at 1, so that nothing evens it out."""
    rows = [dims(count, 1, 1, 1, 8192, 128, splits=1) for count in (108, 109, 216)]
    core = priced(rows, A100)[1][:, k.CORE]
    assert core[1] == pytest.approx(core[2])
    assert core[1] > 1.2 * core[0]


def test_the_matrix_time_of_one_tile_by_hand():
    """128 queries, 128 keys, head 64 on one core of A100: 128 x 128 x 128 multiply-adds at 1024 a cycle, at the sustained share."""
    spec = load_npu(A100)
    part = priced([dims(1, 1, 1, 128, 128, 64)], spec)[1][0]
    assert part[k.TILE] * part[k.BLOCK] * 128 / (1024 * 1.41e9 * spec.calibration["bf16"].compute) == pytest.approx(part[k.MATRIX])
    assert (part[k.TILE], part[k.BLOCK]) == (128.0, 128.0)


def test_keys_are_split_where_cores_would_idle():
    """One sequence at a long context fills a card only split; a thousand sequences need none."""
    part = priced([dims(1, 8, 1, 1, 65536, 128), dims(1024, 8, 1, 1, 4096, 128)], A100)[1]
    assert part[0, k.SPLITS] >= 32
    assert part[1, k.SPLITS] == 1


def test_a_chosen_split_is_no_worse_than_any_fixed_one():
    chosen = seconds(dims(4, 8, 2, 1, 32768, 128))
    fixed = [seconds(dims(4, 8, 2, 1, 32768, 128, splits=2**i)) for i in range(8)]
    assert chosen == pytest.approx(min(fixed))
    assert max(fixed) > 3 * chosen


def test_the_causal_mask_halves_long_prefill():
    full, causal = (seconds(dims(1, 32, 32, 16384, 16384, 128, causal=mask)) for mask in (FULL, BOTTOM_RIGHT))
    assert 0.48 < causal / full < 0.56


def test_alignment_counts_when_lengths_differ():
    """1024 queries behind 7168 older keys: bottom-right they see those too, top-left at most 1024 keys."""
    rows = [dims(1, 32, 32, 1024, 8192, 128, causal=mask) for mask in (TOP_LEFT, BOTTOM_RIGHT, FULL)]
    top, bottom, full = priced(rows, A100)[0].seconds[:, 0]
    assert top < 0.2 * bottom
    assert 0.9 * full < bottom <= full


def test_a_window_makes_time_grow_with_the_length_only():
    short, long = (seconds(dims(1, 32, 32, length, length, 128, causal=BOTTOM_RIGHT, window=1024)) for length in (16384, 65536))
    assert long / short == pytest.approx(4.0, rel=0.1)
    assert long < 0.1 * seconds(dims(1, 32, 32, 65536, 65536, 128, causal=BOTTOM_RIGHT))


def test_portable_kernels_walk_over_what_a_window_masks():
    blind = [seconds(dims(1, 32, 32, 16384, 16384, 128, causal=BOTTOM_RIGHT, window=window, portable=1)) for window in (0, 1024)]
    assert blind[1] == pytest.approx(blind[0], rel=0.01)


def test_grouped_heads_read_keys_once():
    """Eight heads on one pair of keys and values: decode takes an eighth of the bytes, and nearly of the time."""
    many, one = priced([dims(256, 8, 8, 1, 4096, 128), dims(256, 8, 1, 1, 4096, 128)], A100)[0].level[:, 0, 2]
    assert many / one == pytest.approx(8.0, rel=0.02)


def test_unequal_head_sizes():
    """Scores over 192, values of 128, as in latent attention: between 128 and 192, and the same FLOPs as 160 with 160."""
    smaller, mixed, even, larger = (
        seconds(dims(1, 64, 64, 8192, 8192, *sizes)) for sizes in ((128, 128), (192, 128), (160, 160), (192, 192))
    )
    assert smaller < mixed < larger
    assert mixed == pytest.approx(even, rel=0.1)


def test_an_8_bit_cache_halves_the_bytes():
    wide, narrow = priced([dims(256, 8, 1, 1, 8192, 128, bits=bits) for bits in (16, 8)], "h200-sxm")[0].level[:, 0, 2]
    assert wide / narrow == pytest.approx(2.0, rel=0.02)


def test_appending_to_a_cache_costs_a_kernel_and_pages_an_index():
    plain, cached, cast, paged = priced([dims(8, 8, 8, 1, 512, 128, bits=b, page=p) for b, p in ((0, 0), (16, 0), (8, 0), (16, 16))], A100)[
        1
    ]
    launch = load_npu(A100).calibration["bf16"].launch
    assert cached[k.LAUNCHES] - plain[k.LAUNCHES] == pytest.approx(launch)
    assert cast[k.LAUNCHES] > cached[k.LAUNCHES]
    assert paged[k.OUTSIDE] - cached[k.OUTSIDE] == pytest.approx(8 * 32 * 4)


def test_warm_operands_do_not_come_from_outside():
    """A100's 40 MiB are two parts that each keep what their cores read: 17 MB of keys and values stay partly, 4 MB wholly."""
    row, half = dims(4, 8, 8, 1, 1024, 128), dims(1, 8, 8, 1, 1024, 128)
    cold, mixed, warm = priced([row, half], A100)[0], priced([row], A100, copies=(1.0, 1.0))[0], priced([half], A100, copies=(1.0, 1.0))[0]
    assert warm.level[0, 0, 2] == 0.0
    assert 0.0 < mixed.level[0, 0, 2] < cold.level[0, 0, 2]
    assert warm.seconds[0, 0] < cold.seconds[1, 0]


def test_an_asynchronous_matrix_unit_hides_the_softmax():
    """Heads of 256 leave room for one tile a core: alone, it is products, then softmax, unless the unit works by itself."""
    spec = load_npu(A100)
    row = dims(4, 32, 32, 4096, 4096, 256)
    assert seconds(row, spec.with_({"matrix.asynchronous": True})) < 0.9 * seconds(row, spec)
    assert seconds(row, spec.with_({"vector.special": 64})) < seconds(row, spec)


def test_backward_takes_two_to_four_times_forward():
    """Five products for two, so 2.5; sums in fp32 and two more kernels beside them (FlashAttention-2 measures 2.5 to 3.5)."""
    row = dims(2, 32, 32, 8192, 8192, 128, causal=BOTTOM_RIGHT)
    assert 2.0 < seconds(row, backward=True) / seconds(row) < 4.0


@pytest.mark.parametrize("name", CARDS)
def test_backward_takes_longer_than_forward_even_where_exponentials_set_the_pace(name):
    row = dims(2, 32, 32, 8192, 8192, 128, causal=BOTTOM_RIGHT)
    assert 1.0 < seconds(row, name, backward=True) / seconds(row, name) < 4.0


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("backward", [False, True])
def test_the_parts_of_a_core_join_to_its_time(name, backward):
    """Fourth powers of matrix, vector, local port and waiting add up, as the cycle stack divides them."""
    out, part = priced([dims(2, 16, 16, 2048, 2048, 128, causal=BOTTOM_RIGHT), dims(16, 16, 2, 1, 8192, 128)], name, backward)
    busy = out.resource[:, 0, [Bound.MATRIX, Bound.VECTOR, Bound.LOCAL]]
    wait = out.resource[:, 0, Bound.LAUNCH] - out.detail[:, 0, 0] - out.detail[:, 0, 1]
    assert ((busy**4).sum(axis=1) + wait**4) ** 0.25 == pytest.approx(part[:, k.CORE])
    assert (out.detail[:, 0, 2] >= 0).all()
    assert (out.seconds[:, 0] >= part[:, k.CORE] + out.detail[:, 0, 0]).all()


shapes = st.builds(
    dims,
    st.integers(1, 64), st.sampled_from([8, 32]), st.sampled_from([1, 8]), st.sampled_from([1, 7, 128, 1000]), st.integers(1, 5000),
    st.sampled_from([64, 96, 128, 256]), causal=st.sampled_from([FULL, BOTTOM_RIGHT, TOP_LEFT]), window=st.sampled_from([0, 100]),
    bits=st.sampled_from([0, 8, 16]),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(shapes, st.sampled_from(CARDS), st.booleans())
def test_a_better_card_is_never_slower(row, name, backward):
    if row[3] > row[4] and row[7] == BOTTOM_RIGHT:
        return  # the first queries see nothing
    spec = load_npu(name)
    base = seconds(row, spec, backward=backward)
    assert np.isfinite(base) and base > 0
    outer = list(spec.memory)[-1]
    for path in ("vector.special", f"memory.{outer}.bandwidth"):
        assert seconds(row, spec.with_si({path: spec.get(path) * 2}), backward=backward) <= base * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(shapes, st.sampled_from(CARDS))
def test_more_keys_never_take_less_time(row, name):
    if row[7] != FULL:
        return
    longer = (*row[:4], row[4] * 2, *row[5:])
    assert seconds(longer, name) >= seconds(row, name) * (1 - 1e-9)
