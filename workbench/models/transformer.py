"""Layers of transformers: embedding, norm, attention, feed-forward, residual sum, head; what each keeps for its backward pass.

What is kept follows Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198), section 4:
``s b h (34 + 5 a s / h)`` bytes a layer of a GPT in 16 bits with dropout, of which tensor parallelism divides ``24 + 5 a s / h`` and
sequence parallelism the rest. Attention that keeps no scores (Dao et al., FlashAttention, arXiv 2205.14135, section 3.1) keeps its
operands, its result and one fp32 number a row in their place. Gated activations are fused: both factors and the product are kept.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from workbench.models.part import (
    INSIDE,
    OUTSIDE,
    ROWS,
    SPREAD,
    Flow,
    Forward,
    Given,
    Job,
    Part,
    elementwise,
    enter,
    leave,
    linear,
    rowwise,
    selective,
)
from workbench.operators.attention import BOTTOM_RIGHT, FULL
from workbench.operators.blocks import Axis, BlockMessage, BlockOp, Divided, Limit, Role, Saved, Weight
from workbench.operators.table import Dtype, Kind

TP = Divided((Axis.TP,))
ACTIVATIONS = MappingProxyType({"gelu": 8.0, "relu": 1.0, "silu": 4.0, "swiglu": 5.0, "geglu": 9.0})
"""Operations an element of activations, an exponential counted as one and a tanh as five; gated ones with their product."""
GATED = ("swiglu", "geglu")
MASK = 0.5
"""A dropout mask of one byte beside elements of two, in full-size operands."""


def embedding(given: Given, flow: Flow, job: Job) -> Part:
    """Look up the vectors of tokens; learned positions and dropout where given."""
    vocab, positions = given.whole("vocab"), given.whole("positions") + given.whole("types")
    dims = MappingProxyType({"rows": flow.rows, "cols": flow.width})
    steps = [Forward(BlockOp("embedding", Kind.EMBEDDING, job.dtype, dims, MappingProxyType({"rows": ROWS})))]
    weights = [Weight("embedding", float(vocab * flow.width), (Axis.TP,), tied="tokens" if given.flag("tied") else "")]
    if positions:
        steps.append(elementwise("positions", job, flow.elements, SPREAD, 2.0, 1.0, (1.0, 0.0)))
        weights.append(Weight("positions", float(positions * flow.width)))
    saved = []
    if given.flag("dropout"):
        steps.append(elementwise("embedding dropout", job, flow.elements, SPREAD, 1.0, 1.0 + MASK, (1.0 + MASK, 1.0)))
        saved.append(Saved("embedding dropout mask", float(flow.elements), OUTSIDE))
    return Part(flow, (*steps, leave("embedding", flow.elements * job.size)), tuple(weights), tuple(saved))


def norm(given: Given, flow: Flow, job: Job) -> Part:
    """Normalise: layer norm (scale and shift), RMS norm (scale), batch norm over images (scale and shift a channel)."""
    kind = given.text("type")
    elements = float(flow.width * (1 if kind == "rms" else 2))
    if kind == "batch":
        step = rowwise("batch norm", Kind.NORM, job, flow.width, flow.rows, Divided(()))
    else:
        step = rowwise(f"{kind} norm", Kind.NORM, job, flow.rows, flow.width, SPREAD)
    return Part(flow, (step,), (Weight("norm", elements),), (Saved("norm input", flow.elements * job.size, OUTSIDE),))


def residual(given: Given, flow: Flow, job: Job) -> Part:
    """Add what went past; with the dropout before it where given. Backward: the gradients of both ways are added."""
    mask = MASK if given.flag("dropout") else 0.0
    step = elementwise("residual", job, flow.elements, SPREAD, 2.0, 1.0 + mask, (2.0 + mask, 1.0 + (mask > 0)))
    saved = (Saved("dropout mask", float(flow.elements), OUTSIDE),) if mask else ()
    return Part(flow, (step,), (), saved)


def activation(given: Given, flow: Flow, job: Job) -> Part:
    """Apply an activation outside of a feed-forward layer."""
    name = given.text("type")
    step = elementwise(name, job, flow.elements, SPREAD, 1.0, 1.0, (2.0, 1.0), ACTIVATIONS[name])
    return Part(flow, (step,), (), (Saved(name, flow.elements * job.size, OUTSIDE),))


def attention(given: Given, flow: Flow, job: Job) -> Part:
    """Attend: projections of queries, keys and values, the core, the projection out."""
    heads = given.whole("heads")
    kv, dim, width = given.whole("kv_heads") or heads, given.whole("head_dim") or flow.width // heads, flow.width
    units = ((heads, dim), (kv, 2 * dim))
    per_head, out = Divided((Axis.TP,), units), Divided((Axis.TP,), ((heads, dim),))
    many, bias, size = (heads + 2 * kv) * dim, given.flag("bias"), job.size
    steps: list[Forward | BlockMessage] = [
        enter("attention", flow.elements * size),
        linear("qkv", job, flow.rows, many, width, by={"n": per_head}, bias=bias or given.flag("qkv_bias")),
    ]
    if given.flag("rotary"):
        by = Divided((Axis.CP, Axis.TP))
        steps.append(elementwise("rotary", job, flow.rows * (heads + kv) * dim, by, 1.0, 1.0, (1.0, 1.0), 6.0))
    if job.phase != "decode":
        steps.append(BlockMessage("keys and values", Role.CP_KEYS, 2.0 * flow.rows * kv * dim * size, (Axis.TP,), units=((kv, 1),)))
    core, kept = _core(given, flow, job, (heads, kv, dim))
    steps += [*core, linear("attention out", job, flow.rows, width, heads * dim, by={"k": out}, bias=bias),
              leave("attention", flow.elements * size)]  # fmt: skip
    weights = [Weight("qkv", float(width * many), (Axis.TP,), units=units),
               Weight("attention out", float(width * heads * dim), (Axis.TP,), units=((heads, dim),))]  # fmt: skip
    if bias or given.flag("qkv_bias"):
        weights.append(Weight("qkv bias", float(many), (Axis.TP,), units=units))
    if bias:
        weights.append(Weight("attention out bias", float(width)))
    rows = float(flow.rows) * size
    saved = (
        Saved("qkv input", rows * width, OUTSIDE),
        Saved("queries", rows * heads * dim, INSIDE, units=((heads, 1),)),
        Saved("keys and values", 2.0 * rows * kv * dim, INSIDE, units=((kv, 1),)),
        *kept,
        Saved("attention out input", rows * heads * dim, INSIDE, units=((heads, 1),)),
    )
    seen = min(job.keys, given.whole("window") or job.keys)
    cache = (Saved("keys and values", 2.0 * job.batch * seen * kv * dim * size, (Axis.CP, Axis.TP), units=((kv, 1),)),)
    limits = (Limit("heads", heads, Axis.TP), Limit("heads of keys and values", kv, Axis.TP, replicates=True))
    return Part(flow, tuple(steps), tuple(weights), saved, cache, limits)


def _core(given: Given, flow: Flow, job: Job, shape: tuple[int, int, int]) -> tuple[tuple[Forward, ...], tuple[Saved, ...]]:
    """Return the operators between the projections, and what they keep."""
    heads, kv, dim = shape
    queries = flow.rows // job.batch
    causal = BOTTOM_RIGHT if given.flag("causal") and queries > 1 else FULL
    if job.attention == "flash":
        dims = {"batch": job.batch, "heads": heads, "kv_heads": kv, "queries": queries, "keys": job.keys, "head_dim": dim,
                "value_dim": dim, "causal": causal, "window": given.whole("window")}  # fmt: skip
        by = {"heads": TP, "kv_heads": TP, "queries": ROWS}
        core = BlockOp("attention", Kind.ATTENTION_FORWARD, job.dtype, MappingProxyType(dims), MappingProxyType(by))
        kept = Saved("row sums", 4.0 * flow.rows * heads, INSIDE, selective=True, units=((heads, 1),))
        return selective((Forward(core),)), (kept,)
    each = Divided((Axis.TP,), ((heads, job.batch),))
    scores = job.batch * heads * queries * job.keys
    spread = Divided((Axis.CP, Axis.TP))

    def product(name: str, n: int, k: int) -> Forward:
        dims = MappingProxyType({"batch": job.batch * heads, "m": queries, "n": n, "k": k})
        return Forward(BlockOp(name, Kind.BATCHED_GEMM, job.dtype, dims, MappingProxyType({"batch": each, "m": ROWS})))

    steps = [product("scores", job.keys, dim), rowwise("softmax", Kind.SOFTMAX, job, job.batch * heads * queries, job.keys, spread)]
    kept_ = [Saved("softmax", scores * job.size, INSIDE, selective=True, units=((heads, 1),))]
    if given.flag("dropout"):
        steps.append(elementwise("scores dropout", job, scores, spread, 1.0, 1.0 + MASK, (1.0 + MASK, 1.0)))
        kept_ += [Saved("scores dropout", scores * job.size, INSIDE, selective=True, units=((heads, 1),)),
                  Saved("scores dropout mask", float(scores), INSIDE, selective=True, units=((heads, 1),))]  # fmt: skip
    # heads side by side again; backward the same, and the gradients of queries, keys and values into one tensor
    merge = elementwise("heads merge", job, flow.rows * heads * dim, spread, 1.0, 1.0, (4.0, 4.0))
    return (*selective((*steps, product("values", dim, job.keys))), merge), tuple(kept_)


def mlp(given: Given, flow: Flow, job: Job) -> Part:
    """Feed forward: up, activation, down; gated activations have two products up."""
    steps, weights, saved = feed_forward(given, flow, job, given.whole("width"))
    size = flow.elements * job.size
    input_ = Saved("mlp input", size, OUTSIDE)
    limit = Limit("width of the feed-forward layer", given.whole("width"), Axis.TP)
    return Part(flow, (enter("mlp", size), *steps, leave("mlp", size)), weights, (input_, *saved), limits=(limit,))


def feed_forward(given: Given, flow: Flow, job: Job, inner: int) -> tuple[tuple[Forward, ...], tuple[Weight, ...], tuple[Saved, ...]]:
    """Return operators, weights and kept tensors of a feed-forward layer, without its messages and its input."""
    name, bias = given.text("activation"), given.flag("bias")
    up = 2 if name in GATED else 1
    by = Divided((Axis.CP, Axis.TP))
    wide = Divided((Axis.TP,), ((inner, up),))
    back = (3.0, 2.0) if up == 2 else (2.0, 1.0)
    steps = (
        linear("mlp up", job, flow.rows, up * inner, flow.width, by={"n": wide}, bias=bias),
        elementwise(name, job, flow.rows * inner, by, float(up), 1.0, back, ACTIVATIONS[name]),
        linear("mlp down", job, flow.rows, flow.width, inner, by={"k": TP}, bias=bias),
    )
    weights = [Weight("mlp up", float(up * inner * flow.width), (Axis.TP,)), Weight("mlp down", float(inner * flow.width), (Axis.TP,))]
    if bias:
        weights += [Weight("mlp up bias", float(up * inner), (Axis.TP,)), Weight("mlp down bias", float(flow.width))]
    rows = flow.rows * inner * job.size
    saved = (Saved("activation input", up * rows, INSIDE), Saved("mlp down input", rows, INSIDE))
    return steps, tuple(weights), saved


def head(given: Given, flow: Flow, job: Job) -> Part:
    """Score the vocabulary; in training the loss: a softmax in fp32 over scores that tensor parallelism divides.

    Inference scores the last token of every sequence only.
    """
    vocab, width = given.whole("vocab"), flow.width
    rows = flow.rows if job.training else job.batch
    by = Divided((Axis.TP,))
    m_by = ROWS if job.training else Divided(())
    steps: list[Forward | BlockMessage] = [
        enter("head", rows * width * job.size),
        linear("head", job, rows, vocab, width, m_by=m_by, by={"n": by}, bias=given.flag("bias")),
    ]
    saved: tuple[Saved, ...] = ()
    if job.training:
        steps += _loss(job, rows, vocab, Divided((Axis.CP, Axis.TP)))
        saved = (Saved("head input", rows * width * job.size, OUTSIDE), Saved("scores in fp32", 4.0 * rows * vocab, INSIDE))
    tied = given.flag("tied")
    weights = [Weight("head", float(vocab * width), (Axis.TP,), tied="tokens" if tied else "")]
    if given.flag("bias"):
        weights.append(Weight("head bias", float(vocab), (Axis.TP,)))
    return Part(replace(flow, rows=rows, width=vocab), tuple(steps), tuple(weights), saved)


def _loss(job: Job, rows: int, vocab: int, by: Divided) -> tuple[Forward, ...]:
    """Return the cross-entropy over scores: widened to fp32, softmax; unfused passes of a vocabulary that is divided.

    Those passes: largest, difference, exponential, sum, quotient (Megatron-LM, core/tensor_parallel/cross_entropy.py): five reads and
    three writes, of which the softmax here is one and one.
    """
    wide = replace(job, dtype=Dtype.FP32)
    out = [
        elementwise("scores to fp32", wide, rows * vocab, by, 0.5, 1.0, (1.0, 0.5)),
        rowwise("loss", Kind.SOFTMAX, wide, rows, vocab, ROWS, TP),
    ]
    if job.attention == "unfused":
        out.append(elementwise("loss passes", wide, rows * vocab, by, 4.0, 2.0, (0.5, 0.0)))
    return tuple(out)


def dense(given: Given, flow: Flow, job: Job) -> Part:
    """Multiply with a weight that every card holds whole; ``per_sample``: one row a sample (a classifier on one token)."""
    out, bias = given.whole("out"), given.flag("bias")
    alone = given.flag("per_sample")
    rows, by = (job.batch, Divided(())) if alone else (flow.rows, SPREAD)
    steps: list[Forward] = [linear("linear", job, rows, out, flow.width, m_by=by, by={}, bias=bias)]
    weights = [Weight("linear", float(out * flow.width))] + ([Weight("linear bias", float(out))] if bias else [])
    saved = [Saved("linear input", rows * flow.width * job.size, OUTSIDE if not alone else ())]
    after = flow if given.flag("aside") else Flow(rows, out)
    name = given.text("activation")
    if name:
        steps.append(elementwise(name, job, rows * out, by, 1.0, 1.0, (2.0, 1.0), ACTIVATIONS[name]))
        saved.append(Saved(name, rows * out * job.size, OUTSIDE if not alone else ()))
    return Part(after, tuple(steps), tuple(weights), tuple(saved))
