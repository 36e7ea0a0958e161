"""``workbench export`` as a person runs it."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

from tests.cli.conftest import Run
from workbench.trace.open import open_trace

TRACE = "data/traces/synthetic_ddp.json.gz"


def test_export_writes_what_the_ending_says(run: Run, folder: Path) -> None:
    shown = run("export", TRACE, "--npu", "npu-x", "--to", folder / "both.json.gz")
    assert shown.returncode == 0, shown.stderr
    events = json.loads(gzip.decompress((folder / "both.json.gz").read_bytes()))["traceEvents"]
    assert {event["pid"] for event in events} == {1, 2}  # measured and predicted
    assert run("export", TRACE, "--to", folder / "a.et").returncode == 0
    assert open_trace(folder / "a.et").is_device_work.any()


def test_export_refuses_in_one_line(run: Run, folder: Path) -> None:
    asked = [
        ((TRACE, "--to", folder / "a.docx"), 1, ".parquet"),
        ((TRACE,), 2, "--to"),
        ((TRACE, "--to", folder / "no" / "a.et"), 2, "written"),
    ]
    if importlib.util.find_spec("pyarrow") is None:
        asked.append(((TRACE, "--to", folder / "a.parquet"), 1, "npu-workbench[tables]"))
    for arguments, code, word in asked:
        found = run("export", *arguments)
        assert (found.returncode, len(found.stderr.splitlines())) == (code, 1), found.stderr
        assert word in found.stderr
