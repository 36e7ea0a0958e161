"""Cluster descriptions and libraries of collectives as YAML text: strict reading with file and line; the catalogue."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import yaml

from workbench import units
from workbench.errors import InvalidSpec, Note
from workbench.hardware import cluster_schema as schema
from workbench.hardware.check import unknown_key
from workbench.hardware.cluster import ClusterSpec, Library, ProtocolSpec, Tier, check_tiers
from workbench.hardware.cluster_graph import KINDS, Wire, tiers_of
from workbench.hardware.named import own_text, shipped, shipped_text, unknown_name
from workbench.hardware.schema import Entry
from workbench.hardware.yaml_reader import Reader, mapping_of

_FIX = "start with name:, npu:, tiers:"


def clusters() -> tuple[str, ...]:
    """Return the sorted names of the clusters that come with the workbench."""
    return shipped("cluster")


def libraries() -> tuple[str, ...]:
    """Return the sorted names of the libraries of collectives that come with the workbench."""
    return shipped("cluster", "libraries")


def load_cluster(name_or_path: str | os.PathLike[str]) -> ClusterSpec:
    """Load a cluster.

    Parameters
    ----------
    name_or_path : str or path
        A catalogue name (see `clusters`; case does not matter) or the path of a YAML description.

    Returns
    -------
    ClusterSpec

    Raises
    ------
    InvalidSpec
        Unknown name (the nearest are listed) or a description that does not hold.
    UnreadableInput
        A path that cannot be read.
    """
    text = str(name_or_path)
    if text.lower() in clusters():
        return _catalogued(text.lower())
    content = own_text(text)
    if content is not None:
        return read_cluster(content, text)
    raise unknown_name(text, clusters(), "cluster", "the path of a YAML description")


def load_library(name: str, where: str = "library") -> Library:
    """Load a library of collectives by its catalogue name; ``where`` is the place named where there is none."""
    if name not in libraries():
        raise unknown_key(name, libraries(), where, "is no library of collectives")
    return _library(name)


@cache
def _catalogued(name: str) -> ClusterSpec:
    return read_cluster(*shipped_text("cluster", name))


@cache
def _library(name: str) -> Library:
    text, file = shipped_text("cluster", "libraries", name)
    return _LibraryReader(file).library(mapping_of(text, file, "a library of collectives", "start with name:, protocols:"))


def read_cluster(text: str, file: str) -> ClusterSpec:
    """Read one cluster description.

    Parameters
    ----------
    text : str
        YAML: ``name``, ``tiers`` (a list, innermost first) and what `cluster_schema.TOP` names; or, in the place of ``tiers``, ``nodes``
        and ``links`` of a graph of cards and switches, and their ``latency``.
    file : str
        Its name, for messages.

    Returns
    -------
    ClusterSpec
        With a note where sources are missing.

    Raises
    ------
    InvalidSpec
        Not YAML, unknown or missing key, bare number for a quantity, or values that contradict each other.
    """
    return _ClusterReader(file).cluster(mapping_of(text, file, "a cluster description", _FIX))


def cluster_yaml(cluster: ClusterSpec) -> str:
    """Write a cluster as YAML text; `read_cluster` gives an equal one back."""

    def plain(entry: Entry, value: Any) -> Any:
        if entry.unit:
            return units.format(value, entry.unit)
        return list(value) if isinstance(value, tuple) else value

    def texts(entries: Mapping[str, Entry], values: object) -> dict[str, Any]:
        given = {key: getattr(values, key) for key in entries if hasattr(values, key)}
        return {key: plain(entries[key], v) for key, v in given.items() if v != entries[key].default and v not in ((), "")}

    document = texts(schema.TOP, cluster) | {"library": cluster.library.name, "tiers": [texts(schema.TIER, tier) for tier in cluster.tiers]}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=130)


class _ClusterReader(Reader):
    what = "a cluster description"

    def cluster(self, root: yaml.MappingNode) -> ClusterSpec:
        items = self.items(root, "")
        tiers_node, nodes, links = (items.pop(key, None) for key in ("tiers", "nodes", "links"))
        if nodes is not None and links is not None and tiers_node is None:
            latency = self.value(schema.TIER["latency"], items.pop("latency"), "latency") if "latency" in items else 0.0
            items.setdefault("name", yaml.ScalarNode("tag:yaml.org,2002:str", self.file))
            return self.finished(self.section(items, schema.TOP, ""), self.graph(nodes, links, latency))
        top = self.section(items, schema.TOP, "")
        if not isinstance(tiers_node, yaml.SequenceNode) or not tiers_node.value:
            raise InvalidSpec(self.where("tiers"), "no list of tiers", "add tiers: with one entry a tier, innermost first")
        tiers = tuple(self.tier(node, index) for index, node in enumerate(tiers_node.value))
        check_tiers(tiers, lambda name: self.where(f"tiers.{name}"))
        return self.finished(top, tiers)

    def finished(self, top: dict[str, Any], tiers: tuple[Tier, ...]) -> ClusterSpec:
        npus, library = top.pop("npus"), top.pop("library")
        spec = ClusterSpec(**top, tiers=tiers, library=load_library(library, self.where("library")))
        if npus is not None and npus != spec.cards:
            sizes = " x ".join(str(tier.size) for tier in tiers)
            raise InvalidSpec(
                self.where("npus"),
                f"npus says {npus}, the tiers hold {sizes} = {spec.cards} cards",
                "mend one of them; switches do not count",
            )
        if spec.sources:
            return spec
        note = Note("no-sources", self.file, 1, f"{spec.name} says nothing of where its numbers come from", "add sources:")
        return replace(spec, notes=(note,))

    def graph(self, nodes: yaml.Node, links: yaml.Node, latency: float) -> tuple[Tier, ...]:
        """Return the tiers of a cluster that is drawn: ``nodes`` with id and kind, ``links`` of two ids and a bandwidth."""
        kinds: dict[str, str] = {}
        for node in self.listed(nodes, "nodes"):
            given = {key: str(getattr(value, "value", "")) for key, value in self.items(node, f"nodes.{len(kinds)}").items()}
            if set(given) != {"id", "kind"} or given["kind"] not in KINDS or given["id"] in kinds:
                line = node.start_mark.line + 1
                raise InvalidSpec(f"{self.file}:{line}", "not a node, or one given twice", "write - {id: 0, kind: npu} or kind: switch")
            kinds[given["id"]] = given["kind"]
        wires = []
        for node in self.listed(links, "links"):
            place = f"{self.file}:{node.start_mark.line + 1}: links"
            ends = [str(getattr(part, "value", "")) for part in node.value] if isinstance(node, yaml.SequenceNode) else []
            if len(ends) != 3:
                raise InvalidSpec(place, "not a link", "write - [0, 16, 200 GB/s]")
            wires.append(Wire(ends[0], ends[1], units.parse(ends[2], "B/s", place)))
        return tiers_of(kinds, wires, latency, self.file)

    def listed(self, node: yaml.Node, path: str) -> list[yaml.Node]:
        """Return the entries of a list."""
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise InvalidSpec(self.where(path), f"no list of {path}", f"write one entry below {path}: for each")
        return list(node.value)

    def tier(self, node: yaml.Node, index: int) -> Tier:
        if not isinstance(node, yaml.MappingNode):
            raise InvalidSpec(f"{self.file}:{node.start_mark.line + 1}", "a tier is not a mapping", "write - name: node, size: 8, ...")
        names = [value.value for key, value in node.value if key.value == "name" and isinstance(value, yaml.ScalarNode)]
        path = f"tiers.{names[0] if names else index}"
        self.lines[path] = node.start_mark.line + 1
        return Tier(**self.section(self.items(node, path), schema.TIER, path))


class _LibraryReader(Reader):
    what = "a library of collectives"

    def library(self, root: yaml.MappingNode) -> Library:
        items = self.items(root, "")
        protocols = self.items(items.pop("protocols"), "protocols")
        top = self.section(items, schema.LIBRARY, "")
        for name in top["algorithms"]:
            if name not in schema.ALGORITHMS:
                raise unknown_key(name, schema.ALGORITHMS, self.where("algorithms"), "is no algorithm")
        made = []
        for name, node in protocols.items():
            path = f"protocols.{name}"
            made.append(ProtocolSpec(name=name, **self.section(self.items(node, path), schema.PROTOCOL, path)))
        return Library(**top, protocols=tuple(made))
