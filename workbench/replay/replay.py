"""Replay: durations on a graph -> when every node runs, and how long every step takes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS, ROW_FIXED, ROW_HOST, Graph
from workbench.replay import kernels
from workbench.replay.timeline import Timeline


def ends_step(graph: Graph) -> np.ndarray:
    """Int32 [V]: the step a node may end (device work launched in it, or its end mark), -1: none."""
    out = np.where(np.isin(graph.kind, DEVICE_KINDS), graph.step, -1).astype(np.int32)
    out[graph.step_end] = np.arange(len(graph.step_end))
    return out


def replay(graph: Graph, node_s: np.ndarray) -> Timeline:
    """Run a graph with given durations.

    Parameters
    ----------
    graph : Graph
    node_s : float64 [V]
        Duration of every node [s], finite and not negative.

    Returns
    -------
    Timeline

    Raises
    ------
    Refused
        Durations of the wrong length, negative or not finite.
    """
    node_s = np.ascontiguousarray(node_s, dtype=np.float64)
    _check(node_s, (len(graph),))
    start, finish, binding = kernels.forward(graph.edge_ptr, graph.edge_from, graph.edge_lag_s, node_s)
    ends = ends_step(graph)
    end, last = kernels.step_ends(finish, ends, len(graph.step_numbers))
    makespan = float(finish.max(initial=0.0))
    slack = kernels.backward(graph.edge_ptr, graph.edge_from, graph.edge_lag_s, node_s, finish, ends, end, makespan)
    critical = kernels.critical_paths(graph.edge_from, binding, finish, last, graph.step_begin.astype(np.int64))
    step_s = end - start[graph.step_begin]
    for column in (start, finish, slack, critical, binding, step_s):
        column.setflags(write=False)
    return Timeline(start, finish, slack, critical, binding, step_s, makespan)


def step_times(
    graph: Graph, weight: np.ndarray, value: np.ndarray, row: np.ndarray | None = None, *, threads: int | None = None
) -> np.ndarray:
    """Replay many scenarios: node v lasts ``weight[v] * value[row[v], c]`` in scenario c.

    Parameters
    ----------
    graph : Graph
    weight : float64 [V]
    value : float64 [R, C]
    row : int32 [V], optional
        Row of ``value`` of every node. Default: ``graph.op``, where rows 0..U-1 are those of the operator table,
        row U is the host factor (ROW_HOST), row U + 1 the constant 1 (ROW_FIXED).
    threads : int, optional
        Worker threads (default: one a processor core).

    Returns
    -------
    float64 [C, S] [s]
        Seconds of every step in every scenario.

    Raises
    ------
    Refused
        Shapes that do not fit the graph, negative or non-finite numbers.
    """
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    value = np.asarray(value, dtype=np.float64)
    _check(weight, (len(graph),))
    rows = int(graph.op.max(initial=-1)) + 3 if row is None else int(row.max(initial=-1)) + 1
    if value.ndim != 2 or value.shape[0] < rows:
        raise Refused(
            "step_times",
            f"values have shape {value.shape}, the nodes need at least {rows} rows",
            "one row an operator, then host factor and one, or pass rows of your own",
        )
    _check(value, value.shape)
    count, steps = value.shape[1], len(graph.step_numbers)
    if row is None:
        row = np.where(graph.op == ROW_HOST, value.shape[0] - 2, np.where(graph.op == ROW_FIXED, value.shape[0] - 1, graph.op))
    row = np.ascontiguousarray(row, dtype=np.int32)
    ends = ends_step(graph)
    begins = np.full(len(graph), -1, dtype=np.int32)
    begins[graph.step_begin] = np.arange(steps)
    slot, size = kernels.slots(graph.edge_ptr, graph.edge_from, np.arange(len(graph), dtype=np.int64))
    from_slot = slot[graph.edge_from]
    lanes = kernels.LANES
    out = np.empty((count, steps))

    def run(first: int) -> None:
        width = min(lanes, count - first)
        part = np.zeros((value.shape[0], lanes))
        part[:, :width] = value[:, first : first + width]
        result = np.empty((steps, lanes))
        finish = np.empty((size, lanes))
        kernels.block(graph.edge_ptr, from_slot, graph.edge_lag_s, slot, weight, row, part, ends, begins, finish, result)
        out[first : first + width] = result[:, :width].T

    blocks = range(0, count, lanes)
    workers = threads or os.cpu_count() or 1
    if len(blocks) <= 1 or workers == 1:
        for first in blocks:
            run(first)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(run, blocks))
    return out


def _check(numbers: np.ndarray, shape: tuple[int, ...]) -> None:
    if numbers.shape != shape:
        raise Refused("replay", f"durations have shape {numbers.shape}, the graph needs {shape}", "pass one number a node")
    if numbers.size and not (np.isfinite(numbers).all() and numbers.min() >= 0):
        raise Refused("replay", "durations must be finite and not negative", "check the costs for missing rows")
