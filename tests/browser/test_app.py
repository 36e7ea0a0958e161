"""The app in a headless browser: what a person does, and what must follow from it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import SAMPLE, Screen

pytestmark = pytest.mark.browser
# Pixels of a colour on the canvas.
COUNT = """([selector, rgb]) => {
  const find = (root) => { for (const e of root.querySelectorAll("*")) {
    if (e.matches(selector)) return e; if (e.shadowRoot) { const found = find(e.shadowRoot); if (found) return found; } } return null; };
  const canvas = find(document), data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let i = 0; i < data.length; i += 4)
    if (Math.abs(data[i] - rgb[0]) + Math.abs(data[i + 1] - rgb[1]) + Math.abs(data[i + 2] - rgb[2]) < 12) count++;
  return count; }"""
CANVAS = "canvas[data-painted]"


def toast(page: Any, text: str) -> str:
    """Wait for a message that holds the text and return it."""
    found = page.locator("[role=alert]", has_text=text).first
    found.wait_for(timeout=30_000)
    return str(found.inner_text())


def test_a_slider_moves_the_step_the_pictures_and_the_address(screen: Screen, address: str) -> None:
    """Less memory bandwidth makes the step longer; the timeline is painted with matrix kernels; nothing leaves the machine."""
    screen.open(address)
    before = screen.card("Predicted step")
    assert before.endswith("s")
    matrix = screen.page.evaluate(COUNT, [CANVAS, [0, 114, 178]])
    assert matrix > 200, "matrix kernels (#0072B2) are on the canvas"
    first = float(screen.page.locator(CANVAS).first.get_attribute("data-predicted"))
    screen.drag("memory.hbm.bandwidth", 0.2)
    after = screen.wait_card("Predicted step", before)
    assert after != before
    screen.page.wait_for_function(f"Number(document.querySelector('{CANVAS}')?.dataset.predicted ?? 1e9) !== {first}")
    screen.page.wait_for_function("decodeURIComponent(location.search).includes('memory.hbm.bandwidth=')")
    assert f"trace={SAMPLE}" in screen.page.url
    assert screen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    _timeline_answers(screen)
    _bounds(screen)
    _compared(screen)
    _reset(screen, after)
    assert screen.outside == []


def _timeline_answers(screen: Screen) -> None:
    """Keys, a click on a bar and a selected area say what they are asked."""
    page, canvas = screen.page, screen.page.locator(CANVAS).first
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + 20 + 212, box["y"] + box["height"] - 4)
    canvas.press("?")
    page.get_by_text("select an area, get its statistics").wait_for()
    canvas.press("?")
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 226, box["y"] + 23)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 10, box["y"] + 60)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.get_by_text("events in").wait_for()
    canvas.press("Escape")
    page.get_by_label("search events").fill("nccl")
    page.get_by_label("search events").press("Enter")
    page.get_by_text(" of ").first.wait_for()
    page.get_by_label("search events").fill("")


def _bounds(screen: Screen) -> None:
    """The tab divides the longest operators' times; without a selection the longest is explained."""
    page = screen.page
    page.get_by_role("tab", name="What bounds them").click()
    page.get_by_text("infinitely fast", exact=True).wait_for()
    assert "bound by" in page.get_by_text("would save").inner_text().lower()


def _compared(screen: Screen) -> None:
    """The tab shows step and operators of both sides; a row selects its operator, which the timeline outlines."""
    page = screen.page
    page.get_by_role("button", name="Compare").first.click()
    page.get_by_text("Parts are the mean of the steps").wait_for()
    page.get_by_text("delta [ms]").wait_for()
    row = page.locator(".tabulator-row", has_text="aten::").first
    row.wait_for()
    before = page.locator(CANVAS).first.get_attribute("data-painted")
    row.click()
    page.wait_for_function(f"document.querySelector('{CANVAS}')?.dataset.painted !== '{before}'")
    page.locator(".tabulator-row.tabulator-selected").first.wait_for()
    assert "-" in row.inner_text(), "npu-x is faster than the card it was recorded on"


def _reset(screen: Screen, after: str) -> None:
    """The card's own value comes back."""
    screen.page.get_by_role("button", name="Reset").click()
    screen.wait_card("Predicted step", after)


def test_what_is_wrong_is_said_with_what_to_do(screen: Screen, address: str, tmp_path: Any) -> None:
    """A stale address, then an upload cut in the middle of an event: each message names thing and remedy, and the page lives on."""
    path = tmp_path / "cut_off.json"
    path.write_text('{"traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 12.5, "du')
    screen.page.goto(address + "?trace=gone.json.gz&npu=no-such-card")
    assert "no-such-card" in toast(screen.page, "no-such-card")
    assert "pick one of" in toast(screen.page, "gone.json.gz")
    screen.page.get_by_text("No trace is open").wait_for(timeout=60_000)
    screen.page.wait_for_function("document.getElementById('loader').style.display !== 'flex'", timeout=60_000)
    screen.page.get_by_role("button", name="Open", exact=False).last.click()
    screen.page.locator("input[type=file]").first.set_input_files(str(path))
    message = toast(screen.page, "cut_off.json")
    assert "To mend it" in message
    assert screen.outside == []
