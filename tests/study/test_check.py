"""`check`: what a file is, and what is wrong with it."""

from __future__ import annotations

import gzip

import pytest

from workbench.data import data_path
from workbench.errors import UnreadableInput
from workbench.hardware.npu import load_npu
from workbench.study.check import check_file, kind_of

CARD = load_npu("npu-x").to_yaml()


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("card.yaml", b"name: x\n", "npu"),
        ("card", b"# a card\nname: x\n", "npu"),
        ("card.txt", b"name: x\nmemory:\n", "npu"),
        ("times.csv", b"op,time\n", "vendor"),
        ("times", b"op,time\n", "vendor"),
        ("trace", b' {"traceEvents": []}', "trace"),
        ("trace.csv", b"\xef\xbb\xbf[]", "trace"),
        ("trace.dat", gzip.compress(b"{}"), "trace"),
        ("flow.yaml", b"{name: x}", "npu"),
        ("empty", b"", "trace"),
    ],
)
def test_the_kind_is_read_from_the_content(tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(content)
    assert kind_of(str(tmp_path / name)) == kind


def test_a_folder_or_nothing_is_unreadable(tmp_path):
    for path in (tmp_path, tmp_path / "missing.yaml"):
        with pytest.raises(UnreadableInput):
            kind_of(str(path))


def test_good_files_say_what_they_are():
    card, code = check_file("npu-x")
    assert (code, card.ok, card.kind, card.name) == (0, True, "npu", "npu-x")
    trace, code = check_file(str(data_path("traces", "synthetic_queue_full.json.gz")))
    assert (code, trace.ok, trace.kind) == (0, True, "trace")
    assert "replayed" in trace.summary


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    bandwidth:", "    bandwith:", ("bandwith", "bandwidth")),  # cases/field/32: misspelt
        ("\nmemory:", "\nl2: {size: 96 MiB, bandwidth: 6 TB/s}\nmemory:", ("l2", "memory")),  # cases/field/32: misplaced
    ],
)
def test_a_fault_names_file_line_key_and_the_nearest_key(tmp_path, old, new, words):
    path = tmp_path / "card.yaml"
    path.write_text(CARD.replace(old, new, 1))
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if words[0] in text and text not in CARD.splitlines())
    document, code = check_file(str(path))
    assert code == 1
    assert not document.ok
    assert f"{path}:{line}" in document.error
    assert all(word in document.error for word in words)


def test_handed_faulty_cards_are_refused(shared):
    for path in (shared / "cases" / "field").glob("32_*.yaml"):
        document, code = check_file(str(path))
        assert code == 1
        assert str(path) in document.error
