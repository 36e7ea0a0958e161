"""Recurrent layers: one product over all inputs, then a product and a cell update a time step, because steps cannot overlap.

Kernel by kernel (Appleyard et al., Optimizing Performance of Recurrent Neural Networks on GPUs, arXiv 1604.01946): every step
launches its product with the state's weights and the cell's elementwise update, and reads the weights again unless they stay in
the shared level. Persistent (Diamos et al., Persistent RNNs, ICML 2016): one kernel keeps the weights in the cores and the cores
meet once a step; possible where the weights fit the cores' memory, and chosen where asked for.
"""

from __future__ import annotations

import numpy as np

from workbench.cost import kernels, matrix
from workbench.cost.choices import COLD, Copies
from workbench.cost.cost import Bound
from workbench.cost.matrix import Priced, empty, plus
from workbench.cost.pack import Cards
from workbench.cost.pack_matrix import levels
from workbench.hardware.spec import NpuSpec

MEETING = 4.0  # shared-level latencies of a meeting of all cores: write, count, see, read
CELL_TRIPS = 2.0  # latencies of a cell update: gates come, the state goes
WEIGHTS_SHARE = 0.75  # part of the cores' registers and staging memory that can hold weights


def recurrent(
    dims: np.ndarray,
    flops: np.ndarray,
    moved: np.ndarray,
    size: np.ndarray,
    column: np.ndarray,
    cards: Cards,
    copies: Copies = COLD,
    persistent: bool = False,
) -> Priced:
    """Price recurrent layers.

    Parameters
    ----------
    dims : ndarray, shape (U, >= 3)
        hidden, batch, timesteps.
    flops : ndarray, shape (U,)
        Products with the weights of inputs and state, 4 gates hidden^2 batch timesteps, twice that in backward [FLOP]; they tell
        how many gates there are.
    moved : ndarray, shape (U,)
        Compulsory bytes read less those written [B]: the weights' forward, half the states' backward (`formulas.recurrent`).
    size : ndarray, shape (U,)
        Bytes an element [B].
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S packed cards.
    copies : Copies
        What is warm, see `workbench.cost.choices`; holds for the product over the inputs.
    persistent : bool
        Keep the weights in the cores where they fit.

    Returns
    -------
    Priced
    """
    hidden, batch, steps = np.maximum(dims[:, :3], 1).astype(np.float64).T
    weights = flops * size / (2.0 * batch * steps)
    backward = ~np.isclose(moved, weights, rtol=1e-6, atol=0.5)
    gates = np.maximum(flops / np.where(backward, 8.0, 4.0) / (hidden * hidden * batch * steps), 1.0)
    operand = np.repeat(size[:, None], 3, axis=1)
    one = np.ones_like(hidden)

    def product(m: np.ndarray, n: np.ndarray, k: np.ndarray, warm: Copies) -> Priced:
        return matrix.products(np.stack((one, m, n, k), axis=1), operand, column, cards, copies=warm)[0]

    inputs = product(batch * steps, gates * hidden, hidden, copies)
    if backward.any():  # gradients of both weights, all steps at once
        last = product(gates * hidden, hidden, batch * steps, copies)
        inputs = plus(inputs, last, np.where(backward, 2.0, 0.0)[:, None])
    step = product(batch, gates * hidden, hidden, (1.0, 1.0))
    each = plus(step, _cell(batch * hidden * (2.0 * gates + 3.0) * size, column, cards))
    if persistent:
        held = gates * hidden * hidden * size
        fits = held[:, None] <= np.array([_weights_room(spec) for spec in cards.specs])
        kept = _meeting(hidden, batch, gates, size, column, cards)
        for name in ("seconds", "resource", "level", "detail"):
            mine, theirs = getattr(each, name), getattr(kept, name)
            mine[fits] = theirs[fits]
    return plus(inputs, each, steps[:, None])


def _cell(moved: np.ndarray, column: np.ndarray, cards: Cards) -> Priced:
    """Return the elementwise update of one step, whose operands the product left in the shared level."""
    out = empty(len(moved), cards)
    launch = cards.launch[:, column].T
    fill = np.broadcast_to(CELL_TRIPS * cards.matrix[:, column, kernels.LATENCY_SHARED].T, launch.shape)
    shared = moved[:, None] / cards.shared_rate
    out.seconds[:] = launch + fill + shared
    out.resource[..., Bound.SHARED], out.resource[..., Bound.LAUNCH] = shared, launch + fill
    out.level[..., 1] = moved[:, None]
    out.detail[..., 0], out.detail[..., 1] = launch, fill
    return out


def _meeting(hidden: np.ndarray, batch: np.ndarray, gates: np.ndarray, size: np.ndarray, column: np.ndarray, cards: Cards) -> Priced:
    """Return one step of a persistent kernel: each core multiplies the state, read by all, with the weights it holds; then all meet."""
    out = empty(len(hidden), cards)
    card = cards.matrix[:, column]
    quantum = card[..., kernels.QM]
    rows = np.ceil(batch / quantum) * quantum
    rate = card[..., kernels.MACS] * card[..., kernels.CLOCK] * card[..., kernels.ETA_COMPUTE] * card[..., kernels.CORES]
    compute = (rows * gates * hidden * hidden / rate).T
    local = ((gates * hidden * hidden * size) / (card[..., kernels.PORT] * card[..., kernels.CORES])).T
    state = batch * hidden * size
    shared = (state * card[..., kernels.CORES] / card[..., kernels.CAST]).T / cards.shared_rate
    wait = MEETING * card[..., kernels.LATENCY_SHARED].T
    out.seconds[:] = np.maximum(np.maximum(compute, local), shared) + wait
    out.resource[..., Bound.MATRIX], out.resource[..., Bound.LOCAL], out.resource[..., Bound.SHARED] = compute, local, shared
    out.resource[..., Bound.LAUNCH], out.detail[..., 1] = wait, wait
    out.level[..., 0], out.level[..., 1] = (gates * hidden * hidden * size)[:, None], state[:, None]
    return out


def _weights_room(spec: NpuSpec) -> float:
    """Return how many bytes of weights all cores together hold [B]."""
    staging = levels(spec)[0]
    names = {name for name in (staging, spec.matrix.accumulator, spec.vector.buffer) if name is not None}
    return WEIGHTS_SHARE * spec.cores * sum(spec.memory[name].size for name in names if spec.memory[name].scope == "core")
