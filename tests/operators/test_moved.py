"""Bytes of recorded tensors: counted by hand, each at its own size and type."""

from __future__ import annotations

import pytest

from workbench.operators.listed import Listed, operator_list
from workbench.operators.moved import moved
from workbench.operators.table import Dtype, Kind
from workbench.operators.words import word


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "types", "results", "found"),
    [
        (Kind.ELEMENTWISE, "8,4;8,4", "8,4", "FLOAT16;FLOAT16", "FLOAT16", (128, 64)),
        (Kind.ELEMENTWISE, "8,4;4", "8,4", "FLOAT;FLOAT", "FLOAT", (144, 128)),  # a row is broadcast
        (Kind.ELEMENTWISE, "8,4;", "8,4", "FLOAT;FLOAT", "FLOAT", (132, 128)),  # a scalar
        (Kind.ELEMENTWISE, "8,4;4;", "8,4", "FLOAT16;UINT8;FLOAT16", "FLOAT16", (70, 64)),  # a mask of bits
        (Kind.COPY, "8,4", "8,4", "FLOAT16", "FLOAT", (64, 128)),  # a cast to twice the width
        (Kind.COPY, "1,4;2", "8,4", "FLOAT16;INT64", "FLOAT16", (8 + 16, 64)),  # a row becomes eight
        (Kind.COPY, "100,100;2", "8,4", "FLOAT;INT64", "FLOAT", (128 + 16, 128)),  # a slice reads what it writes
        (Kind.COPY, "8,4", "4,4;4,4", "FLOAT", "FLOAT;FLOAT", (128, 128)),  # a split
        (Kind.SET, "8,4", "8,4", "FLOAT", "FLOAT", (0, 128)),
        (Kind.OPTIMIZER, "32;32;32;;32", "32;32;32", "FLOAT;FLOAT;FLOAT;FLOAT;FLOAT", "FLOAT;FLOAT;FLOAT", (516, 384)),
        (Kind.ELEMENTWISE, "8,4", "8,4", "BF16", "", (64, 64)),
    ],
)
def test_by_hand(kind, inputs, outputs, types, results, found):
    assert moved(kind, inputs, outputs, types, results) == found


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "types"),
    [
        (Kind.GEMM, "8,4;4,8", "8,8", "FLOAT;FLOAT"),  # its dimensions say
        (Kind.EMBEDDING, "1000,4;8", "8,4", "FLOAT;INT64"),  # reads few of its rows
        (Kind.ELEMENTWISE, "8,4", "", "FLOAT"),
        (Kind.ELEMENTWISE, "8,4", "8,4", ""),
        (Kind.ELEMENTWISE, "8,4;8,4;8,4", "8,4", "FLOAT;FLOAT"),  # as many types as tensors, or one
        (Kind.ELEMENTWISE, "8,4", "8,4", "STRANGE"),
    ],
)
def test_what_tensors_do_not_settle(kind, inputs, outputs, types):
    assert moved(kind, inputs, outputs, types, "") is None


def test_what_tensors_say_goes_before_what_the_name_says():
    named = Listed("Mul", Dtype.FP32, (32,), word("Mul"))
    found = operator_list([named, Listed("Mul", Dtype.FP32, (32,), word("Mul"), moved=(132.0, 128.0))])
    assert found.bytes_read.tolist() == [256.0, 132.0]
    assert found.bytes_written.tolist() == [128.0, 128.0]


def test_random_numbers_are_made_and_zeros_are_not():
    """Philox: 100 operations make four numbers; eight of them are a byte of a mask."""
    rows = [Listed(name, Dtype.UINT8, (1000,), word(name)) for name in ("ZerosLike", "uniform_", "StatelessDropOutGenMask")]
    assert operator_list(rows).flops.tolist() == [0.0, 25e3, 200e3]


def test_streams_of_a_recorded_card(shared):
    """Longer than its L2 (192 MiB), casts, scaled copies and optimizer steps of a recorded training step take what their tensors say."""
    from workbench.hardware.npu import load_npu
    from workbench.operators.counters import read_counters
    from workbench.study.counters import compare_counters

    found = compare_counters(read_counters(shared / "traces" / "ascend" / "kernel_details.csv"), load_npu("ascend-910b1"))
    long = [row for row in found.rows if row.kind in ("elementwise", "copy", "optimizer") and (row.measured_s or 0) > 250e-6]
    errors = sorted(abs(row.error or 0) for row in long)
    assert len(errors) > 20
    assert errors[len(errors) // 2] < 0.1
    assert sum(error < 0.2 for error in errors) > 0.9 * len(errors)
