"""The document of ``workbench models --json``: models of the catalogue, or one with its blocks."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from workbench.models.build import flops_of
from workbench.models.describe import ModelSpec
from workbench.operators.blocks import Model
from workbench.study.document import Document


class BlockDocument(Document):
    """One block of a model."""

    name: str
    count: int
    parameters: float = Field(description="of one such block")
    operators: int = Field(description="forward")
    backward_operators: int
    saved_bytes: float = Field(description="kept for the backward pass, of one block and microbatch [B]")


class ModelDocument(Document):
    """One model."""

    name: str
    input: str
    width: int
    tokens: int
    dtype: str
    parameters: float
    active_parameters: float = Field(description="those one token uses")
    forward_flops: float = Field(description="of a microbatch, causal masks not taken off [FLOP]")
    blocks: list[BlockDocument]
    sources: list[str]


class ModelsDocument(Document):
    """Output of ``workbench models --json``."""

    batch: int
    models: list[ModelDocument]


def models_document(specs: Sequence[ModelSpec], batch: int, tokens: int | None, attention: str) -> ModelsDocument:
    """Return the document of models, each built for a microbatch of ``batch`` samples."""
    return ModelsDocument(batch=batch, models=[_model(spec, spec.build(batch, tokens, attention=attention)) for spec in specs])


def _model(spec: ModelSpec, model: Model) -> ModelDocument:
    blocks = [
        BlockDocument(name=block.name, count=block.count, parameters=block.parameters, operators=len(block.steps),
                      backward_operators=len(block.backward), saved_bytes=sum(kept.bytes for kept in block.saved))
        for block in model.blocks
    ]  # fmt: skip
    return ModelDocument(
        name=spec.name, input=spec.input, width=spec.width, tokens=model.tokens, dtype=model.dtype.name.lower(),
        parameters=model.parameters, active_parameters=model.active_parameters, forward_flops=flops_of(model),
        blocks=blocks, sources=list(spec.sources),
    )  # fmt: skip
