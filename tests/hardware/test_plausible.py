"""Absurd figures are doubted by name, all of the catalogue passes, and a card that holds no tile is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.hardware.npu import catalogue, load_npu
from workbench.study.check import check_file

ABSURD = {
    "clock": 1.0, "memory.hbm.bandwidth": 1.0, "memory.hbm.latency": 3600.0, "memory.l2.bandwidth": 1.0,
    "runtime.launch_overhead": 60.0,
}  # fmt: skip


def doubts(spec):
    return [note for note in spec.notes if note.code == "implausible"]


@pytest.mark.parametrize("name", catalogue())
def test_no_card_of_the_catalogue_is_doubted(name):
    assert not doubts(load_npu(name))
    assert check_file(name)[1] == 0


@pytest.mark.parametrize(("path", "value"), ABSURD.items())
def test_what_no_silicon_has_had_is_named(path, value, tmp_path):
    file = tmp_path / "absurd.yaml"
    file.write_text(replace(load_npu("npu-x").with_si({path: value}), sources=("a test",)).to_yaml())
    notes = doubts(load_npu(str(file)))
    assert any(note.text.startswith(f"{path} of ") for note in notes)
    assert all("check the unit" in note.fix for note in notes)


def test_a_local_memory_that_holds_no_tile_is_an_error(tmp_path):
    text = load_npu("npu-x").with_si({"memory.l1.size": 64.0}).to_yaml()
    path = tmp_path / "tiny.yaml"
    path.write_text(text)
    document, code = check_file(str(path))
    assert code == 1
    assert "memory.l1.size" in (document.error or "")
