"""The page: parts of one session in one layout, and the one place that repaints them together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.util import edit_readonly

from workbench.app.bounds import Bounds
from workbench.app.cards import Cards
from workbench.app.comparing import Comparison
from workbench.app.editor import Editor
from workbench.app.exports import Exports
from workbench.app.html import Html
from workbench.app.inviting import Inviting
from workbench.app.opening import Opening
from workbench.app.roofline import Roofline
from workbench.app.scaling import ScaleOut
from workbench.app.shelf import Shelf
from workbench.app.state import Session
from workbench.app.sweeping import SweepPlot
from workbench.app.tables import Operators, html_list, lag_html, notes_html
from workbench.app.timeline import Timeline
from workbench.app.words import for_page
from workbench.errors import WorkbenchError

log = logging.getLogger(__name__)
TITLE = "NPU Workbench"
TOAST_MS = 12_000
SETTLE_MS = 250
TABLES_MS = 250
"""Tables follow this much later [ms]: they take longer to draw than all pictures."""
TABLES_PX = 590
"""Height kept for the tables [px]: a tab is empty until its rows have come."""
TABS = ("Operators", "What bounds them", "Compare", "What if", "Scale out", "Unexplained lags")


def complain(fault: Exception) -> None:
    """Show an error as a toast that names the place, what is wrong and what to do."""
    if isinstance(fault, WorkbenchError):
        text = for_page(f"{fault.where}: {fault.what}. To mend it: {fault.fix}")
    else:
        log.error("unexpected fault", exc_info=fault)
        text = f"Unexpected fault ({type(fault).__name__}: {fault}). The log of the server holds the details; please report it."
    shown = pn.state.notifications
    if shown is not None and not any(toast.message == text for toast in shown.notifications):  # a slider would repeat it
        shown.error(text, duration=TOAST_MS)


def _guarded(act: Callable[[], None]) -> None:
    """Run a part of the page; what goes wrong is shown, and the rest of the page lives on."""
    try:
        act()
    except Exception as fault:
        complain(fault)


class App:
    """One session's page.

    Parameters
    ----------
    shelf : Shelf
        Recordings of the server.
    executor : Executor
        Where predictions run.
    deliver : callable
        Runs a function on the session's event loop.
    npu, trace : str
        What is chosen at the start; the address of the page goes before.
    """

    def __init__(
        self, shelf: Shelf, executor: Executor, deliver: Callable[[Callable[[], None]], object], npu: str = "", trace: str = ""
    ) -> None:
        self.session = Session(shelf, executor, deliver, complain)
        if npu:
            self.session.choose(npu)
        self.timeline, self.cards, self.roofline = Timeline(self.session), Cards(self.session), Roofline(self.session)
        self.sweep, self.operators, self.editor = SweepPlot(self.session), Operators(self.session), Editor(self.session)
        self.comparison, self.bounds, self.inviting = Comparison(self.session), Bounds(self.session), Inviting(self.session)
        self.opening, self.exports = Opening(self.session), Exports(self.session)
        self.scaling = ScaleOut(self.session)
        self.lags, self.notes = html_list(), html_list()
        self.status = Html(margin=(0, 8), width=230)
        self.note_button = pmui.Button(
            label="Notes", icon="sticky_note_2", variant="text", color="light", size="small", on_click=lambda _: self._toggle()
        )
        self.steps = pmui.Select(label="Step", options={"typical": -1, "all": -2}, value=-1, size="small", width=150, margin=(0, 0, 0, 8))
        shown = (self.operators, self.bounds, self.comparison, self.inviting, self.scaling)
        parts = (*(part.__panel__() for part in shown), self.lags)
        self.tables = pmui.Tabs(*zip(TABS, parts, strict=True), dynamic=True, sizing_mode="stretch_width", margin=0)
        self.below = Html(height=1, sizing_mode="stretch_width", margin=0)
        self.page = self._page()
        self._watch()
        if trace:
            self.session.trace = trace

    def _watch(self) -> None:
        session = self.session
        session.param.watch(lambda _: _guarded(self.paint), "answer")
        session.param.watch(lambda _: self._later(), "settled")
        session.param.watch(lambda _: self._status(), "busy")
        session.param.watch(lambda _: self._steps(), "workload")
        self.tables.param.watch(lambda _: _guarded(self._scale), "active")
        self.steps.param.watch(lambda event: session.param.update(step=event.new), "value")
        self.page.param.watch(lambda event: session.param.update(dark=event.new), "dark_theme")
        session.dark = bool(self.page.dark_theme)

    def paint(self) -> None:
        """Repaint every picture with the newest answer, in one message to the browser."""
        with pn.io.hold():
            self.cards.update()
            self.timeline.update()
            self.roofline.update()
            self.sweep.chosen()

    def _later(self) -> None:
        """Settle once nothing has moved for a moment."""
        self._when_still(self.settle, SETTLE_MS)

    def _when_still(self, act: Callable[[], None], wait_ms: int) -> None:
        """Run a part of the page unless a newer answer comes before."""
        count, document = self.session.settled, pn.state.curdoc
        document.add_timeout_callback(lambda: _guarded(act) if count == self.session.settled else None, wait_ms)

    def settle(self) -> None:
        """Follow with what is read rather than watched: notes, marks of the editor, the curve of the sweep; then the table."""
        self.session.link = self.session.edits
        with pn.io.hold():
            prediction = self.session.answer.prediction
            self.notes.html = notes_html(prediction.notes)
            label = f"Notes ({len(prediction.notes)})"
            if self.note_button.label != label:
                self.note_button.label = label
            for act in (self.editor.update, self.sweep.refresh):
                _guarded(act)
        self._when_still(self._fill, TABLES_MS)

    def _fill(self) -> None:
        """Fill the tables; only the one that is looked at goes to the browser, the others are complete when their tab is opened."""
        with pn.io.hold():
            for act in (self.operators.update, self.bounds.update, self.comparison.update, self.inviting.update, self._lags, self._scale):
                _guarded(act)

    def _scale(self) -> None:
        if self.tables.active == TABS.index("Scale out"):
            self.scaling.refresh()

    def _compare(self) -> None:
        self.tables.active = TABS.index("Compare")
        self.below.reveal()

    def _lags(self) -> None:
        self.lags.html = lag_html(self.session.answer.prediction.lags())

    def _steps(self) -> None:
        graph = self.session.workload.graph
        numbers = {f"step {number}" if number >= 0 else "whole recording": i for i, number in enumerate(graph.step_numbers.tolist())}
        self.steps.param.update(options={"typical": -1, **numbers, "all": -2}, value=-1)

    def _status(self) -> None:
        words = self.session.busy
        self.status.html = (
            f'<div style="font:13px system-ui,sans-serif;color:#fff;line-height:30px;white-space:nowrap;overflow:hidden;'
            f'text-overflow:ellipsis;text-align:right">{words}…</div>'
            if words
            else ""
        )

    def _toggle(self) -> None:
        self.page.contextbar_open = not self.page.contextbar_open

    def _page(self) -> Any:
        light: dict[str, Any] = {"variant": "text", "color": "light", "size": "small"}
        header = pn.Row(
            pn.layout.HSpacer(),
            self.status,
            pmui.Button(label="Open", icon="folder_open", on_click=lambda _: self.opening.show(), **light),
            pmui.Button(label="Compare", icon="compare_arrows", on_click=lambda _: self._compare(), **light),
            pmui.Button(label="Export", icon="download", on_click=lambda _: self.exports.show(), **light),
            self.note_button,
            sizing_mode="stretch_width",
        )
        page = pmui.Page(
            title=TITLE,
            busy_indicator=None,
            header=[header],
            sidebar=[self.editor.__panel__()],
            sidebar_width=318,
            main=[self._main(), self.opening.dialog, self.exports.dialog],
            contextbar=[pn.Column(_heading("Notes: what was tolerated and assumed"), self.notes, sizing_mode="stretch_width", margin=12)],
            contextbar_width=380,
            contextbar_variant="temporary",
            theme_config=_theme(),
        )
        with edit_readonly(page):
            page.busy = False  # else every event of the server lays the whole page out twice (0.1 s); `status` says what is being done
        return page

    def _main(self) -> Any:
        timeline = _panel(
            pn.Row(_heading("Timeline"), pn.layout.HSpacer(), self.steps, sizing_mode="stretch_width"),
            self.timeline.__panel__(),
        )
        roof = _panel(
            pn.Row(_heading("Roofline"), pn.layout.HSpacer(), self.roofline.level, sizing_mode="stretch_width"),
            self.roofline.__panel__(),
            height=400,
        )
        sweep = _panel(pn.Row(_heading("Sweep"), self.sweep.field, sizing_mode="stretch_width"), self.sweep.__panel__(), height=400)
        both = pn.FlexBox(roof, sweep, flex_wrap="nowrap", gap="12px", sizing_mode="stretch_width")
        return pn.Column(
            self.cards.__panel__(),
            timeline,
            both,
            _panel(self.below, self.tables, min_height=TABLES_PX),
            sizing_mode="stretch_width",
            margin=(10, 14),
        )


def _heading(text: str) -> Any:
    return pn.pane.HTML(f'<div style="font:600 14px Inter,Roboto,system-ui,sans-serif">{text}</div>', margin=(4, 0))


def _panel(*parts: Any, height: int | None = None, min_height: int | None = None) -> Any:
    sizing: dict[str, Any] = {"height": height, "sizing_mode": "stretch_width"} if height else {"sizing_mode": "stretch_width"}
    return pn.Column(
        *parts,
        styles={"border": "1px solid rgba(127,137,150,.35)", "border-radius": "10px", "padding": "6px 12px 10px"},
        margin=(12, 0, 0, 0),
        min_height=min_height,
        **sizing,
    )


def _theme() -> dict[str, Any]:
    bar = {"MuiAppBar": {"styleOverrides": {"colorPrimary": {"backgroundColor": "#0B3F63", "color": "#FFFFFF"}}}}
    return {
        "light": {"palette": {"primary": {"main": "#0B4F7A"}}, "components": bar},
        "dark": {"palette": {"primary": {"main": "#5DB2E8"}, "background": {"default": "#101317", "paper": "#15181C"}}, "components": bar},
    }


def broken(fault: Exception) -> Any:
    """Return the page that is shown when a page cannot be built."""
    log.error("the page could not be built", exc_info=fault)
    if isinstance(fault, WorkbenchError):
        text = f"{fault.where}: {fault.what}. To mend it: {fault.fix}"
    else:
        text = f"{type(fault).__name__}: {fault}. The log of the server holds the details; please report it."
    return pmui.Page(title=TITLE, main=[pmui.Alert(title="The page could not be built", object=text, alert_type="error", margin=24)])
