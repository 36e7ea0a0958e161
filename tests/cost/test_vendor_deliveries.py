"""Vendor tables as they arrive, what their contract does to the numbers, and that nothing wrong passes silently."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cost.tables import table
from tests.operators.test_sheet import workbook
from workbench.cost.cost import Evidence
from workbench.cost.estimate import estimate
from workbench.cost.vendor import read_vendor
from workbench.errors import InvalidSpec, WorkbenchError
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind

GEMM = (Kind.GEMM, Dtype.BF16, (1, 64, 32, 16))


def write(tmp_path, text: str, name: str = "vendor.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "Op Type,Data Type,Input Shapes,Output Shapes,Task Duration(us)\nMatMulV3,DT_BF16;DT_BF16,\"64,16;32,16\",\"64,32\",5.5\n",
        "operator;precision;M,N,K;latency [ms]\nMatMul;bfloat16;M64N32K16;0,0055\n",
        "Acme report\nclock: 1 GHz\n\nop,dtype,m,n,k,cycles\naclnnMm,BF16,64,32,16,5500\n",
        "op\tdtype\tshape\ttime\n\t\t\tus\ndot_general\tbf16\tbf16[64,16]{1,0} bf16[16,32]{1,0}\t5.5\n",
        "kernel name,dtype,m,n,k,mean_us,min_us\nampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn,bf16,64,32,16,5.5,4\n",
        "op,dtype,m,n,k,time\nlinear,torch.bfloat16,64,32,16,5.5 us\n",
        "op,dtype,m,n,k,time_us\nbmm,bf16,64,32,16,5.5\n",  # a batch of one is a product
        "\u7b97\u5b50\u7c7b\u578b,\u6570\u636e\u7c7b\u578b,m,n,k,\u8017\u65f6(us)\nMatMulV2,BF16,64,32,16,5.5\n",
    ],
)  # fmt: skip
def test_spellings_of_one_time(tmp_path, text):
    """5.5 us for 64 x 32 x 16 in bf16; at 1 GHz 5 500 cycles are 5.5 us."""
    assert read_vendor(write(tmp_path, text)).lookup(table([GEMM]))[0] == pytest.approx(5.5e-6)


def test_sheets_by_kind_with_merged_names(tmp_path):
    head = ["op", "dtype", "m", "n", "k", "time_us"]
    path = workbook(
        tmp_path / "v.xlsx",
        {"GEMM": [head, ["gemm", "bf16", "64", "32", "16", "5.5"], ["", "fp16", "64", "32", "16", "6"]],
         "Softmax": [["op", "dtype", "rows", "cols", "time_us"], ["softmax", "bf16", "8", "9", "7"]],
         "Legend": [["op", "meaning"], ["gemm", "a product"]]},
        merged={"GEMM": ["A2:A3"]},
    )  # fmt: skip
    found = read_vendor(path)
    rows = [GEMM, (Kind.GEMM, Dtype.FP16, (1, 64, 32, 16)), (Kind.SOFTMAX, Dtype.BF16, (8, 9))]
    assert found.lookup(table(rows)) == pytest.approx([5.5e-6, 6e-6, 7e-6])
    assert "vendor-sheets-not-read" in {note.code for note in found.notes}


def test_names_left_blank_are_those_above(tmp_path):
    found = read_vendor(write(tmp_path, "op,dtype,m,n,k,time_us\ngemm,bf16,64,32,16,5.5\n,fp16,64,32,16,6\n"))
    assert len(found) == 2
    assert ("vendor-names-filled", 1) in [(note.code, note.count) for note in found.notes]


def test_of_several_times_the_median(tmp_path):
    found = read_vendor(write(tmp_path, "op,dtype,m,n,k,time_us\n" + "".join(f"gemm,bf16,64,32,16,{t}\n" for t in (5, 9, 6))))
    assert found.lookup(table([GEMM]))[0] == pytest.approx(6e-6)
    [note] = [note for note in found.notes if note.code == "vendor-duplicates"]
    assert "1.8x apart" in note.text


def test_two_devices_are_refused(tmp_path):
    with pytest.raises(InvalidSpec, match="2 devices: A, B"):
        read_vendor(write(tmp_path, "device,op,dtype,m,n,k,time_us\nA,gemm,bf16,1,1,1,1\nB,gemm,bf16,1,1,1,2\n"))


@pytest.mark.parametrize(
    ("header", "what", "fix"),
    [
        ("op,dtype,m,n,k,time", "no unit", "time=time_us"),
        ("op,dtype,m,n,k,cycles", "without a clock", "--vendor-contract clock="),
        ("op,dtype,m,n,k,tflops", "no column with a time", "NAME=time_us"),
    ],
)
def test_a_unit_is_required_and_the_remedy_named(tmp_path, header, what, fix):
    with pytest.raises(InvalidSpec) as error:
        read_vendor(write(tmp_path, f"{header}\ngemm,bf16,1,1,1,5\n"))
    assert what in error.value.what
    assert fix in error.value.fix


def test_a_decimal_comma_that_may_be_a_thousand_is_refused(tmp_path):
    """1,234 is 1.234 or 1234: another number of the sheet tells, or nobody can."""
    text = 'op,dtype,m,n,k,time_us\ngemm,bf16,64,32,16,"1,234"\n'
    with pytest.raises(InvalidSpec, match="decimal comma or a thousands"):
        read_vendor(write(tmp_path, text))
    told = read_vendor(write(tmp_path, text + 'gemm,bf16,65,32,16,"5,5"\n'))
    assert told.lookup(table([GEMM]))[0] == pytest.approx(1.234e-6)
    told = read_vendor(write(tmp_path, text + "gemm,bf16,65,32,16,5.5\n"))
    assert told.lookup(table([GEMM]))[0] == pytest.approx(1234e-6)


ANSWERS = {"launch": "yes", "caches": "cold", "clock": "1.8 GHz", "layout": "yes", "fusion": "none", "simulator": "v3"}
TABLE = "op,dtype,m,n,k,time_us\ngemm,bf16,64,32,16,5.5\n"


def test_answers_in_titles_beside_the_table_and_by_the_user(tmp_path):
    """Later ones go before earlier ones."""
    path = write(tmp_path, "# launch: no; caches: warm\n# Frequency = 1.0 GHz\n" + TABLE)
    assert read_vendor(path).contract.answers == {"launch": "no", "caches": "warm", "clock": "1.0 GHz"}
    write(tmp_path, "clock: 1.2 GHz\nlayout: false\n", "vendor.contract.yaml")
    found = read_vendor(path, contract={"clock": "1.4 GHz"}).contract
    assert (found.launch, found.clock, found.answers["layout"]) == (False, 1.4e9, "no")
    assert found.open == ("fusion", "simulator")
    codes = {note.code for note in read_vendor(path).notes}
    assert {"vendor-contract-open", "vendor-caches-warm", "vendor-without-launch", "vendor-no-layout"} <= codes


@pytest.mark.parametrize(
    ("asked", "what"),
    [({"lunch": "yes"}, "no such question"), ({"launch": "maybe"}, "neither yes nor no"), ({"clock": "1.4"}, "not a clock"),
     ({"caches": "tepid"}, "neither cold nor warm")],
)  # fmt: skip
def test_answers_that_cannot_be_are_refused(tmp_path, asked, what):
    with pytest.raises(InvalidSpec, match=what):
        read_vendor(write(tmp_path, TABLE), contract=asked)


def test_an_unclear_comment_is_an_open_question(tmp_path):
    found = read_vendor(write(tmp_path, "# launch: see page 3\n" + TABLE))
    assert "launch" in found.contract.open
    assert "vendor-contract-unclear" in {note.code for note in found.notes}


def priced(tmp_path, spec, rows, **asked):
    text = "op,dtype,m,n,k,time_us\n" + "".join(f"gemm,bf16,{m},{n},{k},{t}\n" for m, n, k, t in rows)
    ops = table([(Kind.GEMM, Dtype.BF16, (1, m, n, k)) for m, n, k, _ in rows])
    cost = estimate(ops, [spec], vendor=read_vendor(write(tmp_path, text), contract=ANSWERS | {"clock": f"{spec.clock:.0f} Hz"} | asked))
    assert (cost.evidence == Evidence.VENDOR).all()
    return cost


def test_times_without_launch_get_the_cards(tmp_path):
    """The card states its overhead: exactly that much is added, nothing where the launch is in."""
    spec = load_npu("npu-x")
    rows = [(64, 32, 16, 5.5), (4096, 4096, 4096, 500.0)]
    assert priced(tmp_path, spec, rows).seconds[:, 0] == pytest.approx([5.5e-6, 500e-6])
    added = priced(tmp_path, spec, rows, launch="no").seconds[:, 0] - [5.5e-6, 500e-6]
    assert added == pytest.approx([spec.runtime.launch_overhead] * 2, rel=1e-3)


def test_a_clock_moves_what_computes_and_leaves_what_memory_bounds(tmp_path):
    """A large product takes 1 / clock; a product of one row waits for HBM, whose bandwidth has no clock of the core."""
    spec = load_npu("npu-x")
    rows = [(8192, 8192, 8192, 900.0), (1, 16384, 16384, 400.0)]
    half = f"{spec.clock / 2:.0f} Hz"
    cost = priced(tmp_path, spec, rows, clock=half)
    assert cost.seconds[0, 0] == pytest.approx(450e-6, rel=0.03)
    assert cost.seconds[1, 0] == pytest.approx(400e-6, rel=0.1)
    assert "moved to the card's clock" in cost.reasons[cost.note_code[0]]
    assert priced(tmp_path, spec, rows).seconds[:, 0] == pytest.approx([900e-6, 400e-6])


def test_the_digest_follows_answers_and_column_map(tmp_path):
    path = write(tmp_path, TABLE)
    digests = {read_vendor(path).digest, read_vendor(path, contract={"launch": "no"}).digest, read_vendor(path, {"m": "M"}).digest}
    assert len(digests) == 3


name = st.sampled_from(
    ["op", "dtype", "m", "n", "k", "time_us", "time", "cycles", "shape", "rows", "cols", "device", "clock (GHz)", "signature", "x"]
)
value = st.one_of(
    st.sampled_from(["gemm", "aten::mm", "softmax", "bf16", "DT_BF16", "fp7", "1", "64", "1,128;128,64", "M1N2K3", "-3", "0", "N/A", "5,5",
                     "1,234", "1e400", "", "5.5 us", "inf", "Total", "conv2d", "BNSD"]),
    st.text(max_size=6),
)  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(name, min_size=1, max_size=7), st.lists(st.lists(value, max_size=7), max_size=5), st.sampled_from([",", ";"]))
def test_no_table_gives_a_traceback_or_an_impossible_time(tmp_path, header, rows, mark):
    quoted = [mark.join('"' + cell.replace('"', "'") + '"' for cell in row) for row in (header, *rows)]
    with suppress(WorkbenchError):
        found = read_vendor(write(tmp_path, "\n".join(quoted)))
        times = np.array([*found.exact.values(), *found.signed.values()])
        assert ((times > 0) & (times <= 1e6)).all()
        assert found.notes or len(found)


def test_answers_that_contradict_each_other_count_as_none(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("# launch: yes\n# launch: no\n# caches: cold\n# caches: Cold\nkind,dtype,m,n,k,latency_us\ngemm,bf16,8,8,8,90\n")
    found = read_vendor(path)
    assert "launch" in found.contract.open
    assert found.contract.answers["caches"] == "Cold"
    assert "yes and no" in next(note.text for note in found.notes if note.code == "vendor-contract-unclear")
