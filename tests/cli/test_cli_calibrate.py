"""``workbench calibrate`` on several kinds, files and clocks."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.cli.test_cli import fails
from tests.cli.test_cli_operators import said
from tests.cost.tables import table
from workbench.cost.harness import Harness
from workbench.cost.predictors import modelled
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind, OpTable
from workbench.study.operators_csv import list_operators

CARD = load_npu("npu-x")
TRUE = np.array([0.71, 0.63, 30e-6])


@pytest.fixture(scope="module")
def rows() -> OpTable:
    random = np.random.default_rng(3)
    products = [
        {"op": "gemm", "dtype": "bf16", "M": m, "N": n, "K": k} for m, n, k in np.round(2 ** random.uniform(4, 13, (50, 3))).astype(int)
    ]
    streams = [
        {"op": "softmax", "dtype": "bf16", "rows": r, "cols": c} for r, c in np.round(2 ** random.uniform(5, 13, (30, 2))).astype(int)
    ]
    return list_operators([*products, *streams]).table


def files(tmp_path, made: OpTable, seconds: np.ndarray, devices: tuple[str, str] = ("X", "X")) -> list:
    """Write products and softmaxes into two files."""
    gemm = [f"{devices[0]},gemm,bf16,{','.join(map(str, made.dims[i, 1:4]))},{1e6 * seconds[i]}" for i in range(50)]
    softmax = [f"{devices[1]},softmax,bf16,{made.dims[i, 0]},{made.dims[i, 1]},{1e6 * seconds[i]}" for i in range(50, 80)]
    paths = [tmp_path / "gemm.csv", tmp_path / "vector.csv"]
    paths[0].write_text("\n".join(["device,op,dtype,M,N,K,latency_us", *gemm]) + "\n")
    paths[1].write_text("\n".join(["device,op,dtype,rows,cols,latency_us", *softmax]) + "\n")
    return paths


def test_two_files_are_one_fit_of_all_their_kinds(tmp_path, capsys, rows):
    """A harness that times calls between events: the third scalar is its host's, the card keeps its own overhead."""
    seconds = modelled(CARD, "bf16", rows, Harness((1.0, 1.0), "events"))(TRUE[None])[:, 0]
    paths, out = files(tmp_path, rows, seconds), tmp_path / "card.yaml"
    options = ("--npu", "npu-x", *paths, "--copies", "1", "--clock", "events", "--out", out)
    document = json.loads(said(capsys, "calibrate", *options, "--json"))
    [fit] = document["fits"]
    assert [kind["kind"] for kind in fit["kinds"]] == ["gemm", "softmax"]
    assert [kind["rows"] for kind in fit["kinds"]] == [50, 30]
    assert fit["fitted_launch_s"] == pytest.approx(TRUE[2], rel=0.03)
    assert fit["launch_s"] == CARD.runtime.launch_overhead
    assert fit["model"]["mape"] < 0.02
    assert load_npu(out).calibration["bf16"].launch == pytest.approx(CARD.runtime.launch_overhead)
    text = said(capsys, "calibrate", *options)
    assert "softmax" in text
    assert "alone" in text
    assert max(len(line) for line in text.splitlines() if str(tmp_path) not in line) <= 100  # a path may be as long as it likes


def test_an_overhead_that_cannot_be_the_cards_is_said(tmp_path, capsys, rows):
    seconds = modelled(CARD, "bf16", rows)(TRUE[None])[:, 0]
    document = json.loads(said(capsys, "calibrate", "--npu", "npu-x", *files(tmp_path, rows, seconds), "--json"))
    [note] = [note for note in document["notes"] if note["code"] == "overhead-of-harness"]
    assert "--clock" in note["fix"]


def test_two_devices_in_two_files_are_refused(tmp_path, capsys, rows):
    code, line = fails(capsys, "calibrate", "--npu", "npu-x", *files(tmp_path, rows, np.ones(80), ("X", "Y")))
    assert code == 1
    assert "--where device=X" in line


@pytest.mark.parametrize("copies", ["0", "x", "1,2,3", "nan"])
def test_copies_are_numbers(tmp_path, capsys, rows, copies):
    code, line = fails(capsys, "calibrate", "--npu", "npu-x", *files(tmp_path, rows, np.ones(80)), "--copies", copies)
    assert code == 2
    assert "6,2" in line


def test_rows_of_a_dtype_the_card_runs_as_another_are_named(tmp_path, capsys, rows):
    seconds = modelled(CARD, "bf16", rows)(TRUE[None])[:, 0]
    paths = files(tmp_path, rows, seconds)
    paths[0].write_text(paths[0].read_text() + "X,gemm,tf32,64,64,64,9\n")
    document = json.loads(said(capsys, "calibrate", "--npu", "npu-x", *paths, "--json"))
    codes = {note["code"] for note in document["notes"]}
    assert codes & {"dtype-not-fitted", "other-dtype", "not-used-to-fit"}


def test_the_estimate_shows_both_rooflines_where_times_are_given(tmp_path, capsys):
    made = table([(Kind.GEMM, Dtype.BF16, (1, 256 + 64 * i, 1024, 1024)) for i in range(30)])
    made = replace(made, measured_s=modelled(CARD, "bf16", made)(TRUE[None])[:, 0])
    lines = [f"gemm,bf16,{','.join(map(str, made.dims[i, 1:4]))},{1e6 * made.measured_s[i]}" for i in range(30)]
    path = tmp_path / "ops.csv"
    path.write_text("\n".join(["op,dtype,M,N,K,latency_us", *lines]) + "\n")
    [found] = json.loads(said(capsys, "estimate", "--npu", "npu-x", path, "--json"))["accuracy"]
    assert 0 <= found["calibrated_roofline"] < found["naive_roofline"] <= 1
    path.write_text("\n".join(["op,dtype,M,N,K,latency_us", *lines[:5]]) + "\n")
    [found] = json.loads(said(capsys, "estimate", "--npu", "npu-x", path, "--json"))["accuracy"]
    assert found["calibrated_roofline"] is None
