"""The power section of a card: units as data sheets and papers write them, limits, round trip, partitions."""

from __future__ import annotations

import pytest

from workbench.errors import InvalidSpec
from workbench.hardware.npu import load_npu
from workbench.hardware.text import read_yaml

CARD = """\
name: tiny
cores: 24
clock: 1.8 GHz
sources: [a data sheet]
matrix: {rows: 16, cols: 16, depth: 16, rate: {fp16: 1}}
vector: {lanes: 128, rate: {fp32: 1}}
memory:
  l1: {size: 1 MiB, bandwidth: 256 B/clk, energy: 1.5 pJ/B}
  hbm: {size: 64 GiB, bandwidth: 1.6 TB/s, scope: chip, energy: 3.9 pJ/b}
power: {tdp: 400 W, idle: 60 W, process: 5 nm, energy: {fp16: 1.2 pJ/MAC}, vector_energy: {fp32: 4 pJ/OP}}
"""


def test_energies_read_as_papers_write_them():
    """3.9 pJ a bit is 31.2 pJ a byte; a multiply-add counts two operations (units.py)."""
    spec = read_yaml(CARD, "tiny.yaml")
    assert spec.get("memory.hbm.energy") == pytest.approx(31.2e-12)
    assert spec.get("power.energy.fp16") == pytest.approx(0.6e-12)
    assert spec.get("power.vector_energy.fp32") == pytest.approx(4e-12)
    assert spec.power.process == "5 nm"
    assert read_yaml(spec.to_yaml(), "again.yaml") == spec
    assert {"power.energy.fp16": "Matrix energy fp16", "power.idle": "Idle power"}.items() <= {
        f.path: f.label for f in spec.fields()
    }.items()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("idle: 60 W", "idle: 400 W", "no less than the TDP"),
        ("process: 5 nm", "process: 5", "is not a process"),
        ("1.2 pJ/MAC", "1.2 pJ", "not in a unit of J/FLOP"),
        ("1.2 pJ/MAC", "1.2e-12", "bare number"),
        ("3.9 pJ/b", "3.9 pJ/FLOP", "not in a unit of J/B"),
        ("{fp16: 1.2", "{bf61: 1.2", "did you mean 'bf16'"),
        ("idle: 60 W", "idel: 60 W", "did you mean 'idle'"),
    ],
)
def test_faults_are_named(old, new, said):
    assert old in CARD
    with pytest.raises(InvalidSpec) as error:
        read_yaml(CARD.replace(old, new), "tiny.yaml")
    assert said in str(error.value)


def test_a_partition_draws_its_share_of_the_power():
    """3g of an H100: 60 of 132 cores."""
    whole = load_npu("h100-sxm").with_({"power.idle": "70 W"})
    part = whole.partition(compute="60/132", memory="4/8")
    assert part.power.tdp == pytest.approx(700 * 60 / 132)
    assert part.power.idle == pytest.approx(70 * 60 / 132)
    assert part.power.process == "4 nm"
