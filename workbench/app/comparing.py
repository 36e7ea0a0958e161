"""Baseline and candidate: where the step changes, part by part and operator by operator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any

import pandas as pd
import panel as pn
import panel_material_ui as pmui
import xarray as xr

from workbench.app.html import Html, asset
from workbench.app.runner import Latest, Outcome
from workbench.app.state import Session
from workbench.app.tables import LinkedTable, shapes_of
from workbench.app.words import fault_words
from workbench.hardware.npu import catalogue, load_npu
from workbench.study.compare import compare
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.scenario import Scenario
from workbench.view.breakdown import words_of
from workbench.view.text import quantity, ratio

RECORDED, PINNED = "recorded", "pinned"
COLUMNS = {
    "name": "operator", "signature": "shapes", "delta": "delta [ms]", "base": "baseline [ms]", "candidate": "candidate [ms]",
    "base_bound": "baseline bound", "candidate_bound": "candidate bound",
}  # fmt: skip
_NUMBERS = {"base": "0,0.0000", "candidate": "0,0.0000", "delta": "+0,0.0000"}
_WIDTHS = {"name": 150, "signature": 165, "delta": 88, "base": 104, "candidate": 112, "base_bound": 118, "candidate_bound": 122}
NOTHING = 1e-6
"""A part that changes by less than this part of the step has not changed but for rounding."""


@dataclass(frozen=True)
class Pair:
    """A comparison asked for: a prediction against the recording, a card's name, or a pinned prediction."""

    candidate: Prediction
    baseline: str
    pinned: Prediction | None


@dataclass(frozen=True)
class Compared:
    """Both sides of a comparison and their differences."""

    base: Prediction
    candidate: Prediction
    dataset: xr.Dataset


def baseline_of(scenario: Scenario, name: str) -> Scenario:
    """Return the same question for another card (or the recording as it is); vendor times belong to the candidate alone."""
    if name == RECORDED:
        return replace(scenario, npu=None, vendor=None, host_factor=1.0, scale=())
    return replace(scenario, npu=load_npu(name), vendor=None)


def compared(pair: Pair) -> Compared:
    """Predict the baseline and compare; runs in the background."""
    base = pair.pinned if pair.pinned is not None else predict(baseline_of(pair.candidate.scenario, pair.baseline))
    return Compared(base, pair.candidate, compare(base, pair.candidate))


def title_of(prediction: Prediction) -> str:
    """Return the card of a prediction in a few words."""
    return prediction.scenario.npu.name if prediction.scenario.npu is not None else "as recorded"


def delta_frame(found: Compared) -> pd.DataFrame:
    """Return the operators, largest change first; the index is the candidate's row of the OpTable (-1: it has none)."""
    data = found.dataset
    described: dict[str, tuple[str, str]] = {}
    for table in (found.base.table, found.candidate.table):
        described |= {sign: (name, dtype) for sign, name, dtype in zip(table.signature, table.name, table.dtype, strict=True)}
    rows = {sign: row for row, sign in reversed(list(enumerate(found.candidate.table.signature)))}
    signatures = [str(text) for text in data.signature.values]
    frame = pd.DataFrame(
        {
            "name": [described[text][0] for text in signatures],
            "signature": [shapes_of(str(described[text][0]), str(described[text][1]), text) for text in signatures],
            "base": data.base_s.values * 1e3,
            "candidate": data.candidate_s.values * 1e3,
            "delta": data.delta_s.values * 1e3,
            "base_bound": [word if word != "unknown" else "–" for word in data.base_bound.values],
            "candidate_bound": [word if word != "unknown" else "–" for word in data.candidate_bound.values],
        },
        index=pd.Index([rows.get(text, -1) for text in signatures], name="row"),
    )
    return frame[list(COLUMNS)]


def account_html(found: Compared, baseline: str) -> str:
    """Return step and account of both sides as HTML."""
    data, words = found.dataset, words_of()
    base, candidate, delta = (float(data[name]) for name in ("base_step_s", "candidate_step_s", "delta_step_s"))
    names = (escape(baseline), escape(title_of(found.candidate)), "delta")
    head = "".join(f"<th class='n'>{name}</th>" for name in names)
    rows = [("<b>step</b>", base, candidate, delta)]
    rows += [
        (f"<i style='background:{words[str(part)][1].light}'></i>{words[str(part)][0]}", *values)
        for part, *values in zip(
            data.part.values, *(data[f"{side}_part_s"].values.tolist() for side in ("base", "candidate", "delta")), strict=True
        )
        if any(values)
    ]
    body = "".join(
        f"<tr><td>{word}</td><td class='n'>{quantity(before, 's')}</td><td class='n'>{quantity(after, 's')}</td>"
        f"{_change(change, base)}</tr>"
        for word, before, after, change in rows
    )
    note = f"Speed-up {ratio(base, candidate)}. Parts are the mean of the steps that count; operators are summed over the recording."
    return f"<table class='account'><tr><th></th>{head}</tr>{body}</table><div class='note'>{note}</div>"


def _change(change: float, step: float) -> str:
    """Return the cell of a difference [s], green where it saves time."""
    if abs(change) < NOTHING * step:
        return "<td class='n'>0</td>"
    sign, tone = ("+", "up") if change > 0 else ("", "down")
    return f"<td class='n {tone}'>{sign}{quantity(change, 's')}</td>"


class Comparison(LinkedTable):
    """The tab that compares the newest answer with a baseline."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, COLUMNS, _WIDTHS, _NUMBERS, 12)
        self.pinned: Prediction | None = None
        self._latest: Latest[Pair, Compared] = Latest(compared, self._show, session.executor, session.deliver)
        self.baseline = pmui.Select(label="Baseline", options=self._options(), value=RECORDED, size="small", width=220, margin=(6, 8, 4, 0))
        self.pin = pmui.Button(label="Pin current as baseline", icon="push_pin", variant="outlined", size="small", margin=(10, 8, 0, 0))
        self.account = Html(stylesheets=[asset("list.css")], width=390, margin=(4, 16, 0, 0))
        self.pin.on_click(lambda _: self.keep())
        self.baseline.param.watch(lambda _: self.update(), "value")

    def _options(self) -> dict[str, str]:
        pinned = {f"pinned: {title_of(self.pinned)}, {quantity(self.pinned.step_time_s, 's')}": PINNED} if self.pinned is not None else {}
        return {"the recording": RECORDED, **pinned, **{name: name for name in catalogue()}}

    def keep(self) -> None:
        """Take what is shown now as the baseline."""
        if self.session.answer is None:
            return
        self.pinned = self.session.answer.prediction
        before = self.baseline.value
        self.baseline.param.update(options=self._options(), value=PINNED)
        if before == PINNED:
            self.update()

    def update(self) -> None:
        """Compare the newest answer."""
        if self.session.answer is not None:
            pinned = self.pinned if self.baseline.value == PINNED else None
            self._latest.ask(Pair(self.session.answer.prediction, self.baseline.value, pinned))

    def _show(self, outcome: Outcome[Pair, Compared]) -> None:
        if not outcome.newest:
            return
        if outcome.answer is None:
            self.account.html = escape(fault_words(outcome.error, "no comparison"))
            return
        names = {value: key for key, value in self.baseline.options.items()}
        with pn.io.hold():
            self.account.html = account_html(outcome.answer, names.get(outcome.question.baseline, outcome.question.baseline))
            self.fill(delta_frame(outcome.answer))

    def __panel__(self) -> Any:
        left = pn.Column(pn.Row(self.baseline, self.pin), self.account, width=410)
        return pn.Row(left, pn.Column(self.table, sizing_mode="stretch_width"), sizing_mode="stretch_width")
