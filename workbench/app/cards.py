"""The headline: measured and predicted step, speed-up, where the step goes, what the numbers rest on."""

from __future__ import annotations

import math
from html import escape

import panel as pn

from workbench.app.html import Html, asset
from workbench.app.state import Session
from workbench.study.prediction import Prediction
from workbench.study.steps import overlaps
from workbench.view.breakdown import Part, breakdown, evidence_parts
from workbench.view.text import percent, quantity, ratio

SMALL = 0.005
"""Parts below this share of the longer step are drawn, but not named."""
_HINT = "Open a trace to see its measured and predicted step, and where the time goes."
EMPTY = f'<div class="h"><div class="c empty" style="flex:1">{_HINT}</div></div>'


def headline(prediction: Prediction, dark: bool) -> str:
    """Return the cards as HTML."""
    low, high = prediction.interval_s
    npu = prediction.scenario.npu
    card = npu.name if npu is not None else "as recorded"
    steps = int(prediction.graph.step_complete.sum()) or len(prediction.graph.step_numbers)
    source = prediction.scenario.source.name if prediction.scenario.source is not None else "card not known"
    change = prediction.step_time_s / prediction.measured_step_s - 1 if prediction.measured_step_s > 0 else 0.0
    word = "about the same" if abs(change) < 0.005 else "faster" if change < 0 else "slower"
    interval = f"80 %: {quantity(low, 's')} to {quantity(high, 's')}" if high > low else "no spread"
    numbers = [
        ("Measured step", quantity(prediction.measured_step_s, "s"), f"median of {steps} · {source}"),
        ("Predicted step", quantity(prediction.step_time_s, "s"), interval + _energy(prediction)),
        ("Speed-up", ratio(prediction.measured_step_s, prediction.step_time_s), f"{word} on {card}" if npu is not None else card),
    ]
    if overlaps(prediction.measured_step_s, prediction.measured_period_s) or overlaps(prediction.step_time_s, prediction.period_s):
        before, after = prediction.measured_period_s, prediction.period_s
        numbers.append(("Steps overlap: one every", quantity(after, "s"), f"{quantity(before, 's')} measured · {ratio(before, after)}"))
    cells = "".join(
        f'<div class="c n"><div class="k">{word}</div><div class="v" data-value="{word}">{escape(value)}</div>'
        f'{"".join(f"""<div class="s">{escape(line)}</div>""" for line in sub.splitlines())}</div>'
        for word, value, sub in numbers
    )
    return f'<div class="h">{cells}{_where(prediction, dark)}{_evidence(prediction, dark)}</div>'


def _energy(prediction: Prediction) -> str:
    """Return energy and mean power of a step as a line of its own, where the card's energies are known."""
    joules, watts = float(prediction.energy.joules[0]), float(prediction.energy.watts[0])
    if not math.isfinite(joules):
        return ""
    return f"\n{quantity(joules, 'J', 3)} at {quantity(watts, 'W', 3)} mean{', estimated' if prediction.energy.why[0] else ''}"


def _where(prediction: Prediction, dark: bool) -> str:
    parts = breakdown(prediction)
    longest = max(sum(p.value for p in side) for side in parts.values()) or 1.0
    rows = ""
    for word, side in parts.items():
        total = sum(p.value for p in side)
        rows += f'<div class="r"><b>{word}</b><div class="b">{_spans(side, longest, dark)}</div><i>{quantity(total, "s", 3)}</i></div>'
    pairs = zip(parts["measured"], parts["predicted"], strict=True)
    legend = "".join(
        _chip(after, quantity(after.value, "s", 3), dark) for before, after in pairs if max(before.value, after.value) >= SMALL * longest
    )
    return f'<div class="c w"><div class="k">Where a step goes (mean)</div>{rows}<div class="l">{legend}</div></div>'


def _evidence(prediction: Prediction, dark: bool) -> str:
    parts = evidence_parts(prediction)
    if not parts:
        return ""
    legend = "".join(_chip(part, percent(part.value), dark) for part in parts)
    bar = f'<div class="b" style="margin:4px 0">{_spans(parts, 1.0, dark)}</div>'
    return f'<div class="c e"><div class="k">Operator time rests on</div>{bar}<div class="l">{legend}</div></div>'


def _spans(parts: tuple[Part, ...], whole: float, dark: bool) -> str:
    return "".join(
        f'<span title="{escape(p.word)}: {quantity(p.value, "s") if whole != 1.0 else percent(p.value)}" '
        f'style="width:{100 * p.value / whole:.3f}%;background:{p.ink.dark if dark else p.ink.light}"></span>'
        for p in parts
        if p.value > 0
    )


def _chip(part: Part, value: str, dark: bool) -> str:
    return f'<span style="--c:{part.ink.dark if dark else part.ink.light}">{escape(part.word)} {value}</span>'


class Cards:
    """The headline of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.component = Html(html=EMPTY, stylesheets=[asset("cards.css")], sizing_mode="stretch_width", margin=0)
        session.param.watch(lambda _: self.update(), "dark")

    def update(self) -> None:
        """Show the newest answer."""
        if self.session.answer is not None:
            self.component.html = headline(self.session.answer.prediction, self.session.dark)

    def __panel__(self) -> pn.viewable.Viewable:
        return self.component
