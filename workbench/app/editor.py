"""The spec editor: presets, every number of the card as a slider and a text with a unit, reset, and what was changed."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from panel.custom import JSComponent

from workbench.app.html import Html, asset
from workbench.app.state import AS_RECORDED, Session
from workbench.app.words import ANCHORED
from workbench.errors import WorkbenchError
from workbench.hardware.npu import Field, catalogue
from workbench.hardware.schema import entry_of
from workbench.units import format as exact
from workbench.units import parse

_GROUPS = (("Matrix unit", ("matrix",)), ("Vector unit", ("vector",)))
_LAST = (
    ("Rates by dtype", ("matrix.rate", "vector.rate")),
    ("Runtime", ("runtime", "fallback")),
    ("Power", ("power",)),
    ("Links", ("link", "host")),
    ("Calibration", ("calibration",)),
)
LOG_RATIO = 20.0
"""A slider whose limits are further apart than this is logarithmic."""


class SpecFields(JSComponent):
    """Sliders and texts; ``values`` maps a path to (SI value, text, changed, the card's own text)."""

    groups = param.List(default=[])
    values = param.Dict(default={})
    dark = param.Boolean(default=False)

    _esm = asset("editor.js")
    _stylesheets = [asset("editor.css")]

    def __init__(self, handle: Any, **params: Any) -> None:
        super().__init__(**params)
        self._handle = handle

    def _handle_msg(self, data: dict[str, Any]) -> None:
        self._handle(data)


def grouped(fields: tuple[Field, ...]) -> list[dict[str, Any]]:
    """Return the fields by part of the card, in an order a person looks for them; memory levels from the outside in."""
    levels = list(dict.fromkeys(field.path.split(".")[1] for field in fields if field.path.startswith("memory.")))
    memory = [(f"Memory: {level.upper()}", (f"memory.{level}",)) for level in reversed(levels)]
    parts = [("Card", ("cores", "clock")), *memory[:1], *_GROUPS, *memory[1:], *_LAST]
    out = []
    for title, heads in parts:
        rates = title.startswith("Rates")
        found = [
            described(f)
            for head in heads
            for f in fields
            if (f.path == head or f.path.startswith(head + ".")) and (".rate." in f.path) == rates
        ]
        if found:
            out.append({"title": title, "fields": found})
    return out


def is_whole(path: str) -> bool:
    """Whether a field takes whole numbers only."""
    entry = entry_of(path)
    return entry is not None and entry.type == "int"


def described(field: Field) -> dict[str, Any]:
    """Return what the browser needs to know of one field."""
    low, high = float(field.low), float(field.high)
    label = field.label
    if field.path.startswith("memory."):
        label = label.split(" ", 1)[1].capitalize() if " " in label else label
    return {
        "path": field.path,
        "label": label,
        "help": field.help,
        "unit": field.unit,
        "low": low,
        "high": high,
        "log": low > 0 and high / low > LOG_RATIO,
        "integer": is_whole(field.path),
    }


def text_of(value: float, unit: str) -> str:
    """Return a field's value as text with its unit."""
    if not unit:
        return f"{value:g}"
    texts = [exact(value, unit)]
    if unit == "B" and value >= 1e9:
        texts += [text for text in (f"{value / 1e9:.6g} GB",) if parse(text, "B") == value]
    return min(texts, key=len)


def _choices(npu: str) -> list[str]:
    """Return the cards on offer: the catalogue, a description given by its path, and none."""
    names = [*catalogue(), AS_RECORDED]
    return names if npu in names else [npu, *names]


class Editor:
    """Presets and fields of the candidate card."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._own: Mapping[str, Field] | None = None
        self._texts: dict[str, str] = {}
        self._sliding = False
        self.fields = SpecFields(self.handle, dark=session.dark, sizing_mode="stretch_width")
        self.preset = pmui.Select(
            label="Card",
            options=_choices(session.npu),
            value=session.npu,
            size="small",
            sizing_mode="stretch_width",
            margin=(6, 0, 4, 0),
        )
        self.host = pmui.FloatInput(
            label="Host factor",
            value=session.host_factor,
            start=0.01,
            end=100.0,
            step=0.1,
            size="small",
            sizing_mode="stretch_width",
            margin=(6, 4, 4, 0),
            description="Host work and unexplained host gaps take this many times as long as recorded.",
        )
        self.anchored = pmui.Checkbox(
            label=ANCHORED,
            value=session.anchored,
            margin=(2, 0, 2, 0),
            description="Price an operator as measured x model(this card) / model(recorded card), instead of by the model alone.",
        )
        self.reset = pmui.Button(
            label="Reset", icon="restart_alt", variant="text", size="small", on_click=lambda _: session.choose(session.npu)
        )
        self.confidence = Html(sizing_mode="stretch_width", min_height=20, margin=(0, 0, 4, 0))
        self.preset.param.watch(lambda event: session.choose(event.new) if event.new != session.npu else None, "value")
        self.host.param.watch(self._host, "value")
        self.anchored.param.watch(lambda event: session.param.update(anchored=event.new), "value")
        session.param.watch(lambda _: self._rebuild(), "npu")
        session.param.watch(lambda _: self._respecced(), "spec")
        session.param.watch(lambda event: self.fields.param.update(dark=event.new), "dark")
        self._rebuild()

    def _host(self, event: Any) -> None:
        if event.new is not None and 0.01 <= event.new <= 100.0:
            self.session.host_factor = float(event.new)

    def _rebuild(self) -> None:
        with pn.io.hold():
            self.preset.param.update(options=_choices(self.session.npu), value=self.session.npu)
            self.fields.groups = grouped(tuple(self.session.fields().values()))
            self.update()

    def _slide(self, path: str, value: float) -> None:
        """Take the value of a moving slider, which shows it itself: the other texts and marks follow when it rests."""
        self._sliding = self.session.workload is not None
        try:
            self.session.set_value(path, value)
        finally:
            self._sliding = False

    def _respecced(self) -> None:
        if not self._sliding:
            self.update()

    def update(self) -> None:
        """Send values, texts and marks of all fields."""
        spec, own = self.session.spec, self.session.fields()
        if spec is None:
            self.fields.values = {}
            self.confidence.html = ""
            return
        if self._own is not own:
            self._own, self._texts = own, {path: text_of(field.value, field.unit) for path, field in own.items()}
        found = {}
        for now in spec.fields():
            base, text = own[now.path].value, self._texts[now.path]
            found[now.path] = [now.value, text if now.value == base else text_of(now.value, now.unit), now.value != base, text]
        self.fields.values = found
        changed = sum(1 for entry in found.values() if entry[2])
        words = f"{changed} changed · confidence {spec.confidence}" if changed else f"as catalogued · confidence {spec.confidence}"
        weak = "".join(f"<li>{escape(text)}</li>" for text in spec.weak)
        if weak:
            title = f"{len(spec.weak)} weak figure{'s' if len(spec.weak) > 1 else ''}"
            words += f'<details><summary>{title}</summary><ul style="margin:0;padding-left:1.2em">{weak}</ul></details>'
        self.confidence.html = f'<div style="font-size:12px;opacity:.75">{words}</div>'

    def handle(self, message: dict[str, Any]) -> None:
        """Take one change from the browser; what does not hold is said beside the field and changes nothing."""
        path, session = str(message.get("path", "")), self.session
        try:
            if message["type"] == "value":
                self._slide(path, float(message["value"]))
            elif message["type"] == "text":
                session.set_field(path, str(message["text"]).strip())
            elif message["type"] == "reset":
                own = session.fields()[path]
                session.set_field(path, text_of(own.value, own.unit))
            if message["type"] != "value":
                self.fields._send_msg({"type": "error", "path": path, "text": ""})
        except WorkbenchError as fault:
            self.fields._send_msg({"type": "error", "path": path, "text": f"{fault.what}: {fault.fix}"})
            self.update()

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(
            self.preset,
            pn.Row(self.host, self.reset, align="center"),
            self.anchored,
            self.confidence,
            self.fields,
            sizing_mode="stretch_width",
            margin=(4, 12, 12, 12),
        )
