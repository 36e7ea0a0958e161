"""Hardware counters beside the model: counters made of the model agree with it, a changed one is named, damage is refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.study.counter_files import ASCEND, OPS, RAW, ascend, fractions, nsight, nsight_details, operators_csv
from workbench.data import data_path
from workbench.errors import InvalidSpec, Refused, WorkbenchError
from workbench.hardware.npu import load_npu
from workbench.operators.counters import UNITS, read_counters
from workbench.study.counters import compare_counters, write_counters
from workbench.study.operators_csv import read_operators
from workbench.study.verdict import verdict


def write(tmp_path, text: str, name: str = "op_summary.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def spec():
    return load_npu("ascend-910b2")


def compared(tmp_path, spec, text: str, **options):
    return compare_counters(read_counters(write(tmp_path, text)), spec, **options)


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_counters_made_of_the_model_agree_with_it(tmp_path, spec, share):
    """Ratios are of a core's own time: scaled by core time over duration they are the model's fractions again."""
    found = compared(tmp_path, spec, ascend(fractions(spec), share))
    assert found.agree_share == 1.0
    assert found.disagreements == []
    assert found.units == ["matrix", "vector", "scalar", "local", "transfer"]
    for row, (seconds, busy) in zip(found.rows, fractions(spec), strict=True):
        assert row.measured_s == pytest.approx(seconds, rel=1e-6)
        assert row.model_s == pytest.approx(seconds, rel=1e-6)
        assert row.error == pytest.approx(0, abs=1e-6)
        assert row.counters["transfer"] == pytest.approx(max(busy["shared"], busy["memory"]), rel=1e-6)
    assert found.rows[0].counters["matrix"] == pytest.approx(fractions(spec)[0][1]["matrix"], rel=1e-6)


@pytest.mark.parametrize("at", range(len(OPS)))
def test_a_changed_counter_is_named(tmp_path, spec, at):
    """One kernel's busiest unit is swapped for another that works all the time: that row, and only that row, disagrees."""
    rows = fractions(spec)
    seconds, busy = rows[at]
    cube = "M" in OPS[at]
    other = "matrix" if max(busy, key=busy.get) != "matrix" and cube else "vector" if not cube else "memory"
    rows[at] = (seconds, {**{name: 0.1 for name in busy}, other: 0.97})
    found = compared(tmp_path, spec, ascend(rows))
    assert found.disagreements == [at]
    row = found.rows[at]
    named = "transfer" if other == "memory" else other
    assert row.counter_bound == named
    assert f"{named} busy 0.97" in row.sentence
    assert f"model says {row.model_bound}-bound" in row.sentence
    assert found.agree_share == pytest.approx(1 - seconds / sum(s for s, _ in rows))


def test_an_idle_kernel_waits(tmp_path, spec):
    rows = fractions(spec)
    rows[0] = (rows[0][0], dict.fromkeys(rows[0][1], 0.05))
    row = compared(tmp_path, spec, ascend(rows)).rows[0]
    assert (row.counter_bound, row.agree) == ("waiting", False)
    assert "no unit busier than 0.05" in row.sentence


def test_kinds_are_weighted_by_time(tmp_path, spec):
    """By hand: two products of known fractions, the longer one counts as its time says."""
    rows = fractions(spec)
    found = {kind.kind: kind for kind in compared(tmp_path, spec, ascend(rows)).kinds}
    (t0, b0), (t1, b1) = rows[:2]
    assert found["gemm"].counters["matrix"] == pytest.approx((t0 * b0["matrix"] + t1 * b1["matrix"]) / (t0 + t1))
    assert found["gemm"].measured_s == pytest.approx(t0 + t1)
    assert sum(kind.share for kind in found.values()) == pytest.approx(1)


@pytest.mark.parametrize("page", [nsight, nsight_details])
def test_nsight_compute_with_the_operators_of_its_kernels(tmp_path, page):
    """ncu knows no shapes: operators in the order of the launches give the model its side."""
    spec = load_npu("a100-sxm4-80gb")
    ops = read_operators(write(tmp_path, operators_csv(), "ops.csv"))
    found = compared(tmp_path, spec, page(fractions(spec)), operators=ops)
    assert (found.tool, len(found.rows)) == ("nsight", len(OPS))
    assert found.agree_share == 1.0
    for row, (seconds, busy) in zip(found.rows, fractions(spec), strict=True):
        assert row.measured_s == pytest.approx(seconds, rel=1e-3)
        assert row.counters["memory"] == pytest.approx(busy["memory"], rel=1e-6)
    if page is nsight:  # 1,234.5 Mbyte; read bytes are part of all bytes
        assert found.rows[0].rate["memory"] == pytest.approx(1234.5e6 / fractions(spec)[0][0], rel=1e-3)


def test_nsight_compute_without_shapes_shows_counters_alone(tmp_path):
    spec = load_npu("a100-sxm4-80gb")
    found = compared(tmp_path, spec, nsight(fractions(spec)))
    assert {row.kind for row in found.rows} == {"gemm", "softmax", "norm", "elementwise"}  # by the kernels' names
    assert all(row.model_s is None and row.agree is None and row.counter_bound for row in found.rows)
    assert "counters-without-shapes" in {note.code for note in found.notes}


def test_kernels_are_matched_by_a_column_of_names(tmp_path):
    spec = load_npu("a100-sxm4-80gb")
    ops = read_operators(write(tmp_path, "op,dtype,M,N,K,kernel\ngemm,fp16,4096,4096,4096,sm80_xmma\n", "ops.csv"))
    found = compared(tmp_path, spec, nsight(fractions(spec)), operators=ops)
    assert [row.model_s is None for row in found.rows] == [False, False, True, True, True]
    assert ("kernels-unmatched", 3) in [(note.code, note.count) for note in found.notes]
    other = read_operators(write(tmp_path, "op,dtype,M,N,K\ngemm,fp16,1,1,1\n", "two.csv"))
    with pytest.raises(Refused, match="cannot be matched"):
        compared(tmp_path, spec, nsight(fractions(spec)), operators=other)


HEAD = "Name,Type,Duration(us),Input Shapes,Input Data Types,Output Shapes"
ROW = 'a,MatMul,10,"64,64;64,64",FLOAT16,"64,64"'


@pytest.mark.parametrize(
    ("columns", "cells", "unit", "value"),
    [
        ("mac_ratio,aicore_time(us)", "0.8,5", "matrix", 0.4),  # 910A: one core, names without a prefix
        ("aic_mac_ratio_extra", "0.8", "matrix", 0.8),
        ("aic_cube_ratio", "0.8", "matrix", 0.8),  # msopprof
        ("aic_mac_time(us)", "4", "matrix", 0.4),
        ("aic_mac_fp16_ratio,aic_mac_int8_ratio", "0.5,0.2", "matrix", 0.7),  # ArithmeticUtilization: kinds of instructions add up
        ("aiv_vec_fp32_ratio,aiv_vec_misc_ratio,aiv_time(us)", "0.5,0.1,10", "vector", 0.6),
        ("aic_mte2_ratio,aic_fixpipe_ratio", "0.3,0.6", "transfer", 0.6),  # engines beside each other: the busiest
        ("aiv_scalar_ratio", "0.9", "scalar", 0.9),
        ("aic_mte1_ratio", "12.5%", "local", 0.125),
    ],
)
def test_spellings_of_pmu_columns(tmp_path, columns, cells, unit, value):
    found = read_counters(write(tmp_path, f"{HEAD},{columns}\n{ROW},{cells}\n"))
    assert found.busy[0, UNITS.index(unit)] == pytest.approx(value)
    assert not found.notes


def test_bandwidth_and_operations(tmp_path, spec):
    """10 us: 100 + 50 GB/s; 2 x 64^3 operations of the shape, twice as many counted."""
    columns, cells = "aic_main_mem_read_bw(GB/s),aic_main_mem_write_bw(GB/s),aic_cube_fops,cube_utilization(%)", f"100,50,{4 * 64**3},40"
    found = compared(tmp_path, spec, f"{HEAD},{columns}\n{ROW},{cells}\n")
    assert found.rows[0].rate["memory"] == 150e9
    assert found.rows[0].flops_rate == pytest.approx(4 * 64**3 / 10e-6)
    [note] = [note for note in found.notes if note.code == "counted-work-differs"]
    assert "2 times" in note.text


def test_columns_nobody_knows_are_listed(tmp_path):
    found = read_counters(write(tmp_path, f"{HEAD},mac_ratio,warp_factor\n{ROW},0.5,9\n"))
    [note] = found.notes
    assert (note.code, note.count) == ("counters-unknown", 1)
    assert "warp_factor" in note.text


@pytest.mark.parametrize(
    ("text", "error", "what"),
    [
        (f"{HEAD}\n{ROW}\n", Refused, "no column is a hardware counter"),
        (f"{HEAD},mac_ratio\n{ROW},87\n", InvalidSpec, "busy 87 times"),  # a percentage without its sign
        (f"{HEAD},mac_ratio\n{ROW},-0.1\n", InvalidSpec, "not a count"),
        (f"{HEAD},mac_ratio\n{ROW},much\n", InvalidSpec, "not a number"),
        ('"ID","Kernel Name","dram__throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum"\n"0","k","5","7"\n',
         InvalidSpec, "no unit"),
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_refused(tmp_path, text, error, what):
    with pytest.raises(error, match=what):
        read_counters(write(tmp_path, text))


def test_rows_as_csv(tmp_path, spec):
    write_counters(compared(tmp_path, spec, ascend(fractions(spec))), tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == 1 + len(OPS)
    assert {"counted_matrix", "model_matrix", "memory_Bps", "sentence"} <= set(lines[0].split(","))


fraction = st.one_of(st.none(), st.floats(0, 1))
busy = st.dictionaries(st.sampled_from(UNITS[:-1]), fraction)


@given(busy, st.fixed_dictionaries({unit: st.floats(0, 1) for unit in ("matrix", "vector", "local", "shared", "memory")}),
       st.sampled_from(["matrix", "vector", "local", "shared", "memory", "waiting"]))  # fmt: skip
def test_any_fractions_get_a_verdict(counted, model, bound):
    model["transfer"] = max(model["shared"], model["memory"])
    busiest, _, difference, sentence = verdict(counted, model, bound)
    assert sentence
    assert difference is None or 0 <= difference <= 1
    assert (busiest is None) == all(value is None for value in counted.values())
    assert verdict(model, model, max(("matrix", "vector", "local", "shared", "memory"), key=lambda unit: model[unit]))[1] is True


COLUMNS = (*ASCEND, *RAW, "ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value", "x")
value = st.one_of(
    st.sampled_from(["0.5", "", "N/A", "12 %", "1,5", "-1", "1e400", "MatMul", "64,64;64,64", "FLOAT16", "100", '"', "nan"]),
    st.text(max_size=5),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=9),
       st.lists(st.lists(value, max_size=9), max_size=4))  # fmt: skip
def test_no_profile_gives_a_traceback(tmp_path, header, rows):
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in (header, *rows)]
    with suppress(WorkbenchError):
        found = read_counters(write(tmp_path, "\n".join(quoted), "fuzz.csv"))
        assert np.nanmax(found.busy, initial=0) <= 1
        compare_counters(found, load_npu("ascend-910b2"))


@pytest.mark.parametrize(("name", "card"), [("ascend_op_summary.csv", "ascend-910b2"), ("nsight_raw.csv", "a100-sxm4-80gb")])
def test_the_samples(name, card):
    found = compare_counters(read_counters(data_path("counters", name)), load_npu(card))
    assert found.rows
    assert all(row.counter_bound for row in found.rows if row.kind != "all_reduce")
    assert not {note.code for note in found.notes} & {"counters-unknown"}


def test_a_recorded_kernel_table(shared):
    """Counted operations of its products are those of the shapes plus the zeros of partial tiles; its cube is busy as counted."""
    found = compare_counters(read_counters(shared / "traces" / "ascend" / "kernel_details.csv"), load_npu("ascend-910b1"))
    products = [row for row in found.rows if row.kind in ("gemm", "batched_gemm")]
    assert len(products) == 13
    for row in products:
        assert 1.0 <= row.flops_counted / row.flops < 1.1
        assert row.counter_bound == "matrix"
        assert row.counters["matrix"] > 0.79
    assert not {note.code for note in found.notes} & {"counters-unknown", "counted-work-differs"}


@pytest.mark.parametrize(("counted", "agree"), [
    ({"matrix": 0.0, "vector": 0.02}, None),  # it may have moved data all the time
    ({"matrix": 0.0, "vector": 0.02, "memory": 0.05}, True),
    ({"matrix": 0.0, "vector": 0.90}, False),
])  # fmt: skip
def test_idle_arithmetic_alone_proves_no_waiting(counted: dict[str, float], agree: bool | None) -> None:
    model = {"matrix": 0.0, "vector": 0.01, "memory": 0.02}
    _, found, _, sentence = verdict(counted, model, "waiting")
    assert found is agree
    assert ("what moves data is not counted" in sentence) == (agree is None)
