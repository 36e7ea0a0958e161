"""YAML descriptions: strict keys with file, line and nearest key (field case 32), cross-checks, notes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.errors import InvalidSpec
from workbench.hardware.npu import load_npu
from workbench.hardware.text import read_yaml

GOOD = """\
name: tiny
cores: 24
clock: 1.8 GHz
sources: [a data sheet]
matrix: {rows: 16, cols: 16, depth: 16, rate: {fp16: 1}, peak: {fp16: 354 TFLOP/s}}
vector: {lanes: 128, rate: {fp32: 1}}
memory:
  l1: {size: 1 MiB, bandwidth: 256 B/clk}
  l2: {size: 96 MiB, bandwidth: 6 TB/s, scope: chip}
  hbm: {size: 64 GiB, bandwidth: 1.6 TB/s}
"""


def refused(text: str) -> str:
    with pytest.raises(InvalidSpec) as error:
        read_yaml(text, "tiny.yaml")
    return str(error.value)


def test_a_small_description_reads():
    spec = read_yaml(GOOD, "tiny.yaml")
    assert spec.notes == ()
    assert spec.get("memory.l1.bandwidth") == 256 * 1.8e9
    assert list(spec.memory) == ["l1", "l2", "hbm"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("64 GiB, bandwidth", "64 GiB, bandwith", "tiny.yaml:10: 'bandwith' is not a key of memory.hbm (did you mean 'bandwidth'?)"),
        ("clock: 1.8 GHz", "clok: 1.8 GHz", "tiny.yaml:3: 'clok' is not a key of an NPU description (did you mean 'clock'?)"),
        ("cores: 24", "cores: 24\nlanes: 3", "belongs under vector"),
        ("1.6 TB/s", "1.6e12", "tiny.yaml:10: memory.hbm.bandwidth"),
        ("1.8 GHz", "1800000000", "bare number"),
        ("354 TFLOP/s", "708 TFLOP/s", "stated peak 708"),  # sparse peak on a dense array
        ("96 MiB", "96 GiB", "larger than hbm"),
        ("cores: 24", "cores: 24\ncores: 24", "given twice"),
        ("cores: 24\n", "", "cores is missing"),
        ("rate: {fp16: 1}", "rate: {bf61: 1}", "did you mean 'bf16'?"),
        ("rows: 16", "rows: sixteen", "not a number"),
        ("rows: 16", "rows: .nan", "out of range"),
        ("scope: chip", "scope: [", "not YAML"),
        ("  hbm: {size: 64 GiB, bandwidth: 1.6 TB/s}", "  hbm: {size: 64 GiB}", "outermost memory has no bandwidth"),
    ],
)
def test_faults_are_named_with_their_line(old, new, said):
    assert old in GOOD
    assert said in refused(GOOD.replace(old, new))


@pytest.mark.parametrize("text", ["", "[]", "just words", "name: x", "name: {}"])
def test_what_is_no_description_is_refused(text):
    assert "tiny.yaml:1" in refused(text)


ODD = [
    "0", "-1", "nan", ".inf", "null", "[]", "{}", '"1 KiB"', "true", '"x"', "1e400", '"1e300 GB"', "&a", "*a", "!!python/object:os", "- 1",
    ":", '"\\x00"', "2024-01-01", "!!binary aGk=", '"0 B"', "0x10", '"1 B/clk"', "{a: {b: c}}",
]  # fmt: skip


@given(st.integers(0, 200), st.sampled_from(ODD), st.sampled_from(["npu-x", "a100-sxm4-80gb"]))
@example(at=68, odd="!!python/object:os", name="npu-x")
def test_any_value_anywhere_is_a_card_or_a_named_refusal(at, odd, name):
    lines = load_npu(name).to_yaml().splitlines()
    at %= len(lines)
    lines[at] = f"{lines[at].partition(':')[0]}: {odd}"
    refusal = None
    try:
        spec = read_yaml("\n".join(lines), "odd.yaml")
    except InvalidSpec as error:
        refusal = error
    if refusal is None:
        assert read_yaml(spec.to_yaml(), "again.yaml") == spec
    else:
        assert refusal.where.startswith("odd.yaml:")
        assert refusal.fix


def test_case_32_misplaced_level_is_told_where_it_belongs():
    text = (
        GOOD.replace("  l2: {size: 96 MiB, bandwidth: 6 TB/s, scope: chip}\n", "") + "l2: {size: 96 MiB, bandwidth: 6 TB/s, scope: chip}\n"
    )
    assert "tiny.yaml:10: 'l2' is a memory level at the top of the file (it belongs under memory" in refused(text)


def test_missing_sources_and_odd_bandwidths_are_noted():
    spec = read_yaml(GOOD.replace("sources: [a data sheet]\n", "").replace("1.6 TB/s", "8 TB/s"), "tiny.yaml")
    assert sorted(note.code for note in spec.notes) == ["bandwidth-order", "no-sources"]


@pytest.mark.parametrize("text", ["a: " + "[" * 5000 + "]" * 5000, "".join(" " * i + "a:\n" for i in range(1000))])
def test_nesting_without_end_is_a_named_error(text):
    with pytest.raises(InvalidSpec, match="nested"):
        read_yaml(text, "deep.yaml")
