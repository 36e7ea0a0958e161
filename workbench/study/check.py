"""What a file is, and what is wrong with it: a card, a vendor's operator times or a trace."""

from __future__ import annotations

import re
from pathlib import Path

from workbench import units
from workbench.cost.pack import pack
from workbench.cost.vendor import read_vendor
from workbench.data import is_file, read_head
from workbench.errors import Note, WorkbenchError
from workbench.hardware.npu import catalogue, load_npu
from workbench.study.predict import predict
from workbench.study.report import CheckDocument, note_documents
from workbench.study.scenario import Scenario
from workbench.study.terminal import seconds
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

GZIP = b"\x1f\x8b"
SUFFIXES = {".yaml": "npu", ".yml": "npu", ".csv": "vendor", ".tsv": "vendor", ".xlsx": "vendor", ".parquet": "vendor", ".json": "trace"}
Finding = tuple[str | None, str, tuple[Note, ...]]


def check_file(path: str) -> tuple[CheckDocument, int]:
    """Examine a file.

    Parameters
    ----------
    path : str
        A file, or the catalogue name of a card.

    Returns
    -------
    document : CheckDocument
    code : int
        0 when the file can be used, 1 when its content is invalid, 2 when it cannot be read.
    """
    kind = "unknown"
    try:
        kind = kind_of(path)
        name, summary, notes = {"npu": _npu, "vendor": _vendor, "trace": _trace}[kind](path)
    except WorkbenchError as fault:
        return CheckDocument(path=path, kind=kind, ok=False, name=None, summary="", error=str(fault), notes=[]), fault.exit_code
    return CheckDocument(path=path, kind=kind, ok=True, name=name, summary=summary, error=None, notes=note_documents(notes)), 0


def kind_of(path: str) -> str:
    """Return ``"npu"``, ``"vendor"`` or ``"trace"``: by content where that decides, else by the name's ending.

    Raises
    ------
    UnreadableInput
        When the file cannot be read.
    """
    card = path.rpartition(":")[0] or path  # a partition of a card is written card:partition
    described = card != path and card.endswith((".yaml", ".yml"))
    if (described or card.lower() in catalogue()) and not is_file(path):
        return "npu"
    head = read_head(path, 65536, "give the path of a card, vendor table or trace")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    suffix = SUFFIXES.get(Path(path).suffix.lower())
    if head.startswith(GZIP) or (text[:1] in (b"{", b"[") and suffix != "npu"):
        return "trace"
    if suffix:
        return suffix
    first = text.split(b"\n", 1)[0]
    if re.match(rb"[\w .-]+:(\s|$)", first) or first.startswith((b"#", b"---")):
        return "npu"
    return "vendor" if b"," in first or b"\t" in first else "trace"


def _npu(path: str) -> Finding:
    spec = load_npu(path)
    pack([spec], [*dict.fromkeys((*spec.matrix.rate, *spec.vector.rate))])  # refuses a card that holds no tile of a dtype
    levels = ", ".join(spec.memory)
    parts = f", partitions {', '.join(spec.partitions)}" if spec.partitions else ""
    summary = f"NPU description {spec.name!r}: {units.count(spec.cores, 'core')}, memory {levels}{parts}; confidence {spec.confidence}; ok"
    weak = tuple(Note("weak-figure", spec.name, 1, f"weak: {text}") for text in spec.weak)
    return spec.name, summary, (*spec.notes, *weak)


def _vendor(path: str) -> Finding:
    times = read_vendor(path)
    return None, f"vendor operator times: {units.count(len(times), 'row')}; ok", times.notes


def _trace(path: str) -> Finding:
    workload = Workload(open_trace([path]))
    found = predict(Scenario(workload))
    devices = ", ".join(dict.fromkeys(d for rank in workload.trace.ranks for d in rank.devices if d)) or "no named device"
    replayed = f"replayed {seconds(found.step_time_s)} against {seconds(found.measured_step_s)} recorded"
    steps, events = len(workload.graph.step_numbers), len(workload.trace.events)
    return None, f"trace: {units.count(events, 'event')}, {units.count(steps, 'step')}, {devices}; {replayed}; ok", found.notes
