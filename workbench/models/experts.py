"""Mixtures of experts: a router, tokens sent to their experts, grouped products, results sent back.

Shazeer et al. (arXiv 1701.06538); Fedus et al., Switch Transformers (arXiv 2101.03961), section 2; dispatch and combine as all-to-all
messages: Lepikhin et al., GShard (arXiv 2006.16668), section 3.2. Experts that all tokens share: Dai et al.,
DeepSeekMoE (arXiv 2401.06066).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from workbench.models.part import OUTSIDE, ROWS, SPREAD, Flow, Forward, Given, Job, Part, elementwise, enter, leave, linear, rowwise
from workbench.models.transformer import ACTIVATIONS, GATED, TP, feed_forward
from workbench.operators.blocks import Axis, BlockMessage, BlockOp, Divided, Limit, Role, Saved, Weight
from workbench.operators.table import Kind

EP = Divided((Axis.EP,))


def moe(given: Given, flow: Flow, job: Job) -> Part:
    """Route every token to ``top_k`` of ``experts`` of ``width``; ``shared`` is the width of experts that all tokens pass."""
    experts, top = given.whole("experts"), given.whole("top_k")
    inner, copies, size = given.whole("width"), flow.rows * top, job.size
    whole = flow.elements * size
    stated = given.values.get("imbalance")
    factor = float(stated) if isinstance(stated, int | float) else 1.0
    router = linear("router", job, flow.rows, experts, flow.width, m_by=SPREAD, by={})
    steps: list[Forward | BlockMessage] = [
        router,
        rowwise("router softmax", Kind.SOFTMAX, job, flow.rows, experts, SPREAD),
        rowwise("router choice", Kind.SORT, job, flow.rows, experts, SPREAD),
        elementwise("permute", job, copies * flow.width, SPREAD, 1.0, 1.0, (1.0, 1.0)),
        BlockMessage("dispatch", Role.EP_DISPATCH, whole, OUTSIDE, fan_out=float(top), experts=experts, imbalance=factor),
        enter("experts", whole * top),
        *_grouped(given, flow, job, copies, inner, factor),
        leave("experts", whole * top),
        BlockMessage("combine", Role.EP_COMBINE, whole, OUTSIDE, fan_out=float(top), experts=experts, imbalance=factor),
        elementwise("weighted sum", job, copies * flow.width, SPREAD, 1.0, 1.0 / top, (1.0 / top + 1.0, 1.0), 2.0),
    ]
    up = 2 if given.text("activation") in GATED else 1
    active = top / experts
    weights = [
        Weight("router", float(flow.width * experts)),
        Weight("experts up", float(experts * up * inner * flow.width), (Axis.EP, Axis.TP), active=active),
        Weight("experts down", float(experts * inner * flow.width), (Axis.EP, Axis.TP), active=active),
    ]
    saved = [Saved("router input", whole, OUTSIDE), Saved("experts input", whole * top, OUTSIDE),
             Saved("experts activation input", float(up) * copies * inner * size, (Axis.CP, Axis.TP)),
             Saved("experts down input", float(copies) * inner * size, (Axis.CP, Axis.TP))]  # fmt: skip
    shared = given.whole("shared")
    if shared:
        own, own_weights, own_saved = feed_forward(given, flow, job, shared)
        steps += [enter("shared expert", whole), *_renamed(own), leave("shared expert", whole)]
        weights += [replace(weight, name=f"shared {weight.name}") for weight in own_weights]
        saved += own_saved
        if given.flag("shared_gate"):
            steps.append(linear("shared gate", job, flow.rows, 1, flow.width, m_by=SPREAD, by={}))
            weights.append(Weight("shared gate", float(flow.width)))
    limits = (Limit("experts", experts, Axis.EP), Limit("width of an expert", inner, Axis.TP))
    return Part(flow, tuple(steps), tuple(weights), tuple(saved), limits=limits)


def _grouped(given: Given, flow: Flow, job: Job, copies: int, inner: int, factor: float) -> tuple[Forward, ...]:
    name, experts = given.text("activation"), given.whole("experts")
    up = 2 if name in GATED else 1
    busiest = round(copies / experts * factor) if factor > 1.0 else 0

    def product(label: str, n: int, k: int, by: dict[str, Divided]) -> Forward:
        dims = MappingProxyType({"groups": experts, "rows": copies, "busiest": busiest, "n": n, "k": k})
        divided = MappingProxyType({"groups": EP, "rows": ROWS, "busiest": ROWS, **by})
        return Forward(BlockOp(label, Kind.GROUPED_GEMM, job.dtype, dims, divided), weight=True)

    wide = Divided((Axis.TP,), ((inner, up),))
    back = (3.0, 2.0) if up == 2 else (2.0, 1.0)
    spread = Divided((Axis.CP, Axis.TP))
    return (
        product("experts up", up * inner, flow.width, {"n": wide}),
        elementwise(f"experts {name}", job, copies * inner, spread, float(up), 1.0, back, ACTIVATIONS[name]),
        product("experts down", flow.width, inner, {"k": TP}),
    )


def _renamed(steps: tuple[Forward, ...]) -> tuple[Forward, ...]:
    return tuple(replace(step, op=replace(step.op, name=f"shared {step.op.name}")) for step in steps)


def tables(given: Given, flow: Flow, job: Job) -> Part:
    """Look up sparse features in tables that lie on different cards; their vectors are exchanged (Naumov et al., arXiv 1906.00091).

    Every card looks up its tables for the samples of all cards, then sends each card what belongs to its samples.
    """
    rows = _rows(given)
    width, lookups = given.whole("width"), max(given.whole("lookups"), 1)
    vectors = job.batch * len(rows)
    dims = MappingProxyType({"rows": vectors * lookups, "cols": width})
    steps: tuple[Forward | BlockMessage, ...] = (
        Forward(BlockOp("tables", Kind.EMBEDDING, job.dtype, dims)),
        BlockMessage("tables", Role.TABLES, vectors * width * job.size),
    )
    weight = Weight("tables", float(sum(rows) * width), (Axis.DP,))
    saved = Saved("vectors", vectors * width * job.size)
    return Part(flow, steps, (weight,), (saved,))


def interaction(given: Given, flow: Flow, job: Job) -> Part:
    """Multiply every pair of ``features`` vectors of a sample; the lower triangle joins the dense vector (arXiv 1906.00091, section 2)."""
    features, width = given.whole("features"), flow.width
    dims = MappingProxyType({"batch": flow.rows, "m": features, "n": features, "k": width})
    step = Forward(BlockOp("interaction", Kind.BATCHED_GEMM, job.dtype, dims))
    pairs = features * (features - 1) // 2
    join = elementwise("join", job, flow.rows * (pairs + width), Divided(()), 1.0, 1.0, (1.0, 1.0))
    saved = Saved("interaction input", flow.rows * features * width * job.size)
    return Part(Flow(flow.rows, width + pairs), (step, join), (), (saved,))


def _rows(given: Given) -> tuple[int, ...]:
    return tuple(int(part) for part in given.text("rows").replace(",", " ").split())
