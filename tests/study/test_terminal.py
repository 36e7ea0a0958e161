"""What a person reads in a terminal: complete, and at most 100 columns."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from workbench.study.axes import linspace
from workbench.study.predict import predict
from workbench.study.report import inspect_document, prediction_document
from workbench.study.sweep import sweep
from workbench.study.terminal import percent, prediction_text, seconds, sweep_text
from workbench.study.terminal_inspect import inspect_text


def shown(parts) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False)
    for part in parts:
        console.print(part)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 100
    return text


def test_a_prediction_shows_headline_account_evidence_operators_and_lags(prediction):
    text = shown(prediction_text("step.json", prediction_document(prediction)))
    wanted = (
        "measured",
        "predicted",
        "speed-up",
        "npu-x",
        "exposed communication",
        "rests on",
        "whose shapes are recorded",
        "largest operators",
    )
    assert not [words for words in wanted if words not in text]
    largest = prediction.table.name[int(prediction.operators()["operator"][0])]
    assert largest in text.replace("\n", "").replace(" ", "")
    assert f" 1   {largest}: " in text  # why it takes so long


def test_an_identity_replay_does_not_speak_of_coverage(scenario):
    text = shown(prediction_text("step.json", prediction_document(predict(replace(scenario, npu=None)))))
    assert "replayed as measured" in text
    assert "not priced" not in text


def test_names_with_brackets_are_shown_as_they_are(prediction):
    """Rich reads [red] as markup; operator names are full of brackets."""
    name = "void kernel[bold](float*)"
    table = replace(prediction.table, name=(name,) * len(prediction.table))
    assert name in shown(prediction_text("[step].json", prediction_document(replace(prediction, table=table))))


def test_facts_and_their_notes(workload):
    text = shown(inspect_text(inspect_document(workload.trace), everything=True))
    assert "kernels" in text
    assert "device work by device/stream" in text
    short = shown(inspect_text(inspect_document(workload.trace)))
    assert "device work by device/stream" not in short
    assert len(short.splitlines()) <= 60


def test_a_line_of_cells_shows_the_gain_of_each_step_and_a_grid_the_fastest(scenario):
    line = shown(sweep_text(sweep(scenario, {"npu.memory.hbm.bandwidth": linspace("0.8 TB/s", "6.4 TB/s", 4)}, progress=False)))
    assert "gain" in line
    assert "6.4 TB/s" in line
    grid = shown(sweep_text(sweep(scenario, {"npu.cores": [8, 8.5, 16], "host_factor": [1, 2]}, progress=False)))
    assert "fastest" in grid
    assert "2 invalid" in grid


@pytest.mark.parametrize(("steps", "said"), [
    ([4.0, 2.0, 1.5, 1.49, 1.488], "from 3 on a further step gains less than 1 %"),  # gains 50, 25, 0.67 and 0.13 %
    ([4.0, 2.0, 1.99, 1.5, 1.499], "from 4 on"),  # one small step before a large one is no knee
    ([4.0, 3.0, 2.0, 1.0, 0.5], ""),  # every step pays
    ([4.0, 3.0, 2.99, 3.1, 3.2], ""),  # more can cost
    ([1.0, 1.0, 1.0, 1.0, 1.0], ""),  # nothing pays
])  # fmt: skip
def test_a_line_says_from_where_on_a_step_no_longer_pays(scenario, steps, said):
    dataset = sweep(scenario, {"host_factor": [1.0, 2.0, 3.0, 4.0, 5.0]}, progress=False)
    dataset["step_time"].values[:] = steps
    text = shown(sweep_text(dataset))
    assert said in text
    assert ("further step" in text) == bool(said)


def test_what_limits_the_trust_stands_below_the_headline(prediction):
    """npu-x is invented, and every prediction on it says so before any number is read."""
    lines = shown(prediction_text("step.json", prediction_document(prediction))).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("caution: "))
    assert "unvalidated" in lines[at] + lines[at + 1]
    assert at < next(i for i, line in enumerate(lines) if "where a step's time goes" in line)
    assert sum("[unvalidated-card" in line for line in lines) == 1


def test_an_anchored_prediction_does_not_call_its_operators_unpriced(scenario):
    document = prediction_document(predict(replace(scenario, anchored=True)))
    text = shown(prediction_text("step.json", document))
    assert "anchored: recorded times" in text
    assert {row.name for row in document.unpriced}.isdisjoint(row.name for row in document.operators if row.evidence == "anchored")
    assert "low-coverage" not in text


def test_a_what_if_stands_in_the_headline(scenario):
    text = shown(prediction_text("step.json", prediction_document(predict(replace(scenario, scale=(("aten::*", 0.5),))))))
    assert "aten::* takes 0.5x" in text


def test_numbers_without_a_value():
    assert (seconds(None), seconds(float("nan")), percent(None), seconds(-2e-3)) == ("-", "-", "-", "-2 ms")
    assert seconds(0.0123456) == "12.35 ms"
    assert percent(0.1234) == "12.3 %"


@pytest.mark.parametrize("most", [1, 3])
def test_top_limits_the_rows(prediction, most):
    text = shown(prediction_text("step.json", prediction_document(prediction), most))
    assert f"largest operators ({min(most, len(prediction.table))} of {len(prediction.table)}" in text


def test_names_with_whole_template_lists_are_cut(prediction):
    name = "kernel<" + "int, " * 100 + ">"
    table = replace(prediction.table, name=(name,) * len(prediction.table))
    text = shown(prediction_text("step.json", prediction_document(replace(prediction, table=table))))
    assert name[:69] + "..." in text.replace("\n     ", " ").replace("  ", " ")
    assert name not in text
