"""Named, optional realities of a card: separate cores, operand layout, operators that fall back. Read, checked, edited, left out."""

from __future__ import annotations

import pytest

from workbench.errors import InvalidSpec
from workbench.hardware.npu import catalogue, load_npu
from workbench.hardware.schema import ERROR_GROUPS, FALLBACK_DTYPES, entry_of
from workbench.hardware.text import read_yaml
from workbench.operators.table import Dtype

SEPARATE = ("ascend-910b1", "ascend-910b2", "ascend-910b4", "ascend-910c")
COUPLED = ("ascend-310", "ascend-910a")


def test_which_cards_state_what():
    """Ascend C guide: Atlas A2 and A3 have separate cores, Atlas training series and 310 coupled ones; nobody else has either."""
    cards = {name: load_npu(name) for name in catalogue()}
    assert tuple(name for name, spec in cards.items() if spec.vector.exchange) == SEPARATE
    assert tuple(name for name, spec in cards.items() if spec.matrix.layout) == COUPLED
    assert {name for name, spec in cards.items() if spec.fallback} == {*SEPARATE, *COUPLED}
    for name in (*SEPARATE, *COUPLED):
        assert any("AI CPU" in text for text in cards[name].sources)
        assert any("AI CPU" in text for text in cards[name].weak)


def test_numbers_are_fields_like_any_other():
    spec = load_npu("ascend-910b2")
    paths = {field.path: field for field in spec.fields()}
    assert paths["fallback.bandwidth"].value == 10e9
    assert paths["fallback.launch"].label
    faster = spec.with_({"fallback.rate": "4 GFLOP/s", "fallback.launch": "20 us"})
    assert (faster.fallback.rate, faster.fallback.launch) == (4e9, 20e-6)
    assert read_yaml(faster.to_yaml(), "again.yaml") == faster
    for path in ("matrix.layout", "vector.exchange", "fallback.rate"):
        entry = entry_of(path)
        assert entry is not None and entry.label
        assert entry.help


def test_a_card_without_them_has_no_such_fields():
    spec = load_npu("a100-sxm4-80gb")
    assert "fallback" not in spec.to_yaml()
    assert "exchange" not in spec.to_yaml()
    with pytest.raises(InvalidSpec, match="not a field of this card"):
        spec.with_({"fallback.rate": "4 GFLOP/s"})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('exchange: "l2"', 'exchange: "l3"', "not a memory level"),
        ('exchange: "l2"', 'exchange: "ub"', "separate cores meet in a level of the chip"),
        ('"sort:int32"', '"sorting:int32"', "did you mean 'sort'"),
        ('"sort:int32"', '"sort:int23"', "is not a dtype"),
        ('"int16"', '"int61"', "neither a kind nor a dtype"),
        ('rate: "1 GFLOP/s"', "rate: 1e9", "has no unit"),
        ('  rate: "1 GFLOP/s"\n', "", "rate"),
    ],
)
def test_faults_are_named(old, new, said):
    text = load_npu("ascend-910b2").to_yaml()
    assert old in text
    with pytest.raises(InvalidSpec, match=said):
        read_yaml(text.replace(old, new), "card.yaml")


def test_words_are_those_of_the_operator_table():
    assert {name.upper() for name in FALLBACK_DTYPES} >= {
        name for name in Dtype.__members__ if name != "UNKNOWN" and not name.endswith("_WO")
    }
    assert "sort" in ERROR_GROUPS
