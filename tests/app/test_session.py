"""A session: what is set is what is predicted; what does not hold changes nothing and is said."""

from __future__ import annotations

import csv
import gzip
import json

import pytest

from workbench.app.cards import headline
from workbench.app.comparing import PINNED, RECORDED, Comparison, Pair, account_html, compared, delta_frame
from workbench.app.editor import Editor, grouped, text_of
from workbench.app.explorer import explorer
from workbench.app.exports import card_yaml, operators_csv, timeline_json
from workbench.app.serve import pages
from workbench.app.shelf import Shelf
from workbench.app.state import AS_RECORDED, Session, parse_edits
from workbench.app.sweeping import Sweep, compute
from workbench.app.tables import lag_html, notes_html, operator_frame
from workbench.app.words import for_page
from workbench.cost.cost import Evidence
from workbench.cost.vendor import read_vendor
from workbench.errors import InvalidSpec, Note, Refused, UnreadableInput
from workbench.hardware.npu import load_npu
from workbench.hardware.text import read_yaml
from workbench.study.predict import predict
from workbench.study.scenario import Scenario
from workbench.view.text import quantity


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


def test_vendor_times_take_precedence_and_are_named(session, tmp_path):
    """A vendor halves one operator's time: that row rests on the vendor, and the step gets no longer."""
    table = session.answer.prediction.table
    row = next(i for i, name in enumerate(table.name) if name == "aten::addmm")
    seconds, before = session.answer.prediction.op_seconds[row], session.answer.prediction.step_time_s
    dims = dict(zip(("batch", "m", "n", "k"), table.dims[row, :4].tolist(), strict=True))
    path = tmp_path / "vendor.csv"
    path.write_text(f"kind,dtype,m,n,k,time_us\ngemm,bf16,{dims['m']},{dims['n']},{dims['k']},{seconds * 5e5}\n")
    session.set_vendor(read_vendor(path))
    answered = session.answer.prediction
    assert Evidence(answered.cost.evidence[row]) == Evidence.VENDOR
    assert answered.op_seconds[row] == pytest.approx(seconds / 2, rel=1e-6)
    assert answered.step_time_s <= before
    session.set_vendor(None)
    assert session.answer.prediction.step_time_s == before


def test_a_card_from_a_file_is_offered(shelf, said, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(load_npu("npu-x").with_({"cores": 20}).to_yaml())
    session = Session(shelf, None, lambda act: act(), said.append)
    session.choose(str(path))
    assert session.spec.cores == 20 and not said
    assert Editor(session).preset.value == str(path)


def test_the_explorer_predicts_what_its_sliders_say(session):
    explored = explorer(session.workload)
    sliders, result = explored.children[1].children
    before = result.value
    assert "a step" in before
    bandwidth = next(s for s in sliders.children if "bandwidth" in s.description)
    assert bandwidth.label == "3.2 TB/s", "starts at the card's own value"
    bandwidth.index = 0
    assert result.value != before
    spec = load_npu("npu-x").with_si({"memory.hbm.bandwidth": bandwidth.value})
    assert quantity(predict(Scenario(session.workload, npu=spec)).step_time_s, "s") in result.value
    assert "NaN" not in result.value


def test_errors_speak_of_the_page_not_of_the_server(tmp_path):
    text = for_page(f"{tmp_path}/workbench-ab12/cut.json: ends early. To mend it: import what is whole with --salvage")
    assert text == "cut.json: ends early. To mend it: import what is whole with “Damaged file: import what is whole” in Open"
    kept = "4.2 TB/s; aten::mm; 3/4 of a.json; either/or; see https://example.org/a.json"
    assert for_page(kept) == kept
    assert for_page("C:\\traces\\a.json and /srv/t/b.json.gz") == "a.json and b.json.gz"


def test_a_comparison_is_that_of_the_library(session):
    """Against the recording: rows of the candidate's table, largest change first, deltas that are the difference of the sides."""
    prediction = session.answer.prediction
    found = compared(Pair(prediction, RECORDED, None))
    assert found.base.step_time_s == pytest.approx(prediction.measured_step_s, rel=1e-3)
    frame = delta_frame(found)
    assert frame.delta.abs().is_monotonic_decreasing
    assert (frame.candidate - frame.base).tolist() == pytest.approx(frame.delta.tolist())
    assert [prediction.table.name[row] for row in frame.index] == frame.name.tolist()
    assert quantity(prediction.step_time_s, "s") in account_html(found, "the recording")
    card = compared(Pair(prediction, "h100-sxm", None))
    assert card.base.step_time_s == predict(Scenario(session.workload, npu=load_npu("h100-sxm"))).step_time_s


def test_what_is_pinned_stays_while_the_card_changes(session):
    """The pinned side keeps its step; the selection follows the click."""
    comparison, before = Comparison(session), session.answer.prediction.step_time_s
    comparison.keep()
    assert comparison.baseline.value == PINNED and (comparison.table.value.delta == 0).all()
    session.set_field("memory.hbm.bandwidth", "0.8 TB/s")
    comparison.update()
    assert f"<td class='n'>{quantity(before, 's')}</td>" in comparison.account.html
    row = int(comparison.table.value.index[0])
    session.selected = row
    assert comparison.table.value.index[comparison.table.selection[0]] == row


def test_what_is_whole_of_a_damaged_file_can_be_opened(session, said, shelf, tmp_path):
    """The first two thirds of the sample: refused as it is, opened when asked to."""
    whole = gzip.decompress(shelf.samples()["synthetic_ddp.json.gz"].read_bytes())
    path = tmp_path / "cut.json"
    path.write_bytes(whole[: 2 * len(whole) // 3])
    before = session.workload
    session.open("cut.json", (path,))
    assert said and session.workload is before
    session.open("cut.json", (path,), salvage=True)
    assert len(said) == 1 and session.workload is not before
    assert session.answer.prediction.step_time_s > 0
