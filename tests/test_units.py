"""Units: the texts of field case 25, exact decimals, and text that comes back as the same number."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import units
from workbench.errors import InvalidSpec

# Field case 25; right by the definitions of SI prefixes (powers of 1000), IEC 80000-13 (powers of 1024) and 8 bits a byte.
GOOD = [
    ("400 Gb/s", "B/s", 5.0e10),
    ("50 GB/s", "B/s", 5.0e10),
    ("50 GiB/s", "B/s", 53687091200.0),
    ("3.35 TB/s", "B/s", 3.35e12),
    ("1 MiB", "B", 1048576.0),
    ("512 KB", "B", 512000.0),
    ("512 KiB", "B", 524288.0),
    ("1.8 GHz", "Hz", 1.8e9),
    ("25 us", "s", 2.5e-5),
    ("6 µs", "s", 6e-6),
    ("400 W", "W", 400.0),
    ("5120 B/clk", "B/clk", 5120.0),
    ("312 TFLOP/s", "FLOP/s", 312e12),
    ("312 TFLOPS", "FLOP/s", 312e12),
    ("156 TMAC/s", "FLOP/s", 312e12),  # a multiply-add is two FLOPs
    ("624 TOPS", "FLOP/s", 624e12),
]
REFUSED = [400, "400", "400 Gbs", "50 gb/s", "1 mib", "3,35 TB/s", "-1 GiB", "nan GB/s", "", "GB/s", "1e999 GB/s", None, True, "50 GB"]


@pytest.mark.parametrize(("text", "unit", "value"), GOOD)
def test_texts_have_their_defined_value(text, unit, value):
    assert units.parse(text, unit) == value


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_ambiguous_is_refused(text):
    with pytest.raises(InvalidSpec) as error:
        units.parse(text, "B/s", "card.yaml:7: memory.hbm.bandwidth")
    assert error.value.where == "card.yaml:7: memory.hbm.bandwidth"
    assert "TB/s" in error.value.fix or "did you mean" in error.value.what


def test_case_25_is_the_table_above(shared):
    with (shared / "cases" / "field" / "README.tsv").open() as file:
        row = next(row for row in csv.DictReader(file, delimiter="\t") if row["id"] == "25")
    assert row["expected"] == "9 texts -> listed SI values; 7 texts refused"
    text = (shared / "cases" / "field" / "25_units.yaml").read_text()
    assert sum(f"text: {good}," in text for good, _, _ in GOOD) == 9


def test_the_prefix_that_reads_best():
    assert units.format(3.35e12, "B/s") == "3.35 TB/s"
    assert units.format(524288, "B") == "512 KiB"
    assert units.format(80e9 + 1, "B") == "80.000000001 GB"  # no whole multiple of 1024
    assert units.format(2.5e-5, "s") == "25 us"
    assert units.format(0.0, "s") == "0 s"
    assert units.format(41.94304e6, "B") == "40 MiB"
    assert units.format(8066021 * 1024.0, "B", 4) == "8.26 GB"  # whole KiB, but nobody reads millions of them
    assert units.format(98 * 2.0**20, "B", 4) == "98 MiB"
    assert units.format(1 / 3, "B/s", 3) == "333 mB/s"
    assert units.format(5120.0, "B/clk") == "5120 B/clk"


@given(st.floats(1e-12, 1e18), st.sampled_from(["B/s", "Hz", "s", "B", "W", "FLOP/s", "B/clk"]))
def test_text_comes_back_as_the_same_float(value, unit):
    assert units.parse(units.format(value, unit), unit) == value


@pytest.mark.parametrize("text", ["1e999999999 TB/s", "1e-999999999 TB/s", "1e-400 TB/s", "9" * 5000 + " B/s", "0." + "1" * 5000 + " B/s"])
def test_numbers_beyond_any_card_are_refused_at_once(text):
    """Exact arithmetic on such a power of ten would fill the memory."""
    with pytest.raises(InvalidSpec, match="not a number this can hold"):
        units.parse(text, "B/s")


def test_zero_with_any_exponent_is_zero():
    assert units.parse("0e999999999 B/s", "B/s") == 0.0
    assert units.parse("0.00 B/s", "B/s") == 0.0
