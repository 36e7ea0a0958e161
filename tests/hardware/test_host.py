"""Hosts as data: what ships, what is refused, what a recording names."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.errors import InvalidSpec, UnreadableInput
from workbench.hardware.host import CALLS, KINDS, WORK, detect_host, hosts, load_host, read_host

TEXT = 'name: "one"\ntakes: {interpreter: 0.5}\ncalls: {launch: "4 us"}\n'


@pytest.mark.parametrize("name", hosts())
def test_shipped_hosts_state_all_kinds_and_where_from(name: str) -> None:
    spec = load_host(name.upper())
    assert spec.name == name
    assert spec.sources and spec.weak
    left_out = {"compute"} if "compute is not stated" in " ".join(spec.weak) else set()
    assert set(spec.takes) == set(WORK) - left_out
    assert set(spec.calls) == set(CALLS)
    assert set(spec.spread) == set(KINDS) - left_out


def test_processors_are_recognised_as_lscpu_writes_them() -> None:
    """Names from the metadata of public recordings."""
    for processor, name in (
        ("AMD EPYC 9654 96-Core Processor", "epyc-9654-h100"),
        ("Intel(R) Xeon(R) Platinum 8480C", "xeon-8480c-mi300x"),
    ):
        found = detect_host(processor)
        assert found is not None and found.name == name
    assert detect_host("Intel(R) Xeon(R) Processor") is None
    assert detect_host("") is None


def test_a_description_is_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT)
    spec = load_host(str(path))
    assert spec.figure("interpreter") == 0.5
    assert spec.figure("launch") == pytest.approx(4e-6)
    assert spec.figure("library") is None
    assert spec.digest != read_host(TEXT.replace("0.5", "0.6")).digest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.replace("interpreter", "interpretr"), "did you mean 'interpreter'"),
        (TEXT.replace('"4 us"', "4"), "launch"),
        (TEXT.replace("takes", "take"), "take"),
        (TEXT.replace("0.5", "-1"), "interpreter"),
        ("- one", "not a host"),
        (TEXT.replace('name: "one"\n', ""), "name"),
        (TEXT.replace("{interpreter: 0.5}", "5"), "takes"),
    ],
)
def test_what_does_not_hold_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(InvalidSpec) as fault:
        read_host(text, "mine.yaml")
    assert words in str(fault.value)
    assert "mine.yaml:" in str(fault.value)


def test_an_unknown_host_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="epyc-9654-h100"):
        load_host("epyc-9655")
    with pytest.raises(UnreadableInput):
        load_host(str(tmp_path / "none.yaml"))
