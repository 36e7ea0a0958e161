"""``workbench compare`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_compare_says_what_got_slower(run: Run, folder: Path) -> None:
    a, b = "data/traces/cpu_resnet_b8.json.gz", "data/traces/cpu_resnet_b16.json.gz"
    out = folder / "compared.csv"
    shown = run("compare", a, b, "--top", 3, "--out", out)
    assert shown.returncode == 0, shown.stderr
    assert "slower than A" in shown.stdout
    answer = shown.stdout.split("\nA  ")[0]
    assert "aten::convolution_backward" in answer.splitlines()[1]
    assert max(map(len, shown.stdout.splitlines())) <= 100
    assert out.read_text().startswith("label,kind,aligned_by,")
    found = json.loads(run("compare", a, b, "--json").stdout)
    assert found["delta_s"] > 0
    assert found["operators"][0]["label"] == "aten::convolution_backward"


def test_compare_refuses_in_one_line(run: Run) -> None:
    a = "data/traces/synthetic_ddp.json.gz"
    asked = (
        ((a, a, "--step", "77"), 1, "no step 77"),
        ((a, a, "--step", "x"), 2, "nor median"),
        ((a, a, "--rank", 5), 1, "no steps of rank 5"),
        ((a,), 2, "AFTER"),
    )
    for arguments, code, word in asked:
        found = run("compare", *arguments)
        assert found.returncode == code
        assert word in found.stderr
        assert len(found.stderr.splitlines()) == 1
