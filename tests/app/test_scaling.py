"""The tab of many cards: what is asked, what is shown, and what is said where it cannot be."""

from __future__ import annotations

import pytest

from workbench.app.scaling import RECORDING, ScaleOut


@pytest.fixture
def tab(session) -> ScaleOut:
    made = ScaleOut(session)
    made.refresh()
    return made


def test_a_recording_over_cards(tab: ScaleOut) -> None:
    """The sample was recorded on 8 cards: they are N0, and more of them are less efficient."""
    percent = list(tab.pictures.curve.data["percent"])
    assert percent[0] == pytest.approx(100.0)
    assert percent == sorted(percent, reverse=True)
    assert "N0 = 8" in tab.words.html
    assert not tab.pictures.of_plan.visible


def test_a_thinner_fabric_shows_at_once(tab: ScaleOut) -> None:
    before = list(tab.pictures.curve.data["percent"])
    for row in tab.tiers.objects[1:]:
        row.objects[0].value = "1 GB/s"
    after = list(tab.pictures.curve.data["percent"])
    assert after[-1] < before[-1]


def test_a_plan_of_a_model(tab: ScaleOut) -> None:
    tab.cluster.value = "dgx-h100"
    tab.cards.value = "64, 256"
    tab.plan.value = "tp=8, pp=4, m=16"
    tab.workload.value = "llama-2-70b"
    assert tab.pictures.of_plan.visible
    assert len(tab.pictures.memory.data["stage"]) == 4
    assert len(tab.pictures.order.data["start"]) == 4 * 16 * 2
    for part in ("MFU", "useful work", "stage"):
        assert part in tab.told.html
    tab.batch.value = 512
    tab.refresh(search=True)
    assert "plans divide evenly" in tab.plans.html
    assert "does not fit" in tab.plans.html
    tab.workload.value = RECORDING
    assert not tab.pictures.of_plan.visible


@pytest.mark.parametrize(
    ("widget", "value", "words"),
    [("cards", "many", "no numbers of cards"), ("jitter", "much", "no number"), ("gradients", "1.34", "no unit")],
)
def test_what_cannot_be_is_said(tab: ScaleOut, widget: str, value: str, words: str) -> None:
    getattr(tab, widget).value = value
    assert words in tab.words.html


def test_a_plan_that_cannot_be_is_said(tab: ScaleOut) -> None:
    tab.workload.value = "gpt-22b"
    tab.plan.value = "tq=8"
    assert "tp" in tab.words.html
