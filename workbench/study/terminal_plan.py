"""Plans as text for a terminal (rich renderables)."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_plan import InferenceDocument, PlanDocument, PlansDocument, SearchDocument
from workbench.study.terminal import percent, seconds


def plans_text(document: PlansDocument) -> Iterator[RenderableType]:
    """Yield the parts of a plan, a search or serving, headline first."""
    yield Text(f"{document.model} ({document.parameters / 1e9:.4g} B parameters) on {document.npu}, {document.cluster}", style="bold")
    if document.step is not None:
        yield from _step(document.step)
    if document.search is not None:
        yield from _search(document.search)
    if document.inference is not None:
        yield from _inference(document.inference)


def _step(step: PlanDocument) -> Iterator[RenderableType]:
    yield Text(f"{step.plan}: {step.cards} cards, global batch {step.global_batch}")
    yield Text(
        f"step {seconds(step.step_s)} (operators' 80 % interval {seconds(step.low_s)} to {seconds(step.high_s)}), "
        f"MFU {percent(step.mfu)}, HFU {percent(step.hfu)}, {step.tokens_per_s_card:,.4g} tokens/s a card",
        style="bold",
    )
    yield Text(step.reason)
    table = Table(box=SIMPLE_HEAD)
    for name in ("axis", "messages", "waited for", "of the step", "outermost tier"):
        table.add_column(name, justify="left" if name in ("axis", "outermost tier") else "right")
    for axis, spent in step.messages_s.items():
        if spent > 0:
            exposed = step.exposed_s[axis]
            table.add_row(axis, seconds(spent), seconds(exposed), percent(exposed / step.step_s), step.tier.get(axis, ""))
    if table.row_count:
        yield table
    yield Text(f"bubble {seconds(step.bubble_s)}, optimizer {seconds(step.optimizer_s)}, recomputed {seconds(step.recomputed_s)}")
    if step.energy_j is not None:
        beside = f", {step.energy_j / step.step_s / step.cards:.0f} W a card"
        yield Text(f"energy {units.format(step.energy_j, 'J', 3)} a step{beside}")
    if step.cost is not None:
        yield Text(f"cost {step.cost:.4g} a step")
    yield _stages(step)
    yield _fits(step)
    yield from (Text(f"warning: {text}", style="yellow") for text in step.warnings)
    yield from (Text(f"note: {note.where}: {note.text}") for note in step.notes)


def _fits(step: PlanDocument) -> Text:
    if not step.fits:
        return Text(f"does not fit: {step.why_not}", style="red")
    return Text(
        f"fits: stage {step.heaviest_stage} needs most, {units.format(step.memory_peak, 'B', 3)} of {units.format(step.capacity, 'B', 3)}"
    )


def _stages(step: PlanDocument, most: int = 16) -> Table:
    table = Table(box=SIMPLE_HEAD, title="memory of the heaviest card of every stage [GB]", title_justify="left")
    parts = [name for name in step.stages[0].memory if any(stage.memory[name] > 0 for stage in step.stages)]
    short = {"parameters": "params", "gradients": "grads", "optimizer": "optim", "activations": "activ", "working": "work"}
    for name in ("stage", "busy", "waits", "flight", *(short.get(part, part) for part in parts), "all"):
        table.add_column(name, justify="right", no_wrap=True)
    for stage in step.stages[:most]:
        sizes = [f"{stage.memory[name] / 1e9:.1f}" for name in parts]
        waits = percent(stage.waiting_s / step.step_s)
        table.add_row(str(stage.stage), percent(stage.busy_s / step.step_s), waits, f"{stage.in_flight:.3g}", *sizes,
                      f"{stage.total / 1e9:.1f}")  # fmt: skip
    if len(step.stages) > most:
        table.caption = f"{len(step.stages) - most} more"
    return table


def _search(search: SearchDocument) -> Iterator[RenderableType]:
    yield Text(f"{search.tried} plans divide cards, batch and model evenly; {search.fitting} of them fit")
    table = Table(box=SIMPLE_HEAD)
    for name in ("", "step", "MFU", "memory", "plan, and what its step consists of"):
        table.add_column(name, justify="left" if name.startswith("plan") else "right", no_wrap=not name.startswith("plan"))
    for place, step in enumerate(search.best, 1):
        told = f"{step.plan}\n{step.reason}"
        table.add_row(str(place), seconds(step.step_s), percent(step.mfu), units.format(step.memory_peak, "B", 3), told)
    yield table
    if search.unfit is not None:
        yield Text(f"fastest that does not fit: {search.unfit.plan}, {seconds(search.unfit.step_s)}")
        yield Text(f"  {search.unfit.why_not}")
    yield Text(f"{units.count(len(search.front), 'plan')} that none beats in time, memory and cards at once (times by closed forms):")
    front = Table(box=SIMPLE_HEAD)
    for name in ("cards", "step", "memory", "plan"):
        front.add_column(name, justify="left" if name == "plan" else "right", no_wrap=name != "plan")
    for one in search.front[:12]:
        front.add_row(str(one.cards), seconds(one.step_s), units.format(one.memory, "B", 3), one.plan)
    yield front


def _inference(served: InferenceDocument) -> Iterator[RenderableType]:
    yield Text(f"{served.plan}: prompts of {served.prompt} tokens, {served.context} in the cache")
    yield Text(
        f"first token {seconds(served.first_token_s)}, then one every {seconds(served.token_s)}; "
        f"{served.tokens_per_s:,.4g} tokens/s, {served.tokens_per_s_card:,.4g} a card",
        style="bold",
    )
    held = ", ".join(f"{name} {units.format(size, 'B', 3)}" for name, size in served.memory.items() if size > 0)
    yield Text(f"does not fit: {served.why_not}" if not served.fits else f"fits: {held}")
    yield Text("note: requests do not wait for each other; an analytical estimate")
