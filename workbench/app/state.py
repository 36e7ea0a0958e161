"""What one session asks and knows. Everything a person can change is a parameter here; one watcher answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import param

from workbench.app.runner import Latest, Outcome
from workbench.app.shelf import Shelf
from workbench.cost.vendor import VendorTimes
from workbench.errors import InvalidSpec, Refused, WorkbenchError
from workbench.hardware.npu import Field, NpuSpec, load_npu
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.recorded_on import with_source
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.units import format as exact
from workbench.view.timeline import Lanes, Layout, Names, lanes_of, layout_of, names_of, typical_step

AS_RECORDED = "as recorded"
"""Name of the choice to replay without a card."""
DEFAULT = "npu-x"


@dataclass(frozen=True)
class Opened:
    """A recording to open; ``salvage``: import what is whole of a damaged file."""

    name: str
    paths: tuple[Path, ...]
    salvage: bool


@dataclass(frozen=True)
class Question:
    """One thing asked: a scenario and the step to look at (-1: the typical one, -2: all)."""

    scenario: Scenario
    step: int


@dataclass(frozen=True)
class Answer:
    """A prediction laid out for the pictures."""

    prediction: Prediction
    lanes: Lanes
    step: int  # -1: all
    layout: Layout
    names: Names


def answer(question: Question, last: Answer | None = None) -> Answer:
    """Predict and lay out; what an earlier answer about the same recording laid out is used again. Runs in the background."""
    prediction = predict(question.scenario)
    step = typical_step(prediction) if question.step == -1 else question.step
    shown = step if 0 <= step < len(prediction.graph.step_numbers) else None
    known = last if last is not None and last.prediction.graph is prediction.graph else None
    layout = known.layout if known is not None and known.layout.step == shown else layout_of(prediction, shown)
    names = known.names if known is not None else names_of(prediction)
    return Answer(prediction, lanes_of(prediction, shown, layout), -1 if shown is None else shown, layout, names)


def parse_edits(text: str) -> dict[str, str]:
    """Return ``{path: quantity text}`` of ``"cores=64;memory.hbm.bandwidth=3.2 TB/s"``.

    Raises
    ------
    InvalidSpec
        For a part without ``=``.
    """
    out = {}
    for part in filter(None, (p.strip() for p in text.split(";"))):
        path, sign, value = part.partition("=")
        if not sign:
            raise InvalidSpec("set", f"{part!r} is not path=value", "write e.g. memory.hbm.bandwidth=3.2 TB/s")
        out[path.strip()] = value.strip()
    return out


def edited(spec: NpuSpec, units: Mapping[str, str], edits: str) -> NpuSpec:
    """Return a card with its edits; ``units`` maps the paths of its fields to their units."""
    changes: dict[str, object] = {}
    for path, text in parse_edits(edits).items():
        plain = units.get(path) == ""
        changes[path] = _number(path, text) if plain else text
    return spec.with_(changes) if changes else spec


@dataclass(frozen=True)
class Card:
    """A card as it is described, and its editable fields."""

    spec: NpuSpec
    fields: Mapping[str, Field]

    @cached_property
    def units(self) -> dict[str, str]:
        """Unit of every field."""
        return {path: field.unit for path, field in self.fields.items()}


def _number(path: str, text: str) -> float | int:
    try:
        value = float(text)
    except ValueError:
        raise InvalidSpec(path, f"{text!r} is not a number", "this field has no unit: give a plain number") from None
    return int(value) if value.is_integer() else value


class Session(param.Parameterized):
    """State of one browser session.

    Parameters
    ----------
    shelf : Shelf
        Recordings of the server.
    executor : Executor
        Where predictions run.
    deliver : callable
        Runs a function on the session's event loop.
    complain : callable
        Shows an error to the person.
    """

    npu = param.String(default=DEFAULT, doc="Card from the catalogue, or 'as recorded'.")
    edits = param.String(default="", doc="Changed fields: path=quantity;...")
    link = param.String(default="", doc="The edits in the address of the page: they follow once a slider rests.")
    trace = param.String(default="", doc="Name of a sample, for the address of the page.")
    host_factor = param.Number(default=1.0, bounds=(0.01, 100.0), doc="Host work takes this many times as long.")
    anchored = param.Boolean(default=True, doc="Scale measurements by model ratios instead of trusting the model alone.")
    step = param.Integer(default=-1, doc="Step shown: -1 the typical one, -2 all.")
    selected = param.Integer(default=-1, doc="Row of the selected operator.")
    dark = param.Boolean(default=False)
    busy = param.String(default="", doc="What is being done, empty when idle.")
    workload = param.Parameter(default=None)
    vendor = param.Parameter(default=None)
    spec = param.Parameter(default=None, doc="The card as edited; None: as recorded.")
    answer = param.Parameter(default=None, doc="The newest Answer.")
    settled = param.Integer(default=0, doc="Counts answers after which nothing newer was waiting.")

    def __init__(
        self, shelf: Shelf, executor: Executor, deliver: Callable[[Callable[[], None]], object], complain: Callable[[Exception], None]
    ) -> None:
        super().__init__()
        self.shelf, self.executor, self.deliver, self.complain = shelf, executor, deliver, complain
        self._predictions: Latest[Question, Answer] = Latest(lambda question: answer(question, self.answer), self._show, executor, deliver)
        self._openings: Latest[Opened, Workload] = Latest(
            lambda asked: shelf.open(asked.paths, asked.salvage), self._opened, executor, deliver
        )
        self._cards: dict[str, Card] = {}
        self._source: NpuSpec | None = None
        self.respec()

    @param.depends("npu", "edits", watch=True)
    def respec(self) -> None:
        """Make the edited card; a contradiction is shown and the last good card stays."""
        try:
            card = self.card()
            self.spec = edited(card.spec, card.units, self.edits) if card is not None else None
        except WorkbenchError as fault:
            self.complain(fault)
            if self.spec is None:  # the page's address names a card or a field that does not exist
                self.choose(DEFAULT)

    @param.depends("link", watch=True)
    def _linked(self) -> None:
        self.edits = self.link

    def choose(self, npu: str) -> None:
        """Take a card from the catalogue, without edits."""
        self.param.update(npu=npu, edits="")

    def card(self) -> Card | None:
        """Return the chosen card without its edits (None: as recorded)."""
        if self.npu == AS_RECORDED:
            return None
        if self.npu not in self._cards:
            spec = load_npu(self.npu)
            self._cards[self.npu] = Card(spec, {field.path: field for field in spec.fields()})
        return self._cards[self.npu]

    def fields(self) -> Mapping[str, Field]:
        """Return the editable fields of the chosen card by path, without its edits."""
        try:
            card = self.card()
        except WorkbenchError:
            return {}
        return card.fields if card is not None else {}

    def set_field(self, path: str, text: str) -> None:
        """Change one field of the card; setting it to the card's own value removes the edit.

        Raises
        ------
        WorkbenchError
            When the value does not hold; nothing is changed.
        """
        card = self.card()
        if card is None:
            raise Refused(path, "no card is chosen", "choose one first")
        changes = parse_edits(self.edits) | {path: text}
        joined = ";".join(f"{key}={value}" for key, value in changes.items())
        base, trial = card.fields.get(path), edited(card.spec, card.units, joined)
        if base is not None and trial.get(path) == base.value:
            del changes[path]
            joined = ";".join(f"{key}={value}" for key, value in changes.items())
        self.edits = joined

    def set_value(self, path: str, value: float) -> None:
        """Change one field to an SI value."""
        field = self.fields()[path]
        self.set_field(path, exact(value, field.unit) if field.unit else f"{value:g}")

    def open(self, name: str, paths: tuple[Path, ...], salvage: bool = False) -> None:
        """Open a recording in the background; ``name`` goes into the address when it is a sample."""
        self.busy = f"opening {name}"
        self._openings.ask(Opened(name, paths, salvage))

    def _opened(self, outcome: Outcome[Opened, Workload]) -> None:
        name = outcome.question.name
        if outcome.newest:
            self.busy = ""
        if outcome.error is not None:
            self.complain(outcome.error)
            return
        assert outcome.answer is not None
        self._source = with_source(Scenario(outcome.answer)).source  # once, not at every move
        self.param.update(step=-1, selected=-1, workload=outcome.answer, trace=name if name in self.shelf.samples() else "")

    @param.depends("workload", "spec", "vendor", "host_factor", "anchored", "step", watch=True)
    def ask(self) -> None:
        """Ask for the prediction of what is set now."""
        if self.workload is None:
            self.link = self.edits
            return
        anchored = None if self.anchored else False  # anchored where the recording's card is known
        scenario = Scenario(
            self.workload, npu=self.spec, source=self._source, vendor=self.vendor, host_factor=self.host_factor, anchored=anchored
        )
        self._predictions.ask(Question(scenario, self.step))

    def scenario(self) -> Scenario | None:
        """Return what is shown now as a scenario."""
        return self.answer.prediction.scenario if self.answer is not None else None

    def set_vendor(self, vendor: VendorTimes | None) -> None:
        """Use a vendor's operator times (None: none)."""
        self.vendor = vendor

    def _show(self, outcome: Outcome[Question, Answer]) -> None:
        if outcome.newest:
            self.busy = ""
        if outcome.question.scenario.workload is not self.workload:
            return  # another recording was opened meanwhile
        if outcome.error is not None:
            self.link = self.edits
            self.complain(outcome.error)
            return
        self.answer = outcome.answer
        if outcome.newest:
            self.settled += 1
