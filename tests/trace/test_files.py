"""Directories and patterns of rank files."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path

import pytest

from workbench.errors import Refused, UnreadableInput
from workbench.trace.files import Asked, asked, read_all
from workbench.trace.open import open_trace


def profile(rank: int) -> bytes:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": rank, "dur": 1, "args": {"device": 0, "stream": 7}}
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": 12}, "traceEvents": [kernel]}).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve ranks, one of them compressed, among other things."""
    for rank in range(12):
        (tmp_path / f"rank{rank}.json").write_bytes(profile(rank) if rank != 3 else gzip.compress(profile(rank)))
    (tmp_path / "README.md").write_text("what this is")
    (tmp_path / "config.json").write_text('{"layers": 12}')
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / ".hidden.json").write_text("{")
    return tmp_path


def test_directory_opens_as_one_trace(folder: Path) -> None:
    trace = open_trace(folder)
    assert [r.rank for r in trace.ranks] == list(range(12)), "in natural order: rank 2 before rank 10"
    skipped = [Path(n.where).name for n in trace.notes if n.code == "file-skipped"]
    assert sorted(skipped) == ["README.md", "config.json", "table.csv"]


def test_pattern_opens_as_one_trace(folder: Path) -> None:
    assert len(open_trace(str(folder / "rank[0-5].json")).ranks) == 6
    assert open_trace(str(folder / "rank*.json")).digest == open_trace(folder).digest
    assert len(open_trace([folder / "rank1?.json", folder / "rank0.json"]).ranks) == 3


def test_files_below_a_directory(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"host{rank}").mkdir()
        (tmp_path / f"host{rank}" / "trace.json").write_bytes(profile(rank))
    assert len(open_trace(tmp_path).ranks) == 2


def test_a_path_with_brackets_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "run[1].json").write_bytes(profile(1))
    assert open_trace(tmp_path / "run[1].json").ranks[0].rank == 1


def test_damage_in_a_directory_is_not_skipped(folder: Path) -> None:
    (folder / "rank12.json").write_bytes(profile(12)[:-20])
    with pytest.raises(UnreadableInput, match=r"rank12\.json"):
        open_trace(folder)
    assert len(open_trace(folder, salvage=True).ranks) == 12 + 1


def test_a_named_file_that_is_no_trace_is_refused(folder: Path) -> None:
    with pytest.raises(UnreadableInput, match=r"config\.json"):
        open_trace([folder / "rank0.json", folder / "config.json"])


def test_two_files_of_one_rank_in_a_directory(folder: Path) -> None:
    (folder / "again.json").write_bytes(profile(4))
    with pytest.raises(Refused, match="both files are rank 4"):
        open_trace(folder)


@pytest.mark.parametrize(("name", "words"), [("", "holds no file"), ("x*.json", "no file matches"), ("only", "holds no trace")])
def test_nothing_to_open(tmp_path: Path, name: str, words: str) -> None:
    if name == "only":
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("none")
    with pytest.raises(UnreadableInput, match=words):
        open_trace(str(tmp_path / name) if name else tmp_path)


def test_reading_side_by_side_keeps_the_order_of_files(tmp_path: Path) -> None:
    """The second file is done before the first; where several fail, the first one is named."""
    second = threading.Event()

    def read(path: Path) -> str:
        if path.name == "0":
            second.wait(5)
        second.set()
        if path.name in ("2", "3"):
            raise UnreadableInput(path.name, "is broken", "mend it")
        return path.name

    assert read_all([Asked(Path("0")), Asked(Path("1"))], read)[0] == ["0", "1"]
    with pytest.raises(UnreadableInput, match=r"^2: "):
        read_all([Asked(Path(name)) for name in "0123"], read)


def test_megatron_directory(shared: Path) -> None:
    """Eight profiles and the eight execution traces recorded with them are eight ranks."""
    found = asked(shared / "traces" / "megatron_a100_tp8")
    assert len(found) == 16
    trace = open_trace(shared / "traces" / "megatron_a100_tp8" / "*rank[01].json.gz")
    assert [r.rank for r in trace.ranks] == [0, 1]
    assert sum(n.code == "execution-trace-joined" for n in trace.notes) == 2
