"""``workbench rewrites`` and ``--rewrite`` as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

TRACE = "data/traces/synthetic_launch_bound.json.gz"


def test_rewrites_names_what_gives_most_and_what_hurts(run: Run) -> None:
    """Three steps of launch-bound inference: one graph launch a step beats everything, a split only adds launches."""
    asked = (TRACE, "--propose", "--limit", 6, "--rewrite", "split:aten::gelu=2")
    shown = run("rewrites", *asked)
    assert shown.returncode == 0, shown.stderr
    first, second = shown.stdout.splitlines()[:2]
    assert "saved" in first + second
    assert "costs more than it saves: split:aten::gelu=2" in shown.stdout
    found = json.loads(run("rewrites", *asked, "--json").stdout)
    assert found["rewrites"][0]["rewrite"] == "capture:*"
    assert found["enough"] == 1
    assert found["joint_step_s"] < 0.5 * found["base_step_s"]
    assert found["rewrites"][-1]["own_s"] < 0
    joint = sum(r["joint_s"] for r in found["rewrites"] if r["joint"])
    assert found["base_step_s"] - found["joint_step_s"] == pytest.approx(joint)


def test_what_rewrites_lists_predict_applies(run: Run) -> None:
    """A listed saving is the difference of two predictions; the answer says what was edited and that it is an estimate."""
    edit = "fuse:aten::addmm > aten::gelu"
    listed = json.loads(run("rewrites", TRACE, "--rewrite", edit, "--json").stdout)["rewrites"][0]
    base, after = (json.loads(run("predict", TRACE, *more, "--json").stdout)["traces"][TRACE] for more in ((), ("--rewrite", edit)))
    assert base["step_time_s"] - after["step_time_s"] == pytest.approx(listed["own_s"])
    assert (base["rewrites"], after["rewrites"]) == ([], [edit])
    assert after["measured_step_s"] == base["measured_step_s"]
    assert "aten::addmm + aten::gelu" in {operator["name"] for operator in after["operators"]}
    assert "rewrite-applied" in {note["code"] for note in after["notes"]}


def test_edited_predictions_can_be_written_and_swept(run: Run, folder: Path) -> None:
    out = folder / "edited.json"
    shown = run("predict", TRACE, "--rewrite", "capture", "--rewrite", "drop:aten::gelu", "--perfetto", out)
    assert shown.returncode == 0, shown.stderr
    assert len(json.loads(out.read_text())["traceEvents"]) > 100
    swept = run("sweep", TRACE, "--npu", "npu-x", "--rewrite", "capture", "--axis", "cores=16,32", "--json")
    assert swept.returncode == 0, swept.stderr


@pytest.mark.parametrize(
    ("edit", "code", "said"),
    [
        ("fuse:aten::gelu > aten::nothing", 1, "no operator or kernel of the recording has that name"),
        ("gemm", 2, "write fuse:A > B"),
        ("retype:gemm=int3", 1, "no element type"),
        ("batch:2x", 1, "batch"),
    ],
)
def test_edits_that_are_none_are_refused_in_one_line(run: Run, edit: str, code: int, said: str) -> None:
    shown = run("predict", TRACE, "--rewrite", edit)
    assert shown.returncode == code
    assert said in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_schema_is_published(run: Run) -> None:
    assert "joint_step_s" in json.loads(run("schema", "rewrites").stdout)["properties"]
