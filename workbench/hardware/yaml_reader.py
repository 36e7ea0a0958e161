"""Strict reading of YAML descriptions: every key known, every quantity a text with a unit, every refusal with file and line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from workbench import units
from workbench.errors import InvalidSpec
from workbench.hardware import schema
from workbench.hardware.check import check_entry, unknown_key


def mapping_of(text: str, file: str, what: str, fix: str) -> yaml.MappingNode:
    """Return the mapping that a YAML text is.

    Parameters
    ----------
    text : str
        YAML.
    file : str
        Its name, for messages.
    what, fix : str
        What it should be, e.g. ``"an NPU description"``, and how one begins.

    Returns
    -------
    yaml.MappingNode

    Raises
    ------
    InvalidSpec
        Not YAML, nested too deep, or no mapping.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise InvalidSpec(
            f"{file}:{line}", f"not YAML: {getattr(error, 'problem', None) or error}", "mend the indentation or quoting"
        ) from None
    except RecursionError:
        raise InvalidSpec(f"{file}:1", "nested far deeper than any description", "write sections of keys, two levels deep") from None
    if not isinstance(root, yaml.MappingNode):
        raise InvalidSpec(f"{file}:1", f"not {what}", fix)
    return root


class Reader:
    """One reading: remembers the line of every path."""

    what = "this description"

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[str, int] = {}

    def where(self, path: str) -> str:
        """Return file and line of a path; of the nearest section above it where the file does not have it."""
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        return f"{self.file}:{self.lines.get(path, 1)}"

    def items(self, node: yaml.Node, path: str) -> dict[str, yaml.Node]:
        """Return the entries of a mapping node, remembering their lines; duplicate keys are refused."""
        if not isinstance(node, yaml.MappingNode):
            raise InvalidSpec(
                f"{self.file}:{node.start_mark.line + 1}", f"{path or 'the file'} is not a mapping", "indent its keys below it"
            )
        out: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(key.value)
            full = f"{path}.{name}" if path else name
            if name in out:
                raise InvalidSpec(f"{self.file}:{key.start_mark.line + 1}", f"{full} is given twice", "keep one of them")
            self.lines[full] = key.start_mark.line + 1
            out[name] = value
        return out

    def section(
        self, given: Mapping[str, yaml.Node], entries: Mapping[str, schema.Entry], path: str, rate_unit: str = ""
    ) -> dict[str, Any]:
        """Return the values of a section by key: what is given, checked; defaults for the rest.

        Parameters
        ----------
        given : mapping of str to yaml.Node
            What the file has.
        entries : mapping of str to Entry
            What it may have.
        path : str
            The section, empty at the top.
        rate_unit : str
            Unit of its bandwidths where it is not B/s.

        Raises
        ------
        InvalidSpec
            An unknown or missing key, or a value of the wrong type, unit or size.
        """
        out: dict[str, Any] = {}
        for key, node in given.items():
            full = f"{path}.{key}" if path else key
            if key not in entries:
                raise unknown_key(key, entries, self.where(full), f"is not a key of {path or self.what}")
            entry = entries[key]
            if entry.type in ("table", "intervals"):
                table = self.items(node, full)
                known, what = (schema.DTYPES, "is not a dtype") if entry.type == "table" else (schema.ERROR_GROUPS, "is not a kind")
                for dtype in table:
                    if dtype not in known:
                        raise unknown_key(dtype, known, self.where(f"{full}.{dtype}"), what)
                out[key] = {dtype: self.value(entry, value, f"{full}.{dtype}") for dtype, value in table.items()}
            else:
                out[key] = self.value(entry, node, full, rate_unit if entry.unit == "B/s" else "")
        for key, entry in entries.items():
            if key not in out:
                if entry.default is schema.REQUIRED:
                    raise InvalidSpec(
                        self.where(path) if path else f"{self.file}:1",
                        f"{path + '.' if path else ''}{key} is missing",
                        self.example(key, entry),
                    )
                out[key] = entry.default
        return out

    @staticmethod
    def example(key: str, entry: schema.Entry) -> str:
        """Return the remedy for a missing key."""
        return f'add e.g. {key}: "{units.EXAMPLES[entry.unit]}"' if entry.unit else f"add {key}:"

    def value(self, entry: schema.Entry, node: yaml.Node, path: str, unit: str = "") -> Any:
        """Return one value in its type, quantities in SI units; `InvalidSpec` where it does not hold."""
        loader = yaml.SafeLoader("")
        try:
            value = loader.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError) as error:
            said = getattr(error, "problem", None) or error
            raise InvalidSpec(f"{self.where(path)}: {path}", f"not a plain value: {said}", "write a text, number or list") from None
        if entry.unit:
            value = units.parse(value, unit or entry.unit, f"{self.where(path)}: {path}")
        return check_entry(entry, value, f"{self.where(path)}: {path}")
