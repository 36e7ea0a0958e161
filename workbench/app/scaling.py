"""The tab of many cards: a recording or a model on a cluster, its efficiency, plan, pipeline and memory, recomputed with every change."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
import xarray as xr

from workbench import units
from workbench.app.html import Html, asset
from workbench.app.runner import Latest, Outcome
from workbench.app.scaling_pictures import Pictures
from workbench.app.scaling_tables import search_html, step_html
from workbench.app.state import Session
from workbench.app.words import fault_words
from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.cluster_schema import TIER
from workbench.hardware.cluster_text import clusters, load_cluster
from workbench.hardware.npu import NpuSpec, load_npu
from workbench.models.describe import list_models, load_model
from workbench.scale.plan_text import complete, parse_plan
from workbench.study.plan_result import PlanStep
from workbench.study.plan_scaling import plan_scaling
from workbench.study.plan_search import Search, search_plans
from workbench.study.plan_step import plan_step
from workbench.study.scale_out import scale_out
from workbench.study.scenario import Scenario

RECORDING = "the recording"
FIELDS = ("bandwidth_per_direction", "latency", "oversubscription")
CARDS, PLAN, BATCH = "8, 64, 256, 1024", "tp=8, m=32", 1024
ROW_PX = 27
"""Height kept for a line of a table [px]: the page does not measure them."""
HINT = "Overlap follows from the graph of the recording, or from the replayed schedule of a plan; it is not typed in."


@dataclass(frozen=True)
class Asked:
    """One question: what runs, on which card and cluster, on how many cards; a plan of a model; whether all plans are searched."""

    scenario: Scenario
    workload: str
    cluster: ClusterSpec
    cards: tuple[int, ...]
    plan: str
    batch: int
    gradients: str
    jitter: float
    search: bool


@dataclass(frozen=True)
class Found:
    """Its answer: a curve over cards; of a model the step on the most of them; plans where they were asked for."""

    curve: xr.Dataset
    step: PlanStep | None
    search: Search | None


def card_of(asked: Asked) -> NpuSpec:
    """Return the card of a question: the chosen one, else the cluster's."""
    if asked.scenario.npu is not None:
        return asked.scenario.npu
    if not asked.cluster.npu:
        raise Refused("card", f"{asked.cluster.name} names no card", "choose a card on the left")
    return load_npu(asked.cluster.npu)


def compute(asked: Asked) -> Found:
    """Answer a question; runs in the background."""
    if asked.workload == RECORDING:
        curve = scale_out(asked.scenario, asked.cluster, asked.cards, gradient_bytes=asked.gradients or None, jitter=asked.jitter)
        return Found(curve, None, None)
    model, npu, stated = load_model(asked.workload), card_of(asked), parse_plan(asked.plan, "plan")
    most = max(asked.cards)
    plan = complete({name: value for name, value in stated.items() if name != "dp"}, most, asked.batch)
    found = search_plans(model, npu, asked.cluster, most, asked.batch, stated={}) if asked.search else None
    curve = plan_scaling(model, npu, asked.cluster, plan, asked.cards)
    return Found(curve, plan_step(model, npu, asked.cluster, plan), found)


class ScaleOut:
    """Controls, pictures and tables of the tab."""

    def __init__(self, session: Session) -> None:
        self.session, self.pictures = session, Pictures()
        self._latest: Latest[Asked, Found] = Latest(compute, self._show, session.executor, session.deliver)
        small: dict[str, Any] = {"size": "small", "margin": (12, 8, 0, 0)}
        self.workload = pmui.Select(label="What runs", options=[RECORDING, *list_models()], value=RECORDING, width=190, **small)
        self.cluster = pmui.Select(label="Cluster", options=list(clusters()), value="pyramid-1024", width=170, **small)
        self.cards = pmui.TextInput(label="Cards", value=CARDS, width=170, **small)
        self.jitter = pmui.TextInput(label="Spread of compute [%]", value="0", width=150, **small)
        self.gradients = pmui.TextInput(label="Gradients of a card", placeholder="as recorded, or 1.34 GB", width=190, **small)
        self.plan = pmui.TextInput(label="Plan of a replica", value=PLAN, width=300, visible=False, **small)
        self.batch = pmui.IntInput(label="Global batch", value=BATCH, start=1, width=120, visible=False, **small)
        self.search = pmui.Button(
            label="Rank all plans", icon="search", variant="outlined", size="small", visible=False, margin=(14, 8, 4, 0)
        )
        self.words = Html(html=HINT, sizing_mode="stretch_width", margin=(6, 0, 0, 4))
        self.tiers = pn.Column(sizing_mode="stretch_width", margin=0)
        self.told = Html(stylesheets=[asset("list.css")], sizing_mode="stretch_width", margin=(4, 0, 0, 0))
        self.plans = Html(stylesheets=[asset("list.css")], sizing_mode="stretch_width", margin=(4, 0, 0, 0))
        self._edits: dict[str, str] = {}
        self._fields()
        for widget in (self.cards, self.jitter, self.gradients, self.plan, self.batch):
            widget.param.watch(lambda _: self.refresh(), "value")
        self.workload.param.watch(lambda _: self._chosen(), "value")
        self.cluster.param.watch(lambda _: self._fields(), "value")
        self.search.on_click(lambda _: self.refresh(search=True))

    def _chosen(self) -> None:
        of_model = self.workload.value != RECORDING
        for widget in (self.plan, self.batch, self.search):
            widget.visible = of_model
        self.gradients.visible = not of_model
        self.plans.html = ""
        self.refresh()

    def _fields(self) -> None:
        """Build the editor of the cluster's tiers: a row each."""
        self._edits = {}
        rows = []
        for tier in load_cluster(self.cluster.value).tiers:
            inputs: list[Any] = []
            for name in FIELDS:
                entry, value = TIER[name], getattr(tier, name)
                text = units.format(value, entry.unit, 4) if entry.unit else f"{value:g}"
                box = pmui.TextInput(label=f"{tier.name}: {entry.label}", value=text, width=190, size="small", margin=(10, 8, 0, 0))
                box.param.watch(lambda event, path=f"tiers.{tier.name}.{name}": self._edit(path, event.new), "value")
                inputs.append(box)
            rows.append(pn.Row(*inputs, Html(html=f"{tier.size} x {tier.topology.replace('_', ' ')}", margin=(20, 0, 0, 8))))
        self.tiers.objects = rows
        self.refresh()

    def _edit(self, path: str, text: str) -> None:
        self._edits[path] = text
        self.refresh()

    def refresh(self, search: bool = False) -> None:
        """Ask anew what is shown."""
        if self.session.answer is None:
            return
        try:
            self._latest.ask(self._asked(search))
        except Exception as fault:
            self.words.html = escape(fault_words(fault, "no answer"))

    def _asked(self, search: bool) -> Asked:
        scenario = self.session.answer.prediction.scenario
        changes = {path: (_number(text) if path.endswith("oversubscription") else text) for path, text in self._edits.items()}
        cluster = load_cluster(self.cluster.value).with_(changes)
        parts = [part.strip() for part in self.cards.value.split(",") if part.strip()]
        if not parts or not all(part.isdecimal() for part in parts):
            raise Refused("Cards", f"{self.cards.value!r} are no numbers of cards", "write e.g. 8, 64, 1024")
        cards = tuple(int(part) for part in parts)
        jitter = _number(self.jitter.value) / 100.0
        return Asked(scenario, self.workload.value, cluster, cards, self.plan.value, int(self.batch.value or 1),
                     self.gradients.value.strip(), jitter, search)  # fmt: skip

    def _show(self, outcome: Outcome[Asked, Found]) -> None:
        if not outcome.newest:
            return
        if outcome.answer is None:
            self.words.html = escape(fault_words(outcome.error, "no answer"))
            return
        found = outcome.answer
        with pn.io.hold():
            self.words.html = escape(str(found.curve.attrs["efficiency"]))
            self.pictures.show(found.curve, found.step)
            self.told.html = "" if found.step is None else step_html(found.step)
            self.told.min_height = ROW_PX * self.told.html.count("class='note'")
            if found.search is not None:
                self.plans.html = search_html(found.search)
                self.plans.min_height = ROW_PX * (2 * len(found.search.best) + 4)

    def __panel__(self) -> Any:
        asked = pn.FlexBox(
            self.workload, self.cluster, self.cards, self.jitter, self.gradients, self.plan, self.batch, self.search, gap="0px"
        )
        below = (self.tiers, self.words, self.pictures.__panel__(), self.told, self.plans)
        return pn.Column(pn.FlexBox(*asked, gap="0px"), *below, sizing_mode="stretch_width")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refused("field", f"{text[:40]!r} is no number", "write e.g. 4") from None
