"""The checked-in accuracy report: written anew by ``python3 run.py accuracy``, and never without its date and digest."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.anchors.report import lines, markdown

REPORT = Path(__file__).resolve().parents[2] / "data" / "reports" / "operator_accuracy.md"


@pytest.mark.accuracy
def test_write_the_report(shared, capsys):
    found = list(lines(shared))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(markdown(found, shared), encoding="utf-8")
    with capsys.disabled():
        print(REPORT.read_text(encoding="utf-8"))
    assert all(np.isfinite(line.shipped["mape"]) for line in found)


def test_the_report_says_when_and_on_what():
    text = REPORT.read_text(encoding="utf-8")
    assert re.search(r"on \d{4}-\d\d-\d\d; digest of the measurements [0-9a-f]{16}", text)
    assert text.count("\n| ") > 30
