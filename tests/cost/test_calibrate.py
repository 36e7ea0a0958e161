"""Calibration: scalars that made the data come back from all kinds together; folds depend on the shape alone; figures by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cost.tables import table
from workbench.cost.calibrate import accuracy, calibrate, fold, skill
from workbench.cost.doubts import doubts, too_slow, why_not
from workbench.cost.errors import groups_of
from workbench.cost.fit import family_weights, fit_scalars, hashes, sample
from workbench.cost.harness import Harness
from workbench.cost.predictors import PLAIN, modelled, roofline
from workbench.hardware.npu import load_npu
from workbench.hardware.schema import ERROR_GROUPS
from workbench.operators.rows import join, take
from workbench.operators.table import Dtype, Kind, OpTable

TRUE = np.array([0.71, 0.63, 5e-6])
CARD = load_npu("npu-x")


def operators(products: int = 80, streams: int = 60) -> OpTable:
    """Products and softmaxes of all sizes, without times."""
    random = np.random.default_rng(1)
    shapes = np.round(2 ** random.uniform(3, 13, (products, 3))).astype(int).tolist()
    rows = np.round(2 ** random.uniform(4, 13, (streams, 2))).astype(int).tolist()
    made = [(Kind.GEMM, Dtype.BF16, (1, *shape)) for shape in shapes]
    return table([*made, *((Kind.SOFTMAX, Dtype.BF16, tuple(shape)) for shape in rows)])


def measured(made: OpTable, scalars: np.ndarray = TRUE, noise: float = 0.0) -> OpTable:
    """The model's own times, blurred by a factor exp(+-noise) uniformly."""
    blur = np.exp(np.random.default_rng(2).uniform(-noise, noise, len(made)))
    return replace(made, measured_s=modelled(CARD, "bf16", made)(scalars[None])[:, 0] * blur)


@pytest.mark.parametrize("predictor", [lambda rows: modelled(CARD, "bf16", rows), lambda rows: roofline(CARD, rows)])
def test_known_scalars_are_found_again(predictor):
    made = operators()
    rows = replace(made, measured_s=predictor(made)(TRUE[None])[:, 0])
    found = fit_scalars(predictor, rows, np.array([0.8, 0.8, 2e-6]))
    np.testing.assert_allclose(found.scalars, TRUE, rtol=0.03)
    assert found.determined == (True, True, True)
    assert not found.limits
    np.testing.assert_allclose(found.left_out_s, rows.measured_s, rtol=0.05)


def test_the_fit_is_the_same_every_time_and_whatever_the_order():
    rows = measured(operators(), noise=0.2)
    first = fit_scalars(lambda some: modelled(CARD, "bf16", some), rows, TRUE)
    order = np.random.default_rng(5).permutation(len(rows))
    second = fit_scalars(lambda some: modelled(CARD, "bf16", some), take(rows, order), TRUE)
    np.testing.assert_array_equal(first.scalars, second.scalars)
    np.testing.assert_array_equal(first.left_out_s[order], second.left_out_s)


def test_noise_becomes_the_stated_interval():
    """Times blurred by exp(+-0.1 uniform): 80 % of them lie within exp(+-0.08), on either side."""
    found = calibrate(CARD, "bf16", measured(operators(200, 0), noise=0.1), "made here")
    low, high = found.stated.errors["gemm"]
    assert low == pytest.approx(np.expm1(-0.08), abs=0.025)
    assert high == pytest.approx(np.expm1(0.08), abs=0.025)
    assert found.stated.compute == pytest.approx(TRUE[0], rel=0.05)
    assert found.stated.source == "made here"


def test_the_hosts_time_is_no_error_of_the_card():
    """Calls between events, whose host takes 30 us: long operators are 20 % off, short ones show the host alone, exactly."""
    harness, made = Harness((1.0, 1.0), "events"), operators(300, 0)
    shown = modelled(CARD, "bf16", made, harness)(np.array([[0.71, 0.63, 30e-6]]))[:, 0]
    short = shown < 32e-6
    blur = np.where(short, 1.0, np.exp(np.random.default_rng(2).choice([-0.2, 0.2], len(made))))
    stated = calibrate(CARD, "bf16", replace(made, measured_s=shown * blur), "made here", harness=harness).stated
    assert short.mean() > 0.4  # counted, they would shrink the interval to nothing
    low, high = stated.errors["gemm"]
    assert low < -0.15
    assert high > 0.15
    assert stated.launch == CARD.runtime.launch_overhead


def test_outliers_do_not_move_the_scalars():
    """One row in twenty a thousand times too long."""
    rows = measured(operators(), noise=0.05)
    wild = np.where(np.arange(len(rows)) % 20 == 3, 1000.0, 1.0)
    found = fit_scalars(lambda some: modelled(CARD, "bf16", some), replace(rows, measured_s=rows.measured_s * wild), TRUE)
    np.testing.assert_allclose(found.scalars, TRUE, rtol=0.1)
    places = np.array([f"a.csv:{line}" for line in range(len(rows))])
    [note] = [note for note in doubts(CARD, "bf16", replace(rows, measured_s=rows.measured_s * wild), PLAIN, found, places, "a.csv")]
    assert (note.code, note.count, note.where) == ("outliers", 7, "a.csv:3, 23, 43, 63, 83, 103 ...")


def test_many_rows_of_one_kind_do_not_outvote_another():
    """Softmaxes that a harness times 40 us too long would move the launch; products that fit exactly lose less by staying."""
    rows = measured(operators(80, 300))
    late = replace(rows, measured_s=rows.measured_s + 40e-6 * (rows.kind == Kind.SOFTMAX))
    found = fit_scalars(lambda some: modelled(CARD, "bf16", some), late, TRUE)
    products = late.kind == Kind.GEMM
    assert np.median(np.abs(found.seconds[products] / late.measured_s[products] - 1)) < 0.05


def test_families_count_alike_whatever_their_kinds():
    gemm, prefill, decode = (ERROR_GROUPS.index(name) for name in ("gemm", "attention_prefill", "attention_decode"))
    assert family_weights(np.array([prefill, prefill, decode])) == {prefill: 0.5, decode: 0.5}
    assert family_weights(np.array([gemm, prefill, decode])) == {gemm: 1.0, prefill: 0.125, decode: 0.125}


def test_folds_and_samples_depend_on_operator_dtype_and_shape_alone():
    assert fold("gemm", "bf16", (1, 64, 64, 64)) == fold("gemm", "bf16", (1, 64, 64, 64))
    folds = [fold("gemm", "bf16", (1, m, 64, 64), 5) for m in range(1000)]
    assert min(folds.count(i) for i in range(5)) > 120
    rows = operators()
    named = replace(rows, name=tuple("gemm" if kind == Kind.GEMM else "softmax" for kind in rows.kind))
    of = hashes(named)
    assert of[0, 0] % 2 == fold("gemm", "bf16", tuple(named.dims[0, :4].tolist()))
    twice = join([named, named])
    np.testing.assert_array_equal(hashes(twice)[: len(of)], hashes(twice)[len(of) :])
    kept = sample(groups_of(named), of, 10)
    assert len(kept) == 20
    shapes = {tuple(named.dims[row]) for row in kept}
    order = np.random.default_rng(0).permutation(len(named))
    again = take(named, order)
    assert {tuple(again.dims[row]) for row in sample(groups_of(again), hashes(again), 10)} == shapes


def test_scalars_that_no_row_feels_stay_as_stated():
    """Tiny operators are all launch: nothing can be said of compute or memory."""
    tiny = table([(Kind.GEMM, Dtype.BF16, (1, m, 16, 16)) for m in range(1, 41)])
    found = fit_scalars(lambda some: modelled(CARD, "bf16", some), measured(tiny), np.array([0.8, 0.77, 2e-6]))
    assert found.determined == (False, False, True)
    assert found.scalars[:2].tolist() == [0.8, 0.77]
    assert found.scalars[2] == pytest.approx(TRUE[2], rel=0.05)
    codes = [note.code for note in doubts(CARD, "bf16", measured(tiny), PLAIN, found, np.full(40, "a:1"), "a")]
    assert codes == ["scalar-not-determined", "scalar-not-determined"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: take(rows, np.arange(5)), "too few"),
        (lambda rows: join([take(rows, np.arange(3))] * 20), "only 3 shapes"),
        (lambda rows: replace(rows, measured_s=rows.measured_s / 1000), "faster than npu-x can be"),
        (lambda rows: replace(rows, measured_s=np.full(len(rows), 1e-4)), "do not depend on the work"),
    ],
)
def test_rows_that_cannot_calibrate_are_named(change, why):
    rows = measured(operators())
    assert why_not(CARD, "bf16", rows, PLAIN) == ("", "")
    assert why in why_not(CARD, "bf16", change(rows), PLAIN)[0]


def test_milliseconds_read_as_seconds_are_named():
    rows = measured(operators())
    slow = replace(rows, measured_s=rows.measured_s * 1000)
    found = fit_scalars(lambda some: modelled(CARD, "bf16", some), slow, TRUE)
    assert "longer than any scalars explain" in too_slow(found, slow, "bf16")
    assert too_slow(fit_scalars(lambda some: modelled(CARD, "bf16", some), rows, TRUE), rows, "bf16") == ""


def test_figures_by_hand():
    found = accuracy(np.array([1.1, 1.8, 3.0]), np.array([1.0, 2.0, 3.0]))
    assert found["mape"] == pytest.approx(0.2 / 3)
    assert found["median"] == pytest.approx(0.1)
    assert found["bias"] == pytest.approx(0.0)
    assert found["time_weighted"] == pytest.approx(0.3 / 6)
    ones = np.ones(50)
    assert skill(1.1 * ones, 1.4 * ones, ones) == pytest.approx((0.75, 0.75, 0.75))
