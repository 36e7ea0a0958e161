"""Convolution as matrix products: implicit GEMM, or Winograd where it is cheaper, or the vector unit for thin groups.

Sources: Chetlur et al., cuDNN (arXiv 1410.0759) for implicit GEMM; Lavin and Gray, Fast Algorithms for Convolutional
Neural Networks (CVPR 2016) for F(2x2, 3x3): 16 products for 36 multiplies, 32 additions an input and 24 an output tile.
"""

from __future__ import annotations

import numpy as np

from workbench.cost import kernels, vector
from workbench.cost.choices import CHEAPEST, COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced, products
from workbench.cost.pack import Cards
from workbench.operators.formulas import output_extent
from workbench.operators.table import DIMS, Kind

FORWARD, DATA, WEIGHT = "forward", "data", "weight"
IMPLICIT, WINOGRAD = "implicit", "winograd"
ALGORITHMS = (CHEAPEST, IMPLICIT, WINOGRAD)
PASSES = {
    Kind.CONV_FORWARD: (FORWARD,),
    Kind.CONV_BACKWARD_DATA: (DATA,),
    Kind.CONV_BACKWARD_WEIGHT: (WEIGHT,),
    Kind.CONV_BACKWARD: (DATA, WEIGHT),
}
WINOGRAD_DTYPES = ("fp32", "fp16", "bf16", "tf32")
CHANNELS = 32.0  # output channels a Winograd kernel works on together
INPUT_ADDS, OUTPUT_ADDS = 32.0, 24.0  # vector additions a 4x4 input tile and channel, a 2x2 output tile and filter


def convolution(
    dims: np.ndarray,
    flops: np.ndarray,
    which: str,
    size: np.ndarray,
    column: np.ndarray,
    cards: Cards,
    algorithm: str = CHEAPEST,
    copies: Copies = COLD,
) -> Priced:
    """Price one pass of a convolution.

    Parameters
    ----------
    dims : ndarray, shape (U, 16)
        As `DIMS` names them for convolutions.
    flops : ndarray, shape (U,)
        FLOPs of the pass; they give the positions along the third axis, whose stride and padding ``dims`` does not hold [FLOP].
    which : {"forward", "data", "weight"}
        Pass.
    size : ndarray, shape (U,)
        Bytes an element [B].
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    algorithm : {"cheapest", "implicit", "winograd"}
        Winograd prices what it can compute, implicit GEMM the rest.
    copies : Copies
        What is warm, see `workbench.cost.choices`.

    Returns
    -------
    Priced
        Of the cheapest of implicit GEMM, Winograd F(2x2, 3x3) (3x3, stride 1, dilation 1) and the vector unit.
    """
    d = {name: np.maximum(dims[:, i], 0).astype(np.float64) for i, name in enumerate(DIMS[Kind.CONV_FORWARD])}
    for name in ("stride_h", "stride_w", "dilation_h", "dilation_w", "groups", "depth", "t"):
        d[name] = np.maximum(d[name], 1.0)
    p = output_extent(d["h"], d["r"], d["stride_h"], d["pad_h"], d["dilation_h"])
    q = output_extent(d["w"], d["s"], d["stride_w"], d["pad_w"], d["dilation_w"])
    window, groups = d["r"] * d["s"] * d["t"], d["groups"]
    c, k = d["c"] / groups, d["k"] / groups
    plane = d["n"] * p * q
    deep = np.where(d["depth"] * d["t"] > 1.0, flops / np.maximum(2.0 * plane * d["k"] * c * window, 1.0), 1.0)
    outputs, stride_t = plane * deep, np.maximum(np.round(d["depth"] / np.maximum(deep, 1.0)), 1.0)
    image = d["n"] * d["c"] * d["h"] * d["w"] * d["depth"] * size
    result, weights = outputs * d["k"] * size, d["k"] * c * window * size
    shape, total = {
        FORWARD: ((outputs, k, c * window), (image, weights, result)),
        DATA: (
            (d["n"] * d["h"] * d["w"] * d["depth"], c, k * window / (d["stride_h"] * d["stride_w"] * stride_t)),
            (result, weights, image),
        ),
        WEIGHT: ((c * window, k, outputs), (image, result, weights)),
    }[which]
    operand = np.repeat(size[:, None], 3, axis=1)
    total_bytes = np.stack(total, axis=1)
    best, _ = products(np.stack((groups, *shape), axis=1), operand, column, cards, total_bytes, copies)
    flops = 2.0 * outputs * k * c * window * groups
    lanes = vector.streams(vector.maps(outputs * d["k"], flops, total[0] + total[1], total[2], column), cards, copies)
    if algorithm == CHEAPEST:
        best = cheaper(best, lanes, groups > 1)
    fast = _fast(d, window, which) & np.isin(np.asarray(cards.dtypes)[column], WINOGRAD_DTYPES)
    if not fast.any() or algorithm == IMPLICIT:
        return best
    other = _winograd(outputs, c, k, operand, total_bytes, which, column, cards, copies)
    return choose(best, other, np.repeat(fast[:, None], len(cards.specs), axis=1)) if algorithm == WINOGRAD else cheaper(best, other, fast)


def _fast(d: dict[str, np.ndarray], window: np.ndarray, which: str) -> np.ndarray:
    """Return which rows Winograd F(2x2, 3x3) can compute."""
    fast = (d["r"] == 3) & (d["s"] == 3) & (d["t"] == 1) & (window == 9) & (d["groups"] == 1) & (which != WEIGHT)
    for name in ("stride_h", "stride_w", "dilation_h", "dilation_w"):
        fast &= d[name] == 1
    return np.asarray(fast)


def _winograd(
    outputs: np.ndarray,
    c: np.ndarray,
    k: np.ndarray,
    operand: np.ndarray,
    total: np.ndarray,
    which: str,
    column: np.ndarray,
    cards: Cards,
    copies: Copies,
) -> Priced:
    """Price F(2x2, 3x3): one kernel where the vector unit multiplies, else transforms, products and inverse as kernels of their own.

    A matrix unit takes its operands from memory, so there the transformed tiles are written and read once each.
    """
    tiles = np.ceil(outputs / 4.0)
    inner, outer = (c, np.ceil(k / CHANNELS) * CHANNELS) if which == FORWARD else (k, np.ceil(c / CHANNELS) * CHANNELS)
    shape = np.stack((np.full_like(tiles, 16.0), tiles, outer, inner), axis=1)
    out, _ = products(shape, operand, column, cards, total, copies)
    adds = tiles * (INPUT_ADDS * inner + OUTPUT_ADDS * outer)
    transform = adds[:, None] / cards.vector_rate[:, column].T
    apart = cards.matrix[:, column, kernels.IS_VECTOR].T == 0.0
    traffic = np.where(apart, 2.0 * (16.0 * tiles * (inner + outer) * operand[:, 0])[:, None], 0.0)
    moving = traffic / cards.memory_rate[:, column].T + np.where(apart, 2.0 * cards.launch[:, column].T, 0.0)
    out.resource[..., Bound.VECTOR] += transform
    out.resource[..., Bound.MEMORY] += moving
    out.level[..., 2] += traffic
    out.seconds[:] += np.where(apart, np.maximum(transform, moving), transform)
    return out


def cheaper(first: Priced, second: Priced, allowed: np.ndarray) -> Priced:
    """Return, operator and card by card, the faster of two algorithms; the second only where ``allowed`` [U]."""
    return choose(first, second, allowed[:, None] & (second.seconds < first.seconds))


def choose(first: Priced, second: Priced, take: np.ndarray) -> Priced:
    """Return the second where ``take`` [U, S] says so, else the first."""
    pick = take[..., None]
    return Priced(
        np.where(take, second.seconds, first.seconds),
        np.where(pick, second.resource, first.resource),
        np.where(pick, second.level, first.level),
        np.where(pick, second.detail, first.detail),
    )
