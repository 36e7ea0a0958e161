"""What data parallelism adds to a step: messages beside computation, replayed on two streams of one stage.

No share of overlap is put in. Every message waits for what it needs and for the message before it; every layer for what it needs; what
the computation has to wait for is *exposed*.

Gradients go in buckets, in reverse order of layers, each after its last gradient (Li et al., "PyTorch Distributed", arXiv 2006.15704,
section 3.2.3). ZeRO 0 and 1 send them in the backward pass of the last microbatch; ZeRO 2 and 3 in that of every one, unless gradients are
accumulated. ZeRO 1 and 2 gather the new parameters after the optimizer (Rajbhandari et al., arXiv 1910.02054); ZeRO 3 gathers every layer
before its forward and before its backward pass, some layers ahead (Zhao et al., PyTorch FSDP, arXiv 2304.11277, sections 3.3 and 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import InvalidSpec
from workbench.scale import kernels_overlap as kernels

Numbers = np.ndarray | float


@dataclass(frozen=True)
class Buckets:
    """Gradients that are sent together: K buckets in the order they are sent, of L layers in the order of the forward pass."""

    of_layer: np.ndarray  # int32 [L], bucket of a layer (-1: it has no gradient)
    bytes: np.ndarray  # float64 [K] [B]
    completed_by: np.ndarray  # int32 [K], layer whose gradient is the last of a bucket

    def __len__(self) -> int:
        return len(self.bytes)


@dataclass(frozen=True)
class Exposed:
    """Seconds of a step of one stage, by part; arrays [C] (or single numbers for one case). The parts add up to ``end_s``."""

    end_s: np.ndarray
    compute_s: np.ndarray  # forward and backward passes with the card for themselves
    waiting_s: np.ndarray  # for other stages, where earliest starts are given
    slowed_s: np.ndarray  # what passes take longer beside messages
    gather_forward_s: np.ndarray  # exposed: parameters before a forward pass
    gather_backward_s: np.ndarray  # exposed: parameters before a backward pass
    reduce_s: np.ndarray  # exposed: gradients after the last backward pass
    optimizer_s: np.ndarray
    parameters_s: np.ndarray  # exposed: new parameters after the optimizer
    messages_s: np.ndarray  # all messages, exposed or not

    @property
    def exposed_s(self) -> np.ndarray:
        """Messages that computation waited for [s]."""
        return self.gather_forward_s + self.gather_backward_s + self.reduce_s + self.parameters_s


def gradient_buckets(gradient_bytes: np.ndarray, bucket_bytes: float) -> Buckets:
    """Group gradients from the last layer to the first: a bucket is full when it holds at least ``bucket_bytes``.

    Parameters
    ----------
    gradient_bytes : float64 [L]
        Of every layer [B], in the order of the forward pass.
    bucket_bytes : float
        0: every layer by itself; infinite: all at once [B].

    Returns
    -------
    Buckets
        A layer is never divided: where its gradients exceed the size it is a bucket of its own. Finer layers give finer buckets.

    Raises
    ------
    InvalidSpec
        Negative sizes.
    """
    size = np.asarray(gradient_bytes, dtype=np.float64)
    if not (bucket_bytes >= 0) or (size.size and not (size.min() >= 0 and np.isfinite(size).all())):
        raise InvalidSpec("buckets of gradients", "a size is negative or not a number", "give bytes of at least 0")
    of_layer = np.full(len(size), -1, dtype=np.int32)
    sums: list[float] = []
    last: list[int] = []
    filled = np.inf
    for layer in np.flatnonzero(size)[::-1].tolist():
        if filled >= bucket_bytes:
            sums, last, filled = [*sums, 0.0], [*last, layer], 0.0
        filled += float(size[layer])
        sums[-1], last[-1], of_layer[layer] = filled, layer, len(sums) - 1
    return Buckets(of_layer, np.asarray(sums, dtype=np.float64), np.asarray(last, dtype=np.int32))


def data_parallel(
    forward_s: np.ndarray,
    backward_s: np.ndarray,
    buckets: Buckets,
    reduce_s: np.ndarray,
    gather_s: np.ndarray | None = None,
    optimizer_s: Numbers = 0.0,
    *,
    zero: int = 0,
    microbatches: int = 1,
    accumulate: bool = False,
    prefetch: int = 1,
    gather_beside_forward: bool = False,
    slowdown: float = 0.0,
    backward: np.ndarray | None = None,
    ready_s: np.ndarray | None = None,
) -> Exposed:
    """Replay a step of one stage with its messages of data parallelism; all times may have cases C in front.

    Parameters
    ----------
    forward_s, backward_s : float64 [L] or [C, L]
        Passes of the layers of a microbatch [s]; where the backward pass runs in halves, give that of the weights.
    buckets : Buckets
        Of their gradients.
    reduce_s : float64 [K] or [C, K]
        All-reduce (zero 0) or reduce-scatter of every bucket [s].
    gather_s : float64 [K] or [C, K]; zero 3: [L] or [C, L]
        All-gather of the parameters of every bucket or layer [s]; needed from zero 1 on.
    optimizer_s : float or float64 [C]
    zero : int
        Stage of ZeRO, 0..3.
    microbatches : int
        Of this stage. What none of them sends or gathers for costs its passes only.
    accumulate : bool
        Zero 2 and 3: send gradients in the last microbatch only.
    prefetch : int
        Zero 3: layers gathered ahead. 0: a layer's gathering begins when the layer before it has finished.
    gather_beside_forward : bool
        Zero 1 and 2: gather new parameters beside the first forward pass of the next step, not before it (steady state).
    slowdown : float
        Passes take 1 + slowdown times as long while a message is under way, for the cores and bandwidth it takes.
    backward : bool [2 m], optional
        Which of the stage's passes, in order, are backward ones. Default: a forward and a backward pass in turn.
    ready_s : float64 [2 m] or [C, 2 m], optional
        Earliest starts of those passes [s], e.g. of a pipeline without these messages.

    Returns
    -------
    Exposed

    Raises
    ------
    InvalidSpec
        Numbers that do not fit each other, negative times.
    """
    f, b, r = (_times(a, word) for a, word in ((forward_s, "forward passes"), (backward_s, "backward passes"), (reduce_s, "gradients")))
    g = _times(np.zeros(1) if gather_s is None else gather_s, "gathering")
    _check(f, b, r, g, buckets, zero, prefetch, slowdown, microbatches)
    turn = np.tile([False, True], microbatches) if backward is None else np.asarray(backward, dtype=bool)
    if turn.sum() != microbatches or len(turn) != 2 * microbatches:
        raise InvalidSpec("data parallelism", "passes are not one forward and one backward pass a microbatch", "correct `backward`")
    begin = _times(np.zeros(len(turn)) if ready_s is None else ready_s, "earliest starts")
    lead = np.broadcast_shapes(*(a.shape[:-1] for a in (f, b, r, g, begin)), np.shape(optimizer_s))
    f, b, r, g, begin = (np.broadcast_to(a, lead + a.shape[-1:]).reshape(-1, a.shape[-1]) for a in (f, b, r, g, begin))
    layers = f.shape[1]
    shape = (len(f), len(turn), layers)
    unit = np.where(turn[:, None], b[:, None, ::-1], f[:, None, :])
    ready = np.where(np.arange(layers) == 0, begin[:, :, None], 0.0)
    reducing = _reduces(turn, r, buckets, every=zero >= 2 and not accumulate)
    gathering = np.full(shape, -1.0)
    beside = zero in (1, 2) and gather_beside_forward
    if zero == 3:
        gathering[:] = np.where(turn[:, None], g[:, None, ::-1], g[:, None, :])
        gathering[:, 1:, 0][:, turn[1:] & ~turn[:-1]] = -1.0  # a forward pass leaves its last layer for the backward pass that follows
    elif beside:
        first = np.flatnonzero(~turn)[0]
        gathering[:, first, _first_of(buckets)] = g
    out = np.zeros((len(f), kernels.COLUMNS))
    columns = (unit, ready, gathering, reducing)
    flat = [np.ascontiguousarray(np.broadcast_to(a, shape).reshape(len(f), -1), dtype=np.float64) for a in columns]
    ahead = prefetch if zero == 3 else flat[0].shape[1]
    kernels.two_streams(*flat, np.repeat(turn, layers).astype(np.uint8), ahead, float(slowdown), out)
    after = g.sum(axis=1) if zero in (1, 2) and not beside else np.zeros(len(f))
    return _exposed(out, np.broadcast_to(optimizer_s, lead).reshape(-1), after, lead)


def _exposed(out: np.ndarray, optimizer_s: np.ndarray, after: np.ndarray, lead: tuple[int, ...]) -> Exposed:
    end, compute, waiting, slowed, _, reduce, messages, forward, backward = out.T
    columns = (end + optimizer_s + after, compute, waiting, slowed, forward, backward, reduce, optimizer_s, after, messages + after)
    return Exposed(*(np.asarray(column, dtype=np.float64).reshape(lead) for column in columns))


def _reduces(turn: np.ndarray, reduce_s: np.ndarray, buckets: Buckets, *, every: bool) -> np.ndarray:
    """Messages sent behind every layer of every pass, float64 [C, passes, L], negative: none."""
    layers = len(buckets.of_layer)
    out = np.full((len(reduce_s), len(turn), layers), -1.0)
    passes = np.flatnonzero(turn) if every else np.flatnonzero(turn)[-1:]
    for at in passes:
        out[:, at, layers - 1 - buckets.completed_by] = reduce_s
    return out


def _first_of(buckets: Buckets) -> np.ndarray:
    """Layer of every bucket that the forward pass comes to first: the one whose gradient comes last."""
    return buckets.completed_by


def _times(values: np.ndarray, word: str) -> np.ndarray:
    found = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if found.size and not (np.isfinite(found).all() and found.min() >= 0):
        raise InvalidSpec("data parallelism", f"times of {word} must be finite and not negative", "check the costs for missing rows")
    return found


def _check(
    f: np.ndarray, b: np.ndarray, r: np.ndarray, g: np.ndarray, buckets: Buckets, zero: int, prefetch: int, slowdown: float, m: int
) -> None:
    """Refuse numbers that do not fit each other."""
    layers, wanted = len(buckets.of_layer), {0: 0, 3: len(buckets.of_layer)}.get(zero, len(buckets))
    for found, count, word in ((f, layers, "forward passes"), (b, layers, "backward passes"), (r, len(buckets), "messages of gradients")):
        if found.shape[-1] != count:
            raise InvalidSpec("data parallelism", f"{found.shape[-1]} {word} where there are {count}", "give one time each")
    if zero not in (0, 1, 2, 3) or prefetch < 0 or m < 1 or not (0 <= slowdown < np.inf):
        said = f"zero {zero}, prefetch {prefetch}, {m} microbatches or slowdown {slowdown} cannot be"
        raise InvalidSpec("data parallelism", said, "correct it")
    if zero and g.shape[-1] != wanted:
        raise InvalidSpec("data parallelism", f"{g.shape[-1]} times of gathering where zero {zero} has {wanted}", "give one time each")
