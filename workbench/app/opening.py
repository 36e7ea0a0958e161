"""Ways in: samples, uploads in chunks, files below an allowed folder on the server, and a vendor's operator times."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from workbench.app.html import Html
from workbench.app.runner import Latest, Outcome
from workbench.app.state import Session
from workbench.app.words import SALVAGE
from workbench.cost.vendor import VendorTimes, read_vendor
from workbench.errors import UnreadableInput, WorkbenchError

_SMALL = "font:12.5px/1.45 Inter,Roboto,system-ui,sans-serif;opacity:.8"

UPLOADS = "workbench-"
"""Prefix of the folders uploads are kept in."""


class Opening:
    """The dialog behind the Open button."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._folder: Path | None = None
        self._vendors: Latest[Path, VendorTimes] = Latest(read_vendor, self._read, session.executor, session.deliver)
        self.sample = pmui.Select(
            label="Sample",
            options={"choose a sample …": ""} | {name: name for name in session.shelf.samples()},
            value="",
            size="small",
            sizing_mode="stretch_width",
        )
        self.upload = pmui.FileInput(
            label="Upload trace files", accept=".json,.gz", multiple=True, variant="outlined", sizing_mode="stretch_width"
        )
        self.vendor = pmui.FileInput(label="Upload vendor times (CSV)", accept=".csv", variant="outlined", sizing_mode="stretch_width")
        self.drop = pmui.Button(label="Remove vendor times", icon="delete", variant="text", size="small", disabled=True)
        self.stated = Html(html=_words("No vendor times in use."), sizing_mode="stretch_width", margin=(2, 4))
        self.path = pmui.AutocompleteInput(
            label="File on the server",
            options=[],
            restrict=True,
            min_characters=0,
            size="small",
            sizing_mode="stretch_width",
            placeholder="type a part of its name",
        )
        self.salvage = pmui.Checkbox(label=SALVAGE, margin=(0, 0, 4, 0), size="small")
        self.sample.param.watch(self._sample, "value")
        self.upload.param.watch(self._uploaded, "value")
        self.vendor.param.watch(self._vendor, "value")
        self.path.param.watch(self._picked, "value")
        self.drop.on_click(lambda _: self._drop())
        self.dialog = pmui.Dialog(
            *self._contents(),
            title="Open",
            title_variant="h6",
            show_close_button=True,
            close_on_click=True,
            width_option="sm",
            sizing_mode="stretch_width",
        )

    def _contents(self) -> list[Any]:
        shelf = self.session.shelf
        parts = [
            self.sample,
            pn.pane.HTML(
                _words("PyTorch profiler traces (.json or .json.gz), one file or one a rank."),
                sizing_mode="stretch_width",
                margin=(8, 4, 0, 4),
            ),
            self.upload,
            self.salvage,
        ]
        if shelf.folder is not None:
            parts += [
                pn.pane.HTML(_words(f"Large traces: pick a file below {shelf.folder.name}/ on the server."), margin=(8, 4, 0, 4)),
                self.path,
            ]
        parts += [
            pmui.Divider(sizing_mode="stretch_width", margin=(10, 0)),
            pn.pane.HTML(
                _words("A vendor's operator times (name or kind, dtype, dims, time with a unit) take precedence over every model."),
                margin=(0, 4),
            ),
            self.vendor,
            pn.Row(self.stated, self.drop, sizing_mode="stretch_width"),
        ]
        return parts

    def show(self) -> None:
        """Open the dialog, with the files the server has now."""
        self.path.options = self.session.shelf.files()
        self.dialog.open = True

    def open_sample(self, name: str) -> None:
        """Open a trace of the shelf by name; an unknown name is said."""
        samples = self.session.shelf.samples()
        if name not in samples:
            self.session.complain(
                UnreadableInput(name, "no sample trace of this name", f"pick one of {', '.join(samples) or 'none, upload one'}")
            )
            return
        self.dialog.open = False
        self.session.open(name, (samples[name],))

    def _sample(self, event: Any) -> None:
        if event.new:
            self.open_sample(event.new)

    def _picked(self, event: Any) -> None:
        if not event.new:
            return
        try:
            path = self.session.shelf.inside(event.new)
        except WorkbenchError as fault:
            self.session.complain(fault)
            return
        self.dialog.open = False
        self.session.open(path.name, (path,), bool(self.salvage.value))

    def _keep(self, name: str, content: bytes) -> Path:
        """Write an upload into the session's own folder, which goes with the session."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=UPLOADS))
            pn.state.on_session_destroyed(lambda _: shutil.rmtree(self._folder or "", ignore_errors=True))
        path = self._folder / (re.sub(r"[^\w.+-]", "_", Path(name).name)[-120:] or "upload")
        path.write_bytes(content)
        return path

    def _uploaded(self, event: Any) -> None:
        contents, names = event.new, self.upload.filename
        if not contents:
            return
        if isinstance(contents, bytes):
            contents, names = [contents], [names]
        paths = tuple(self._keep(str(name), content) for name, content in zip(names, contents, strict=True))
        self.dialog.open = False
        self.session.open(", ".join(path.name for path in paths), paths, bool(self.salvage.value))

    def _vendor(self, event: Any) -> None:
        if event.new:
            self._vendors.ask(self._keep(str(self.vendor.filename), event.new))

    def _read(self, outcome: Outcome[Path, VendorTimes]) -> None:
        if outcome.error is not None:
            self.session.complain(outcome.error)
            return
        self.session.set_vendor(outcome.answer)
        self.stated.html = _words(f"In use: {outcome.question.name}")
        self.drop.disabled = False
        self.dialog.open = False

    def _drop(self) -> None:
        self.session.set_vendor(None)
        self.stated.html = _words("No vendor times in use.")
        self.drop.disabled = True


def _words(text: str) -> str:
    return f'<div style="{_SMALL}">{text}</div>'
