"""Descriptions of models as YAML text: strict reading with file and line; the catalogue.

A description lists blocks that repeat, each of layers in order, ``residual`` closing over what went past::

    name: tiny
    width: 256
    tokens: 128
    blocks:
      - {name: embedding, layer: false, steps: [{embedding: {vocab: 1000}}]}
      - name: layer
        count: 4
        steps: [{norm: {type: rms}}, {attention: {heads: 4}}, residual, {norm: {type: rms}}, {mlp: {width: 1024}}, residual]
      - {name: head, layer: false, steps: [{norm: {type: rms}}, {head: {vocab: 1000}}]}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import yaml

from workbench.errors import InvalidSpec
from workbench.hardware.check import unknown_key
from workbench.hardware.named import own_text, shipped, shipped_text, unknown_name
from workbench.hardware.schema import REQUIRED
from workbench.hardware.yaml_reader import Reader, mapping_of
from workbench.models import schema
from workbench.models.part import Given
from workbench.operators.blocks import Model
from workbench.operators.table import Dtype


@dataclass(frozen=True)
class BlockSpec:
    """A block of a description: its layers, and how often it repeats."""

    name: str
    steps: tuple[Given, ...]
    count: int = 1
    layer: bool = True


@dataclass(frozen=True)
class ModelSpec:
    """A described model; `workbench.models.build.build` makes its operators."""

    name: str
    blocks: tuple[BlockSpec, ...]
    input: str = "tokens"
    width: int = 0
    tokens: int = 1
    image: tuple[int, ...] = ()
    dtype: Dtype = Dtype.BF16
    published_parameters: float | None = None
    sources: tuple[str, ...] = ()

    def build(self, batch: int = 1, tokens: int | None = None, **how: Any) -> Model:
        """Return the work of one replica on one microbatch; see `workbench.models.build.build` for what may be said of it."""
        from workbench.models.build import build

        return build(self, batch, tokens, **how)


def list_models() -> tuple[str, ...]:
    """Return the models that come with the workbench.

    Returns
    -------
    tuple of str
        Their names, sorted.
    """
    return shipped("models")


def load_model(name_or_path: str | os.PathLike[str]) -> ModelSpec:
    """Load a model.

    Parameters
    ----------
    name_or_path : str or path
        A catalogue name (see `list_models`; case does not matter) or the path of a YAML description.

    Returns
    -------
    ModelSpec

    Raises
    ------
    InvalidSpec
        Unknown name (the nearest are listed) or a description that does not hold.
    UnreadableInput
        A path that cannot be read.
    """
    text = str(name_or_path)
    if text.lower() in list_models():
        return _catalogued(text.lower())
    content = own_text(text)
    if content is not None:
        return read_model(content, text)
    raise unknown_name(text, list_models(), "model", "the path of a YAML description")


@cache
def _catalogued(name: str) -> ModelSpec:
    return read_model(*shipped_text("models", name))


def read_model(text: str, file: str) -> ModelSpec:
    """Read one description.

    Parameters
    ----------
    text : str
        YAML: what `schema.TOP` names, and ``blocks``: a list of what `schema.BLOCK` names with ``steps`` of `schema.LAYERS`.
    file : str
        Its name, for messages.

    Raises
    ------
    InvalidSpec
        Not YAML, an unknown or missing key, or a value of the wrong type or size.
    """
    return _ModelReader(file).model(mapping_of(text, file, "a model description", "start with name:, width:, tokens:, blocks:"))


class _ModelReader(Reader):
    what = "a model description"

    def model(self, root: yaml.MappingNode) -> ModelSpec:
        items = self.items(root, "")
        blocks = items.pop("blocks", None)
        top = self.section(items, schema.TOP, "")
        if not isinstance(blocks, yaml.SequenceNode) or not blocks.value:
            raise InvalidSpec(self.where("blocks"), "no list of blocks", "add blocks: with a name and steps each")
        self._input(top)
        read = tuple(self.block(node, index) for index, node in enumerate(blocks.value))
        return ModelSpec(
            top["name"], read, top["input"], top["width"] or 0, top["tokens"] or 1, tuple(top["image"]), Dtype[top["dtype"].upper()],
            top["published_parameters"], tuple(top["sources"]),
        )  # fmt: skip

    def _input(self, top: Mapping[str, Any]) -> None:
        need = {"tokens": ("width", "tokens"), "images": ("image",), "features": ("width",)}[top["input"]]
        for key in need:
            if not top[key]:
                raise InvalidSpec(self.where("input"), f"{key} is missing, which input: {top['input']} needs", f"add {key}:")

    def block(self, node: yaml.Node, index: int) -> BlockSpec:
        path = f"blocks.{index}"
        items = self.items(node, path)
        self.lines.setdefault(path, node.start_mark.line + 1)
        steps = items.pop("steps", None)
        top = self.section(items, schema.BLOCK, path)
        if not isinstance(steps, yaml.SequenceNode) or not steps.value:
            raise InvalidSpec(self.where(path), f"block {top['name']} has no list of steps", "add steps: [{norm: {}}, ...]")
        return BlockSpec(top["name"], tuple(self.step(one, path) for one in steps.value), top["count"], top["layer"])

    def step(self, node: yaml.Node, path: str) -> Given:
        line = f"{self.file}:{node.start_mark.line + 1}"
        if isinstance(node, yaml.ScalarNode):
            kind, given = str(node.value), {}
        else:
            entries = self.items(node, f"{path}.steps@{node.start_mark.line}:{node.start_mark.column}")
            if len(entries) != 1:
                raise InvalidSpec(line, f"a step names {', '.join(entries) or 'nothing'}", "write one layer a step: - norm: {type: rms}")
            ((kind, inner),) = entries.items()
            self.known(kind, line)
            place = f"{path}.{kind}"
            self.lines[place] = node.start_mark.line + 1
            given = {} if isinstance(inner, yaml.ScalarNode) and not inner.value else self.items(inner, place)
        self.known(kind, line)
        place = f"{path}.{kind}"
        self.lines[place] = node.start_mark.line + 1
        return Given(kind, MappingProxyType(self.section(given, schema.LAYERS[kind], place)), line)

    @staticmethod
    def known(kind: str, line: str) -> None:
        """Refuse an unknown kind of layer."""
        if kind not in schema.LAYERS:
            raise unknown_key(kind, schema.LAYERS, line, "is no layer")


def layer(kind: str, **values: object) -> Given:
    """Return a layer made in Python, its other keys at their defaults.

    Raises
    ------
    InvalidSpec
        An unknown layer or key, or one that is missing.
    """
    if kind not in schema.LAYERS:
        raise unknown_key(kind, schema.LAYERS, "layer", "is no layer")
    entries = schema.LAYERS[kind]
    for key in values:
        if key not in entries:
            raise unknown_key(key, entries, kind, f"is not a key of {kind}")
    missing = [key for key, entry in entries.items() if entry.default is REQUIRED and key not in values]
    if missing:
        raise InvalidSpec(kind, f"{missing[0]} is missing", f"give {missing[0]}=")
    return Given(kind, MappingProxyType({key: values.get(key, entry.default) for key, entry in entries.items()}), kind)


def gpt(layers: int, width: int, heads: int, vocab: int, tokens: int, *, inner: int | None = None, name: str = "gpt",
        dropout: bool = True) -> ModelSpec:  # fmt: skip
    """Return a GPT by its numbers: layer norms, learned positions, GELU, biases, tied head (Radford et al., 2019; arXiv 2104.04473).

    Parameters
    ----------
    layers, width, heads, vocab, tokens : int
        Layers, hidden size, heads, vocabulary, sequence length.
    inner : int, optional
        Width of the feed-forward layer; 4 x width.
    name : str
        Its name.
    dropout : bool
        Dropout of scores, of both residual sums and of the embedding.
    """
    steps: Sequence[Given] = (
        layer("norm"), layer("attention", heads=heads, bias=True, dropout=dropout), layer("residual", dropout=dropout),
        layer("norm"), layer("mlp", width=inner or 4 * width, bias=True), layer("residual", dropout=dropout),
    )  # fmt: skip
    blocks = (
        BlockSpec("embedding", (layer("embedding", vocab=vocab, positions=tokens, dropout=dropout, tied=True),), layer=False),
        BlockSpec("layer", tuple(steps), layers),
        BlockSpec("head", (layer("norm"), layer("head", vocab=vocab, tied=True)), layer=False),
    )
    return ModelSpec(name, blocks, "tokens", width, tokens)
