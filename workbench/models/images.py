"""Layers of images: convolution with its batch norm and activation, bottleneck, pooling, patches of a vision transformer.

Shapes: He et al., "Deep Residual Learning" (arXiv 1512.03385), table 1; stride on the 3 x 3 convolution as in torchvision and MLPerf
("v1.5").
Patches: Dosovitskiy et al. (arXiv 2010.11929), section 3.1.
"""

from __future__ import annotations

from types import MappingProxyType

from workbench.models.part import OUTSIDE, Flow, Forward, Given, Job, Part, elementwise, linear, rowwise
from workbench.operators import formulas
from workbench.operators.blocks import BlockOp, Divided, Saved, Weight
from workbench.operators.table import Kind

WHOLE = Divided(())


def conv(given: Given, flow: Flow, job: Job) -> Part:
    """Convolve; ``norm: true`` adds a batch norm, ``activation`` what follows it."""
    return _conv(flow, job, given.whole("out"), given.whole("kernel"), given.whole("stride") or 1, given.flag("norm"),
                 given.flag("activation"), given.flag("first"))  # fmt: skip


def _conv(flow: Flow, job: Job, out: int, kernel: int, stride: int, norm: bool, relu: bool, first: bool = False) -> Part:
    pad = kernel // 2
    height, breadth = (int(formulas.output_extent(size, kernel, stride, pad, 1)) for size in (flow.height, flow.breadth))
    size = {"n": flow.images, "c": flow.width, "h": flow.height, "w": flow.breadth, "k": out, "r": kernel, "s": kernel}
    dims = size | dict(pad_h=pad, pad_w=pad, stride_h=stride, stride_w=stride, dilation_h=1, dilation_w=1, groups=1, depth=1, t=1)
    after = flow.image(out, height, breadth)
    steps = [Forward(BlockOp(f"conv {kernel}x{kernel}", Kind.CONV_FORWARD, job.dtype, MappingProxyType(dims)), weight=True, first=first)]
    weights = [Weight("conv", float(out * flow.width * kernel * kernel))]
    saved = [Saved("conv input", flow.elements * job.size)]
    if norm:
        steps.append(rowwise("batch norm", Kind.NORM, job, out, after.rows, WHOLE))
        weights.append(Weight("batch norm", 2.0 * out))
        saved.append(Saved("norm input", after.elements * job.size))
    if relu:
        steps.append(elementwise("relu", job, after.elements, WHOLE, 1.0, 1.0, (2.0, 1.0)))
    return Part(after, tuple(steps), tuple(weights), tuple(saved))


def bottleneck(given: Given, flow: Flow, job: Job) -> Part:
    """1 x 1, 3 x 3, 1 x 1 convolutions and a way past them, itself a convolution where shapes differ."""
    width, stride = given.whole("width"), given.whole("stride") or 1
    out = given.whole("out") or 4 * width
    parts = [_conv(flow, job, width, 1, 1, True, True)]
    parts.append(_conv(parts[-1].flow, job, width, 3, stride, True, True))
    parts.append(_conv(parts[-1].flow, job, out, 1, 1, True, False))
    after = parts[-1].flow
    if out != flow.width or stride > 1:
        parts.append(_conv(flow, job, out, 1, stride, True, False))
    join = elementwise("add and relu", job, after.elements, WHOLE, 2.0, 1.0, (2.0, 1.0), 2.0)
    steps = tuple(step for part in parts for step in part.steps)
    weights = tuple(weight for part in parts for weight in part.weights)
    return Part(after, (*steps, join), weights, tuple(kept for part in parts for kept in part.saved))


def pool(given: Given, flow: Flow, job: Job) -> Part:
    """Pool: windows of ``kernel`` with ``stride``, or ``over: all`` of an image."""
    if given.text("over") == "all":
        after, window = Flow(flow.images, flow.width), flow.height * flow.breadth
    else:
        kernel, stride = given.whole("kernel"), given.whole("stride") or 1
        height, breadth = (int(formulas.output_extent(size, kernel, stride, kernel // 2, 1)) for size in (flow.height, flow.breadth))
        after, window = flow.image(flow.width, height, breadth), kernel * kernel
    dims = MappingProxyType({"elements": after.elements, "window": window})
    share = flow.elements / after.elements
    step = Forward(BlockOp("pool", Kind.POOLING, job.dtype, dims), back=(1.0, share))
    return Part(after, (step,), (), (Saved("pool input", flow.elements * job.size),))


def patches(given: Given, flow: Flow, job: Job) -> Part:
    """Cut images into patches, project each, add a class token and positions."""
    side, width = given.whole("size"), given.whole("width")
    inner, count = flow.width * side * side, (flow.height // side) * (flow.breadth // side)
    extra = 1 if given.flag("class_token") else 0
    rows = flow.images * (count + extra)
    step = linear("patches", job, flow.images * count, width, inner, m_by=Divided(OUTSIDE), by={}, bias=True)
    project = Forward(step.op, weight=True, first=True, bias=step.bias)
    positions = elementwise("positions", job, rows * width, Divided(OUTSIDE), 2.0, 1.0, (1.0, 0.0))
    weights = (Weight("patches", float(inner * width)), Weight("patches bias", float(width)),
               Weight("positions", float((count + extra) * width)), Weight("class token", float(extra * width)))  # fmt: skip
    return Part(Flow(rows, width), (project, positions), weights, (Saved("patches", flow.images * count * inner * job.size),))
