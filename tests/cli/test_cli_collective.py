"""``workbench collective``: cases from public bug reports through the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from workbench.cli import main


def described(shared: Path, case: str, tmp_path: Path) -> tuple[Path, dict[str, object]]:
    """The cluster of a case without its question, and the question."""
    document = yaml.safe_load((shared / "cases" / "field" / case).read_text())
    question = document.pop("question")
    path = tmp_path / case
    path.write_text(yaml.safe_dump(document))
    return path, question


@pytest.mark.parametrize(("case", "seconds"), [("23_ring_8.yaml", 3.514e-3), ("23_ring_64.yaml", 4.0635e-3)])
def test_case_23_size_and_algorithm_enter(run, shared, tmp_path, case, seconds) -> None:
    path, question = described(shared, case, tmp_path)
    size = question["bytes"]
    asked = ("collective", "--cluster", path, "--collective", "all_reduce", "--sizes", f"{size}:{size}:1", "--json", "--algorithm")
    rows = {name: json.loads(run(*asked, name).stdout)["rows"][0] for name in question["algorithms"]}
    assert rows["ring"]["seconds"] == pytest.approx(seconds, rel=1e-9)
    assert rows["direct"]["seconds"] > rows["ring"]["seconds"]  # on a physical ring it pays for its hops
    assert all(load <= 1 for row in rows.values() for load in row["link_load"].values())
    switched = run(*asked, "direct", "--set", "tiers.ring.topology=switch")
    expected = {"23_ring_8.yaml": 3.502e-3, "23_ring_64.yaml": 3.9395e-3}[case]
    assert json.loads(switched.stdout)["rows"][0]["seconds"] == pytest.approx(expected, rel=1e-9)


def test_case_26_no_size_is_negative_or_falls(run, shared, tmp_path) -> None:
    out = tmp_path / "rows.csv"
    done = run("collective", shared / "cases" / "field" / "26_message_sizes.csv", "--cluster", "dgx-h100", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    seconds = [row["seconds"] for row in document["rows"]]
    assert len(seconds) == 11
    assert 0 < seconds[0] <= seconds[1]
    assert seconds == sorted(seconds)
    assert [note["code"] for note in document["notes"]].count("group-smaller-than-cluster") == 1
    with out.open() as rows:
        assert [float(row["seconds"]) for row in csv.DictReader(rows)] == seconds


def test_the_size_from_which_another_algorithm_is_faster(run) -> None:
    done = run("collective", "--cluster", "pyramid-1024", "--collective", "AllReduce", "--cards", "8,128", "--json")
    document = json.loads(done.stdout)
    assert len(document["rows"]) == 62
    for first, then in zip(document["ranges"], document["ranges"][1:], strict=False):
        if first["cards"] == then["cards"]:
            assert first["to_bytes"] == then["from_bytes"]
    text = run("collective", "--cluster", "pyramid-1024", "--collective", "all_reduce", "--cards", "128", "--top", "3").stdout
    assert "fastest by size" in text
    assert "messages (3 of 31)" in text


def test_measured_times_are_compared(run, tmp_path) -> None:
    table = tmp_path / "measured.csv"
    table.write_text("op,num_ranks,bytes,time_us\nall_reduce,8,1 MiB,40\nall_gather,8,1048576,\n")
    done = run("collective", table, "--cluster", "dgx-h100", "--json")
    first, second = json.loads(done.stdout)["rows"]
    assert first["error"] == pytest.approx(first["seconds"] / 40e-6 - 1)
    assert (second["measured_s"], second["error"]) == (None, None)
    assert "median error" in run("collective", table, "--cluster", "dgx-h100").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--cluster", "dgx-h100"], 2, "give a file of messages, or --collective"),
        (["--cluster", "dgx-h10", "--collective", "all_reduce"], 1, "nearest: dgx-h100"),
        (["--cluster", "dgx-h100", "--collective", "all_reduc"], 1, "did you mean 'all_reduce'"),
        (["--cluster", "dgx-h100", "--collective", "all_reduce", "--cards", "4096"], 1, "do not fit its 1024 cards"),
        (["--cluster", "dgx-h100", "--collective", "all_reduce", "--cards", "0"], 1, "is no count"),
        (["--cluster", "dgx-h100", "--collective", "all_reduce", "--sizes", "8"], 1, "FROM:TO:COUNT"),
        (["--cluster", "dgx-h100", "--collective", "all_reduce", "--algorithm", "quantum"], 1, "no way to do all_reduce"),
        (["--cluster", "dgx-h100", "--collective", "all_reduce", "--compress", "32"], 2, "--compress and --codec go together"),
        (["nowhere.csv", "--cluster", "dgx-h100"], 2, "nowhere.csv"),
    ],
)
def test_what_makes_no_question_is_refused(arguments, code, said, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["collective", *arguments])
    assert ended.value.code == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("op,bytes\nall_reduce,8\n", "no column 'cards'"),
        ("op,cards,bytes\nall_reduce,8,-1\n", "column 'bytes'"),
        ("op,cards,bytes\nall_reduce,x,1\n", "'x' is no count"),
        ("op,cards,bytes\ngemm,8,1\n", "is no collective"),
    ],
)
def test_a_bad_table_is_refused_by_cell(tmp_path, text, said, capsys) -> None:
    table = tmp_path / "sizes.csv"
    table.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["collective", str(table), "--cluster", "dgx-h100"])
    assert ended.value.code == 1
    found = capsys.readouterr().err
    assert said in found
    assert "sizes.csv" in found


def test_compression_pays_on_slow_links_and_not_on_fast_ones(run, tmp_path) -> None:
    # ratio 32 at 60 GB/s: codec work of 3 S/60 GB/s; a ring's 2 S/12.5 GB/s is longer, 2 S/200 GB/s is not
    asked = ("--collective", "all_reduce", "--sizes", "1 MB:1 GB:2", "--compress", "32", "--codec", "60 GB/s", "--json")
    for rate, pays in (("12.5 GB/s", True), ("200 GB/s", False)):
        path = tmp_path / "made.yaml"
        tier = f"{{name: unit, size: 32, topology: switch, bandwidth_per_direction: {rate}, latency: 5 us}}"
        path.write_text(f"name: made\nsources: [made here]\ntiers: [{tier}]\n")
        document = json.loads(run("collective", "--cluster", path, *asked).stdout)
        last = document["rows"][-1]
        assert (last["compressed_s"] < last["seconds"]) == pays
        assert (document["compression"][0]["from_bytes"] is not None and document["compression"][0]["to_bytes"] is None) == pays


def test_a_fit_is_written_and_told(run, tmp_path) -> None:
    table, out = tmp_path / "measured.csv", tmp_path / "fitted.yaml"
    document = json.loads(run("collective", "--cluster", "dgx-a100", "--collective", "all_gather", "--cards", "2,8", "--json").stdout)
    with table.open("w") as target:
        target.write("collective,cards,bytes,time_us\n")
        target.writelines(f"all_gather,{r['cards']},{r['bytes']:.0f},{2e6 * r['seconds']}\n" for r in document["rows"])
    done = run("collective", table, "--cluster", "dgx-a100", "--fit", out)
    assert done.returncode == 0, done.stderr
    assert "median error of messages left out" in done.stdout
    again = json.loads(run("collective", table, "--cluster", out, "--json").stdout)
    assert max(abs(row["error"]) for row in again["rows"]) < 0.05  # twice as slow in all: launches, steps and bandwidth
