"""Edits the recording invites: what each would save of the step on the chosen card, alone and together, and which cost."""

from __future__ import annotations

from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from workbench import units
from workbench.app.html import Html, asset
from workbench.app.runner import Latest, Outcome
from workbench.app.state import Session
from workbench.app.words import fault_words
from workbench.study.rewrites import RewriteStudy, Saving, rewrites
from workbench.study.scenario import Scenario
from workbench.view.text import quantity

ASK = "Find edits"
HINT = "Fusing chains, capturing launches, 16-bit products: every legal edit is replayed, which takes some seconds."
STALE = "The question has changed since: find anew."


def study_html(study: RewriteStudy) -> str:
    """Return the answer first, then every edit with its savings, as HTML."""
    base, joint = study.base_step_s, study.joint_step_s
    count = sum(not saving.why for saving in study.savings)
    card = study.base.scenario.npu.name if study.base.scenario.npu is not None else "the recording"
    if count:
        gives = "the first alone gives" if study.enough == 1 else f"the first {study.enough} give"
        few = f", {gives} 80 % of it" if study.enough < count else ""
        kernels, device_s = study.taken_off
        off = f"; {kernels:g} kernels and {_saved(device_s)} off the device"
        edits = units.count(count, "edit")
        said = f"{quantity(base, 's')} &rarr; {quantity(joint, 's')} a step with {edits}: {1 - joint / base:.1%} saved{few}{off}"
    else:
        said = f"{quantity(base, 's')} a step: no edit found saves anything"
    overlap = " Steps overlap: a step counts from the end of the one before it." if study.by_period else ""
    numbers = "".join(f"<th class='n'>{name}</th>" for name in ("places", "alone", "of step", "together", "kernels off", "device off"))
    head = f"<tr><th>edit</th>{numbers}<th></th></tr>"
    body = "".join(_row(saving, base) for saving in study.savings)
    told = sorted({note.text for saving in study.savings for note in saving.notes if note.code == "rewrite-assumed"})
    assumed = "".join(f"<div class='note'>assumed: {escape(text)}</div>" for text in told)
    return f"<div class='note'><b>{escape(card)}: {said}.</b>{overlap}</div><table class='account'>{head}{body}</table>{assumed}"


def _row(saving: Saving, base: float) -> str:
    together = "–" if saving.why else _saved(saving.joint_s)
    tone = " up" if saving.own_s < 0 else " down" if not saving.why else ""
    cells = (
        f"<td class='n'>{saving.places:,}</td><td class='n{tone}'>{_saved(saving.own_s)}</td><td class='n'>{saving.own_s / base:+.1%}</td>"
    )
    device = f"<td class='n'>{saving.kernels:g}</td><td class='n'>{_saved(saving.device_s)}</td>"
    return f"<tr><td>{escape(saving.edit.text)}</td>{cells}<td class='n'>{together}</td>{device}<td>{escape(saving.why)}</td></tr>"


def _saved(seconds: float) -> str:
    return f"-{quantity(-seconds, 's')}" if seconds < 0 else quantity(seconds, "s")


class Inviting:
    """The tab of edits; they are looked for when asked."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._latest: Latest[Scenario, RewriteStudy] = Latest(rewrites, self._show, session.executor, session.deliver)
        self._asked = ""
        self.button = pmui.Button(label=ASK, icon="auto_fix_high", variant="outlined", size="small", margin=(10, 8, 4, 0))
        self.words = Html(html=HINT, sizing_mode="stretch_width", margin=(14, 0, 0, 4))
        self.found = Html(stylesheets=[asset("list.css")], sizing_mode="stretch_width", margin=(4, 0, 0, 0))
        self.button.on_click(lambda _: self.ask())

    def ask(self) -> None:
        """Look for the edits of what is shown now."""
        if self.session.answer is None:
            return
        scenario = self.session.answer.prediction.scenario
        self._asked = scenario.digest
        self.words.html = "Replaying every legal edit…"
        self._latest.ask(scenario)

    def update(self) -> None:
        """Say so where what is shown belongs to another question."""
        answer = self.session.answer
        if answer is not None and self._asked and self._latest.idle:
            self.words.html = "" if answer.prediction.scenario.digest == self._asked else STALE

    def _show(self, outcome: Outcome[Scenario, RewriteStudy]) -> None:
        if not outcome.newest:
            return
        if outcome.answer is None:
            self.words.html = escape(fault_words(outcome.error, "no edits"))
            return
        with pn.io.hold():
            self.words.html = ""
            self.found.html = study_html(outcome.answer)

    def __panel__(self) -> Any:
        return pn.Column(pn.Row(self.button, self.words, sizing_mode="stretch_width"), self.found, sizing_mode="stretch_width")
