"""Axes and settings as typed on a command line."""

from __future__ import annotations

import pytest

from workbench.errors import UnreadableInput, WorkbenchError
from workbench.study.asked import parse_axis, parse_scale, parse_setting
from workbench.study.axes import Spaced, Tied

HBM = "npu.memory.hbm.bandwidth"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HBM}=0.8:6.4:15TB/s", (HBM, Spaced("0.8 TB/s", "6.4 TB/s", 15))),
        ("memory.hbm.bandwidth=0.8TB/s:6.4 TB/s:15", (HBM, Spaced("0.8TB/s", "6.4 TB/s", 15))),
        (f"{HBM}=800 GB/s:6.4:15TB/s", (HBM, Spaced("800 GB/s", "6.4 TB/s", 15))),
        (f"{HBM}=1:1000:4 GB/s:log", (HBM, Spaced("1 GB/s", "1000 GB/s", 4, log=True))),
        ("npu.matrix.rows=8:32:4", ("npu.matrix.rows", Spaced("8", "32", 4))),
        ("matrix.rows=8,16, 32", ("npu.matrix.rows", ["8", "16", "32"])),
        ("npu=npu-x,h100-sxm", ("npu", ["npu-x", "h100-sxm"])),
        ("runtime.split_k=true,false", ("npu.runtime.split_k", [True, False])),
        ("matrix.rows,matrix.cols=8,16", ("npu.matrix.rows", Tied({"npu.matrix.rows": ["8", "16"], "npu.matrix.cols": ["8", "16"]}))),
        ("host_factor=0.5,1", ("host_factor", ["0.5", "1"])),
    ],
)
def test_the_forms_of_an_axis(text, expected):
    assert parse_axis(text) == expected


@pytest.mark.parametrize("text", ["", "path", "path=", "=1,2", "a=1:2", "a=1:2:x", "a=1:2:3:4", "a=1:2:3:lin", "a=1,,2", "a=:2:3x:log:log"])
def test_other_forms_are_named_as_wrong_usage(text):
    with pytest.raises(UnreadableInput, match="write PATH="):
        parse_axis(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory.hbm.bandwidth=3.2 TB/s", (HBM, "3.2 TB/s")),
        ("npu.matrix.rows=32", ("npu.matrix.rows", 32)),
        ("runtime.split_k=False", ("npu.runtime.split_k", False)),
        ("matrix.dataflow=ws", ("npu.matrix.dataflow", "ws")),
        ("matrix.tile_quantum=[16,16,32]", ("npu.matrix.tile_quantum", [16, 16, 32])),
        ("matrix.rate.bf16=0.5", ("npu.matrix.rate.bf16", 0.5)),
        ("source.clock=1.2 GHz", ("source.clock", "1.2 GHz")),
        ("host_factor=0.5", ("host_factor", 0.5)),
        ("anchored=true", ("anchored", True)),
        ("matrix.rows=many", ("npu.matrix.rows", "many")),
    ],
)
def test_settings_have_the_type_of_their_field(text, expected):
    assert parse_setting(text) == expected


@pytest.mark.parametrize("text", ["", "rows", "rows=", "=3", "npu=h100", "vendor=a.csv"])
def test_settings_of_another_form_are_wrong_usage(text):
    with pytest.raises(UnreadableInput):
        parse_setting(text)


def test_factors_on_operator_times():
    """The name may hold an equals sign: the last one counts."""
    assert parse_scale("void k<a=1>(*)=0.5") == ("void k<a=1>(*)", 0.5)
    for text in ("aten::mm", "=2", "a=", "a=-1", "a=x", "a=inf"):
        with pytest.raises(UnreadableInput, match="PATTERN=FACTOR"):
            parse_scale(text)


@pytest.mark.parametrize("count", ["99999999999999999999", "9" * 5000, "10000000000000000"])
def test_counts_no_machine_can_hold_are_refused(count):
    with pytest.raises(WorkbenchError, match="axis"):
        parse_axis(f"memory.hbm.bandwidth=1:2:{count}TB/s")


def test_a_field_is_not_tied_to_itself():
    with pytest.raises(UnreadableInput, match="tied to itself"):
        parse_axis("cores,npu.cores=8,16")
