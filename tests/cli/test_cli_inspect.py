"""`workbench inspect` through its door: a summary on a screen, the answer first; JSON by its schema; options."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from workbench.cli import cli
from workbench.study.documents import schema


def inspected(*arguments: object) -> str:
    """Output of the command in this process: starting another one for every question takes too long."""
    done = CliRunner().invoke(cli, ["inspect", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_summary_fits_a_screen_and_begins_with_the_answer(run, traces):
    summary = run("inspect", traces[0])
    assert summary.returncode == 0, summary.stderr
    lines = summary.stdout.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith(traces[0][:60])
    assert any(line.startswith("3 steps, median") for line in lines[1:4])
    for words in ("where the mean step goes", "phases of the mean step", "forward", "backward", "optimizer", "largest operators (5 of"):
        assert words in summary.stdout


def test_json_holds_everything_and_follows_its_schema(traces):
    document = json.loads(inspected(traces[0], "--json"))
    jsonschema.validate(document, schema("inspect"))
    account = document["account"]
    parts = sum(account[f"{name}_s"] for name in ("compute", "exposed_communication", "exposed_copy", "host", "waiting", "idle"))
    assert parts == pytest.approx(account["step_s"], rel=1e-9)
    assert sum(row["share"] for row in document["phases"]) == pytest.approx(1.0)
    assert sum(row["share"] for row in document["operators"]) == pytest.approx(1.0)
    assert [row["kind"] for row in document["steps"]] == ["typical"] * 3
    costs = [one["cost_s"] for one in document["findings"]]
    assert costs == sorted(costs, reverse=True)


def test_rows_on_demand(traces):
    text = inspected(traces[1], "--top", 1, "--all")
    assert "device work by device/stream" in text
    assert "->" in text  # what to do about a finding
    assert "largest operators (1 of" in inspected(traces[1], "--top", 1)


def test_the_card_may_be_named(tmp_path: Path):
    """A product no A100 can do in 1 ms (3.5 ms at its peak), in a recording that does not name its card."""
    args = {"Input Dims": [[8192, 8192]] * 2, "Input type": ["c10::Half"] * 2, "Concrete Inputs": ["", ""]}
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 20, "args": args},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 5, "dur": 5, "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 30, "dur": 1000.5,
         "args": {"correlation": 1, "device": 0, "stream": 7}},
    ]  # fmt: skip
    path = tmp_path / "product.json"
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}))
    codes = {
        option: {one["code"] for one in json.loads(inspected(path, "--json", *option))["findings"]}
        for option in ((), ("--npu", "a100-sxm4-80gb"))
    }
    assert "faster-than-compute-roof" not in codes[()]
    assert "faster-than-compute-roof" in codes["--npu", "a100-sxm4-80gb"]
    refused = CliRunner().invoke(cli, ["inspect", str(path), "--npu", "no-such-card"])
    assert "no card of this name" in str(refused.exception)


def test_nothing_to_account_for_is_said_not_shown(shared: Path):
    """A trace of metadata alone has facts and a reason, no table."""
    text = inspected(shared / "cases" / "traces" / "meta_only.json")
    assert "nothing to account for" in text
    assert "where the mean step goes" not in text


@pytest.mark.parametrize("width", ["60", "80", "140"])
def test_names_are_whole_on_any_terminal(traces, width: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", width)
    text = inspected(traces[0])
    assert all(word in text for word in ("forward", "backward", "optimizer", "unknown"))
    assert max(map(len, text.splitlines())) <= int(width)
