"""A session: what is set is what is predicted; what does not hold changes nothing and is said."""

from __future__ import annotations

import csv
import json

import pytest

from workbench.app.cards import headline
from workbench.app.editor import Editor, grouped, text_of
from workbench.app.exports import card_yaml, operators_csv, timeline_json
from workbench.app.serve import pages
from workbench.app.shelf import Shelf
from workbench.app.state import AS_RECORDED, Session, parse_edits
from workbench.app.sweeping import Sweep, compute
from workbench.app.tables import lag_html, notes_html, operator_frame
from workbench.errors import InvalidSpec, Note, Refused, UnreadableInput
from workbench.hardware.npu import load_npu
from workbench.hardware.text import read_yaml
from workbench.study.predict import predict
from workbench.study.scenario import Scenario


def test_a_session_answers_like_the_library(session, said):
    """The step shown is the one `predict` gives for the same scenario, before and after an edit."""
    assert not said
    base = Scenario(session.workload, npu=load_npu("npu-x"))
    assert session.answer.prediction.step_time_s == predict(base).step_time_s
    session.set_field("memory.hbm.bandwidth", "1.6 TB/s")
    changed = predict(base.with_({"npu.memory.hbm.bandwidth": "1.6 TB/s"}))
    assert session.answer.prediction.step_time_s == changed.step_time_s
    assert session.edits == "memory.hbm.bandwidth=1.6 TB/s"
    session.set_value("memory.hbm.bandwidth", 3.2e12)
    assert session.edits == "", "the card's own value is no edit"
    assert session.answer.prediction.step_time_s == predict(base).step_time_s


def test_as_recorded_is_the_identity(session):
    session.choose(AS_RECORDED)
    assert session.spec is None
    assert session.answer.prediction.step_time_s == pytest.approx(session.answer.prediction.measured_step_s, rel=1e-3)
    with pytest.raises(Refused, match="no card"):
        session.set_field("cores", "4")


@pytest.mark.parametrize("text", ["fast", "3.2 TB", "-1 TB/s", "", "nan TB/s"])
def test_a_value_that_does_not_hold_is_said_and_changes_nothing(session, text):
    before = session.answer
    with pytest.raises(InvalidSpec):
        session.set_field("memory.hbm.bandwidth", text)
    assert session.edits == "" and session.answer is before


def test_the_editor_says_a_wrong_value_beside_its_field(session):
    editor, sent = Editor(session), []
    editor.fields._send_msg = sent.append
    editor.handle({"type": "text", "path": "cores", "text": "many"})
    assert sent[-1]["path"] == "cores" and "not a number" in sent[-1]["text"]
    editor.handle({"type": "text", "path": "cores", "text": "64"})
    assert sent[-1]["text"] == "" and session.spec.cores == 64
    assert editor.fields.values["cores"][2] is True
    editor.handle({"type": "reset", "path": "cores"})
    assert session.spec.cores == load_npu("npu-x").cores and editor.fields.values["cores"][2] is False


def test_every_field_is_offered_once_with_help(session):
    offered = [field for group in grouped(tuple(session.fields().values())) for field in group["fields"]]
    assert sorted(field["path"] for field in offered) == sorted(session.fields())
    assert all(field["help"] for field in offered)


def test_sizes_are_written_as_they_were_meant():
    assert text_of(96e9, "B") == "96 GB"
    assert text_of(512 * 1024, "B") == "512 KiB"
    assert text_of(3.2e12, "B/s") == "3.2 TB/s"
    assert text_of(32.0, "") == "32"


def test_an_address_with_unknown_names_falls_back_and_is_said(shelf, said):
    session = Session(shelf, None, lambda act: act(), said.append)
    session.spec = None
    session.npu = "no-such-card"
    assert session.npu == "npu-x" and session.spec is not None
    assert "no-such-card" in str(said[0])
    with pytest.raises(InvalidSpec, match="path=value"):
        parse_edits("cores")


def test_a_broken_file_is_said_and_the_old_answer_stays(session, said, tmp_path):
    before, path = session.answer, tmp_path / "cut.json"
    path.write_text('{"traceEvents": [{"ph": "X", "na')
    session.open("cut.json", (path,))
    assert isinstance(said[-1], UnreadableInput) and "cut.json" in str(said[-1])
    assert session.answer is before and session.busy == ""


def test_a_picker_stays_in_its_folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("{}")
    (tmp_path / "secret.json").write_text("{}")
    shelf = Shelf([], tmp_path / "in")
    assert shelf.files() == ["a.json"]
    assert shelf.inside("a.json").name == "a.json"
    with pytest.raises(Refused, match="not below"):
        shelf.inside("../secret.json")
    with pytest.raises(Refused, match="no folder"):
        Shelf().inside("a.json")


def test_recordings_are_read_once(shelf):
    path = (shelf.samples()["synthetic_ddp.json.gz"],)
    assert shelf.open(path) is shelf.open(path)


def test_exports_read_back(session):
    session.set_field("cores", "48")
    rows = list(csv.DictReader(operators_csv(session).getvalue().decode().splitlines()))
    assert len(rows) == len(session.answer.prediction.table)
    assert {float(row["predicted_s [s]"]) for row in rows} == set(session.answer.prediction.op_seconds.tolist())
    assert json.loads(timeline_json(session).getvalue())["traceEvents"]
    assert read_yaml(card_yaml(session).getvalue().decode(), "card.yaml").cores == 48


def test_the_sweep_passes_through_the_prediction(session):
    """At the card's own value the curve is the prediction; whole fields take whole values only."""
    scenario = session.answer.prediction.scenario
    found = compute(Sweep(scenario, "memory.hbm.bandwidth", 1.6e12, 4.8e12, 3))
    assert found.step_s[1] == pytest.approx(session.answer.prediction.step_time_s, rel=1e-12)
    whole = compute(Sweep(scenario, "vector.lanes", 32, 512, 15))
    assert not any(whole.reason)
    assert (whole.x == whole.x.round()).all()


def test_words_are_escaped_and_complete(session):
    prediction = session.answer.prediction
    html = headline(prediction, dark=False)
    assert all(word in html for word in ("Measured step", "Predicted step", "Speed-up", "Where a step goes", "rests on"))
    frame = operator_frame(prediction.operators())
    assert frame.share.sum() == pytest.approx(100.0)
    assert "<b>" not in notes_html((Note("x", "<b>where</b>", 2, "text", "fix"),))
    assert "<table>" in lag_html(prediction.lags())


def test_a_page_that_cannot_be_built_says_so():
    """Without this a browser would show an endless spinner."""
    page = pages(None, None)()
    assert "could not be built" in page.main[0].title
