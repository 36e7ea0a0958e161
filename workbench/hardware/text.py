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
from workbench.hardware.check import cross_check, unknown_key
from workbench.hardware.parts import Calibration, MemoryLevel, Partition
from workbench.hardware.spec import NpuSpec
from workbench.hardware.yaml_reader import Reader, mapping_of

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
    root = mapping_of(text, file, "an NPU description", "start with name:, cores:, clock:, matrix:, vector:, memory:")
    return _NpuReader(file).spec(root)


class _NpuReader(Reader):
    """The reading of one card."""

    what = "an NPU description"

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
