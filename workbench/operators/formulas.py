"""FLOPs and bytes of operators: one pure function a kind, vectorised over arrays, no hardware and no time.

Conventions. A multiply-add counts 2 FLOPs. ``read`` and ``written`` are *compulsory* traffic with the outermost
memory [B]: each input read once, each output written once, whatever a cache or a tile does. Element sizes are in
bytes and may be fractions (int4 is 0.5). All arguments broadcast against each other; results are float64.
Attention lives in `workbench.operators.attention`, messages in `workbench.operators.messages`.

References
----------
.. [1] S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009:
   compulsory traffic and operational intensity.
.. [2] V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning", arXiv:1603.07285, relation 14.
.. [3] NVIDIA, "Matrix multiplication background user's guide": 2 m n k.
.. [4] D. Kingma, J. Ba, "Adam", arXiv:1412.6980, algorithm 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Work(NamedTuple):
    """What an operator must do: ``flops``, ``read`` [B], ``written`` [B]; float64, broadcast to one shape."""

    flops: np.ndarray
    read: np.ndarray
    written: np.ndarray

    def moving(self, read: ArrayLike | None = None, written: ArrayLike | None = None) -> Work:
        """Return the same work with other traffic [B]."""
        return Work(self.flops, self.read if read is None else _f(read), self.written if written is None else _f(written))


def _f(value: ArrayLike) -> np.ndarray:
    return np.asarray(value, dtype=np.float64)


def _work(flops: np.ndarray, read: np.ndarray, written: np.ndarray) -> Work:
    return Work(*np.broadcast_arrays(flops, read, written))


def gemm(
    batch: ArrayLike, m: ArrayLike, n: ArrayLike, k: ArrayLike, size_in: ArrayLike, size_out: ArrayLike, size_b: ArrayLike | None = None
) -> Work:
    """Matrix products C[b] = A[b] B[b] with A of m x k and B of k x n.

    Parameters
    ----------
    batch, m, n, k : array_like
        Extents; ``batch`` independent products.
    size_in, size_out : array_like
        Bytes an element of A and B, and of C [B].
    size_b : array_like, optional
        Bytes an element of B where it is another (weights kept in 8 or 4 bits) [B].

    Returns
    -------
    Work
        2 b m n k FLOPs [3]_; reads b (m k + k n), writes b m n elements.
    """
    batch, m, n, k = _f(batch), _f(m), _f(n), _f(k)
    second = _f(size_in if size_b is None else size_b)
    return _work(2.0 * batch * m * n * k, batch * (m * k * _f(size_in) + k * n * second), batch * m * n * _f(size_out))


def output_extent(size: ArrayLike, kernel: ArrayLike, stride: ArrayLike, padding: ArrayLike, dilation: ArrayLike) -> np.ndarray:
    """Output extent of a convolution or pooling axis: floor((size + 2 p - d (r - 1) - 1) / s) + 1 [2]_, at least 0.

    Parameters
    ----------
    size, kernel, stride, padding, dilation : array_like of int
        Extents and settings of the axis, in elements.
    """
    size, kernel, stride = np.asarray(size), np.asarray(kernel), np.asarray(stride)
    span = size + 2 * np.asarray(padding) - np.asarray(dilation) * (kernel - 1) - 1
    return np.maximum(span // stride + 1, 0)


def convolution_macs(n: ArrayLike, c: ArrayLike, k: ArrayLike, window: ArrayLike, output: ArrayLike, groups: ArrayLike) -> np.ndarray:
    """Multiply-adds of a convolution: n k output (c / groups) window.

    Parameters
    ----------
    n, c, k : array_like
        Images, input channels, output channels.
    window, output : array_like
        Elements of one kernel window (t r s) and positions of one output channel (d p q).
    groups : array_like
        Channel groups.
    """
    return _f(n) * _f(k) * _f(output) * (_f(c) / _f(groups)) * _f(window)


def convolution(
    n: ArrayLike,
    c: ArrayLike,
    k: ArrayLike,
    window: ArrayLike,
    inputs: ArrayLike,
    outputs: ArrayLike,
    groups: ArrayLike,
    size: ArrayLike,
    which: str = "forward",
) -> Work:
    """Direct convolution, forward or one or both of its gradients.

    Parameters
    ----------
    n, c, k, window, groups : array_like
        See `convolution_macs`.
    inputs, outputs : array_like
        Positions of one input channel and of one output channel.
    size : array_like
        Bytes an element [B].
    which : {"forward", "data", "weight", "both"}
        ``data`` maps the output gradient and the weights to the input gradient, ``weight`` the output gradient and the
        input to the weight gradient; each takes as many multiply-adds as forward, ``both`` twice as many.

    Returns
    -------
    Work
        2 FLOPs a multiply-add of the direct algorithm (a transform algorithm executes fewer).
    """
    macs = convolution_macs(n, c, k, window, outputs, groups)
    x = _f(n) * _f(c) * _f(inputs) * _f(size)
    y = _f(n) * _f(k) * _f(outputs) * _f(size)
    w = _f(k) * (_f(c) / _f(groups)) * _f(window) * _f(size)
    if which == "forward":
        return _work(2.0 * macs, x + w, y)
    if which == "data":
        return _work(2.0 * macs, y + w, x)
    if which == "weight":
        return _work(2.0 * macs, y + x, w)
    if which == "both":
        return _work(4.0 * macs, y + x + w, x + w)
    raise ValueError(f"which={which!r} is none of forward, data, weight, both")


def elementwise(elements: ArrayLike, read: ArrayLike, written: ArrayLike, operations: ArrayLike = 1.0) -> Work:
    """Elementwise map: ``operations`` an output element; ``read`` and ``written`` are the operands' own sizes [B]."""
    return _work(_f(elements) * _f(operations), _f(read), _f(written))


def reduction(rows: ArrayLike, cols: ArrayLike, size_in: ArrayLike, size_out: ArrayLike) -> Work:
    """Reduction of ``cols`` elements to one, ``rows`` times: one operation an input element."""
    rows, cols = _f(rows), _f(cols)
    return _work(rows * cols, rows * cols * _f(size_in), rows * _f(size_out))


def softmax(rows: ArrayLike, cols: ArrayLike, size_in: ArrayLike, size_out: ArrayLike, backward: bool = False) -> Work:
    """Softmax along rows of ``cols`` elements.

    Forward: maximum, subtraction, exponential, sum, division = 5 operations an element, one read and one write.
    Backward, dx = y (dy - sum(y dy)): 4 operations, reads y and dy.

    Parameters
    ----------
    rows, cols : array_like
        Independent rows, and elements in each.
    size_in, size_out : array_like
        Bytes an element read and written [B].
    backward : bool
        The gradient instead.
    """
    n = _f(rows) * _f(cols)
    if backward:
        return _work(4.0 * n, 2.0 * n * _f(size_in), n * _f(size_out))
    return _work(5.0 * n, n * _f(size_in), n * _f(size_out))


def norm(
    rows: ArrayLike, cols: ArrayLike, parameters: ArrayLike, size: ArrayLike, size_parameter: ArrayLike, backward: bool = False
) -> Work:
    """Layer, batch, group or RMS normalisation over ``rows`` sets of ``cols`` elements.

    Forward: mean, centred square and its sum (4), scaling (2), affine (2) = 8 operations an element; reads x and the
    parameters, writes y. Backward: two row sums (4), the input gradient (5), two parameter sums (3) = 12; reads x, dy and the
    parameters, writes dx and the parameters' gradients.

    Parameters
    ----------
    rows, cols : array_like
        Statistics sets, and elements in each.
    parameters : array_like
        Elements of scale and shift together.
    size, size_parameter : array_like
        Bytes an element of x and of a parameter [B].
    """
    n = _f(rows) * _f(cols)
    table = _f(parameters) * _f(size_parameter)
    if backward:
        return _work(12.0 * n, 2.0 * n * _f(size) + table, n * _f(size) + table)
    return _work(8.0 * n, n * _f(size) + table, n * _f(size))


def gather(rows: ArrayLike, cols: ArrayLike, size: ArrayLike, size_index: ArrayLike, indices: ArrayLike) -> Work:
    """Read rows of a table through an index and write them; no arithmetic.

    Parameters
    ----------
    rows, cols : array_like
        Rows moved, and elements in each.
    size, size_index : array_like
        Bytes an element and an index [B].
    indices : array_like
        Indices read.
    """
    n = _f(rows) * _f(cols) * _f(size)
    return _work(np.zeros_like(n), n + _f(indices) * _f(size_index), n)


def scatter(rows: ArrayLike, cols: ArrayLike, size: ArrayLike, size_index: ArrayLike, indices: ArrayLike, accumulate: bool = True) -> Work:
    """Write values to indexed places, or add them there (read, add, write).

    Parameters
    ----------
    rows, cols, size, size_index, indices : array_like
        As in `gather`.
    accumulate : bool
        Add instead of overwrite.
    """
    n = _f(rows) * _f(cols)
    twice = 2.0 if accumulate else 1.0
    return _work(n if accumulate else np.zeros_like(n), twice * n * _f(size) + _f(indices) * _f(size_index), n * _f(size))


def pooling(outputs: ArrayLike, window: ArrayLike, read: ArrayLike, written: ArrayLike) -> Work:
    """Pooling: ``window`` operations an output element; operands' own sizes [B]."""
    return _work(_f(outputs) * _f(window), _f(read), _f(written))


def copy(elements: ArrayLike, size_in: ArrayLike, size_out: ArrayLike) -> Work:
    """Copy with or without conversion: no FLOPs."""
    n = _f(elements)
    return _work(np.zeros_like(n), n * _f(size_in), n * _f(size_out))


def fill(elements: ArrayLike, size: ArrayLike) -> Work:
    """Fill: writes only."""
    n = _f(elements)
    return _work(np.zeros_like(n), np.zeros_like(n), n * _f(size))


def optimizer(elements: ArrayLike, read: ArrayLike, written: ArrayLike, operations: ArrayLike) -> Work:
    """Optimizer step over ``elements`` parameters; Adam reads p, g, m, v, writes p, m, v, about 14 operations [4]_."""
    return _work(_f(elements) * _f(operations), _f(read), _f(written))


def recurrent(
    timesteps: ArrayLike, batch: ArrayLike, weights: ArrayLike, size: ArrayLike, states: ArrayLike, backward: bool = False
) -> Work:
    """Recurrent cells: every weight takes part once a sequence position.

    Parameters
    ----------
    timesteps, batch : array_like
        Sequence positions and sequences.
    weights : array_like
        Elements of all weight matrices of all layers and directions.
    size : array_like
        Bytes an element [B].
    states : array_like
        Elements of the inputs and of the outputs together.
    backward : bool
        Data and weight gradients: twice the multiply-adds.
    """
    macs = _f(timesteps) * _f(batch) * _f(weights)
    half = _f(states) * _f(size) / 2.0
    table = _f(weights) * _f(size)
    if backward:
        return _work(4.0 * macs, 2.0 * half + table, half + table)
    return _work(2.0 * macs, half + table, half)


def sort(rows: ArrayLike, cols: ArrayLike, size_in: ArrayLike, written: ArrayLike) -> Work:
    """Sort or select in ``rows`` sets of ``cols``: cols log2(cols) comparisons each, one read, the result written once."""
    rows, cols = _f(rows), _f(cols)
    return _work(rows * cols * np.log2(np.maximum(cols, 2.0)), rows * cols * _f(size_in), _f(written))
