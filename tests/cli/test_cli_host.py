"""``predict --host``, ``--model-only`` and ``--unprofiled-step`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Run
from workbench.cli import main
from workbench.data import data_path
from workbench.study.report import schema

TRACE = str(data_path("traces", "synthetic_launch_bound.json.gz"))


def test_a_host_by_name_and_the_model_alone(run: Run) -> None:
    done = run("predict", TRACE, "--npu", "mi300x", "--host", "xeon-8480c-mi300x", "--model-only", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["traces"].values()
    assert (found["host"], found["anchored"], found["profiler_event_s"]) == ("xeon-8480c-mi300x", False, 0.0)
    assert 0.5 < found["launch_bound"]["predicted"] <= 1
    assert found["launch_bound"]["longest"][0]["launches"] > 0
    assert found["distribution"]["counted"] == len(found["steps"])


def test_a_factor_and_the_step_without_the_profiler(capsys: pytest.CaptureFixture[str]) -> None:
    """The recording's steps take 1.07 ms: 0.9 ms without the profiler, on a host that takes half."""
    with pytest.raises(SystemExit) as ended:
        main(["predict", TRACE, "--host", "0.5", "--unprofiled-step", "0.9 ms"])
    out = " ".join(capsys.readouterr().out.split())  # lines break where the terminal ends
    assert ended.value.code in (0, None)
    assert "without the profiler" in out and "host factor 0.5" in out and "profiler-cost" in out
    assert "launch-bound" in out and "shortest / median / longest" in out


@pytest.mark.parametrize(
    "wrong",
    [
        ("--unprofiled-step", "9 s"),
        ("--unprofiled-step", "12"),
        ("--unprofiled-step", "1 ns"),
        ("--host", "no-such-host"),
        ("--host", "-1"),
        ("--host", "nan"),
        ("--host", "1", "--host-factor", "2"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["predict", TRACE, *wrong])
    out, line = capsys.readouterr()
    assert ended.value.code in (1, 2)
    assert out == ""
    assert line.startswith("error: ") and line.count("\n") == 1 and "Traceback" not in line


def test_hosts_are_measured_written_and_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A recording against itself: every figure is 1, and the host written changes nothing."""
    with pytest.raises(SystemExit) as ended:
        main(["hosts", TRACE, TRACE, "--names", "here,there", "--out", str(tmp_path), "--json"])
    assert ended.value.code in (0, None)
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema("hosts")).validate(document)
    assert {row["kind"] for row in document["figures"]} >= {"operators", "launch"}
    assert all(row["ratio"] == pytest.approx(1.0) for row in document["figures"])
    steps = []
    for asked in ([], ["--source-host", str(tmp_path / "here.yaml"), "--host", str(tmp_path / "there.yaml")]):
        with pytest.raises(SystemExit):
            main(["predict", TRACE, *asked, "--json"])
        (found,) = json.loads(capsys.readouterr().out)["traces"].values()
        steps.append(found["step_time_s"])
    assert steps[0] == pytest.approx(steps[1])
    with pytest.raises(SystemExit) as ended:
        main(["hosts", TRACE])
    assert ended.value.code == 2
    assert "two a program" in capsys.readouterr().err
