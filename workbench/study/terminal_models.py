"""Models as text for a terminal (rich renderables)."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_models import ModelDocument, ModelsDocument


def models_text(document: ModelsDocument) -> Iterator[RenderableType]:
    """Yield a table of models, or one with its blocks."""
    if len(document.models) == 1:
        yield from _one(document.models[0], document.batch)
        return
    table = Table(box=SIMPLE_HEAD)
    for name in ("model", "parameters", "active", "layers", "width", "tokens", "forward [TFLOP]"):
        table.add_column(name, justify="left" if name == "model" else "right")
    for one in document.models:
        layers = sum(block.count for block in one.blocks if block.count > 1)
        active = _billions(one.active_parameters) if one.active_parameters < one.parameters else ""
        row = (_billions(one.parameters), active, str(layers or ""), str(one.width or ""), str(one.tokens if one.tokens > 1 else ""))
        table.add_row(one.name, *row, f"{one.forward_flops / 1e12:,.4g}")
    yield table
    yield Text("forward pass of one sample; workbench models NAME shows blocks and sources; a model of your own is a YAML file")


def _billions(count: float) -> str:
    return f"{count / 1e9:,.4g} B" if count >= 1e9 else f"{count / 1e6:,.4g} M"


def _one(model: ModelDocument, batch: int) -> Iterator[RenderableType]:
    yield Text(
        f"{model.name}: {model.parameters:,.0f} parameters, {model.dtype}, {batch} x {units.count(model.tokens, 'token')}", style="bold"
    )
    table = Table(box=SIMPLE_HEAD)
    for name in ("block", "count", "parameters", "operators", "backward", "kept of one"):
        table.add_column(name, justify="left" if name == "block" else "right")
    for block in model.blocks:
        kept = units.format(block.saved_bytes, "B", 3) if block.saved_bytes else "-"
        table.add_row(block.name, str(block.count), f"{block.parameters:,.0f}", str(block.operators), str(block.backward_operators), kept)
    yield table
    yield Text(f"forward pass {model.forward_flops / 1e12:,.4g} TFLOP; {model.active_parameters:,.0f} parameters are used by a token")
    yield from (Text(f"source: {source}") for source in model.sources)
