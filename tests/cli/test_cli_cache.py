"""``workbench cache``: where opened traces are kept, how large that is, and away with them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Run
from workbench.cli_cache import cache
from workbench.study.documents import schema
from workbench.trace.open import open_trace


def said(*arguments: str) -> str:
    return CliRunner().invoke(cache, arguments, catch_exceptions=False).stdout


def test_a_trace_opened_is_kept_and_cleared(run: Run, traces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "kept"
    found = run("inspect", traces[0], "--json", env={**os.environ, "WORKBENCH_CACHE": str(where)})
    assert found.returncode == 0
    monkeypatch.setenv("WORKBENCH_CACHE", str(where))
    document = json.loads(said("--json"))
    jsonschema.validate(document, schema("cache"))
    assert (document["folder"], document["writable"], document["entries"]) == (str(where), True, 1)
    assert document["bytes"] == sum(path.stat().st_size for path in where.iterdir())
    assert "removed 1 opened traces" in said("--clear")
    assert not list(where.iterdir())


def test_off_and_a_folder_nothing_can_be_written_to(traces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "file" / "below"))
    assert "cannot be written" in said()
    assert len(open_trace(traces[0]).events)
    monkeypatch.setenv("WORKBENCH_CACHE", "off")
    assert "switched off" in said()
