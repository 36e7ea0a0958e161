"""NPU descriptions as YAML text: strict reading with file and line, and writing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import yaml

from workbench import units
from workbench.errors import InvalidSpec, Note
from workbench.hardware import schema
from workbench.hardware.check import check_entry, cross_check, unknown_key
from workbench.hardware.parts import Calibration, MemoryLevel, Partition
from workbench.hardware.spec import NpuSpec

_ALL_KEYS = ("memory", "calibration", "partitions", *schema.SECTIONS, *schema.TOP)


def read_yaml(text: str, file: str) -> NpuSpec:
    """Read one NPU description.

    Parameters
    ----------
    text : str
        YAML.
    file : str
        Its name, for messages.

    Returns
    -------
    NpuSpec
        With a note where sources are missing.

    Raises
    ------
    InvalidSpec
        Not YAML, unknown, misplaced or missing key, bare number for a quantity, or values that contradict each other.
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
        raise InvalidSpec(f"{file}:1", "not an NPU description", "start with name:, cores:, clock:, matrix:, vector:, memory:")
    return _Reader(file).spec(root)


class _Reader:
    """One reading: remembers the line of every path."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[str, int] = {}

    def where(self, path: str) -> str:
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

    def spec(self, root: yaml.Node) -> NpuSpec:
        items = self.items(root, "")
        for key, node in items.items():
            if key not in _ALL_KEYS:
                raise self.misplaced(key, node)
        for key in schema.NEEDED:
            if key not in items:
                raise InvalidSpec(f"{self.file}:1", f"{key!r} is missing", f"add a {key}: section")
        top = self.section({k: v for k, v in items.items() if k in schema.TOP}, schema.TOP, "")
        parts: dict[str, Any] = {}
        for name, entries in schema.SECTIONS.items():
            given = self.items(items[name], name) if name in items else {}
            absent = name in schema.OPTIONAL and name not in items
            parts[name] = None if absent else NpuSpec.PARTS[name](**self.section(given, entries, name))
        memory = {level: self.level(node, f"memory.{level}") for level, node in self.items(items["memory"], "memory").items()}
        if not memory:
            raise InvalidSpec(self.where("memory"), "no memory level", "add at least the outermost memory")
        last = list(memory)[-1]
        memory[last] = replace(memory[last], scope="chip") if f"memory.{last}.scope" not in self.lines else memory[last]
        calibration = {}
        for dtype, node in (self.items(items["calibration"], "calibration") if "calibration" in items else {}).items():
            if dtype not in schema.DTYPES:
                raise unknown_key(dtype, schema.DTYPES, self.where(f"calibration.{dtype}"), "is not a dtype")
            path = f"calibration.{dtype}"
            calibration[dtype] = Calibration(**self.section(self.items(node, path), schema.CALIBRATION, path))
        partitions = {}
        for name, node in (self.items(items["partitions"], "partitions") if "partitions" in items else {}).items():
            path = f"partitions.{name}"
            partitions[name] = Partition(**self.section(self.items(node, path), schema.PARTITION, path))
        spec = NpuSpec(**top, **parts, memory=memory, calibration=calibration, partitions=partitions)
        notes = cross_check(spec, self.where)
        if not spec.sources:
            notes += (Note("no-sources", self.file, 1, f"{spec.name} says nothing of where its numbers come from", "add sources:"),)
        return replace(spec, notes=notes)

    def misplaced(self, key: str, node: yaml.Node) -> InvalidSpec:
        """Return the refusal of an unknown key at the top: where it belongs, or the nearest known key."""
        where = self.where(key)
        if isinstance(node, yaml.MappingNode) and node.value and all(str(k.value) in schema.LEVEL for k, _ in node.value):
            return InvalidSpec(
                where, f"{key!r} is a memory level at the top of the file", f"it belongs under memory: indent it, memory.{key}"
            )
        owners = [section for section, entries in (*schema.SECTIONS.items(), *schema.GROUPS.items()) if key in entries]
        if owners:
            return InvalidSpec(where, f"{key!r} is not a key at the top of the file", f"it belongs under {' or '.join(owners)}")
        return unknown_key(key, _ALL_KEYS, where, "is not a key of an NPU description")

    def level(self, node: yaml.Node, path: str) -> MemoryLevel:
        given = self.items(node, path)
        stated = [given[key].value for key in ("bandwidth", "write_bandwidth") if key in given and isinstance(given[key], yaml.ScalarNode)]
        per_clock = bool(stated) and all(str(text).rstrip().endswith("clk") for text in stated)
        return MemoryLevel(**self.section(given, schema.LEVEL, path, "B/clk" if per_clock else ""), per_clock=per_clock)

    def section(
        self, given: Mapping[str, yaml.Node], entries: Mapping[str, schema.Entry], path: str, rate_unit: str = ""
    ) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, node in given.items():
            full = f"{path}.{key}" if path else key
            if key not in entries:
                raise unknown_key(key, entries, self.where(full), f"is not a key of {path or 'an NPU description'}")
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
        return f'add e.g. {key}: "{units.EXAMPLES[entry.unit]}"' if entry.unit else f"add {key}:"

    def value(self, entry: schema.Entry, node: yaml.Node, path: str, unit: str = "") -> Any:
        loader = yaml.SafeLoader("")
        try:
            value = loader.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError) as error:
            said = getattr(error, "problem", None) or error
            raise InvalidSpec(f"{self.where(path)}: {path}", f"not a plain value: {said}", "write a text, number or list") from None
        if entry.unit:
            value = units.parse(value, unit or entry.unit, f"{self.where(path)}: {path}")
        return check_entry(entry, value, f"{self.where(path)}: {path}")


def to_yaml(spec: NpuSpec) -> str:
    """Write a spec as YAML text; `read_yaml` gives an equal spec back."""
    document: dict[str, Any] = {}
    for path in spec.paths():
        entry, parts = schema.entry_of(path), path.split(".")
        assert entry is not None
        value: Any = spec
        for part in parts:
            value = value[part] if isinstance(value, Mapping) else getattr(value, part)
        unit = entry.unit
        if parts[0] == "memory" and unit == "B/s" and spec.memory[parts[1]].per_clock:
            unit = "B/clk"
        target = document
        for part in parts[:-1]:
            target = target.setdefault(part, {})
        if value not in ("", ()):
            target[parts[-1]] = units.format(value, unit) if unit else list(value) if isinstance(value, tuple) else value
    if spec.partitions:
        document["partitions"] = {
            name: {key: value if isinstance(value, int | float) else list(value) for key, value in vars(part).items() if value != ()}
            for name, part in spec.partitions.items()
        }
    lines: list[str] = []
    _write(document, 0, lines)
    return "\n".join(lines) + "\n"


def _write(mapping: Mapping[str, Any], depth: int, lines: list[str]) -> None:
    for key, value in mapping.items():
        pad = "  " * depth
        key = key if re.fullmatch(r"[A-Za-z0-9][\w.+-]*", key) else json.dumps(key, ensure_ascii=False)
        if isinstance(value, Mapping):
            if value:
                lines.append(f"{pad}{key}:")
                _write(value, depth + 1, lines)
        else:
            lines.append(f"{pad}{key}: {json.dumps(value, ensure_ascii=False)}")
