"""The checked-in accuracy report: written anew by ``python3 run.py accuracy``, and never without its date and digests."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import numpy as np
import pytest

from tests.anchors.general import write
from tests.anchors.report import digests, markdown, report
from workbench.cost.errors import unfitted

DATA = Path(__file__).resolve().parents[2] / "data"
REPORT, ERRORS = DATA / "reports" / "operator_accuracy.md", DATA / "errors" / "operators.yaml"


@pytest.mark.accuracy
def test_write_the_report(shared, capsys):
    """Writes the report and the intervals of cards without a fit; asks of both only what holds whatever the figures."""
    found, date = report(shared), datetime.date.today().isoformat()
    data, model = digests(shared)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(markdown(found, date, data, model), encoding="utf-8")
    write(found.generals, ERRORS, date, data)
    with capsys.disabled():
        print(REPORT.read_text(encoding="utf-8"))
    assert all(np.isfinite(line.joint["mape"]) for one in found.scored for line in one.lines)
    assert 0.75 <= found.inside <= 0.85


def test_the_report_says_when_and_on_what():
    text = REPORT.read_text(encoding="utf-8")
    assert re.search(r"on \d{4}-\d\d-\d\d; digest of the measurements [0-9a-f]{16}; digest of the model .* [0-9a-f]{16}\.", text)
    assert text.count("\n| ") > 100
    for title in (
        "Fitted jointly",
        "Beside the rooflines",
        "M, N, K >= 512",
        "A card left out",
        "A family of shapes left out",
        "Which card",
    ):
        assert f"## {title}" in text or title in text


def test_intervals_of_unfitted_cards_hold_the_prediction():
    for low, high in unfitted().values():
        assert -1 < low <= 0 <= high
