"""Utilisation: by hand, through the command line and in Python, and never above 1 but where a transform does less arithmetic."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench import estimate, list_operators, load_npu
from workbench.cli import main
from workbench.cost import estimate as pricing
from workbench.cost.choices import Choices
from workbench.cost.utilisation import utilisation
from workbench.operators.table import Dtype, Kind

ROWS = """op,dtype,M,N,K,rows,cols,batch,heads,queries,keys,head_dim
gemm,bf16,4096,12288,4096,,,,,,,
gemm,bf16,1,12288,4096,,,,,,,
attention,bf16,,,,,,1,32,4096,4096,128
attention,bf16,,,,,,1,32,1,4096,128
softmax,bf16,,,,4096,4096,,,,,
"""
LAYER = {"op": "conv", "dtype": "fp16", "N": 16, "C": 512, "H": 56, "W": 56, "K": 512, "R": 3, "S": 3, "pad_h": 1, "pad_w": 1}


def ran(path, *options: str) -> dict:
    run = [sys.executable, "-m", "workbench.cli", "estimate", "--npu", "npu-x", str(path), "--json", *options]
    return json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def test_products_below_sixty_percent_in_one_call(tmp_path):
    """Two FLOPs a multiply-add over the card's peak, by hand; batch 1 is far below, softmax is no product."""
    path, out = tmp_path / "ops.csv", tmp_path / "out.csv"
    path.write_text(ROWS)
    every, few = ran(path), ran(path, "--below", "0.6", "--out", str(out))
    spec = load_npu("npu-x")
    first = every["operators"][0]
    peak = 2 * spec.matrix.macs_per_cycle * spec.matrix.rate["bf16"] * spec.cores * spec.clock
    assert first["utilisation"] == pytest.approx(2 * 4096 * 12288 * 4096 / first["seconds"] / peak)
    assert first["bandwidth_share"] == pytest.approx(first["bytes"]["memory"] / first["seconds"] / spec.memory["hbm"].bandwidth)
    assert [row["unit"] for row in every["operators"]] == ["matrix"] * 4 + ["vector"]
    wanted = [row for row in every["operators"][:4] if row["utilisation"] < 0.6]
    assert few["operators"] == wanted
    assert {3, 5} <= {row["line"] for row in wanted} and 2 not in {row["line"] for row in wanted}
    assert few["total_s"] == every["total_s"]
    share = sum(row["seconds"] for row in wanted) / every["total_s"]
    assert few["below"] == {"limit": 0.6, "rows": len(wanted), "products": 4, "time_share": pytest.approx(share)}
    with out.open() as file:
        assert [float(row["utilisation"]) for row in csv.DictReader(file)] == [row["utilisation"] for row in wanted]
    found = estimate(str(path), spec)
    assert found["utilisation"].values.tolist() == [row["utilisation"] for row in every["operators"]]
    assert found["bandwidth_share"].values.tolist() == [row["bandwidth_share"] for row in every["operators"]]


@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(1, 4000), st.sampled_from(("a100-sxm4-80gb", "ascend-910b2", "npu-x", "t4")))
def test_shares_lie_between_nothing_and_all(m, n, k, name):
    rows = table([(Kind.GEMM, Dtype.FP16, (1, m, n, k)), (Kind.SOFTMAX, Dtype.FP16, (m, n)), (Kind.ELEMENTWISE, Dtype.FP32, (m * n,))])
    spec = load_npu(name)
    used = utilisation(rows, pricing.estimate(rows, [spec]), [spec])
    for share in (used.compute, used.memory):
        assert ((share >= 0) & (share <= 1 + 1e-9)).all()


def test_pruned_products_count_what_they_execute():
    rows, spec = table([(Kind.GEMM, Dtype.BF16, (1, 8192, 8192, 8192))]), load_npu("a100-sxm4-80gb")
    cost = pricing.estimate(rows, [spec], choices=Choices(sparse=True))
    used = utilisation(rows, cost, [spec], sparse=True).compute[0, 0]
    assert used == pytest.approx(8192.0**3 / cost.seconds[0, 0] / spec.unit_peak("matrix", "bf16"))
    assert 0 < used <= 1


def test_what_takes_no_time_uses_nothing_that_can_be_told():
    rows, spec = table([(Kind.GEMM, Dtype.BF16, (1, 0, 8, 8)), (Kind.UNKNOWN, Dtype.BF16, ())]), load_npu("npu-x")
    assert np.isnan(utilisation(rows, pricing.estimate(rows, [spec]), [spec]).compute).all()


@pytest.mark.parametrize("algorithm", ["cheapest", "implicit", "winograd2", "winograd4"])
def test_the_algorithm_of_a_convolution_is_said_and_both_doors_agree(tmp_path, algorithm):
    path = tmp_path / "layers.csv"
    rows = [LAYER, {**LAYER, "op": "conv_backward"}]
    path.write_text("\n".join([",".join(LAYER), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    said = ran(path, "--convolution", algorithm)["operators"]
    found = estimate(list_operators(rows), "npu-x", algorithm=algorithm)
    assert found["seconds"].values.tolist() == [row["seconds"] for row in said]
    assert found["algorithm"].values.tolist() == [row["algorithm"] for row in said]
    names = [name for row in said for name in row["algorithm"].split("+")]
    assert len(names) == 3  # two gradients, one after the other
    if algorithm == "cheapest":
        every = {name: float(estimate(list_operators(rows), "npu-x", algorithm=name)["seconds"][0]) for name in ("implicit", "winograd4")}
        assert every.get(names[0], -1.0) == said[0]["seconds"]
    else:
        assert names[0] == algorithm


def test_the_total_of_a_list_of_some_is_said_to_be_of_all(tmp_path, capsys):
    path = tmp_path / "ops.csv"
    path.write_text(ROWS)
    for options, said in (((), "in 5 rows"), (("--below", "0.6"), "in all rows")):
        with pytest.raises(SystemExit) as ended:
            main(["estimate", "--npu", "npu-x", str(path), *options])
        assert ended.value.code in (0, None)
        assert said in " ".join(capsys.readouterr().out.split())
