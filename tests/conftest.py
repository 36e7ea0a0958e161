"""Fixtures every room may use."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

PROJECT = Path(__file__).resolve().parent.parent
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Compiling numba kernels inside an example takes seconds: no deadline. Ordinary runs repeat exactly; fuzzing does not.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
os.environ["WORKBENCH_CACHE"] = "off"  # tests read what they open; those of the cache turn it on


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name bytes by their length: their content may hold a time stamp, and every test process must find the same names."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the checkout."""
    return PROJECT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public traces and measurements that is handed beside the project, never part of it."""
    path = Path(os.environ.get("WORKBENCH_SHARED", PROJECT.parent / "shared"))
    if not (path / "traces" / "facts.json").is_file():
        pytest.skip(f"no shared data at {path}: set WORKBENCH_SHARED to the folder that holds traces/facts.json")
    return path.resolve()


@pytest.fixture(scope="session")
def facts(shared: Path) -> dict[str, Any]:
    """The document ``traces/facts.json``: under "traces" counts and sums by path, computed by a script that is not this project's."""
    document: dict[str, Any] = json.loads((shared / "traces" / "facts.json").read_text())
    return document


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium (playwright's Browser)."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e .[test]")
    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as driver:
        if executable is None and not Path(driver.chromium.executable_path).exists():
            pytest.skip("no Chromium: install the system package chromium, or run `playwright install chromium`")
        instance = driver.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGUMENTS))
        yield instance
        instance.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A fresh page in a context of its own."""
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    yield context.new_page()
    context.close()
