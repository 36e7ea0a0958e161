"""``workbench rewrites`` and ``--rewrite`` as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from workbench.study.documents_rewrites import RewritesDocument
from workbench.study.terminal_rewrites import rewrites_text

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


def test_rewrites_say_what_comes_off_the_device_and_that_there_is_no_more(run: Run) -> None:
    """12 products with a gelu in each step of the program become 12 kernels: 12 of 24 are gone, a capture removes launches only."""
    shown = run("rewrites", TRACE, "--npu", "h100-sxm", "--limit", 1)
    assert shown.returncode == 0, shown.stderr
    assert "kernels off" in shown.stdout and "off the device: 0 kernels and 0 s" in shown.stdout
    assert "invites 3 edits; 1 was tried (--limit)" in shown.stdout
    found = json.loads(run("rewrites", TRACE, "--npu", "h100-sxm", "--json").stdout)
    off = {one["rewrite"]: (one["kernels"], one["device_s"]) for one in found["rewrites"]}
    assert off["capture:*"] == (0, pytest.approx(0, abs=1e-12))
    assert off["fuse:aten::addmm > aten::gelu"][0] == 12
    assert off["fuse:aten::addmm > aten::gelu"][1] > 0
    assert found["joint_kernels"] == 24
    assert found["joint_device_s"] == pytest.approx(sum(saved for _, saved in off.values()), rel=1e-6), "they touch different operators"
    text = "\n".join(str(part) for part in rewrites_text(RewritesDocument.model_validate(found), 3))
    assert "the recording invites 3 edits, no more" in text
    assert "the first alone gives 80 % of it" in text


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
