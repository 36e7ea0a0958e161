"""Exact pair counts against a brute-force mask, cited FLOPs, and laws of masks."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.operators.attention import (
    BOTTOM_RIGHT,
    FULL,
    TOP_LEFT,
    attention,
    executed_flops,
    executed_pairs,
    model_flops,
    pairs,
    seen,
)

lengths = st.integers(1, 40)
masks = st.sampled_from([FULL, BOTTOM_RIGHT, TOP_LEFT])


def mask(queries: int, keys: int, causal: int, window: int) -> np.ndarray:
    """The mask itself, entry by entry (an independent counter)."""
    out = np.zeros((queries, keys), dtype=bool)
    for i in range(queries):
        at = i if causal == TOP_LEFT else i + keys - queries
        for j in range(keys):
            ok = causal == FULL or j <= at
            if window and causal:
                ok = ok and at - j < window
            elif window:
                ok = ok and -((window - 1) // 2) <= at - j <= window // 2
            out[i, j] = ok
    return out


@given(lengths, lengths, masks, st.integers(0, 50))
def test_pairs_equal_a_brute_force_count(queries: int, keys: int, causal: int, window: int) -> None:
    assert pairs(queries, keys, causal, window) == mask(queries, keys, causal, window).sum()


@given(lengths, lengths, masks, st.integers(0, 50), st.integers(1, 16))
def test_executed_pairs_equal_a_count_over_tiles(queries: int, keys: int, causal: int, window: int, tile: int) -> None:
    whole = mask(queries, keys, causal, window)
    count = 0
    for i in range(0, queries, tile):
        rows = whole[i : i + tile].any(axis=0)
        for j in range(0, keys, tile):
            # a kernel walks from the first to the last tile its queries see together
            seen = np.flatnonzero(rows)
            if len(seen) and seen[0] // tile * tile <= j <= seen[-1]:
                count += whole[i : i + tile, j : j + tile].size
    assert executed_pairs(queries, keys, causal, window, tile) == count


@given(lengths, lengths, masks, st.integers(0, 50))
def test_model_pairs_never_exceed_executed_and_those_never_full(queries: int, keys: int, causal: int, window: int) -> None:
    assert pairs(queries, keys, causal, window) <= executed_pairs(queries, keys, causal, window, 8) <= queries * keys


@given(lengths, masks)
def test_a_window_of_all_keys_is_no_window(n: int, causal: int) -> None:
    assert pairs(n, n, causal, 2 * n) == pairs(n, n, causal, 0)


@given(lengths, lengths)
def test_one_query_sees_all_keys(keys: int, batch: int) -> None:
    """Decode: bottom-right alignment masks nothing for the newest token; FLOPs scale with batch."""
    assert pairs(1, keys, BOTTOM_RIGHT) == keys
    assert model_flops(batch, 2, pairs(1, keys), 8, 8) == batch * model_flops(1, 2, pairs(1, keys), 8, 8)


@given(lengths, lengths, masks, st.integers(0, 50))
def test_keys_seen_equal_a_brute_force_count(queries: int, keys: int, causal: int, window: int) -> None:
    """Keys with an entry in their column; queries before the first key see nothing and leave no gap."""
    assert seen(queries, keys, causal, window) == mask(queries, keys, causal, window).any(axis=0).sum()


def test_a_cache_is_written_and_its_pages_are_looked_up_by_hand() -> None:
    """2 sequences, 4 heads on 1, 3 new of 64 keys, heads of 8; bf16 operands, an 8-bit cache in pages of 16."""
    plain = attention(2, 4, 1, 3, 64, 8, 8, FULL, 0, 2)
    cached = attention(2, 4, 1, 3, 64, 8, 8, FULL, 0, 2, kv_bits=8, page=16)
    assert plain.read == 2 * 4 * 3 * 8 * 2 + 2 * 64 * 16 * 2
    assert cached.read == 2 * 4 * 3 * 8 * 2 + 2 * 64 * 16 * 1 + 2 * 3 * 16 * 2 + 2 * 4 * 4
    assert cached.written - plain.written == 2 * 3 * 16 * 1
    assert cached.flops == plain.flops


def test_a_window_needs_only_the_keys_it_keeps() -> None:
    """One new token and a window of 128: 128 keys and values are read, however long the context is."""
    works = [attention(1, 1, 1, 1, keys, 64, 64, BOTTOM_RIGHT, 128, 2) for keys in (128, 8192)]
    assert works[0].read == works[1].read


def test_cited_cases(shared: Path) -> None:
    """Field case 17: exact counts for full, causal, grouped heads, window, unequal head sizes, decode."""
    expected = {
        "mha_full": 274877906944,
        "mha_causal": 137472507904,
        "gqa_causal": 1099645845504,
        "swa": 2061617856512,
        "mla": 687362539520,
        "decode": 4294967296,
    }
    found = {}
    for row in csv.DictReader((shared / "cases/field/17_attention_ops.csv").open()):
        count = pairs(int(row["q_len"]), int(row["kv_len"]), int(row["mask"] == "causal"), int(row["window"] or 0))
        found[row["case"]] = int(
            model_flops(int(row["batch"]), int(row["q_heads"]), count, int(row["head_dim_qk"]), int(row["head_dim_v"]))
        )
    assert found == expected


def test_model_and_executed_are_two_numbers() -> None:
    """128 causal tokens fill one tile: 8 256 pairs kept, 16 384 computed; backward recomputes one of five products."""
    kept, computed = pairs(128, 128, BOTTOM_RIGHT), executed_pairs(128, 128, BOTTOM_RIGHT)
    assert (kept, computed) == (128 * 129 // 2, 128 * 128)
    assert executed_flops(1, 1, computed, 64, 64, backward=True) == 2.5 * executed_flops(1, 1, computed, 64, 64)
    assert model_flops(1, 1, kept, 64, 64, backward=True) == 2 * model_flops(1, 1, kept, 64, 64)


def test_grouped_heads_share_bytes_not_flops() -> None:
    many = attention(1, 8, 8, 16, 16, 4, 4, FULL, 0, 2)
    few = attention(1, 8, 2, 16, 16, 4, 4, FULL, 0, 2)
    assert many.flops == few.flops
    assert many.read - few.read == 2 * 6 * 16 * 4 * 2
    assert many.written == few.written


@pytest.mark.parametrize("backward", [False, True])
def test_attention_bytes_by_hand(backward: bool) -> None:
    """16 queries, 32 keys, one head of 4, fp16: q and o 128 B, k and v 512 B together, log-sum-exp 64 B."""
    work = attention(1, 1, 1, 16, 32, 4, 4, FULL, 0, 2, backward)
    assert (work.read, work.written) == ((128 + 512 + 256 + 64, 128 + 512) if backward else (128 + 512, 128 + 64))


def test_counts_stay_exact_beyond_float_precision() -> None:
    """A million tokens, causal: n (n + 1) / 2 in integers."""
    n = 2**27 + 1
    assert int(pairs(n, n, BOTTOM_RIGHT)) == n * (n + 1) // 2
