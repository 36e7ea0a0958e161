"""Files that are no trace: what they seem to be, and what to give instead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.trace.source import UTF8_BOM

GIVE = "give a profiler trace (Kineto or Chrome JSON, XLA xplane.pb, Ascend kernel table, Chakra .et, Nsight Systems SQLite)"
# first bytes -> what such a file is
KNOWN = (
    (b"\x89PNG", "a PNG image"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"SQLite format 3", "an SQLite database"),
    (b"%PDF", "a PDF document"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"\x7fELF", "a program"),
    (b"<", "HTML or XML"),
)

# what to do with a file that is read in another form only: by its first bytes, by the end of its name
BY_CONTENT = (
    (b"PK\x03\x04", "unpack it and give the traces in it"),
    (b"\x28\xb5\x2f\xfd", "unpack it with `zstd -d`"),
    (b"BZh", "unpack it with `bunzip2`"),
    (b"\xfd7zXZ", "unpack it with `unxz`"),
    (b"\xff\xfe", "save it as UTF-8"),
    (b"\xfe\xff", "save it as UTF-8"),
)
BY_NAME = (
    ((".nsys-rep", ".qdrep", ".qdstrm"), "a report of Nsight Systems", "export it: nsys export --type sqlite FILE"),
    ((".ncu-rep",), "a report of Nsight Compute", "export it with `ncu --import FILE --csv`, for `workbench counters`"),
    ((".pftrace", ".perfetto-trace"), "a Perfetto trace", "convert it: traceconv json FILE FILE.json"),
    ((".rpd", ".db"), "a database", "record with torch.profiler and give the file of export_chrome_trace"),
)
ASCEND = "give trace_view.json or kernel_details.csv of the same profile, or its folder"
BY_KEYS = (
    ({"rocprofiler-sdk-tool"}, "the result of rocprofv3", "record with torch.profiler and give the file of export_chrome_trace"),
    ({"segments", "device_traces"}, "a memory snapshot of PyTorch", "give the trace of torch.profiler"),
)
BY_HEADER = (
    ("Computing,Communication(Not Overlapped)", "the account of steps of an Ascend profile", ASCEND),
    ("OP Type,Core Type,Count", "the statistics of operators of an Ascend profile", ASCEND),
    ("Device_id,Level,Op Name", "the statistics of interfaces of an Ascend profile", ASCEND),
    ("API Name,Time(us)", "the statistics of interfaces of an Ascend profile", ASCEND),
    ("Time (%),Total Time (ns)", "a statistic of Nsight Systems", "export it: nsys export --type sqlite FILE.nsys-rep"),
    ("Name,Calls,TotalDurationNs", "a statistic of rocprof", "record with torch.profiler and give the file of export_chrome_trace"),
)


def describe(head: bytes) -> str:
    """Return what a file that is no JSON seems to be, for an error message."""
    text = head.removeprefix(UTF8_BOM).lstrip(b" \t\r\n")
    if not text:
        return "empty"
    for magic, name in KNOWN:
        if head.startswith(magic) or text.startswith(magic):
            return name
    if b"\0" in head or any(c < 9 for c in head):
        return "binary data of no known kind"
    return "text, but no JSON"


def stranger(path: Path, head: bytes) -> tuple[str, str]:
    """Return what a file that is no trace seems to be, and what to do: by its content, else by its name."""
    what = describe(head)
    fix = next((fix for magic, fix in BY_CONTENT if head.startswith(magic)), "")
    first = head[:4096].removeprefix(UTF8_BOM).split(b"\n", 1)[0].decode("utf-8", "replace").replace('"', "")
    for columns, called, fix_of in BY_HEADER:
        if columns.lower() in first.lower():
            return called, fix_of
    if not fix and b"\0" in head:
        for ends, called, fix_of in BY_NAME:
            if path.name.lower().endswith(ends):
                return f"{called} ({what})", fix_of
    return what, fix or "give a trace in JSON, plain or gzip"


def strange_json(top: Mapping[str, object]) -> tuple[str, str]:
    """Return what JSON without records of a trace is, and what to give instead."""
    for keys, what, fix in BY_KEYS:
        if keys <= top.keys():
            return what, fix
    if any(isinstance(step, dict) and {"p2p", "collective"} & step.keys() for step in top.values()):
        return "the account of messages of an Ascend profile", ASCEND
    return f"JSON without traceEvents (its keys: {', '.join(sorted(top)[:8]) or 'none'})", GIVE
