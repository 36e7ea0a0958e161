"""The tab of edits: the answer first, every edit with its savings, costs in another tone."""

from __future__ import annotations

from workbench import Scenario, open_trace, rewrites
from workbench.app.inviting import study_html
from workbench.data import data_path


def test_edits_are_shown_with_what_they_save_and_what_they_cost() -> None:
    trace = open_trace([data_path("traces", "synthetic_launch_bound.json.gz")])
    text = study_html(rewrites(Scenario(trace), ["capture", "split:aten::gelu=2"], propose=False))
    assert "with 1 edit:" in text
    assert text.index("capture:*") < text.index("split:aten::gelu=2")
    assert "<td class='n down'>" in text.partition("split:aten::gelu=2")[0]
    assert "<td class='n up'>" in text.partition("split:aten::gelu=2")[2]
    assert "assumed: shapes and control flow" in text


def test_names_of_operators_are_text_not_markup() -> None:
    trace = open_trace([data_path("traces", "synthetic_launch_bound.json.gz")])
    assert "aten::addmm &gt; aten::gelu" in study_html(rewrites(Scenario(trace), ["fuse:aten::addmm > aten::gelu"], propose=False))
