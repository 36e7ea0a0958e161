"""A server of its own for the browser tests, and what they look at."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SAMPLE = "synthetic_ddp.json.gz"
# Finds an element by selector through shadow roots and returns its text.
DEEP_TEXT = """(selector) => {
  const find = (root) => { for (const e of root.querySelectorAll("*")) {
    if (e.matches(selector)) return e; if (e.shadowRoot) { const found = find(e.shadowRoot); if (found) return found; } } return null; };
  const found = find(document); return found ? found.textContent : ""; }"""


@pytest.fixture(scope="session")
def address(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running app."""
    log = tmp_path_factory.mktemp("app") / "log.txt"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = f"from workbench.app.serve import serve; serve(port={port}, address='127.0.0.1', show=False)"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=project, stdout=log.open("w"), stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(600):
            if process.poll() is not None:
                pytest.fail(f"the app ended with {process.returncode} before it answered: {log.read_text()[-2000:]}")
            try:
                urllib.request.urlopen(url, timeout=20).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


class Screen:
    """A page of the app as a person sees it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, address: str, query: str = f"?trace={SAMPLE}") -> None:
        """Go to the app and wait until the timeline has painted a prediction."""
        self.page.goto(address + query)
        self.painted()

    def painted(self) -> None:
        """Wait for a predicted picture."""
        self.page.wait_for_selector('canvas[data-predicted]:not([data-predicted=""])', timeout=120_000)
        self.page.wait_for_function("document.getElementById('loader').style.display !== 'flex'", timeout=60_000)

    def card(self, name: str) -> str:
        """Text of a headline card."""
        return str(self.page.evaluate(DEEP_TEXT, f'[data-value="{name}"]'))

    def wait_card(self, name: str, unlike: str) -> str:
        """Wait until a headline card shows something else, and return it."""
        self.page.wait_for_function(
            f"([selector, old]) => {{ const now = ({DEEP_TEXT})(selector); return now && now !== old; }}",
            arg=[f'[data-value="{name}"]', unlike],
            timeout=30_000,
        )
        return self.card(name)

    def drag(self, path: str, share: float) -> None:
        """Drag the slider of a field to a share of its way."""
        slider = self.page.locator(f'input[data-path="{path}"]').first
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        y = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + box["width"] / 2, y)
        self.page.mouse.down()
        for i in range(1, 9):
            self.page.mouse.move(box["x"] + box["width"] * (0.5 + (share - 0.5) * i / 8), y)
        self.page.mouse.up()

    @property
    def outside(self) -> list[str]:
        """Requests that left the machine."""
        return [url for url in self.requests if not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "blob:", "data:"))]


@pytest.fixture
def screen(page: Any) -> Screen:
    """A fresh page."""
    return Screen(page)
