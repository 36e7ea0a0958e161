"""Where the project's own data is found."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest
import yaml

import workbench.data
from workbench.cost.vendor import read_vendor
from workbench.data import data_path, read_small
from workbench.errors import InvalidSpec, UnreadableInput
from workbench.hardware.npu import load_npu
from workbench.study.check import kind_of


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


RECORDED = yaml.safe_load((Path(__file__).resolve().parent.parent / "data" / "traces" / "recorded.yaml").read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_are_clean_and_whole(name: str) -> None:
    """Every step is there, operators have shapes, and nothing tells who recorded it where: no stacks, scripts or folders."""
    text = gzip.decompress(data_path("traces", name).read_bytes()).decode()
    events = json.loads(text)["traceEvents"]
    steps = [event for event in events if event["name"].startswith("ProfilerStep#") and event["ph"] == "X"]
    assert len(steps) == RECORDED[name]["profiled_steps"] >= 3
    operators = [event for event in events if event.get("cat") == "cpu_op" and event["name"].startswith("aten::")]
    assert operators
    assert all("Input Dims" in event["args"] for event in operators)
    assert not re.search(r"python_function|Call stack|\.py\b|\.so\b|hostname|/usr|/lib", text)


@pytest.mark.parametrize("kind", ["resnet_b8", "resnet_b16", "transformer_b4", "transformer_b8"])
def test_the_profiler_costs_something_but_not_much(kind: str) -> None:
    """The profiled steps are of the same size as those measured without the profiler: both are of one program."""
    entry = RECORDED[f"cpu_{kind}.json.gz"]
    events = json.loads(gzip.decompress(data_path("traces", f"cpu_{kind}.json.gz").read_bytes()))["traceEvents"]
    profiled = sorted(event["dur"] * 1e-6 for event in events if event["name"].startswith("ProfilerStep#") and event["ph"] == "X")
    assert 0.8 < profiled[len(profiled) // 2] / entry["unprofiled_step_s"] < 1.8


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody writes into it: reading would never end. The same holds for devices, which never end."""
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        for read in (load_npu, read_vendor, kind_of, lambda name: read_small(name, "give a file")):
            with pytest.raises(UnreadableInput, match="not a regular file"):
                read(str(path))


@pytest.mark.parametrize("name", ["none.yaml", "a/\0.yaml", "/" + "a" * 5000])
def test_paths_that_cannot_be_are_unreadable_input(name: str) -> None:
    for read in (load_npu, read_vendor, kind_of):
        with pytest.raises(UnreadableInput):
            read(name)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole: no disk is used
    with pytest.raises(UnreadableInput, match="larger than 256 MiB"):
        read_vendor(path)


def test_an_impossible_name_is_no_card() -> None:
    for name in ("a" * 5000, "\0", ""):
        with pytest.raises(InvalidSpec, match="no card of this name"):
            load_npu(name)
