"""Folders the Ascend profilers write: the timelines in them, and what their small files say of the recording.

Forms: torch_npu writes ``<host>_<pid>_<time>_ascend_pt/`` with ``profiler_info_<rank>.json``, ``profiler_metadata.json`` and
``ASCEND_PROFILER_OUTPUT/`` (``trace_view.json``, ``kernel_details.csv``, ``communication.json``, ``step_trace_time.csv`` ...); msprof
writes ``PROF_<n>_<time>_<id>/mindstudio_profiler_output/`` (``msprof_*.json``, ``op_summary_*.csv``). Source: the public documentation of
torch_npu and CANN; unverified: no folder was at hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from workbench.trace.part import Part
from workbench.trace.source import first_bytes, kind_of

OUTPUTS = ("ASCEND_PROFILER_OUTPUT", "mindstudio_profiler_output")
TIMELINES = ("trace_view.json*", "msprof_*.json*", "msprof.json*")
TABLES = ("kernel_details*.csv", "op_summary*.csv")
INFO = re.compile(r"profiler_info_(\d{1,9})\.json$")
_DEPTH = 4
_SMALL = 1 << 22


def profile_files(folder: Path) -> list[Path] | None:
    """Return the timelines of the recordings in a folder, one each rank; None where it is not one the Ascend profilers write.

    Parameters
    ----------
    folder : Path
        An output folder, the folder of one rank, or one of many ranks.

    Notes
    -----
    A rank without timeline gives its kernel table. What torch_npu writes from the same records as msprof is preferred to it.
    """
    own = _best(folder)
    if own is not None:
        return own
    homes = sorted(path for name in OUTPUTS for path in _below(folder, name))
    torch = [home for home in homes if home.name == OUTPUTS[0]]
    found = []
    for home in homes:
        if home.name != OUTPUTS[0] and any(one.parent in home.parents for one in torch):
            continue  # msprof's folder inside that of torch_npu
        found += _best(home) or []
    return found or None


def _below(folder: Path, name: str) -> list[Path]:
    found = []
    for depth in range(_DEPTH):
        found += [path for path in folder.glob("/".join(["*"] * depth + [name])) if path.is_dir()]
    return found


def _best(folder: Path) -> list[Path] | None:
    """Return the timeline of one output folder, else its kernel table."""
    named = [path for pattern in TIMELINES for path in sorted(folder.glob(pattern)) if path.is_file()]
    inside = folder.name in OUTPUTS
    if not named and not inside:
        return None
    if named and not (inside or named[0].name.startswith("trace_view.json")):
        return None
    views = [path for path in named if path.name.startswith("trace_view")]
    tables = [path for pattern in TABLES for path in sorted(folder.glob(pattern)) if path.is_file()]
    return views[:1] or named or tables or None


def identify(part: Part) -> None:
    """Take rank and world size of a profile from the small files of its folder, where it does not state them itself."""
    folder = Path(part.path).parent
    if folder.name in OUTPUTS:
        folder = folder.parent
        folder = folder if _infos(folder) or folder.name.endswith("_ascend_pt") else folder.parent
    infos = _infos(folder)
    if part.rank is None and len(infos) == 1:
        part.rank = infos[0]
    said = _read(folder / "profiler_metadata.json") | (_read(folder / f"profiler_info_{infos[0]}.json") if len(infos) == 1 else {})
    info = said.get("distributed_args", said.get("distributedInfo"))
    for source in (info if isinstance(info, dict) else {}, said):
        world = source.get("world_size", source.get("WORLD_SIZE"))
        if part.world_size is None and isinstance(world, int) and not isinstance(world, bool) and 0 < world < 2**31:
            part.world_size = world
        rank = source.get("rank_id", source.get("rank"))
        if part.rank is None and isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < 2**31:
            part.rank = rank
    groups = _groups(said)
    if part.world_size is None and groups:
        part.world_size = max(groups) + 1
    if said:
        part.metadata = {**said, **part.metadata}


def _infos(folder: Path) -> list[int]:
    try:
        return sorted(int(found[1]) for path in folder.glob("profiler_info_*.json") if (found := INFO.search(path.name)))
    except OSError:
        return []


def _groups(said: dict[str, object]) -> list[int]:
    """Return the ranks of the default group, where the process groups are listed (``parallel_group_info``)."""
    listed = said.get("parallel_group_info")
    groups = [group for group in listed.values() if isinstance(group, dict)] if isinstance(listed, dict) else []
    members = [group.get("global_ranks") for group in groups if group.get("group_name") == "default_group"]
    ranks = [rank for some in members if isinstance(some, list) for rank in some]
    return [rank for rank in ranks if isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < 2**31]


def _read(path: Path) -> dict[str, object]:
    """Return the keys of a small JSON file; {} where it is absent or cannot be read."""
    if not path.is_file():
        return {}
    data = first_bytes(path, _SMALL)
    try:
        found = json.loads(data) if kind_of(data) == "object" else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
