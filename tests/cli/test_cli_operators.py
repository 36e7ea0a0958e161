"""``workbench estimate`` and ``workbench calibrate``, through the command line."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from tests.cli.test_cli import answer, fails
from tests.cost.tables import table
from workbench.cli import main
from workbench.cost.estimate import estimate
from workbench.cost.predictors import modelled
from workbench.cost.stack import PARTS
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind
from workbench.study.operators_csv import read_operators

OPS = """op,dtype,M,N,K,rows,cols,latency_us
gemm,bf16,4096,4096,4096,,,250
gemm,bf16,N/A,4096,4096,,,10
softmax,bf16,,,,8192,1024,30
gemm,fp32,0,64,64,,,
whatever,bf16,1,1,1,,,3
"""


def said(capsys, *arguments: object) -> str:
    """What a run in this process prints; it must end well."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert ended.value.code == 0, err
    return out


@pytest.fixture
def ops(tmp_path):
    path = tmp_path / "ops.csv"
    path.write_text(OPS)
    return path


def test_one_row_in_one_row_out(run, ops, tmp_path):
    out = tmp_path / "out.csv"
    document = answer(run("estimate", "--npu", "npu-x", ops, "--out", out, "--json"), "estimate")
    rows = document["operators"]
    assert [row["line"] for row in rows] == [2, 3, 4, 5, 6]
    assert [row["seconds"] is None for row in rows] == [False, True, False, False, True]
    assert rows[1]["note"] == "no value for m"
    assert rows[4]["note"] == "no rule knows the operator 'whatever'"
    cost = estimate(read_operators(ops).table, [load_npu("npu-x")])
    assert [row["seconds"] for row in rows if row["seconds"] is not None] == cost.seconds[:, 0].tolist()
    assert rows[0]["error"] == pytest.approx(rows[0]["seconds"] / 250e-6 - 1)
    assert sum(rows[0]["stack"].values()) == pytest.approx(1)
    assert tuple(rows[0]["stack"]) == PARTS
    assert rows[3]["seconds"] == 0  # an empty expert costs nothing and divides into nothing
    assert rows[3]["stack"] is None
    assert document["total_s"] == pytest.approx(sum(row["seconds"] or 0 for row in rows))
    assert {(found["kind"], found["rows"]) for found in document["accuracy"]} == {("gemm", 1), ("softmax", 1)}
    with out.open() as file:
        table = list(csv.DictReader(file))
    assert [row["line"] for row in table] == ["2", "3", "4", "5", "6"]
    assert float(table[0]["share_matrix"]) == rows[0]["stack"]["matrix"]
    assert float(table[0]["memory_bytes"]) == rows[0]["bytes"]["memory"]
    assert table[1]["seconds"] == ""


def test_two_tilings_can_be_compared(ops, capsys):
    """Bytes of a tile with the shared level by hand: every tile reads tm + tn rows of K, two cores share a read (multicast 2)."""
    found = {}
    for tile, staged in (("128x256x64", 2 * (128 + 256) * 64 * 2), ("256x128x32", 2 * (256 + 128) * 32 * 2)):
        document = json.loads(said(capsys, "estimate", "--npu", "npu-x", "--set", "memory.l1.size=512 KiB", ops, "--tile", tile, "--json"))
        row = document["operators"][0]
        fresh = 4096 / 128 * 4096 / 256 * (128 + 256) * 4096 * 2
        assert row["bytes"]["local"] == fresh
        assert row["bytes"]["shared"] == fresh / 2 + 4096 * 4096 * 2
        [l1] = [held for held in document["buffers"] if held["level"] == "l1" and held["dtype"] == "bf16"]
        assert (l1["used_bytes"], l1["size_bytes"], l1["copies"]) == (staged, 512 * 1024, 2)
        found[tile] = row["seconds"]
    best = json.loads(said(capsys, "estimate", "--npu", "npu-x", "--set", "memory.l1.size=512 KiB", ops, "--json"))["operators"][0][
        "seconds"
    ]
    assert min(found.values()) >= best


def test_the_chosen_tile_is_listed_by_row(ops, capsys):
    """What cores read is that of the tile listed, by hand: every tile reads tm + tn rows of K."""
    chosen = json.loads(said(capsys, "estimate", "--npu", "npu-x", ops, "--json"))["operators"]
    assert [row["tile"] is None for row in chosen] == [False, True, True, True, True]
    rows, columns = map(int, chosen[0]["tile"].split("x"))
    assert chosen[0]["bytes"]["local"] == 4096 / rows * 4096 / columns * (rows + columns) * 4096 * 2
    assert f"tile {rows}x{columns}" in said(capsys, "estimate", "--npu", "npu-x", ops)


def test_a_person_sees_stack_and_notes(ops, capsys):
    text = said(capsys, "estimate", "--npu", "npu-x", ops)
    assert "matrix " in text
    assert "no value for m" in text
    assert "against the measured times" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--tile", "128"), 1, "not a tile"),
        (("--tile", "4096x4096x64"), 1, "in l0c"),
        (("--columns", "M"), 2, "NAME=VALUE"),
        (("--where", "device=A100"), 1, "no such column"),
        (("--dtype", "bf61"), 1, "unknown dtype"),
        (("--out", "/nowhere/at/all.csv"), 2, "cannot be written"),
        (("--set", "memory.hbm.bandwidth=3"), 1, "no unit"),
    ],
)
def test_refusals(ops, capsys, options, code, text):
    found, line = fails(capsys, "estimate", "--npu", "npu-x", ops, *options)
    assert found == code
    assert text in line


def test_a_vendors_table_under_other_names(tmp_path, capsys):
    """Stated, between and beyond; what matches nothing is listed."""
    ops, vendor = tmp_path / "ops.csv", tmp_path / "vendor.csv"
    ops.write_text("op,dtype,M,N,K\n" + "".join(f"gemm,bf16,{m},512,512\n" for m in (128, 192, 256, 8192)))
    vendor.write_text(
        "what;type;M;N;K;dauer\n" + "".join(f"MatMulV2;half;{m};512;512;{m / 20}\n".replace("half", "bf16") for m in (128, 256, 300))
    )
    names = "what=op,type=dtype,dauer=time_us"
    document = json.loads(said(capsys, "estimate", "--npu", "npu-x", ops, "--vendor", vendor, "--vendor-columns", names, "--json"))
    assert [row["evidence"] for row in document["operators"]] == ["vendor", "interpolated", "vendor", "model"]
    assert document["operators"][1]["seconds"] == pytest.approx(192 / 20 * 1e-6)
    assert document["operators"][1]["stack"] is None  # no model of a stated time
    assert sum(document["evidence_share"].values()) == pytest.approx(1)
    [note] = [note for note in document["notes"] if note["code"] == "vendor-rows-unmatched"]
    assert note["count"] == 1
    assert "300" in note["text"]


def measured(path, device: str = "X", scalars=(0.71, 0.63, 5e-6), noise: float = 0.05) -> None:
    """Write products whose times are the model's with known scalars, blurred by a known noise."""
    random = np.random.default_rng(3)
    shape = np.c_[np.ones(60), np.round(2 ** random.uniform(4, 13, (60, 3)))]
    rows = table([(Kind.GEMM, Dtype.BF16, tuple(extents)) for extents in shape.astype(int).tolist()])
    seconds = modelled(load_npu("npu-x"), "bf16", rows)(np.array([scalars]))[:, 0] * np.exp(random.uniform(-noise, noise, 60))
    lines = [f"{device},gemm,bf16,{m:.0f},{n:.0f},{k:.0f},{1e6 * t}" for (_, m, n, k), t in zip(shape, seconds, strict=True)]
    path.write_text("\n".join(["device,op,dtype,M,N,K,latency_us", *lines, f"{device},softmax,bf16,,,,4"]) + "\n")


def test_calibration_finds_the_scalars_and_carries_its_error_into_predictions(run, tmp_path, capsys):
    data, out = tmp_path / "measured.csv", tmp_path / "card.yaml"
    measured(data)
    document = answer(run("calibrate", "--npu", "npu-x", data, "--out", out, "--json"), "calibrate")
    [fit] = document["fits"]
    assert (fit["compute"], fit["memory"]) == (pytest.approx(0.71, rel=0.06), pytest.approx(0.63, rel=0.06))
    assert fit["launch_s"] == pytest.approx(5e-6, rel=0.06)
    assert fit["model"]["mape"] < fit["calibrated_roofline"]["mape"] < fit["naive_roofline"]["mape"]
    assert fit["skill"][0] > 0
    [kind] = fit["kinds"]
    row = json.loads(said(capsys, "estimate", "--npu", out, data, "--json"))["operators"][0]
    assert row["high_s"] / row["seconds"] == pytest.approx(1 + kind["high"], abs=1e-3)
    assert row["low_s"] / row["seconds"] == pytest.approx(1 + kind["low"], abs=1e-3)
    assert -0.05 < kind["low"] < 0 < kind["high"] < 0.05  # the noise is uniform within 5 %: 80 % of it lies within 4 %
    assert abs(row["error"]) < 0.15


def test_calibration_refuses_what_it_cannot_fit(tmp_path, capsys):
    data = tmp_path / "measured.csv"
    measured(data)
    data.write_text(data.read_text() + "Y,gemm,bf16,1,1,1,5\n")
    code, line = fails(capsys, "calibrate", "--npu", "npu-x", data)
    assert code == 1
    assert "--where device=X" in line
    assert "bf16" in said(capsys, "calibrate", "--npu", "npu-x", data, "--where", "device=X")
    data.write_text("op,dtype,M,N,K,latency_us\ngemm,bf16,1,1,1,5\n")
    code, line = fails(capsys, "calibrate", "--npu", "npu-x", data)
    assert code == 1
    assert "at least 20" in line
    data.write_text("op,dtype,M,N,K\ngemm,bf16,1,1,1\n")
    assert fails(capsys, "calibrate", "--npu", "npu-x", data)[0] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--copies", "nan"), "finite"),
        (("--copies", "inf"), "finite"),
        (("--top", "-1"), "x>=0"),
        (("--vendor-contract", "launch=no"), "--vendor"),
        (("--vendor-columns", "dauer=time_us"), "--vendor"),
    ],
)
def test_options_that_say_nothing_are_refused(capsys, ops, options, said):
    """They would be dropped silently, or reach the model as nan."""
    code, line = fails(capsys, "estimate", "--npu", "npu-x", ops, *options)
    assert code == 2
    assert said in line
