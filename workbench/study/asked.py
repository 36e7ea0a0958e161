"""Axes and settings as a person types them on a command line: ``path=start:stop:count[unit]``, ``path=8,16,32``, ``path=value``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from glob import has_magic
from pathlib import Path

from workbench import units
from workbench.errors import UnreadableInput
from workbench.hardware.host import HostSpec, load_host
from workbench.hardware.schema import entry_of
from workbench.study.axes import Spaced, Tied, full_path, tied
from workbench.study.scenario import FIELDS

_COUNT = re.compile(r"(\d{1,18})(?!\d)\s*(\S.*)?\Z")
_BARE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z")
_WORDS: dict[str, bool] = {"true": True, "false": False}
AXIS_FORMS = "write PATH=START:STOP:COUNT[UNIT], PATH=A,B,C or PATH,PATH=..., e.g. memory.hbm.bandwidth=0.8:6.4:15TB/s"


def parse_axis(text: str) -> tuple[str, list[object] | Spaced | Tied]:
    """Read one axis.

    Parameters
    ----------
    text : str
        ``path=start:stop:count[unit][:log]`` or ``path=value,value,...``; several paths before ``=`` are tied.

    Returns
    -------
    tuple of str and values
        One entry for the ``axes`` of `workbench.study.sweep.sweep`.

    Raises
    ------
    UnreadableInput
        When the text has another form.
    """
    names, equals, given = text.partition("=")
    paths = [full_path(path) for path in names.split(",") if path.strip()]
    if not equals or not paths or not given.strip():
        raise UnreadableInput(f"axis {text!r}", "not an axis", AXIS_FORMS)
    values = _spaced(text, given) if ":" in given and paths != ["npu"] else [_scalar(part) for part in given.split(",")]
    if isinstance(values, list) and "" in values:
        raise UnreadableInput(f"axis {text!r}", "a value is missing between commas", AXIS_FORMS)
    if len(set(paths)) < len(paths):
        raise UnreadableInput(f"axis {text!r}", "a field is tied to itself", AXIS_FORMS)
    if len(paths) > 1:
        return paths[0], tied(dict.fromkeys(paths, values))
    return paths[0], values


def _spaced(text: str, given: str) -> Spaced:
    parts = [part.strip() for part in given.split(":")]
    log = len(parts) == 4 and parts[3] == "log"
    count = _COUNT.match(parts[2]) if len(parts) == 3 or log else None
    if count is None:
        raise UnreadableInput(f"axis {text!r}", "not of the form start:stop:count[unit]", AXIS_FORMS)
    number, unit = count.groups()
    start, stop = (f"{part} {unit}" if unit and _BARE.match(part) else part for part in parts[:2])
    return Spaced(start, stop, int(number), log)


def _scalar(text: str) -> object:
    return _WORDS.get(text.strip().lower(), text.strip())


def parse_setting(text: str) -> tuple[str, object]:
    """Read one ``path=value`` for `Scenario.with_`: quantities stay text, counts, ratios and switches become values.

    Raises
    ------
    UnreadableInput
        When the text has another form.
    """
    name, equals, given = text.partition("=")
    path, value = full_path(name), given.strip()
    head, _, tail = path.partition(".")
    if not equals or not name.strip() or not value:
        raise UnreadableInput(f"setting {text!r}", "not of the form path=value", 'write e.g. --set memory.hbm.bandwidth="3.2 TB/s"')
    if not tail and head in FIELDS and head not in ("host_factor", "anchored"):
        raise UnreadableInput(f"setting {text!r}", "not a field to set", f"use --{head.removesuffix('_s').replace('_', '-')}")
    entry = entry_of(tail) if tail else None
    if entry is not None and (entry.unit or entry.type in ("text", "choice", "level")):
        return path, value
    return path, _value(value)


def parse_scale(text: str) -> tuple[str, float]:
    """Read one ``pattern=factor`` for `Scenario.scale`.

    Raises
    ------
    UnreadableInput
        When the text has another form.
    """
    name, equals, given = text.rpartition("=")
    if equals and name and _BARE.match(given.strip()) and float(given) >= 0:
        return name, float(given)
    raise UnreadableInput(
        f"scale {text!r}", "not of the form PATTERN=FACTOR", "write e.g. --scale 'aten::mm=0.5'; factors are not negative"
    )


def parse_host(text: str | None) -> tuple[HostSpec | None, float | None]:
    """Read ``NAME|FACTOR``: a host of the catalogue or a file, or a factor on host work (None, None: nothing is said).

    Raises
    ------
    UnreadableInput
        A factor that is negative.
    InvalidSpec
        No host of that name.
    """
    if text is None:
        return None, None
    try:
        factor = float(text)
    except ValueError:
        return load_host(text), None
    if not 0 <= factor < float("inf"):
        raise UnreadableInput(f"--host {text}", "not a factor on host work", "give a number of 0 or more, or the name of a host")
    return None, factor


def parse_ranks(text: str | None, traces: Sequence[str]) -> list[int] | None:
    """Read the ranks of some files, ``"0,1,2"`` (None: the files say); how many a directory or pattern holds shows when it is opened.

    Raises
    ------
    UnreadableInput
        When there is not one rank a file.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    open_ended = any(Path(trace).is_dir() or has_magic(trace) for trace in traces)
    files = len(parts) if open_ended else len(traces)
    if len(parts) != files or not all(part.isdecimal() for part in parts):
        raise UnreadableInput(
            f"--ranks {text}", f"not one rank for each of {units.count(files, 'file')}", f"write --ranks {','.join(map(str, range(files)))}"
        )
    return [int(part) for part in parts]


def _value(text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text.startswith("[") and text.endswith("]"):
        return [_value(part.strip()) for part in text[1:-1].split(",")]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
