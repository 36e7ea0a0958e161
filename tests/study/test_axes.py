"""Axes: one exact arithmetic, units, tied fields and formulas, and the size of a space before it is made."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InvalidSpec, Refused
from workbench.hardware.npu import load_npu
from workbench.study.axes import AxisClass, Spaced, full_path, linspace, logspace, make_axis, tied
from workbench.study.space import check_size, sizes
from workbench.study.values import exact, written

NPU = "npu.memory.hbm.bandwidth"


@pytest.fixture(scope="module")
def card():
    return load_npu("npu-x")


def test_the_same_axis_made_in_three_ways_is_equal_to_the_last_bit(card):
    """cases/field/34: in plain floats 0.1 * 3 is not 0.3, and an inner join loses three of seven cells."""
    spaced = make_axis(NPU, linspace("0.1 TB/s", "0.7 TB/s", 7), card).columns[0].values
    typed = make_axis(NPU, ["0.1 TB/s", "0.2 TB/s", "0.3 TB/s", "0.4 TB/s", "0.5 TB/s", "0.6 TB/s", "0.7 TB/s"], card).columns[0].values
    noisy = make_axis(NPU, [0.1 * i * 1e12 for i in range(1, 8)], card).columns[0].values
    assert spaced == typed == noisy == (1e11, 2e11, 3e11, 4e11, 5e11, 6e11, 7e11)
    assert linspace(0.1, 0.7, 7).values("1", "x") == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]


def test_plain_xarray_loses_cells_on_a_float_axis():
    """The premise of the test above, so that it is seen to test something (7 -> 4 cells)."""
    made = xr.DataArray(np.ones(7), coords={"x": [0.1 * i for i in range(1, 8)]}, dims="x")
    typed = xr.DataArray(np.ones(7), coords={"x": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]}, dims="x")
    assert (made * typed).size < 7


@given(st.floats(1e-9, 1e15), st.floats(1e-9, 1e15), st.integers(2, 50))
def test_a_spaced_axis_keeps_its_limits_and_order(low, high, num):
    values = linspace(low, high, num).values("s", "x")
    assert values[0] == exact(low)
    assert values[-1] == exact(high)
    assert values == sorted(values, reverse=high < low)
    assert values == linspace(low, high, num).values("s", "x")


@given(st.floats(1e-12, 1e16))
def test_exact_is_idempotent_and_close(value):
    assert exact(exact(value)) == exact(value)
    assert math.isclose(exact(value), value, rel_tol=1e-13)


def test_sizes_in_bytes_keep_every_digit():
    """1 TiB has 13 digits: rounding to fewer would make a size no memory has."""
    assert exact(2.0**40) == 2**40
    assert linspace("64 KiB", "128 KiB", 3).values("B", "x") == [65536, 98304, 131072]


def test_a_logarithmic_axis_has_a_constant_factor_and_exact_limits():
    assert logspace("1 GB/s", "1000 GB/s", 4).values("B/s", "x") == [1e9, 1e10, 1e11, 1e12]
    with pytest.raises(Refused, match="logarithmic"):
        logspace(0, 10, 3).values("", "x")


def test_a_column_says_path_unit_class_and_short_paths_are_completed(card):
    axis = make_axis("memory.hbm.bandwidth", ["1.6 TB/s", 3.2e12], card)
    assert (axis.dim, axis.columns[0].path, axis.columns[0].unit) == (NPU, NPU, "B/s")
    assert axis.columns[0].values == (1.6e12, 3.2e12)
    assert axis.columns[0].kind is AxisClass.TIME
    assert full_path("host_factor") == "host_factor"


def test_counts_are_whole_numbers_and_other_fields_are_taken_as_they_are(card):
    assert make_axis("npu.matrix.rows", ["8", 16.0, np.int64(32)], card).columns[0].values == (8, 16, 32)
    assert make_axis("npu.runtime.split_k", [True, False], card).columns[0].labels == (True, False)
    cards = make_axis("npu", ["npu-x", "h100-sxm"], None).columns[0]
    assert [spec.name for spec in cards.values] == list(cards.labels) == ["npu-x", "h100-sxm"]


@pytest.mark.parametrize(
    ("path", "values", "fault", "words"),
    [
        (NPU, ["400 Gbs"], InvalidSpec, "unit"),
        (NPU, ["3.2"], InvalidSpec, "no unit"),
        (NPU, [float("nan")], Refused, "not finite"),
        (NPU, [], Refused, "without values"),
        (NPU, "1 TB/s", Refused, "not an axis"),
        (NPU, ["1 TB/s", 1e12], Refused, "twice"),
        (NPU, [True], Refused, "not a value"),
        ("npu.memory.hbm.bandwith", ["1 TB/s"], InvalidSpec, "bandwidth"),
        ("npu.cores", ["many"], Refused, "not a number"),
        ("host_factor", [-1.0], Refused, "negative"),
        ("source", ["h100"], Refused, "no axis"),
        ("workload", ["a.json"], Refused, "open_trace"),
    ],
)
def test_what_cannot_be_an_axis_is_refused_with_its_reason(card, path, values, fault, words):
    with pytest.raises(fault, match=words):
        make_axis(path, values, card)


def test_tied_fields_share_one_dimension(card):
    axis = make_axis("array", tied({"npu.matrix.rows": [8, 16, 32], "npu.matrix.cols": [8, 16, 32]}), card)
    assert axis.dim == "array"
    assert len(axis) == 3
    assert make_axis("npu.matrix.rows", tied({"npu.matrix.rows": [8], "npu.matrix.cols": [8]}), card).dim == "npu.matrix.rows"
    with pytest.raises(Refused, match="equally many"):
        tied({"npu.matrix.rows": [8, 16], "npu.matrix.cols": [8]})
    with pytest.raises(Refused, match="only formulas"):
        tied({"npu.cores": lambda rows: rows})


def test_a_space_too_large_is_refused_by_arithmetic_alone():
    """cases/field/41: 20**6 cells x 5 000 operators x 8 B = 2.56 TB; no value is made, so a billion points cost nothing either."""
    counts = sizes({f"axis{i}": linspace("1 B", "2 B", 20) for i in range(6)})
    with pytest.raises(Refused) as refusal:
        check_size(counts, 5000, 8e9)
    for words in ("64 000 000 cells x 5 000 operators", "2.56 TB", "8 GB", "axis0"):
        assert words in str(refusal.value)
    with pytest.raises(Refused, match="thin long from 1000000000 to 200000 points"):
        check_size(sizes({"long": Spaced("1 B", "2 B", 10**9)}), 5000, 8e9)
    assert check_size({"a": 3, "b": 4}, 200, 19200) == 12
    with pytest.raises(Refused, match="12 cells x 100 numbers"):  # a tiny recording: cells have results too
        check_size({"a": 3, "b": 4}, 10, 9000)
    with pytest.raises(Refused, match="points"):
        linspace("1 B", "2 B", 0)


def test_written_values_read_back_exactly(card):
    for path, value in (("memory.hbm.bandwidth", 1.2345678901234e12), ("memory.l1.size", 2.0**19), ("clock", 1.8e9)):
        unit = next(field.unit for field in card.fields() if field.path == path)
        assert card.with_({path: written(value, unit)}).get(path) == value
