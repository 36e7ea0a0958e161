"""A description and a job -> `Model`: blocks of operators, what they hold and keep, extents that a plan must respect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np

from workbench.errors import InvalidSpec, Refused
from workbench.models import experts, images, transformer
from workbench.models.backward import backward
from workbench.models.describe import BlockSpec, ModelSpec
from workbench.models.part import INSIDE, OUTSIDE, STATE, Flow, Forward, Given, Job, Part
from workbench.operators.blocks import Axis, Block, BlockOp, Limit, Model
from workbench.operators.table import Dtype, Kind

LAYERS: Mapping[str, Callable[[Given, Flow, Job], Part]] = MappingProxyType(
    {
        "embedding": transformer.embedding, "norm": transformer.norm, "residual": transformer.residual,
        "activation": transformer.activation, "attention": transformer.attention, "mlp": transformer.mlp, "head": transformer.head,
        "dense": transformer.dense, "moe": experts.moe, "tables": experts.tables, "interaction": experts.interaction,
        "conv": images.conv, "bottleneck": images.bottleneck, "pool": images.pool, "patches": images.patches,
    }
)  # fmt: skip
MOST = 1 << 31
"""Most samples or tokens of a microbatch."""


def build(
    spec: ModelSpec,
    batch: int = 1,
    tokens: int | None = None,
    *,
    phase: str = "training",
    context: int = 0,
    attention: str = "flash",
    dtype: Dtype | None = None,
) -> Model:
    """Return the work of one replica on one microbatch.

    Parameters
    ----------
    spec : ModelSpec
        The model.
    batch : int
        Samples of the microbatch.
    tokens : int, optional
        Tokens of a sample; those of the description.
    phase : {"training", "prefill", "decode"}
        Decoding makes one token a sample.
    context : int
        Tokens in the cache when one is decoded.
    attention : {"flash", "unfused"}
        One operator that keeps no scores, or products and softmax apart.
    dtype : Dtype, optional
        Type of the elements; that of the description.

    Raises
    ------
    InvalidSpec, Refused
        A batch, length or phase that is none; layers that do not fit each other; decoding of a model without attention.
    """
    if phase not in STATE:
        raise Refused("phase", f"{phase!r} is none", f"use one of {', '.join(STATE)}")
    if attention not in ("flash", "unfused"):
        raise Refused("attention", f"{attention!r} is none", "use flash or unfused")
    many = spec.tokens if tokens is None else tokens
    for what, value, least in (("batch", batch, 1), ("tokens", many, 1), ("context", context, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < MOST:
            raise InvalidSpec(what, f"{value!r} is no count from {least} on", "give a whole number")
    if phase == "decode" and spec.input != "tokens":
        raise Refused("phase", f"{spec.name} has no tokens to decode", "use training or prefill")
    job = Job(int(batch), 1 if phase == "decode" else int(many), dtype or spec.dtype, phase, int(context), attention)
    flow, blocks, limits = _start(spec, job), [], []
    for block in spec.blocks:
        made, flow, found = _block(block, flow, job)
        blocks.append(made)
        limits += found
    flops = _forward_flops(blocks)
    many_tokens = job.tokens if spec.input == "tokens" else 1
    return Model(spec.name, tuple(blocks), job.batch, many_tokens, flops, _limits(spec, blocks, limits, job), job.dtype, job.training)


def _start(spec: ModelSpec, job: Job) -> Flow:
    if spec.input == "images":
        channels, height, breadth = spec.image
        return Flow(job.batch * height * breadth, channels, job.batch, height, breadth)
    return Flow(job.batch * job.tokens if spec.input == "tokens" else job.batch, spec.width)


def _block(spec: BlockSpec, flow: Flow, job: Job) -> tuple[Block, Flow, list[Limit]]:
    parts: list[Part] = []
    start = flow
    for given in spec.steps:
        part = LAYERS[given.kind](_fitting(given, flow), flow, job)
        parts.append(part)
        flow = part.flow
    if spec.count > 1 and flow != start:
        raise InvalidSpec(
            spec.steps[-1].where, f"block {spec.name} repeats, but its output {flow.width} is not as its input {start.width}",
            "let its last layer end at the width it began with, or set count: 1",
        )  # fmt: skip
    steps = tuple(step for part in parts for step in part.steps)
    made = Block(
        spec.name,
        tuple(step.op if isinstance(step, Forward) else step for step in steps),
        backward(steps) if job.training else (),
        tuple(weight for part in parts for weight in part.weights),
        tuple(kept for part in parts for kept in part.saved) if job.training else (),
        flow.elements * job.size,
        INSIDE if spec.steps[-1].kind == "head" else OUTSIDE,
        count=spec.count,
        layer=spec.layer,
        cache=() if job.training else tuple(kept for part in parts for kept in part.cache),
    )
    return made, flow, [limit for part in parts for limit in part.limits]


def _fitting(given: Given, flow: Flow) -> Given:
    """Return a layer that fits what flows into it; refused where it does not."""
    if given.kind in ("conv", "bottleneck", "patches") and not flow.images:
        raise InvalidSpec(given.where, f"{given.kind} needs images, and no images flow into it", "set input: images, or move it forward")
    heads = given.whole("heads") if given.kind == "attention" else 0
    if heads and not given.whole("head_dim") and flow.width % heads:
        raise InvalidSpec(given.where, f"{heads} heads do not divide the width {flow.width}", "give head_dim:")
    kv = given.whole("kv_heads") if heads else 0
    if kv and heads % kv:
        raise InvalidSpec(given.where, f"{kv} heads of keys do not divide {heads} heads", "let every one serve as many queries")
    if given.kind == "moe" and given.whole("top_k") > given.whole("experts"):
        raise InvalidSpec(given.where, f"top_k {given.whole('top_k')} of {given.whole('experts')} experts", "choose fewer")
    return given


def _limits(spec: ModelSpec, blocks: list[Block], found: list[Limit], job: Job) -> tuple[Limit, ...]:
    """Return what a plan must respect: what layers say, the layers of the pipeline, the tokens; one card where nothing is divided."""
    out = list(dict.fromkeys(found))
    out.append(Limit("layers", sum(block.count for block in blocks if block.layer), Axis.PP))
    if not any(limit.axis == Axis.TP for limit in out):
        out.append(Limit("layer that tensor parallelism divides", 0, Axis.TP))
    if not any(limit.axis == Axis.EP for limit in out):
        out.append(Limit("experts", 0, Axis.EP))
    out.append(Limit("tokens", job.tokens if spec.input == "tokens" and job.phase != "decode" else 0, Axis.CP))
    return tuple(out)


def flops_of(model: Model, *, selective: bool = False, layers: bool = False) -> float:
    """Return model FLOPs of a forward pass [FLOP]: of all operators, of those that selective recomputation repeats, of layers only."""
    return _forward_flops(model.blocks, selective=selective, layers=layers)


def _forward_flops(blocks: Iterable[Block], *, selective: bool = False, layers: bool = False) -> float:
    chosen = [block for block in blocks if block.layer or not layers]
    return sum(
        block.count * _model_flops(op)
        for block in chosen
        for op in block.steps
        if isinstance(op, BlockOp) and (op.selective or not selective)
    )


def _model_flops(op: BlockOp) -> float:
    """Return what MFU counts of a forward operator: matrix products, attention without regard to its mask [FLOP].

    Narayanan et al., arXiv 2104.04473, appendix: ``2 m n k`` a product, causal masks not taken off.
    """
    d = op.dims
    if op.kind in (Kind.GEMM, Kind.BATCHED_GEMM):
        return 2.0 * d["batch"] * d["m"] * d["n"] * d["k"]
    if op.kind == Kind.GROUPED_GEMM:
        return 2.0 * d["rows"] * d["n"] * d["k"]
    if op.kind == Kind.ATTENTION_FORWARD:
        return 2.0 * d["batch"] * d["heads"] * d["queries"] * d["keys"] * (d["head_dim"] + d["value_dim"])
    if op.kind == Kind.CONV_FORWARD:
        p = (d["h"] + 2 * d["pad_h"] - d["r"]) // d["stride_h"] + 1
        q = (d["w"] + 2 * d["pad_w"] - d["s"]) // d["stride_w"] + 1
        return 2.0 * d["n"] * d["k"] * d["c"] * d["r"] * d["s"] * p * q
    return 0.0
