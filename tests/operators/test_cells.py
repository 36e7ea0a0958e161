"""Numbers, shapes and headings in the spellings vendors and profilers use."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InvalidSpec
from workbench.operators.cells import amount, decimal_mark, missing, named_extents, number, shapes, whole
from workbench.operators.headings import best_times, canonical, is_bare_time, is_cycles, time_unit


@pytest.mark.parametrize(
    ("column", "mark"),
    [
        (["5,5", "3,25"], ","),
        (["1.234,5", "7"], ","),
        (["0,125"], ","),  # no thousands begin with 0
        (["1,234.5", "2"], "."),
        (["1,234,567"], "."),  # two groups are thousands
        (["0.5", "1,234"], "."),
        (["1,234"], "?"),  # 1234 or 1.234: nobody can tell
        (["5.5", "5,5"], "?"),  # both in one column
        (["12", "N/A", ""], "."),
    ],
)
def test_how_a_sheet_writes_decimals(column, mark):
    assert decimal_mark(column) == mark


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [("1,234.5", ".", 1234.5), ("1.234,5", ",", 1234.5), ("1 234,5", ",", 1234.5), ("1'234.5", ".", 1234.5), ("1\u00a0234", ".", 1234.0),
     ("5,5", ",", 5.5), ("4.096", ",", 4096.0), ("1e-3", ".", 1e-3), (" 7 ", ".", 7.0)],
)  # fmt: skip
def test_numbers(text, mark, value):
    assert number(text, "here", mark) == value


@pytest.mark.parametrize(
    ("text", "mark"), [("1,234", "?"), ("5,5", "."), ("1_0", "."), ("abc", "."), ("", "."), ("1.2.3", "."), ("1,2,3", ".")]
)
def test_what_is_no_number_is_refused(text, mark):
    with pytest.raises(InvalidSpec):
        number(text, "here", mark)


def test_counts_are_whole_however_they_are_grouped():
    assert whole("4,096", "here") == whole("4.096", "here", mark=",") == whole("4 096", "here") == whole("4096.0", "here") == 4096
    for text in ("1.5", "-1", "1e99", "nan"):
        with pytest.raises(InvalidSpec):
            whole(text, "here")


def test_a_cell_may_carry_its_unit():
    assert amount("5.5 us", "here") == (5.5, "us")
    assert amount("5.5ms", "here") == (5.5, "ms")
    assert amount("1e-3", "here") == (1e-3, "")


@given(st.floats(min_value=1e-3, max_value=1e9), st.sampled_from([".", ","]))
def test_a_formatted_number_is_read_back(value, mark):
    """Grouped thousands and two decimals, in either custom."""
    text = f"{value:,.2f}"
    text = text.translate(str.maketrans(",.", ".,")) if mark == "," else text
    assert number(text, "here", mark) == pytest.approx(round(value, 2))
    assert decimal_mark([text]) == mark


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,128,768;768,3072", [(1, 128, 768), (768, 3072)]),
        ("[1x128x768]", [(1, 128, 768)]),
        ("[[1, 128, 768], [768, 3072]]", [(1, 128, 768), (768, 3072)]),
        ("(1,128)(128,64)", [(1, 128), (128, 64)]),
        ("1*128 @ 128*64", [(1, 128), (128, 64)]),
        ("1x128, 128x64", [(1, 128), (128, 64)]),
        ("bf16[1,128]{1,0}", [(1, 128)]),  # XLA
        ('"""4096,12288;4608,12288"""', [(4096, 12288), (4608, 12288)]),  # CANN
        ("1,1,1024,1024;", [(1, 1, 1024, 1024), ()]),
        ("", [()]),
        ("N/A", [()]),
        ("1,-1", [()]),
        ("999999999999,999999999999", [()]),  # larger than any memory
    ],
)
def test_shapes(text, found):
    assert shapes(text) == found


@pytest.mark.parametrize("text", ["M128N3072K768", "m=128, n=3072, k=768", "M128_N3072_K768", "M:128 N:3072 K:768", "N3072 K768 M128"])
def test_named_extents(text):
    assert named_extents(text) == {"m": 128, "n": 3072, "k": 768}


@pytest.mark.parametrize("text", ["K128", "M1N2", "M1N2K3Q", "M1N2K3M4", "128x3072", "M128.5N1K1", ""])
def test_what_names_no_extents(text):
    assert named_extents(text) == {}


@given(st.lists(st.lists(st.integers(1, 2000), min_size=1, max_size=4), min_size=1, max_size=4), st.sampled_from([",", "x", "*"]))
def test_shapes_are_read_back(lists, mark):
    assert shapes(";".join(mark.join(map(str, shape)) for shape in lists)) == [tuple(shape) for shape in lists]


@given(st.text(max_size=40))
def test_no_text_breaks_a_reader_of_cells(text):
    for shape in shapes(text):
        assert all(extent >= 0 for extent in shape)
        assert math.prod(shape) <= 2**50
    named_extents(text), missing(text), decimal_mark([text]), time_unit(text), is_bare_time(text), is_cycles(text), canonical(text)
    for read in (number, amount, whole):
        with suppress(InvalidSpec):
            read(text, "here")


@pytest.mark.parametrize(
    ("name", "unit"),
    [("latency_us", 1e-6), ("Duration(us)", 1e-6), ("time [ms]", 1e-3), ("Task Duration(us)", 1e-6), ("Latency/ns", 1e-9), ("us", 1e-6),
     ("avg_time_us", 1e-6), ("Time, us", 1e-6), ("elapsed (usec)", 1e-6),
     ("time_ms/iter", 1e-3), ("duration_s", 1.0), ("Time (\u00b5s)", 1e-6),
     ("\u8017\u65f6(ms)", 1e-3), ("mean_us", 1e-6)],
)  # fmt: skip
def test_a_time_says_its_unit_in_its_heading(name, unit):
    assert time_unit(name) == unit


@pytest.mark.parametrize(
    "name",
    ["time", "Start Time(us)", "Wait Time(us)", "aicore_time(us)", "min time (us)", "time_us_p99", "s", "status", "rows", "times",
     "address", "timestamp_us", "compile_time_s"],
)  # fmt: skip
def test_what_is_no_time_of_an_operator(name):
    assert time_unit(name) is None


def test_the_median_goes_before_the_mean_before_the_rest():
    assert best_times(["time_us", "mean_us", "median_us"]) == ["median_us"]
    assert best_times(["time_us", "mean_us"]) == ["mean_us"]
    assert best_times(["time_us", "latency_ms"]) == ["time_us", "latency_ms"]


@pytest.mark.parametrize(
    ("name", "plain"),
    [("OP Type", "type"), ("Op Name", "name"), ("Input Data Types", "dtype"), ("Input Shapes", "input_shapes"), ("Shape", "shapes"),
     ("M,N,K", "mnk"), ("batch_size", "batch"), ("\u7b97\u5b50\u540d\u79f0", "name"), ("M", "m"), ("made up", "made up")],
)  # fmt: skip
def test_spellings_of_headings(name, plain):
    assert canonical(name) == plain
