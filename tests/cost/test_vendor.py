"""Vendor tables: units required, faults named with file, line and column, exact lookup."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cost.tables import table
from workbench.cost.estimate import estimate
from workbench.cost.vendor import CONTRACT, read_vendor
from workbench.cost.vendor_apply import FAR_OFF, TOO_FAST, doubt_notes
from workbench.errors import InvalidSpec, UnreadableInput
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind

ANSWERS = "# launch: yes\n# caches: cold\n# clock: 1.8 GHz\n# layout: yes\n# fusion: none\n# simulator: v3\n"
GOOD = ANSWERS + "kind,dtype,batch,m,n,k,latency_us\ngemm,bf16,1,64,32,16,5.5\nGEMM,fp16,,64,32,16,N/A\ngemm,fp16,1,64,,16,3\n"


def write(tmp_path, text: str):
    path = tmp_path / "vendor.csv"
    path.write_text(text)
    return path


def test_rows_are_found_by_kind_dtype_and_dims(tmp_path):
    vendor = read_vendor(write(tmp_path, GOOD))
    found = vendor.lookup(
        table(
            [(Kind.GEMM, Dtype.BF16, (1, 64, 32, 16)), (Kind.GEMM, Dtype.FP16, (1, 64, 32, 16)), (Kind.GEMM, Dtype.BF16, (1, 64, 32, 17))]
        )
    )
    assert found[0] == pytest.approx(5.5e-6)
    assert np.isnan(found[1:]).all()
    assert [(note.code, note.count) for note in vendor.notes] == [("vendor-rows-left-out", 2)]  # one N/A, one without n
    assert len(vendor) == 1


@pytest.mark.parametrize(
    "text",
    [
        "name,dtype,m,n,k,time_ms\nop0,bf16,64,32,16,0.0055\n",  # framework operator name; batch is 1 when not given
        "op,dtype,B,M,N,K,latency_us\ngemm,bf16,1,64,32,16,5.5\n",  # column names of measured/compute
        'signature,time_ns\n"GEMM|BF16|(1, 64, 32, 16)",5500\n',
        "\n# a title\n\nkind,dtype,m,n,k,duration_s\ngemm,BF16,64,32,16,5.5e-6\n",
        "operator,dtype,m,n,k,latency_us,note\nmatmul,bf16,64,32,16,5.5,warm\n",
    ],
)
def test_layouts_vendors_deliver(tmp_path, text):
    assert read_vendor(write(tmp_path, text)).lookup(table([(Kind.GEMM, Dtype.BF16, (1, 64, 32, 16))]))[0] == pytest.approx(5.5e-6)


def test_an_operators_own_row_goes_before_that_of_its_kind(tmp_path):
    rows = "kind,dtype,m,n,k,latency_us\ngemm,bf16,64,32,16,9\nop0,bf16,64,32,16,5.5\n"
    vendor = read_vendor(write(tmp_path, rows))
    assert vendor.lookup(table([(Kind.GEMM, Dtype.BF16, (1, 64, 32, 16))]))[0] == pytest.approx(5.5e-6)


def test_open_questions_of_the_contract_are_noted(tmp_path):
    notes = read_vendor(write(tmp_path, "# caches: cold\nkind,dtype,m,n,k,latency_us\ngemm,bf16,1,1,1,1\n")).notes
    assert [note.code for note in notes] == ["vendor-contract-open"]
    assert notes[0].count == len(CONTRACT) - 1


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("kind,dtype,m,n,k,latency\ngemm,bf16,1,1,1,1\n", "vendor.csv:1: column 'latency'", "no unit"),
        ("kind,dtype,m,n,k\ngemm,bf16,1,1,1\n", "vendor.csv:1", "no column with a time"),
        ("kind,dtype,m,n,kk,latency_us\ngemm,bf16,1,1,1,1\n", "column 'kk'", "unknown column"),
        ("# launch: yes\n# seen\nkind,dtype,m,n,k,latency_us\ngemm,bf16,1,1,1,fast\n", "vendor.csv:4: column 'latency_us'", "not a number"),
        ("kind,dtype,m,n,k,latency_us\ngemm,bf17,1,1,1,4\n", "vendor.csv:2: column 'dtype'", "unknown dtype"),
        ("kind,dtype,m,n,k,latency_us\ngemm,bf16,1.5,1,1,4\n", "vendor.csv:2: column 'm'", "not a count"),
        ("kind,dtype,m,n,k,latency_us\ngemm,bf16,1,1,1\n", "vendor.csv:2", "5 cells"),
        ("kind,dtype,m,n,k,latency_us,time_ms\n", "vendor.csv:1", "two columns with a time"),
        ("kind,m,n,k,latency_us\n", "vendor.csv:1", "no dtype"),
        ("dtype,m,n,k,latency_us\n", "vendor.csv:1", "which operator"),
        ("", "vendor.csv:1", "empty"),
    ],
)
def test_faults_are_named(tmp_path, text, where, what):
    with pytest.raises(InvalidSpec) as error:
        read_vendor(write(tmp_path, text))
    assert where in error.value.where
    assert what in error.value.what


def test_unreadable_files(tmp_path):
    with pytest.raises(UnreadableInput):
        read_vendor(tmp_path / "none.csv")
    path = tmp_path / "binary.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableInput):
        read_vendor(path)


def test_the_digest_follows_the_content(tmp_path):
    first = read_vendor(write(tmp_path, GOOD)).digest
    assert read_vendor(write(tmp_path, GOOD)).digest == first
    assert read_vendor(write(tmp_path, GOOD.replace("5.5", "5.6"))).digest != first


def test_a_quote_that_is_never_closed_swallows_the_file(tmp_path):
    with pytest.raises(InvalidSpec, match=r"vendor\.csv:\d"):
        read_vendor(write(tmp_path, f'kind,dtype,m,n,k,latency_us\ngemm,bf16,1,1,1,"{"x" * 200_000}"\n'))


@pytest.mark.parametrize("cell", ["-4", "0", "inf", "1e308", "TBD", "#DIV/0!", "—"])
def test_what_is_no_time_of_an_operator_is_left_out_and_said(tmp_path, cell):
    """A time of 1e302 s would overflow the step; 0 stands for "not measured"."""
    vendor = read_vendor(write(tmp_path, f"{ANSWERS}kind,dtype,m,n,k,latency_us\ngemm,bf16,1,1,1,{cell}\ngemm,bf16,2,2,2,3\n"))
    assert len(vendor) == 1
    [note] = vendor.notes
    assert (note.code, note.count) == ("vendor-rows-left-out", 1)
    assert "line 8" in note.text
    [row] = vendor.incomplete
    assert (row.label, row.dims) == ("gemm", {"m": 1, "n": 1, "k": 1})


def test_times_no_card_can_reach_or_far_off_the_model_are_doubted(tmp_path):
    """1024^3 in bf16 at npu-x's 839 TFLOP/s takes 2.6 us: 1 ps and 900 s are doubted, 8 us is not; all are used as stated."""
    rows = "kind,dtype,m,n,k,latency_us\ngemm,bf16,1024,1024,1024,1e-6\ngemm,bf16,1024,1024,2048,9e8\ngemm,bf16,1024,1024,4096,20\n"
    vendor = read_vendor(write(tmp_path, ANSWERS.replace("1.8 GHz", "1.6 GHz") + rows))
    cost = estimate(table([(Kind.GEMM, Dtype.BF16, (1, 1024, 1024, k)) for k in (1024, 2048, 4096)]), [load_npu("npu-x")], vendor=vendor)
    assert cost.seconds[:, 0] == pytest.approx([1e-12, 900.0, 20e-6])
    assert [cost.reasons[code] for code in cost.note_code] == [TOO_FAST, FAR_OFF, ""]
    assert [note.count for note in doubt_notes(cost, vendor.path)] == [1, 1]
