"""Plans as HTML: what a step consists of, and all plans ranked, each with its reasons."""

from __future__ import annotations

from html import escape

from workbench import units
from workbench.scale.plan_text import plan_text
from workbench.study.documents_plan import reason
from workbench.study.plan_result import PlanStep
from workbench.study.plan_search import Search
from workbench.view.text import quantity


def step_html(step: PlanStep) -> str:
    """Return the headline of a step, what it consists of, whether it fits, and what was warned of."""
    head = (
        f"{escape(plan_text(step.plan))} on {step.plan.world:,} cards: {quantity(step.step_s, 's')} a step, MFU {step.mfu:.1%}, "
        f"{step.tokens_per_s_card:,.0f} tokens/s a card"
    )
    tone = "" if step.fits else " class='up'"
    room = (
        f"fits: stage {step.memory.heaviest} needs most, {units.format(step.memory.peak, 'B', 3)} of {units.format(step.capacity, 'B', 3)}"
        if step.fits
        else f"does not fit: {step.why_not}"
    )
    lines = [f"<b>{head}</b>", escape(reason(step)), f"<span{tone}>{escape(room)}</span>"]
    lines += [f"warning: {escape(text)}" for text in step.warnings] + [escape(note.text) for note in step.notes]
    return "".join(f"<div class='note'>{line}</div>" for line in lines)


def search_html(found: Search) -> str:
    """Return ranked plans as a table, the fastest that does not fit below."""
    numbers = "".join(f"<th class='n'>{name}</th>" for name in ("step", "MFU", "heaviest stage"))
    head = f"<tr><th>plan</th>{numbers}<th>what the step consists of</th></tr>"
    body = "".join(_row(step) for step in found.best)
    more = ""
    if found.unfit is not None:
        more = (
            f"<div class='note'>fastest that does not fit: {escape(plan_text(found.unfit.plan))}, {quantity(found.unfit.step_s, 's')}: "
            f"{escape(found.unfit.why_not)}</div>"
        )
    count = f"<div class='note'>{found.tried:,} plans divide evenly, {found.fitting:,} fit</div>"
    return f"{count}<table class='account'>{head}{body}</table>{more}"


def _row(step: PlanStep) -> str:
    numbers = (quantity(step.step_s, "s"), f"{step.mfu:.1%}", units.format(step.memory.peak, "B", 3))
    cells = "".join(f"<td class='n'>{text}</td>" for text in numbers)
    return f"<tr><td>{escape(plan_text(step.plan))}</td>{cells}<td style='white-space:normal'>{escape(reason(step))}</td></tr>"
