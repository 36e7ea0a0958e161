"""Sweeps: every cell is the prediction of its scenario, to the last bit; what cannot be predicted has a reason and no number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from workbench.cost.vendor import read_vendor
from workbench.errors import InvalidSpec, Refused
from workbench.hardware.npu import load_npu
from workbench.study import sweep as module
from workbench.study.axes import linspace, tied
from workbench.study.dataset import changes_at, ratio, reasons, write_netcdf
from workbench.study.predict import predict
from workbench.study.scenario import Scenario
from workbench.study.sweep import sweep

HBM = "npu.memory.hbm.bandwidth"
ROWS, COLS = "npu.matrix.rows", "npu.matrix.cols"


@pytest.fixture(scope="session")
def space(scenario):
    """Three axes of every kind: spaced, tied, host."""
    axes = {HBM: linspace("0.8 TB/s", "6.4 TB/s", 3), "array": tied({ROWS: [8, 16], COLS: [8, 16]}), "host_factor": [1.0, 0.5]}
    return sweep(scenario, axes, progress=False, accounts=True)


def test_every_cell_is_the_prediction_of_its_scenario(scenario, space):
    """The promise of a sweep: the same numbers as asking one by one, bit for bit."""
    assert space["step_time"].dims == (HBM, "array", "host_factor")
    for index in np.ndindex(3, 2, 2):
        at = dict(zip(space["step_time"].dims, index, strict=True))
        cell, asked = space.isel(at), predict(scenario.with_(changes_at(space, **at)))
        assert float(cell["step_time"]) == asked.step_time_s
        assert (float(cell["step_time_low"]), float(cell["step_time_high"])) == asked.interval_s
        assert cell["step_times"].values.tolist() == asked.timeline.step_s.tolist()
        for name, share in asked.evidence_share.items():
            assert float(cell["evidence_share"].sel(evidence=name)) == pytest.approx(share, rel=1e-9)
        assert float(cell["part_time"].sum()) == pytest.approx(float(cell["step_times"].mean()), rel=1e-9)


def test_changes_name_every_field_with_its_unit(scenario, space):
    changes = changes_at(space, **{HBM: 1, "array": 1})
    assert changes == {"host_factor": 1.0, HBM: "3.6 TB/s", ROWS: 16, COLS: 16}
    assert scenario.with_(changes).npu.get("memory.hbm.bandwidth") == 3.6e12


def test_shares_add_up_and_coordinates_have_units(space):
    assert np.allclose(space["bound_share"].sum("bound"), 1.0)
    assert np.allclose(space["evidence_share"].sum("evidence"), 1.0)
    assert space[HBM].attrs["units"] == "B/s"
    assert space["step_time"].attrs["units"] == "s"
    assert space[ROWS].dims == space[COLS].dims == ("array",)
    assert bool(space["valid"].all())
    assert (space["step_time_low"] <= space["step_time"]).all()
    assert (space["step_time"] <= space["step_time_high"]).all()


def test_the_base_has_speed_up_one_and_a_faster_memory_never_a_longer_step(scenario):
    """Monotone in independent mode at fixed clock (design.md 5): only times of nodes fall, and a start is a maximum."""
    here = scenario.npu.get("memory.hbm.bandwidth")
    found = sweep(scenario, {HBM: [here / 4, here / 2, here, here * 2, here * 8]}, progress=False)
    assert float(found["speed_up"].sel({HBM: here})) == 1.0
    assert (np.diff(found["step_time"].values) <= 0).all()
    assert float(found["step_time"][0]) > float(found["step_time"][-1])


def test_a_space_made_in_small_blocks_is_the_same(scenario, space, monkeypatch):
    """Blocks bound the memory; they must not change a bit of the answer."""
    monkeypatch.setattr(module, "_blocks", lambda cells, operators: (range(i, min(i + 5, cells)) for i in range(0, cells, 5)))
    axes = {HBM: linspace("0.8 TB/s", "6.4 TB/s", 3), "array": tied({ROWS: [8, 16], COLS: [8, 16]}), "host_factor": [1.0, 0.5]}
    xr.testing.assert_identical(sweep(scenario, axes, progress=False, accounts=True), space)


def test_a_card_that_contradicts_itself_makes_its_cell_invalid_with_the_reason(scenario):
    found = sweep(scenario, {"npu.cores": [16, 16.5, 24], "host_factor": [1, 2]}, progress=False)
    assert found["valid"].values.tolist() == [[True, True], [False, False], [True, True]]
    assert np.isnan(found["step_time"].values[1]).all()
    assert np.isnan(found["bound_share"].values[1]).all()
    ((reason, count),) = reasons(found).items()
    assert count == 2
    assert "npu.cores" in reason.replace(": ", ".") or "cores" in reason
    assert "whole number" in reason


def test_a_first_card_that_cannot_be_priced_makes_its_cell_invalid(scenario):
    """1 B of L1 holds no step of the smallest tile, which only pricing finds; the notes are those of a cell beside it."""
    found = sweep(scenario, {"npu.memory.l1.size": ["1 B", "1 MiB"]}, progress=False)
    assert found["valid"].values.tolist() == [False, True]
    assert found["step_time"].values[1] == predict(scenario.with_({"npu.memory.l1.size": "1 MiB"})).step_time_s
    with_notes = sweep(scenario, {"npu.memory.l1.size": ["1 MiB"]}, progress=False)
    assert found.attrs["notes"] == with_notes.attrs["notes"]


def test_a_misspelt_path_refuses_the_whole_sweep(scenario):
    with pytest.raises(InvalidSpec, match="bandwidth"):
        sweep(scenario, {"npu.memory.hbm.bandwith": ["1 TB/s"]}, progress=False)


def test_constraints_name_why_a_cell_is_outside(scenario):
    found = sweep(
        scenario,
        {ROWS: [8, 16], COLS: [8, 16]},
        constraints={"at most 200 products": lambda rows, cols: rows * cols <= 200},
        progress=False,
    )
    assert found["valid"].values.tolist() == [[True, True], [True, False]]
    assert reasons(found) == {"at most 200 products": 1}


def test_formulas_tie_fields_across_axes(scenario):
    """Iso-area: as the array grows the cores shrink; the coordinate lies over the axes it depends on."""
    axes = {ROWS: [8, 16], COLS: [8, 16, 32], "npu.cores": lambda rows, cols: round(8192 / (rows * cols))}
    found = sweep(scenario, axes, progress=False)
    assert found["npu.cores"].dims == (ROWS, COLS)
    assert found["npu.cores"].values.tolist() == [[128, 64, 32], [64, 32, 16]]
    asked = predict(scenario.with_({ROWS: 16, COLS: 32, "npu.cores": 16}))
    assert float(found["step_time"].sel({ROWS: 16, COLS: 32})) == asked.step_time_s
    own = sweep(scenario, {"a": tied({ROWS: [8, 16], "npu.cores": lambda rows: 1024 // rows})}, progress=False)
    assert own["npu.cores"].values.tolist() == [128, 64]


def test_formulas_that_fail_or_name_nothing_say_so(scenario):
    failing = sweep(scenario, {ROWS: [8, 16], "npu.cores": lambda rows: 1 // (rows - 8)}, progress=False)
    assert failing["valid"].values.tolist() == [False, False] or "ZeroDivisionError" in " ".join(reasons(failing))
    with pytest.raises(Refused, match="names no field"):
        sweep(scenario, {ROWS: [8], "npu.cores": lambda no_such_field: 1}, progress=False)
    with pytest.raises(Refused, match="could be any of"):
        sweep(scenario, {ROWS: [8], "npu.cores": lambda latency: 1}, progress=False)
    with pytest.raises(Refused, match="two axes"):
        sweep(scenario, {ROWS: [8], "a": tied({ROWS: [8], COLS: [8]})}, progress=False)


def test_cards_as_an_axis_need_no_card_in_the_scenario(scenario):
    found = sweep(replace(scenario, npu=None), {"npu": ["npu-x", "h100-sxm"], "host_factor": [1.0]}, progress=False)
    assert found["npu"].values.tolist() == ["npu-x", "h100-sxm"]
    for name in ("npu-x", "h100-sxm"):
        asked = predict(replace(scenario, npu=load_npu(name)))
        assert float(found["step_time"].sel(npu=name, host_factor=1.0)) == asked.step_time_s
    assert float(found.attrs["base_step_time_s"]) == pytest.approx(asked.measured_step_s, rel=1e-3)


def test_recordings_as_an_axis_keep_their_own_graph(scenario, workload):
    other = replace(workload.trace)
    labelled = type(workload)(replace(other, ranks=tuple(replace(rank, path="copy.json") for rank in other.ranks)))
    found = sweep(scenario, {"workload": [workload, labelled], "npu.cores": [16, 24]}, progress=False)
    assert found["workload"].values.tolist()[1] == "copy.json"
    assert found["workload"].attrs["axis_class"] == "workload"
    assert found["step_time"].values[0].tolist() == found["step_time"].values[1].tolist()


def test_a_space_above_the_budget_is_refused_before_it_is_made(scenario):
    """cases/field/41, on this recording: 20**6 cells."""
    paths = [HBM, "npu.memory.l1.size", "npu.memory.l2.size", "npu.clock", "npu.memory.l1.bandwidth", "npu.memory.l2.bandwidth"]
    limits = [
        ("0.8 TB/s", "6.4 TB/s"),
        ("128 KiB", "2 MiB"),
        ("16 MiB", "256 MiB"),
        ("1 GHz", "2.4 GHz"),
        ("1 TB/s", "9 TB/s"),
        ("1 TB/s", "9 TB/s"),
    ]
    with pytest.raises(Refused, match="64 000 000 cells"):
        sweep(scenario, {path: linspace(*ends, 20) for path, ends in zip(paths, limits, strict=True)}, progress=False)
    with pytest.raises(Refused, match="raise the budget"):
        sweep(scenario, {HBM: linspace("1 TB/s", "2 TB/s", 1000)}, budget="1 kB", progress=False)


def test_a_sweep_survives_its_file(space, tmp_path):
    write_netcdf(space, tmp_path / "space.nc")
    with xr.open_dataset(tmp_path / "space.nc", engine="h5netcdf") as again:
        xr.testing.assert_identical(again.load(), space)
    assert changes_at(again, **{HBM: 2}) == changes_at(space, **{HBM: 2})
    with pytest.raises(Refused, match="written"):
        write_netcdf(space, tmp_path / "no folder" / "space.nc")


def test_two_sweeps_meet_exactly_or_not_at_all(scenario):
    """cases/field/34: seven cells stay seven, and unequal axes are an error, not four cells."""
    spaced = sweep(scenario, {HBM: linspace("0.1 TB/s", "0.7 TB/s", 7)}, progress=False)
    typed = sweep(scenario, {HBM: [0.1 * i * 1e12 for i in range(1, 8)]}, progress=False)
    assert ratio(spaced, typed).values.tolist() == [1.0] * 7
    with pytest.raises(Refused, match="different axes"):
        ratio(spaced, sweep(scenario, {HBM: linspace("0.1 TB/s", "0.8 TB/s", 7)}, progress=False))


def test_no_progress_bar_where_nobody_looks(scenario, capsys, monkeypatch):
    monkeypatch.setattr(module, "_blocks", lambda cells, operators: (range(i, i + 1) for i in range(cells)))
    sweep(scenario, {"npu.cores": [8, 16, 24]})
    assert capsys.readouterr() == ("", "")


def test_vendor_times_do_not_move_with_the_card_and_a_note_says_so(scenario, tmp_path):
    """Every product has a stated time: no bandwidth changes it, so the sweep must not look as if the card were insensitive."""
    row = scenario.workload.table.name.index("aten::mm")
    path = tmp_path / "vendor.csv"
    path.write_text(f'signature,time_us\n"{scenario.workload.table.signature[row]}",5\n')
    given = replace(scenario, vendor=read_vendor(path))
    assert "[vendor-fixed]" in sweep(given, {HBM: ["1 TB/s", "2 TB/s"]}, progress=False).attrs["notes"]
    assert "[vendor-fixed]" not in sweep(given, {"host_factor": [1.0, 0.5]}, progress=False).attrs["notes"]


def test_progress_is_reported_and_changes_nothing(scenario):
    """40 cells in blocks of 16: the reports count up to all of them, and every number is that of the sweep without reports."""
    axes, said = {HBM: linspace("0.8 TB/s", "6.4 TB/s", 40)}, []
    reported = sweep(scenario, axes, progress=lambda done, whole: said.append((done, whole)))
    assert said == [(0, 40), (16, 40), (32, 40), (40, 40)]
    xr.testing.assert_identical(reported, sweep(scenario, axes, progress=False))


def test_an_interrupted_file_leaves_the_old_one(scenario, tmp_path, monkeypatch):
    space = sweep(scenario, {"npu.cores": [16]}, progress=False)
    path = tmp_path / "space.nc"
    path.write_text("old")

    def interrupted(self, file, **_):
        Path(file).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(xr.Dataset, "to_netcdf", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_netcdf(space, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_device_is_no_place_for_a_sweep(scenario):
    with pytest.raises(Refused, match="not a regular file"):
        write_netcdf(sweep(scenario, {"npu.cores": [16]}, progress=False), "/dev/null")


def test_without_a_card_the_recording_is_swept(workload):
    """The host factor needs no card: cells are replays as measured, equal to asking one by one."""
    base = Scenario(workload)
    space = sweep(base, {"host_factor": [1.0, 2.0, 4.0]}, progress=False)
    assert bool(space["valid"].all())
    asked = [predict(base.with_({"host_factor": factor})).step_time_s for factor in (1.0, 2.0, 4.0)]
    assert space["step_time"].values.tolist() == asked
