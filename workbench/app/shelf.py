"""The traces a server knows: samples, those named at its start, and those below an allowed folder; opened once, read by all."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from workbench.data import data_path
from workbench.errors import Refused, UnreadableInput
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

ENDINGS = (".json", ".json.gz")
KEPT = 8
"""Recordings kept in memory."""
LISTED = 500
"""Most files a picker lists."""


class Shelf:
    """Read-only recordings shared between sessions.

    Parameters
    ----------
    named : iterable of path
        Traces offered by their file name from the start.
    folder : path or None
        Folder below which people may pick files on the server; None: nowhere.
    """

    def __init__(self, named: Iterable[str | Path] = (), folder: str | Path | None = None) -> None:
        self.named = {Path(path).name: Path(path) for path in named}
        self.folder = Path(folder).resolve() if folder is not None else None
        self._kept: OrderedDict[tuple[object, ...], Workload] = OrderedDict()
        self._lock = threading.Lock()

    def samples(self) -> dict[str, Path]:
        """Return the traces that come with the workbench and those named at the start, by name."""
        try:
            found = {path.name: path for path in sorted(data_path("traces").iterdir()) if path.name.endswith(ENDINGS)}
        except UnreadableInput:
            found = {}
        return self.named | {name: path for name, path in found.items() if not name.endswith((".expected.json", ".facts.json"))}

    def files(self) -> list[str]:
        """Return the trace files below the allowed folder, as paths relative to it."""
        if self.folder is None or not self.folder.is_dir():
            return []
        found = (path for path in sorted(self.folder.rglob("*.json*")) if path.name.endswith(ENDINGS) and path.is_file())
        return [str(path.relative_to(self.folder)) for path, _ in zip(found, range(LISTED), strict=False)]

    def inside(self, relative: str) -> Path:
        """Return the path of a file below the allowed folder.

        Raises
        ------
        Refused
            When it lies elsewhere.
        """
        if self.folder is None:
            raise Refused(relative, "this server offers no folder", "start it with --folder FOLDER")
        path = (self.folder / relative).resolve()
        if not path.is_relative_to(self.folder):
            raise Refused(relative, "the file is not below the folder this server offers", f"pick a file below {self.folder.name}")
        return path

    def open(self, paths: Iterable[Path], salvage: bool = False) -> Workload:
        """Return a recording with its graph and its identity replay, from memory where it is unchanged.

        Parameters
        ----------
        paths : iterable of path
            One file, or one a rank.
        salvage : bool
            Import what is whole of a damaged file.
        """
        paths = tuple(paths)
        for path in paths:
            if not path.is_file():
                raise UnreadableInput(path.name, "no such file on the server", "pick another trace or upload one")
        stats = [(path, path.stat()) for path in paths]
        key = (salvage, *((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in stats))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        workload = Workload(open_trace([str(path) for path in paths], salvage=salvage))
        _ = workload.measured_account  # builds graph, table and replay here, where an error can still be shown
        with self._lock:
            self._kept[key] = workload
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return workload
