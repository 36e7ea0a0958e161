"""The arithmetic behind the accuracy report: ranks, floors, families, what is written into cards; by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.anchors import left_out, ship
from tests.anchors.floor import floor
from tests.anchors.general import General, nested, wide, widening, write
from tests.anchors.ranks import spearman
from tests.anchors.series import Series, harness, knowledge, quantise
from tests.cost.tables import table
from workbench.cost.predictors import NAIVE, roofline
from workbench.data import data_path
from workbench.hardware.npu import load_npu
from workbench.hardware.parts import Calibration
from workbench.hardware.text import read_yaml
from workbench.operators.table import Dtype, Kind


def products(shapes: list[tuple[int, ...]], seconds: list[float], versions: list[str]) -> Series:
    made = table([(Kind.GEMM, Dtype.BF16, (1, *shape)) for shape in shapes], measured_s=seconds)
    return Series("A100-SXM4-80GB", "aiconfigurator", "bf16", replace(made, name=("gemm",) * len(shapes)), np.array(versions))


def test_spearman_by_hand():
    """1 - 6 sum d^2 / (n (n^2 - 1)) without ties: d = 1, 1, 0, 0 gives 1 - 12 / 60."""
    assert spearman(np.array([1.0, 2, 3, 4]), np.array([20.0, 10, 30, 40])) == pytest.approx(0.8)
    assert spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 5, 5, 9])) == pytest.approx(1.0)


def test_the_floor_of_two_versions_by_hand():
    """Times 1 and 1.25: they differ by 25 and 20 %; the best guess for both is 1, wrong by 0 and 20 %."""
    shapes = [(64, 64, 64 + 8 * i) for i in range(20)]
    found = floor(products(shapes * 2, [1.0] * 20 + [1.25] * 20, ["a"] * 20 + ["b"] * 20))
    assert found is not None
    assert (found.share, found.differ, found.best) == (1.0, pytest.approx(0.225), pytest.approx(0.1))
    assert floor(products(shapes, [1.0] * 20, ["a"] * 20)) is None


def test_families_of_shapes():
    made = table(
        [(Kind.GEMM, Dtype.BF16, (1, *shape)) for shape in ((64, 4096, 4096), (512, 512, 4096), (8192, 512, 512), (512, 512, 512))]
    )
    assert left_out.product_family(made).tolist() == ["M <= 64", "deep K", "tall or wide", "square"]
    heads = table([(Kind.ATTENTION_FORWARD, Dtype.BF16, (1, 8, 8, 128, 128, 64, 64, 1, 0))])
    assert left_out.attention_family(heads).tolist() == ["head size 64"]


def test_the_sustained_peak_is_that_of_large_products():
    """Largest tenth at 70 % of the peak, smaller ones at 95 %: what is sustained is 70 %."""
    shapes = [(2048, 2048, 2048 + 64 * i) for i in range(40)]
    series = products(shapes, [1.0] * 40, ["a"] * 40)
    ideal = roofline(series.spec, series.table)(NAIVE[None])[:, 0]
    share = np.where(np.arange(40) >= 36, 0.70, 0.95)
    measured = replace(series, table=replace(series.table, measured_s=ideal / share))
    assert left_out.sustained_peak(measured) == pytest.approx(0.70)
    scalars = left_out.compute_share(measured, 0.70, np.array([0.8, 0.8, 3e-6]))
    assert 0.70 <= scalars[0] <= 1.0  # the model's own losses come on top


def test_a_quantise_kernel_reads_two_bytes_and_writes_one():
    made = quantise(table([(Kind.GEMM, Dtype.FP8, (2, 64, 128, 256))]))
    assert made.kind.tolist() == [Kind.ELEMENTWISE]
    assert (made.bytes_read[0], made.bytes_written[0]) == (2 * 2 * 64 * 256, 2 * 64 * 256)


def test_every_series_of_the_plan_is_known():
    known = knowledge()
    for of in ship.plan()["own"].values():
        for device, source, _ in of.values():
            assert device in known["cards"]
            assert source in known["harnesses"]
    for name in known["harnesses"]:
        assert harness(name).copies[0] >= 1
    for card in known["cards"].values():
        load_npu(card)


def test_a_written_fit_is_read_back_and_a_lent_one_is_wider():
    fit = Calibration(0.8, 0.75, 2.5e-6, 0.2, "test", {"gemm": (-0.1, 0.2), "softmax": (0.0, 0.5)})
    card = data_path("npu", "t4.yaml").read_text(encoding="utf-8")
    found = read_yaml(ship.SECTION.sub(lambda _: ship.written({"fp16": fit}), card), "t4.yaml")
    assert found.calibration == {"fp16": fit}
    loan = ship.lent(fit, 0.9, "another card")
    assert loan.compute == 0.72
    assert loan.errors["gemm"] == (round(0.9**1.5 - 1, 3), round(1.2**1.5 - 1, 3))
    assert "another card" in loan.source


def test_intervals_written_keep_what_is_judged(tmp_path):
    path = tmp_path / "operators.yaml"
    path.write_text(data_path("errors", "operators.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    before = path.read_text(encoding="utf-8").partition("judged:")[2]
    write([General("gemm", 3, 900, (-0.1, 0.4), 1.2, (0.8, 0.8, 0.8))], path, "2026-01-01", "0123456789abcdef")
    text = path.read_text(encoding="utf-8")
    assert "gemm: {low: -0.100, high: 0.400, cards: 3, rows: 900, widened: 1.20}" in text
    assert text.partition("judged:")[2] == before


def test_an_interval_is_scaled_about_the_median():
    """Logarithms 0.02, 0.04 .. 1.98 (99 rows): quantiles of 100 ranks are 0.2, 1, 1.8, their distance 0.8 about 1."""
    ratio = np.exp(0.02 * np.arange(1, 100))
    assert wide([ratio[:40], ratio[40:]], 1.0) == (-0.01, pytest.approx(np.expm1(1.8)))
    assert wide([ratio / np.e], 1.0) == (pytest.approx(np.expm1(-0.8)), pytest.approx(np.expm1(0.8)))
    assert wide([ratio / np.e], 0.5) == (pytest.approx(np.expm1(-0.4)), pytest.approx(np.expm1(0.4)))
    assert wide([ratio], 2.0) == (pytest.approx(np.expm1(-0.6)), pytest.approx(np.expm1(2.6)))  # not 1.8 x 2: the bias of 1 stays


def test_the_scale_of_cards_drawn_alike_is_learnt_without_the_card():
    """Biases drawn with the deviation of the rows: a left-out card's rows deviate by sqrt(2), so do pooled ones: a scale about 1."""
    rng = np.random.default_rng(7)
    cards = {str(i): np.exp(0.3 * rng.standard_normal() + 0.3 * rng.standard_normal(200)) for i in range(30)}
    assert widening(cards) == pytest.approx(1.0, abs=0.15)
    assert np.mean(nested(cards)) == pytest.approx(0.8, abs=0.05)
    common = {name: 3.0 * ratio for name, ratio in cards.items()}
    assert widening(common) <= widening(cards) + 0.1  # what all cards err by in common widens nothing
    assert widening({"one": cards["0"]}) == 1.0
