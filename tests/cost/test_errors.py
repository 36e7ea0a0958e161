"""Intervals: quantiles by hand, coverage of what was not seen, which interval a card states, wider for weak cards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench.cost.errors import NEAREST, groups_of, inside, intervals, quantiles, unfitted
from workbench.cost.estimate import estimate
from workbench.cost.models import dtype_columns, dtype_names
from workbench.cost.pack import pack
from workbench.hardware.npu import load_npu
from workbench.hardware.parts import Calibration
from workbench.hardware.schema import ERROR_GROUPS
from workbench.operators.table import Dtype, Kind

GEMM = (Kind.GEMM, Dtype.BF16, (1, 512, 512, 512))
FIT = Calibration(0.8, 0.8, 2e-6, 0.2, "test", {"gemm": (-0.1, 0.3), "elementwise": (-0.2, 0.05)})


def ends(rows, spec):
    made = table(rows)
    cards = pack([spec], dtype_names(made))
    low, high = intervals(made, cards, dtype_columns(made, cards))
    return list(zip((low[:, 0] - 1).round(6).tolist(), (high[:, 0] - 1).round(6).tolist(), strict=True))


def test_quantiles_of_a_uniform_miss():
    """log(measured / predicted) uniform over [-1, 1]: 10 % lie below -0.8, 10 % above 0.8."""
    miss = np.linspace(-1, 1, 10001)
    low, high = quantiles(np.ones(len(miss)), np.exp(miss))
    assert (np.log1p(low), np.log1p(high)) == (pytest.approx(-0.8, abs=1e-3), pytest.approx(0.8, abs=1e-3))


def test_a_one_sided_miss_keeps_the_prediction_inside_and_still_covers_80_percent():
    miss = np.linspace(0.1, 1.1, 10001)
    low, high = quantiles(np.ones(len(miss)), np.exp(miss))
    assert low == -NEAREST
    assert np.mean(np.exp(miss) <= 1 + high) == pytest.approx(0.8, abs=1e-3)
    low, high = quantiles(np.ones(len(miss)), np.exp(-miss))
    assert high == NEAREST
    assert np.mean(np.exp(-miss) >= 1 + low) == pytest.approx(0.8, abs=1e-3)


@given(st.integers(0, 1000), st.floats(0.01, 2.0), st.floats(-1.0, 1.0))
def test_eighty_percent_of_rows_are_inside_and_the_prediction_too(seed, spread, shift):
    miss = np.random.default_rng(seed).normal(shift, spread, 200)
    low, high = quantiles(np.ones(200), np.exp(miss))
    assert -1 < low <= -NEAREST < NEAREST <= high
    assert np.mean((np.exp(miss) >= (1 + low) * (1 - 1e-9)) & (np.exp(miss) <= (1 + high) * (1 + 1e-9))) >= 0.79


def test_rows_of_other_folds_cover_new_rows():
    """Few rows know their quantiles badly: without the correction of split conformal prediction 24 rows would cover 74 %."""
    random = np.random.default_rng(0)
    shares = [inside(np.ones(30), np.exp(random.normal(0, 0.3, 30)), np.arange(30) % 5) for _ in range(300)]
    assert np.mean(shares) == pytest.approx(0.8, abs=0.02)


def test_decoding_is_attention_with_few_queries():
    rows = [(Kind.ATTENTION_FORWARD, Dtype.BF16, (1, 8, 8, queries, 4096, 128, 128, 1, 0)) for queries in (1, 16, 17, 4096)]
    rows.append((Kind.ALL_REDUCE, Dtype.BF16, (1024, 8)))
    names = [ERROR_GROUPS[code] if code >= 0 else "" for code in groups_of(table(rows))]
    assert names == ["attention_decode", "attention_decode", "attention_prefill", "attention_prefill", ""]


def test_a_fit_speaks_for_its_dtype_and_its_kinds():
    card = replace(load_npu("a100-sxm4-80gb"), calibration={"bf16": FIT})
    assert ends([GEMM], card) == [(-0.1, 0.3)]
    assert ends([(Kind.GEMM, Dtype.FP16, (1, 512, 512, 512))], card) == [(-0.1, 0.3)]  # the 16-bit relative
    assert ends([(Kind.BATCHED_GEMM, Dtype.BF16, (8, 512, 512, 512))], card) == [(-0.1, 0.3)]  # borrows from gemm
    assert ends([(Kind.SOFTMAX, Dtype.BF16, (512, 512))], card) == [(-0.2, 0.05)]  # borrows from elementwise
    general = unfitted()
    assert ends([(Kind.GEMM, Dtype.INT8, (1, 512, 512, 512))], card) == [tuple(np.round(general["gemm_narrow"], 6))]
    rnn = (Kind.RNN, Dtype.BF16, (512, 16, 4))
    assert ends([rnn], card) == [tuple(np.round(general["rnn"], 6))]


def test_a_single_error_means_products_either_way():
    card = replace(load_npu("a100-sxm4-80gb"), calibration={"bf16": replace(FIT, errors={})})
    assert ends([GEMM], card) == [(round(1 / 1.2 - 1, 6), 0.2)]


def test_a_changed_card_is_less_certain_than_an_unfitted_one():
    card = load_npu("a100-sxm4-80gb")
    changed = card.with_({"clock": "1.2 GHz"})
    low, high = unfitted()["gemm"]
    assert ends([GEMM], replace(card, calibration={})) == [(round(low, 6), round(high, 6))]
    apart = ((1 + high) / (1 + low)) ** 0.125  # a quarter wider in all, half of it at either end
    assert ends([GEMM], changed) == [(round((1 + low) / apart - 1, 6), round((1 + high) * apart - 1, 6))]


def test_every_prediction_carries_its_interval():
    card = replace(load_npu("a100-sxm4-80gb"), calibration={"bf16": FIT})
    cost = estimate(table([GEMM]), [card])
    assert cost.low_s[0, 0] == pytest.approx(0.9 * cost.seconds[0, 0])
    assert cost.high_s[0, 0] == pytest.approx(1.3 * cost.seconds[0, 0])
