"""Roofline, breakdown and sweep curves: no point above a roof, parts that add up, knees where they are."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from workbench.errors import Refused
from workbench.hardware.npu import load_npu
from workbench.study.axes import linspace
from workbench.study.roofs import LEVELS, points, roofs
from workbench.study.sweep import sweep
from workbench.view.breakdown import breakdown, evidence_parts
from workbench.view.roofline import point_columns, roof_columns, roofline
from workbench.view.sweep import curve, sweep_curve


@pytest.mark.parametrize("level", LEVELS)
def test_no_predicted_point_is_above_a_roof(prediction, level):
    """Every predicted rate <= min(highest peak, bandwidth x intensity): the roofs are the data sheet's, unfitted."""
    found = points(prediction, level)
    assert len(found.row) > 3
    limits = {roof.name: roof for roof in roofs(prediction.scenario.npu)}
    slope = next(roof.value for roof in limits.values() if roof.level == level)
    peak = max(roof.value for roof in limits.values() if roof.unit)
    assert (found.rate <= 1.0001 * np.minimum(peak, slope * found.intensity)).all()


def test_roofs_of_the_invented_card_by_hand():
    """32 cores x 16 x 16 x 32 multiply-adds x 2 x 1.6 GHz = 838.9 TFLOP/s bf16; HBM as stated; L2 5120 B/clk x 1.6 GHz."""
    found = {roof.name: roof.value for roof in roofs(load_npu("npu-x"))}
    assert found["matrix bf16"] == 2 * 32 * 16 * 16 * 32 * 1.6e9
    assert found["HBM"] == 3.2e12
    assert found["L2"] == 5120 * 1.6e9
    assert found["vector fp32"] == 2 * 32 * 128 * 1.6e9


def test_point_columns_agree_with_the_table(prediction):
    columns = point_columns(prediction)
    rows = np.asarray(columns["row"])
    np.testing.assert_allclose(columns["y"], prediction.table.flops[rows] / prediction.op_seconds[rows])
    assert columns["name"] == [prediction.table.name[row] for row in rows]
    assert max(columns["size"]) <= 34.0
    lines = roof_columns(prediction)
    assert lines["name"][0] == "HBM"
    (x0, x1), (y0, y1) = lines["xs"][0], lines["ys"][0]
    assert y1 / x1 == pytest.approx(3.2e12) and y0 / x0 == pytest.approx(3.2e12)


def test_parts_add_up(prediction):
    kept = prediction.graph.step_complete
    parts = breakdown(prediction)
    assert sum(p.value for p in parts["predicted"]) == pytest.approx(prediction.account.step_s[kept].mean())
    assert sum(p.value for p in parts["measured"]) == pytest.approx(prediction.measured_account.step_s[kept].mean())
    assert sum(p.value for p in evidence_parts(prediction)) == pytest.approx(1.0)


def test_a_curve_is_its_sweep(prediction):
    axes = {"npu.memory.hbm.bandwidth": linspace("0.8 TB/s", "6.4 TB/s", 5)}
    dataset = sweep(prediction.scenario, axes, progress=False)
    found = curve(dataset)
    assert found.unit == "B/s" and found.path == "npu.memory.hbm.bandwidth"
    np.testing.assert_array_equal(found.step_s, dataset.step_time.values)
    assert (np.diff(found.step_s) <= 1e-12).all(), "more bandwidth never lengthens the step"
    with pytest.raises(Refused, match="axes"):
        curve(sweep(prediction.scenario, {**axes, "npu.cores": [16, 32]}, progress=False))


def test_the_knee_is_the_first_step_below_one_percent():
    """10, 8, 7.95, 7.9: the second step gains 0.6 %."""
    found = curve(_dataset([10.0, 8.0, 7.95, 7.9]))
    assert found.knee == 1
    assert curve(_dataset([10.0, 8.0, 6.0])).knee == -1
    assert curve(_dataset([10.0, np.nan, 9.0])).knee == -1


def _dataset(steps):
    n, x = len(steps), "npu.cores"
    column = (x, np.array(steps))
    shares = ((x, "bound"), np.zeros((n, 1)))
    valid = np.isfinite(steps)
    data = {"step_time": column, "step_time_low": column, "step_time_high": column, "bound_share": shares, "valid": (x, valid)}
    data |= {"reason": (x, (~valid).astype(int)), "reason_text": ("code", np.array(["valid", "too large"], dtype=object))}
    return xr.Dataset(data, coords={x: (x, np.arange(n), {"units": "1", "path": x}), "bound": ["memory"]})


def test_notebook_pictures_render(prediction):
    hv = pytest.importorskip("holoviews")
    hv.extension("bokeh", logo=False)
    axes = {"npu.cores": [16, 32]}
    assert hv.render(roofline(prediction)) is not None
    assert hv.render(sweep_curve(sweep(prediction.scenario, axes, progress=False))) is not None
