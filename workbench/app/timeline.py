"""The linked timeline: a canvas in the browser that draws at once, and a server that refines what it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn
import param
from panel.custom import JSComponent

from workbench.app.html import asset
from workbench.app.state import Answer, Session
from workbench.view import canvas
from workbench.view.text import quantity
from workbench.view.timeline import statistics

_PARTS = ("timeline_picture.js", "timeline_input.js", "timeline.js")


class TimelineCanvas(JSComponent):
    """The canvas; what it draws arrives in one buffer (`workbench.view.canvas.pack`)."""

    buffer = param.Bytes(default=b"")
    lanes = param.List(default=[])
    names = param.List(default=[])
    kinds = param.List(default=[])
    selected_op = param.Integer(default=-1)
    dark = param.Boolean(default=False)
    empty = param.String(default="")

    _esm = "\n".join(asset(part) for part in _PARTS)
    _stylesheets = [asset("timeline.css")]

    def __init__(self, handle: Any, **params: Any) -> None:
        super().__init__(**params)
        self._handle = handle

    def _handle_msg(self, data: dict[str, Any]) -> None:
        self._handle(data)


EMPTY = "No trace is open. Press Open to pick a sample, upload a trace or choose one on the server."


class Timeline:
    """Feeds the canvas from a session and answers its questions."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.component = TimelineCanvas(
            self.handle, kinds=canvas.look_inks(), empty=EMPTY, dark=session.dark, sizing_mode="stretch_width", margin=(2, 0, 0, 0)
        )
        self._view: tuple[float, float] | None = None
        self._pixels = 1000
        self._epoch = 0
        self._shown: tuple[int, int] | None = None
        session.param.watch(lambda event: self.component.param.update(dark=event.new), "dark")
        session.param.watch(lambda event: self.component.param.update(selected_op=event.new), "selected")

    @property
    def _answer(self) -> Answer | None:
        found: Answer | None = self.session.answer
        return found

    def update(self) -> None:
        """Send the picture of the newest answer; a new recording or step is fitted anew."""
        found = self._answer
        if found is None:
            return
        key = (id(self.session.workload), found.step)
        fresh = key != self._shown
        if fresh:
            self._shown, self._view = key, None
            self._epoch += 1
        buffer = self._pack(found)
        if fresh:
            self.component.param.update(lanes=canvas.lane_labels(found.lanes), names=list(found.names.text), buffer=buffer)
        else:
            self.component.buffer = buffer

    def _pack(self, found: Answer) -> bytes:
        view = self._view or (0.0, found.lanes.end_s)
        prediction, step = found.prediction, found.step
        marks = (float(prediction.measured_timeline.step_s[step]), float(prediction.timeline.step_s[step])) if step >= 0 else (0.0, 0.0)
        return canvas.pack(found.lanes, found.names, prediction.graph.op, view, self._pixels, self._epoch, marks)

    def handle(self, message: dict[str, Any]) -> None:
        """Answer one message of the canvas."""
        found = self._answer
        if found is None:
            return
        kind = message.get("type")
        if kind == "view":
            self._view = float(message["t0"]), float(message["t1"])
            self._pixels = int(np.clip(message["pixels"], 50, 4000))
            self.component.buffer = self._pack(found)
        elif kind == "click":
            self._click(found, int(message["index"]))
        elif kind == "clear":
            self.session.selected = -1
        elif kind == "select":
            self._select(found, message)
        elif kind == "find":
            self._find(found, message)

    def _click(self, found: Answer, index: int) -> None:
        if not 0 <= index < len(found.lanes.node):
            return
        node = int(found.lanes.node[index])
        title, rows = canvas.node_details(found.prediction, found.lanes, found.names, node)
        arrows = canvas.arrows(found.prediction, found.lanes, node)
        self.component._send_msg({"type": "details", "title": title, "rows": [list(row) for row in rows], "arrows": arrows})
        row = int(found.prediction.graph.op[node])
        self.session.selected = max(row, -1)

    def _select(self, found: Answer, message: dict[str, Any]) -> None:
        t0, t1 = float(message["t0"]), float(message["t1"])
        wanted = np.zeros(len(found.lanes.ptr) - 1, dtype=bool)
        wanted[[lane for lane in message["lanes"] if 0 <= lane < len(wanted)]] = True
        rows = statistics(found.lanes, wanted, t0, t1)
        count = sum(int(row["count"]) for row in rows)
        title = f"{count} events in {quantity(t1 - t0, 's')} on {int(wanted.sum())} lanes"
        self.component._send_msg({"type": "stats", "title": title, "rows": rows})

    def _find(self, found: Answer, message: dict[str, Any]) -> None:
        text, way = str(message["text"]), 1 if message.get("way", 1) > 0 else -1
        index, place, count = canvas.find(found.lanes, found.names, text, int(message.get("after", -1)), way)
        reply: dict[str, Any] = {"type": "found", "index": index, "text": f"{place} of {count}" if count else "nothing found"}
        if index >= 0:
            lane = int(np.searchsorted(found.lanes.ptr, index, side="right") - 1)
            reply |= {"t0": float(found.lanes.start[index]), "t1": float(found.lanes.finish[index]), "lane": lane}
        self.component._send_msg(reply)

    def __panel__(self) -> pn.viewable.Viewable:
        return self.component
