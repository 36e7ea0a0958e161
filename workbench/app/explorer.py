"""A small explorer for notebooks where no server is wanted: a card, a few sliders, the step and its largest operators."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import ipywidgets as w

from workbench.errors import WorkbenchError
from workbench.hardware.npu import Field, catalogue, load_npu
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.trace import Trace
from workbench.units import format as exact
from workbench.view.text import percent, quantity, ratio

SHOWN = ("cores", "clock")
STEPS = 60


def explorer(workload: Workload | Trace | Scenario, npu: str = "npu-x", top: int = 8) -> Any:
    """Return widgets that predict the step of a recording on a card as its numbers are moved.

    Parameters
    ----------
    workload : Workload, Trace or Scenario
        The recording.
    npu : str
        Card of the catalogue to start with.
    top : int
        Operators listed.

    Returns
    -------
    ipywidgets.VBox
    """
    scenario = workload if isinstance(workload, Scenario) else Scenario(workload)  # type: ignore[arg-type]
    return _Explorer(scenario, npu, top).box


class _Explorer:
    """State of one explorer."""

    def __init__(self, scenario: Scenario, npu: str, top: int) -> None:
        self.scenario, self.top = scenario, top
        self.preset = w.Dropdown(options=catalogue(), value=npu, description="Card")
        self.reset = w.Button(description="Reset", icon="undo", layout={"width": "90px"})
        self.sliders = w.VBox()
        self.result = w.HTML()
        self._fields: dict[str, tuple[Field, Any]] = {}
        self.preset.observe(lambda _: self._rebuild(), "value")
        self.reset.on_click(lambda _: self._rebuild())
        self.box = w.VBox([w.HBox([self.preset, self.reset]), w.HBox([self.sliders, self.result])])
        self._rebuild()

    def _rebuild(self) -> None:
        spec = load_npu(self.preset.value)
        outer = list(spec.memory)[-1]
        paths = (*SHOWN, f"memory.{outer}.bandwidth", "vector.lanes", "runtime.launch_overhead")
        fields = {field.path: field for field in spec.fields()}
        self._fields = {path: (fields[path], _slider(fields[path])) for path in paths if path in fields}
        for _field, slider in self._fields.values():
            slider.observe(lambda _: self._update(), "value")
        self.sliders.children = [slider for _field, slider in self._fields.values()]
        self._update()

    def _update(self) -> None:
        changes = {path: slider.value for path, (field, slider) in self._fields.items() if slider.value != field.value}
        try:
            spec = load_npu(self.preset.value)
            self.result.value = _words(predict(self.scenario.with_({"npu": spec.with_si(changes) if changes else spec})), self.top)
        except WorkbenchError as fault:
            self.result.value = f'<p style="color:#B00020">{escape(fault.where)}: {escape(fault.what)}<br>{escape(fault.fix)}</p>'


def _slider(field: Field) -> Any:
    """Return a slider through values that read well; its first choice of every kind is the card's own value."""
    low, high = (
        max(field.low, field.value / 8) if field.value > 0 else field.low,
        min(field.high, field.value * 8) if field.value > 0 else field.high,
    )
    whole = not field.unit
    wide = low > 0 and high / low > 4
    raw = [low * (high / low) ** (i / STEPS) if wide else low + (high - low) * i / STEPS for i in range(STEPS + 1)]
    values = sorted({float(round(v)) if whole else _rounded(v) for v in raw} | {field.value})
    options = [(exact(v, field.unit) if field.unit else f"{v:g}", int(v) if whole else v) for v in values]
    return w.SelectionSlider(
        options=options, value=int(field.value) if whole else field.value, description=field.label, continuous_update=False,
        style={"description_width": "130px"}, layout={"width": "420px"}, tooltip=field.help,
    )  # fmt: skip


def _rounded(value: float) -> float:
    return value if value == 0 else round(value, 2 - math.floor(math.log10(abs(value))))


def _words(prediction: Prediction, top: int) -> str:
    low, high = prediction.interval_s
    table = prediction.operators().isel(operator=slice(0, top))
    cell = 'style="text-align:right;padding:0 8px"'
    rows = "".join(
        f"<tr><td>{escape(str(table.name.values[i]))}</td><td {cell}>{quantity(float(table.measured_s.values[i]), 's')}</td>"
        f"<td {cell}>{quantity(float(table.predicted_s.values[i]), 's')}</td><td {cell}>{int(table['count'].values[i])}</td>"
        f"<td {cell}>{percent(float(table.share.values[i]))}</td><td>{table.bound.values[i]}</td></tr>"
        for i in range(table.sizes["operator"])
    )
    titles = "".join(f"<th {cell}>{word}</th>" for word in ("measured", "predicted", "count", "share"))
    head = f"<tr><th>operator</th>{titles}<th>bound</th></tr>"
    speed = ratio(prediction.measured_step_s, prediction.step_time_s)
    step = (
        f"<b>{quantity(prediction.step_time_s, 's')}</b> a step (80 %: {quantity(low, 's')} to {quantity(high, 's')}), {speed} the measured"
    )
    return f'<div style="padding-left:16px"><p>{step} {quantity(prediction.measured_step_s, "s")}</p><table>{head}{rows}</table></div>'
