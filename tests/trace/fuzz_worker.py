"""Damages files of every producer and opens them, for a while: ``python -m tests.trace.fuzz_worker SEED SECONDS [FILE...]``.

Prints the seed and the traceback of whatever is neither a trace nor a `WorkbenchError`, and exits with 1. Its memory is bounded; before
every example its seed is printed, so that one that never ends is known.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

from tests.trace import mutations as m
from workbench.errors import WorkbenchError
from workbench.graph.build import build_graph
from workbench.trace.facts import facts
from workbench.trace.open import open_trace

MEMORY = 8 << 30
"""Address space of the process [B]."""


def outcome(paths: Path | list[Path], salvage: bool) -> int:
    """Return how many events are read, and may be counted and made a graph (-1: refused with a reason)."""
    try:
        trace = open_trace(paths, salvage=salvage)
        facts(trace)
        build_graph(trace)
    except WorkbenchError as error:
        return -1 if error.where and error.what and error.fix else len(faulty(error))
    return len(trace.events)


def faulty(error: WorkbenchError) -> str:
    """Refuse a refusal that does not say where, what and how to mend it."""
    raise AssertionError(f"{error!r} lacks a part")


def written(files: m.Files, folder: Path) -> Path | list[Path]:
    """Write files into an empty folder; return what to open: the only one, or all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, raw in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)
    return folder / next(iter(files)) if len(files) == 1 else folder


def example(kind: str, whole: m.Files, folder: Path, seed: int) -> None:
    """Damage one recording in a way the seed decides, and open it with and without salvage."""
    random = Random(seed)
    files = {"x.sqlite": m.database(folder.parent / "x.sqlite", random)} if kind == "nsight values" else m.damaged(whole, random)
    if files:
        paths = written(files, folder)
        for salvage in (False, True):
            outcome(paths, salvage)


def main(seed: int, seconds: float, extra: list[Path]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faults, end = 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        kinds = m.whole(Path(name)) | {str(path): {path.name: path.read_bytes()} for path in extra}
        while time.monotonic() < end:
            kind = sorted(kinds)[seed % len(kinds)]
            print(seed, kind, flush=True)
            try:
                example(kind, kinds[kind], Path(name) / "x", seed)
            except Exception:
                faults += 1
                traceback.print_exc(file=sys.stdout)
            seed += 1
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), [Path(path) for path in sys.argv[3:]]))
