"""`workbench serve`: the page, its sessions and their address; nothing leaves the machine."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import panel as pn

from workbench.app.page import TITLE, App, broken
from workbench.app.shelf import Shelf
from workbench.app.state import DEFAULT
from workbench.errors import UnreadableInput, WorkbenchError
from workbench.hardware.npu import load_npu
from workbench.study.predict import predict
from workbench.study.scenario import Scenario

WORKERS = 2
MESSAGE_BYTES = 64 * 2**20
"""Largest message of a browser [B]; uploads come in smaller chunks."""


def pages(shelf: Shelf, executor: ThreadPoolExecutor, npu: str = "", trace: str = "") -> Callable[[], Any]:
    """Return the function that builds the page of a new session.

    Parameters
    ----------
    shelf : Shelf
        Recordings, shared between sessions.
    executor : ThreadPoolExecutor
        Where predictions of all sessions run.
    npu, trace : str
        Card and trace (a name of the shelf) at the start.
    """

    def build() -> Any:
        try:
            document = pn.state.curdoc
            app = App(shelf, executor, document.add_next_tick_callback, npu, trace)
            _address(app)
            return app.page
        except Exception as fault:  # an exception here would leave the browser with an endless spinner
            return broken(fault)

    return build


def _address(app: App) -> None:
    """Tie card, edits and sample to the address of the page, then open what it names."""
    session = app.session
    if pn.state.location is not None:
        pn.state.location.sync(session, {"npu": "npu", "link": "set", "trace": "trace"})
    if session.trace:
        name = session.trace
        pn.state.onload(lambda: app.opening.open_sample(name))


def _get_ready(shelf: Shelf, path: Path | None) -> None:
    """Open and predict a recording while the first page loads, so that its kernels are loaded and the recording is on the shelf.

    A fault is left for the page, which meets it again and shows it.
    """
    path = path or min(shelf.samples().values(), key=lambda sample: sample.stat().st_size, default=None)
    if path is not None:
        with suppress(WorkbenchError):
            predict(Scenario(shelf.open((path,)), npu=load_npu(DEFAULT)))


def _free_port(address: str) -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def serve(
    traces: Iterable[str | Path] = (),
    *,
    port: int = 5006,
    address: str = "localhost",
    npu: str = "",
    folder: str | Path | None = None,
    show: bool = True,
    block: bool = True,
    origins: Iterable[str] = (),
) -> Any:
    """Serve the app.

    Parameters
    ----------
    traces : iterable of path
        Offered first in the Open dialog; the first one is opened.
    port : int
        0 takes any free port.
    address : str
        Address to listen on.
    npu : str
        Card at the start: a catalogue name or the path of a YAML description.
    folder : path, optional
        Folder below which traces on the server may be picked; default: that of the first trace.
    show : bool
        Open a browser window.
    block : bool
        Serve until interrupted; False serves in a thread and returns at once.
    origins : iterable of str
        Hosts a proxy serves the page under, e.g. ``"perf.example.org"``.

    Returns
    -------
    Server or thread
        As `panel.serve` returns it.

    Raises
    ------
    UnreadableInput
        A named trace does not exist.
    """
    paths = [Path(trace) for trace in traces]
    for path in paths:
        if not path.is_file():
            raise UnreadableInput(str(path), "no such file", "name existing trace files")
    below = folder if folder is not None else (paths[0].resolve().parent if paths else None)
    shelf = Shelf(paths, below)
    executor = ThreadPoolExecutor(WORKERS, thread_name_prefix="predict")
    executor.submit(_get_ready, shelf, paths[0] if paths else None)
    pn.extension("tabulator", notifications=True)
    port = port or _free_port(address)
    allowed = [f"{address}:{port}", f"localhost:{port}", f"127.0.0.1:{port}", *origins]
    return pn.serve(
        {"/": pages(shelf, executor, npu, paths[0].name if paths else "")},
        title={"/": TITLE},
        port=port,
        address=address,
        show=show,
        threaded=not block,
        websocket_origin=allowed,
        websocket_max_message_size=MESSAGE_BYTES,
        verbose=block,
    )
