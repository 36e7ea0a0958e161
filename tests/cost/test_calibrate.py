"""Calibration: scalars that made the data come back from it, folds depend on the shape alone, figures by hand."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.cost.calibrate import Products, accuracy, calibrate, fit, fold, roofline, tile_model
from workbench.hardware.npu import load_npu

TRUE = np.array([0.71, 0.63, 5e-6])


def rows() -> Products:
    shape = np.c_[np.ones(80), np.round(2 ** np.random.default_rng(1).uniform(3, 13, (80, 3)))]
    return Products(shape, np.full((80, 3), 2.0), np.ones(80), copies=(np.inf, np.inf))  # nothing stays: memory shows


@pytest.mark.parametrize("model", [tile_model, roofline])
def test_known_scalars_are_found_again(model):
    predict = model(load_npu("npu-x"), "bf16", rows())
    np.testing.assert_allclose(fit(predict, predict(TRUE)), TRUE, rtol=0.03)


def test_noise_becomes_the_stated_error():
    """Times blurred by a factor exp(+-0.1 uniform): 80 % of them lie within about exp(0.08)."""
    spec, made = load_npu("npu-x"), rows()
    noise = np.exp(np.random.default_rng(2).uniform(-0.1, 0.1, 80))
    measured = Products(made.shape, made.operand, tile_model(spec, "bf16", made)(TRUE) * noise, made.copies)
    folds = np.arange(80) % 2
    found = calibrate(spec, "bf16", measured, folds, "made here")
    assert 0.05 < found.error < 0.12
    assert found.compute == pytest.approx(TRUE[0], rel=0.08)
    assert found.source == "made here"


def test_folds_depend_on_operator_dtype_and_shape_alone():
    assert fold("gemm", "bf16", (1, 64, 64, 64)) == fold("gemm", "bf16", (1, 64, 64, 64))
    folds = [fold("gemm", "bf16", (1, m, 64, 64), 5) for m in range(1000)]
    assert set(folds) == set(range(5))
    assert min(folds.count(i) for i in range(5)) > 120


def test_figures_by_hand():
    found = accuracy(np.array([1.1, 1.8, 3.0]), np.array([1.0, 2.0, 3.0]))
    assert found["mape"] == pytest.approx(0.2 / 3)
    assert found["median"] == pytest.approx(0.1)
    assert found["bias"] == pytest.approx(0.0)
    assert found["time_weighted"] == pytest.approx(0.3 / 6)
