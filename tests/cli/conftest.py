"""Runs of the command line, each started once and shared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.data import data_path

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def run(project: Path) -> Run:
    """Run ``workbench`` as a person would, in a process of its own."""

    def runs(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "workbench.cli", *map(str, arguments)]
        given = {"capture_output": True, "text": True, "cwd": project, "timeout": 300, **options}
        return subprocess.run(command, check=False, **given)  # type: ignore[call-overload,no-any-return]

    return runs


@pytest.fixture(scope="session")
def traces() -> list[str]:
    """Two small sample traces: several streams, and a host that waits for the queue."""
    return [str(data_path("traces", f"synthetic_{name}.json.gz")) for name in ("ddp", "queue_full")]


@pytest.fixture(scope="session")
def identity(run: Run, traces: list[str]) -> subprocess.CompletedProcess[str]:
    """Both traces replayed as measured."""
    return run("predict", *traces, "--json")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared runs write."""
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def candidate(run: Run, traces: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The first trace on a changed card, with its timelines."""
    asked = (
        "--npu",
        "npu-x",
        "--set",
        "memory.hbm.bandwidth=3.2 TB/s",
        "--set",
        "host_factor=0.5",
        "--perfetto",
        folder / "timelines.json.gz",
    )
    return run("predict", traces[0], *asked, "--json")


@pytest.fixture(scope="session")
def swept(run: Run, traces: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A small sweep with its file."""
    axes = ("--axis", "memory.hbm.bandwidth=0.8:6.4:3TB/s", "--axis", "matrix.rows,matrix.cols=8,16")
    return run("sweep", traces[0], "--npu", "npu-x", *axes, "--out", folder / "space.nc", "--json")
