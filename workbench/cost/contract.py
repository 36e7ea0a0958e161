"""What a vendor's times mean: the questions of design.md section 7, answered in the file, beside it or by the user; open ones are noted.

Answers act where they can: times without launch get the card's, times at another clock are moved by the model's ratio
(`workbench.cost.estimate`); the others are shown with the result.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from workbench import units
from workbench.data import is_file, read_small
from workbench.errors import InvalidSpec, Note, WorkbenchError

CONTRACT: Mapping[str, str] = MappingProxyType(
    {
        "launch": "is the launch included (yes/no)",
        "caches": "were caches cold or warm",
        "clock": "at which clock, e.g. 1.41 GHz",
        "layout": "is layout conversion included",
        "fusion": "what is fused into one row",
        "simulator": "which simulator or library version",
    }
)
"""Questions a vendor table should answer: in ``# key: value`` lines above its header, in a YAML file beside it, or by option."""
_SAME = {
    **dict.fromkeys(("launch included", "launch overhead", "launch_included"), "launch"),
    **dict.fromkeys(("cache",), "caches"),
    **dict.fromkeys(("frequency", "freq", "core clock"), "clock"),
    **dict.fromkeys(("layout conversion", "transdata"), "layout"),
    **dict.fromkeys(("fusion scope",), "fusion"),
    **dict.fromkeys(("version", "simulator version", "library", "library version", "cann", "driver"), "simulator"),
}
_YES, _NO = ("yes", "true", "included", "incl", "1", "with", "y"), ("no", "false", "excluded", "not included", "excl", "0", "without", "n")
SIDECARS = (".contract.yaml", ".yaml", ".yml")


@dataclass(frozen=True)
class Contract:
    """Answers as given; ``clock`` in Hz and ``launch`` as a truth value where they could be read, else None."""

    answers: Mapping[str, str] = field(default_factory=dict)
    launch: bool | None = None
    clock: float | None = None
    unclear: tuple[str, ...] = ()  # answers in comments that could not be understood

    @property
    def open(self) -> tuple[str, ...]:
        """Keys nobody answered."""
        return tuple(key for key in CONTRACT if key not in self.answers)

    def notes(self, where: str) -> tuple[Note, ...]:
        """Return what is not stated, and what stated answers mean for the numbers."""
        out = []
        if self.unclear:
            text = f"answers that could not be understood: {'; '.join(self.unclear)}"
            out.append(Note("vendor-contract-unclear", where, len(self.unclear), text, "state them with --vendor-contract"))
        if self.launch is False:
            text = "stated without launch: where a card is priced, its launch overhead is added to each"
            out.append(Note("vendor-without-launch", where, 1, text, "say launch=yes if it is included after all"))
        if self.open:
            text = f"not stated: {'; '.join(CONTRACT[key] for key in self.open)}"
            fix = "add lines such as '# caches: warm' above the header, or --vendor-contract caches=warm"
            out.append(Note("vendor-contract-open", where, len(self.open), text, fix))
        if self.answers.get("caches", "").lower().startswith("warm"):
            text = "stated with warm caches: a step that finds its operands cold takes longer where memory bounds it"
            out.append(Note("vendor-caches-warm", where, 1, text, "ask for times with cold caches"))
        if self.answers.get("layout", "").lower() in _NO:
            out.append(Note("vendor-no-layout", where, 1, "layout conversions are not in these times", "ask for rows of TransData"))
        return tuple(out)


def read_contract(path: str, comments: Sequence[str], asked: Mapping[str, str] | None = None) -> Contract:
    """Collect the answers: comments of the table, then a YAML file beside it, then what the user states; later ones go before.

    Parameters
    ----------
    path : str
        Of the table; ``TABLE.contract.yaml``, ``TABLE.yaml`` and ``TABLE.csv.yaml`` beside it are read where they are mappings of
        answers.
    comments : sequence of str
        Lines above the header.
    asked : mapping of str to str, optional
        Key to answer.

    Raises
    ------
    InvalidSpec
        An unknown key, or an answer that cannot be one.
    """
    answers: dict[str, str] = {}
    given: dict[str, dict[str, str]] = {}
    unclear: list[str] = []
    for key, value in _lines(comments):
        try:
            _understood(Contract(), key, value, path)
        except InvalidSpec:
            unclear.append(f"{key}: {value[:60]}")
            continue
        answers[key] = value
        given.setdefault(key, {})[value.lower()] = value
    for key, values in given.items():
        if len(values) > 1:  # neither answer counts
            del answers[key]
            unclear.append(f"{key}: {' and '.join(value[:60] for value in values.values())}, which contradict each other")
    answers |= _sidecar(path)
    for key, value in (asked or {}).items():
        answers[_key(key, "--vendor-contract")] = value.strip()
    made = Contract(MappingProxyType(answers), unclear=tuple(dict.fromkeys(unclear)))
    for key, value in answers.items():
        made = _understood(made, key, value, path)
    return made


def _lines(comments: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for line in comments:
        for part in re.split(r"[;|]", line.lstrip("# \t")):
            key, mark, value = part.partition(":") if ":" in part else part.partition("=")
            name = _SAME.get(key.strip().lower(), key.strip().lower())
            if mark and value.strip() and name in CONTRACT:
                found.append((name, value.strip().strip(",;")))
    return found


def _key(key: str, where: str) -> str:
    name = _SAME.get(key.strip().lower(), key.strip().lower())
    if name not in CONTRACT:
        near = difflib.get_close_matches(name, CONTRACT, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(CONTRACT)}"
        raise InvalidSpec(f"{where}: {key!r}", "no such question", hint)
    return name


def _sidecar(path: str) -> dict[str, str]:
    stem = str(Path(path).with_suffix(""))
    for candidate in dict.fromkeys((*(stem + end for end in SIDECARS), *(path + end for end in SIDECARS))):
        if candidate == path or not is_file(candidate):
            continue
        import yaml

        try:
            data = yaml.safe_load(read_small(candidate, "give YAML text").decode("utf-8"))
        except (yaml.YAMLError, UnicodeError, RecursionError) as error:
            raise InvalidSpec(candidate, f"not YAML: {str(error).splitlines()[0][:120]}", "write lines such as 'caches: warm'") from None
        if isinstance(data, dict) and isinstance(data.get("contract"), dict):
            data = data["contract"]
        if isinstance(data, dict) and any(_SAME.get(str(key).lower(), str(key).lower()) in CONTRACT for key in data):
            return {_key(str(key), candidate): _text(value) for key, value in data.items() if key not in ("source", "sources", "note")}
    return {}


def _text(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _understood(made: Contract, key: str, value: str, path: str) -> Contract:
    """Read one answer; free text is kept as it is."""
    plain, where = value.lower().strip(), f"{path}: {key}"
    if key == "launch":
        if plain.startswith(_NO) or plain.endswith(("not included", "excluded")):
            return replace(made, launch=False)
        if plain.startswith(_YES):
            return replace(made, launch=True)
        raise InvalidSpec(where, f"{value!r} is neither yes nor no", "say whether the launch is included: yes or no")
    if key == "caches" and not plain.startswith(("cold", "warm", "flushed", "hot")):
        raise InvalidSpec(where, f"{value!r} is neither cold nor warm", "say cold or warm")
    if key == "clock":
        try:
            return replace(made, clock=units.parse(value, "Hz"))
        except WorkbenchError as error:
            raise InvalidSpec(where, f"{value!r} is not a clock: {error.what}", "write e.g. 1.41 GHz") from None
    return made
