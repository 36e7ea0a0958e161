"""Where the project's own data is found."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench.data
from workbench.data import data_path
from workbench.errors import UnreadableInput


def test_a_checkout_uses_its_data_folder(project: Path) -> None:
    assert data_path() == project / "data"
    assert data_path("traces", "synthetic_ddp.json.gz").is_file()


def test_an_installed_wheel_uses_what_lies_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel holds `data/` as `workbench/_data/` (pyproject.toml): that one comes first."""
    (tmp_path / "workbench" / "_data" / "npu").mkdir(parents=True)
    monkeypatch.setattr(workbench.data, "__file__", str(tmp_path / "workbench" / "data.py"))
    assert data_path("npu") == tmp_path / "workbench" / "_data" / "npu"


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UnreadableInput, match="no-such-card"):
        data_path("npu", "no-such-card.yaml")
