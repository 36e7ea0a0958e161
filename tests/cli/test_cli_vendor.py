"""A vendor's table against a trace and against a table of operators, and hardware counters, each in one call of the command line."""

from __future__ import annotations

import csv
import json

import jsonschema
import pytest

from tests.cli.test_cli import fails
from tests.cli.test_cli_operators import said
from tests.study.counter_files import ascend, fractions
from workbench.data import data_path
from workbench.hardware.npu import load_npu
from workbench.study.report import schema

TRACE = data_path("traces", "synthetic_ddp.json.gz")
VENDOR = """Times of a simulator
launch: yes; caches: cold
op,dtype,m,n,k,elements,time_us
gemm,bf16,4096,2048,4096,,200
MatMulV2,bf16,4096,4096,2048,,210
gelu,bf16,,,,8388608,N/A
add,bf16,,,,,50
softmax,bf16,,,,,9
zeta,bf16,,,,77,1
"""


def asked(capsys, *arguments: object) -> dict:
    """The document a run in this process prints, checked against its published schema."""
    document = json.loads(said(capsys, *arguments))
    jsonschema.Draft202012Validator(schema(str(arguments[0]))).validate(document)
    return document


@pytest.fixture
def vendor(tmp_path):
    path = tmp_path / "vendor.csv"
    path.write_text(VENDOR)
    return path


def test_a_trace_with_a_vendors_times(capsys, vendor):
    """Shares by hand from the operators' own totals; the row without a shape may be about the one addition there is."""
    found = asked(capsys, "predict", TRACE, "--npu", "npu-x", "--vendor", vendor, "--json")["traces"][str(TRACE)]
    cover, rows = found["vendor_coverage"], found["operators"]
    totals = {evidence["evidence"]: evidence for evidence in cover["evidence"]}
    stated = [row for row in rows if row["evidence"] == "vendor"]
    assert {row["name"] for row in stated} == {"aten::addmm", "aten::mm"}
    assert {round(row["predicted_s"] * 1e6) for row in stated} == {200, 210}
    assert totals["vendor"]["seconds"] == pytest.approx(sum(row["predicted_total_s"] for row in stated))
    assert totals["vendor"]["operators"] == len(stated) == 4
    assert sum(evidence["share"] for evidence in cover["evidence"]) == pytest.approx(1)
    assert cover["total_s"] == pytest.approx(sum(row["predicted_total_s"] for row in rows))
    assert {row["name"] for row in cover["uncovered"]} == {row["name"] for row in rows if row["evidence"] not in ("vendor", "interpolated")}
    assert (cover["rows"], cover["used"]) == (3, 2)  # zeta prices nothing here
    assert cover["contract"] == {"launch": "yes", "caches": "cold"}
    assert len(cover["not_stated"]) == 4
    lacking = {row["label"]: row for row in cover["incomplete"]}
    assert set(lacking) == {"gelu", "add", "softmax"}
    add = next(row for row in rows if row["name"] == "aten::add")
    assert lacking["add"]["touches"] == 1
    assert lacking["add"]["touched_s"] == pytest.approx(add["predicted_total_s"])
    moved = (50e-6 - add["predicted_s"]) * add["count"]
    assert (lacking["add"]["low_s"] if moved < 0 else lacking["add"]["high_s"]) == pytest.approx(moved)
    gelu = next(row for row in rows if row["name"] == "aten::gelu")
    assert lacking["gelu"]["low_s"] == pytest.approx((gelu["low_s"] - gelu["predicted_s"]) * gelu["count"])
    assert lacking["gelu"]["high_s"] == pytest.approx((gelu["high_s"] - gelu["predicted_s"]) * gelu["count"])
    assert lacking["softmax"]["touches"] == 0
    assert cover["low_s"] <= cover["total_s"] <= cover["high_s"]
    assert cover["step_low_s"] <= found["step_time_s"] <= cover["step_high_s"]
    assert cover["step_high_s"] > cover["step_low_s"]


def test_a_completed_row_lands_within_the_stated_ends(capsys, vendor):
    """Intervention: the addition gets its shape. What was said of the row without one held the answer."""
    before = asked(capsys, "predict", TRACE, "--npu", "npu-x", "--vendor", vendor, "--json")["traces"][str(TRACE)]
    vendor.write_text(VENDOR.replace("add,bf16,,,,,50", "add,bf16,,,,16777216,50"))
    after = asked(capsys, "predict", TRACE, "--npu", "npu-x", "--vendor", vendor, "--json")["traces"][str(TRACE)]
    cover = before["vendor_coverage"]
    assert cover["step_low_s"] * (1 - 1e-9) <= after["step_time_s"] <= cover["step_high_s"] * (1 + 1e-9)
    assert cover["low_s"] * (1 - 1e-9) <= after["vendor_coverage"]["total_s"] <= cover["high_s"] * (1 + 1e-9)
    assert after["step_time_s"] != before["step_time_s"]


def test_a_person_reads_the_coverage(vendor, capsys):
    text = said(capsys, "predict", TRACE, "--npu", "npu-x", "--vendor", vendor, "--vendor-contract", "clock=1.5 GHz,simulator=v2")
    for part in (
        "operator time by evidence",
        "not covered by the vendor",
        "rows without a time or a shape",
        "were they whole",
        "N/A for a time",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_replay_without_a_card_takes_the_times_as_they_are(capsys, vendor):
    found = asked(capsys, "predict", TRACE, "--vendor", vendor, "--json")["traces"][str(TRACE)]
    assert found["npu"] is None
    assert {row["evidence"] for row in found["vendor_coverage"]["evidence"]} == {"measured", "vendor"}


OPS = "op,dtype,m,n,k,rows,cols,elements,latency_us,count\n" + "".join(
    f"gemm,bf16,{m},2048,4096,,,,{m / 20},2\n" for m in (1024, 2048, 4096, 8192)
) + "gelu,bf16,,,,,,8388608,40,3\ngemm,bf16,N/A,,,,,,77,1\nzeta,bf16,1,1,1,,,,23,1\ngemm,bf16,,,,,,,,1\n"  # fmt: skip


def test_operators_with_a_vendors_times(capsys, tmp_path, vendor):
    ops = tmp_path / "ops.csv"
    ops.write_text(OPS)
    found = asked(capsys, "estimate", "--npu", "npu-x", ops, "--vendor", vendor, "--json")
    cover, left = found["vendor_coverage"], found["left_out"]
    assert [row["evidence"] for row in cover["evidence"]] == ["vendor", "model"]
    assert cover["total_s"] == pytest.approx(found["total_s"])
    assert cover["evidence"][0]["seconds"] == pytest.approx(2 * 200e-6)
    assert cover["step_low_s"] is None
    assert {row["label"]: row["touches"] for row in cover["incomplete"]} == {"gelu": 1, "add": 0, "softmax": 0}
    assert (left["rows"], left["without_shape"], left["unnamed"], left["without_time"]) == (3, 2, 1, 1)
    assert left["measured_s"] == pytest.approx(100e-6)
    measured = 2 * sum(m / 20 for m in (1024, 2048, 4096, 8192)) + 3 * 40
    assert left["share"] == pytest.approx(100 / (measured + 100))
    ratios = [row["seconds"] / row["measured_s"] for row in found["operators"] if row["seconds"] and row["measured_s"]]
    assert min(ratios) <= left["low_s"] / 100e-6 <= left["high_s"] / 100e-6 <= max(ratios)


def test_the_contract_acts_on_the_numbers(capsys, tmp_path, vendor):
    """launch=no adds what the card's description states for a launch."""
    ops = tmp_path / "ops.csv"
    ops.write_text("op,dtype,m,n,k\ngemm,bf16,4096,2048,4096\n")
    seconds = []
    for answer in ("launch=yes", "launch=no"):
        found = asked(capsys, "estimate", "--npu", "npu-x", ops, "--vendor", vendor, "--vendor-contract", answer, "--json")
        seconds.append(found["operators"][0]["seconds"])
    assert seconds[0] == pytest.approx(200e-6)
    assert seconds[1] - seconds[0] == pytest.approx(load_npu("npu-x").runtime.launch_overhead, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "text"),
    [(("--vendor-contract", "lunch=yes"), "did you mean 'launch'"), (("--vendor-columns", "dauer=time_us"), "no such column")],
)
def test_refusals(vendor, capsys, options, text):
    for command in (("predict", TRACE), ("estimate", vendor)):
        code, line = fails(capsys, *command, "--npu", "npu-x", "--vendor", vendor, *options)
        assert code == 1
        assert text in line


def test_counters_of_a_profile(capsys, tmp_path):
    """Made of the model, one kernel changed: the row, the sentence, the file."""
    spec = load_npu("ascend-910b2")
    rows = fractions(spec)
    rows[1] = (rows[1][0], {**{name: 0.1 for name in rows[1][1]}, "matrix": 0.93})
    path, out = tmp_path / "op_summary_1.csv", tmp_path / "out.csv"
    path.write_text(ascend(rows))
    found = asked(capsys, "counters", "--npu", "ascend-910b2", path, "--out", out, "--json")
    assert found["disagreements"] == [1]
    assert "counters: matrix busy 0.93" in found["rows"][1]["sentence"]
    with out.open() as file:
        table = list(csv.DictReader(file))
    assert [row["agree"] for row in table] == ["True", "False", "True", "True", "True"]
    assert float(table[0]["counted_matrix"]) == pytest.approx(found["rows"][0]["counters"]["matrix"])


def test_counters_for_a_person(tmp_path, capsys):
    text = said(capsys, "counters", "--npu", "a100-sxm4-80gb", data_path("counters", "nsight_raw.csv"))
    assert "no kernel has shapes" in text.replace("\n", " ")
    assert "matrix busy 0.92" in text
    text = said(capsys, "counters", "--npu", "ascend-910b2", data_path("counters", "ascend_op_summary.csv"), "--json")
    assert json.loads(text)["rows"][3]["counter_bound"] == "scalar"
    assert fails(capsys, "counters", "--npu", "npu-x", TRACE)[0] in (1, 2)
