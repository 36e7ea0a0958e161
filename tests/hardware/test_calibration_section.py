"""The ``calibration:`` section: intervals by kind are read strictly, written back, and widen with a partition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.errors import InvalidSpec
from workbench.hardware.npu import load_npu
from workbench.hardware.parts import Calibration
from workbench.hardware.text import read_yaml

FIT = Calibration(0.8, 0.75, 2.5e-6, 0.2, "test", {"gemm": (-0.1, 0.2), "attention_decode": (0.0, 0.5)})
CARD = replace(load_npu("h100-sxm"), calibration={"bf16": FIT})


def test_errors_by_kind_survive_a_file():
    assert read_yaml(CARD.to_yaml(), "card.yaml").calibration == {"bf16": FIT}
    assert "attention_decode: [0.0, 0.5]" in CARD.to_yaml()


def test_a_card_without_errors_by_kind_reads_as_before():
    plain = replace(CARD, calibration={"bf16": replace(FIT, errors={})})
    assert read_yaml(plain.to_yaml(), "card.yaml").calibration["bf16"].errors == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gemm: [-0.1, 0.2]", "gem: [-0.1, 0.2]", "did you mean 'gemm'?"),
        ("gemm: [-0.1, 0.2]", "gemm: 0.2", "not a pair of relative errors around 0"),
        ("gemm: [-0.1, 0.2]", "gemm: [0.1, 0.2]", "not a pair"),
        ("gemm: [-0.1, 0.2]", "gemm: [-1.0, 0.2]", "not a pair"),
        ("gemm: [-0.1, 0.2]", "gemm: [-0.1, .inf]", "not a pair"),
        ("gemm: [-0.1, 0.2]", "gemm: [-0.1, true]", "not a pair"),
        ("gemm: [-0.1, 0.2]", "gemm: [-0.1, 0.2]\n      gemm: [-0.1, 0.2]", "given twice"),
    ],
)
def test_faults_in_the_intervals_are_named(old, new, said):
    text = CARD.to_yaml()
    assert old in text
    with pytest.raises(InvalidSpec) as error:
        read_yaml(text.replace(old, new, 1), "card.yaml")
    assert said in str(error.value)
    assert "card.yaml:" in str(error.value)


def test_a_partition_is_less_certain():
    part = CARD.partition("3g.40gb").calibration["bf16"]
    assert part.errors["gemm"] == (pytest.approx(0.9 * (0.9 / 1.2) ** 0.125 - 1), pytest.approx(1.2 / (0.9 / 1.2) ** 0.125 - 1))
    assert part.error == pytest.approx(0.25)
