"""Layers of a model: the module that repeats, where modules are recorded; else the blocks of equal operators."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from workbench.graph.kernels_units import nearest
from workbench.graph.repeats import runs
from workbench.trace.trace import HOST_CALLS, Category, Trace

MODULE = re.compile(r"^nn\.Module: (\w+)_(\d+)$")
BACKWARD = re.compile(r"^autograd::engine::evaluate_function|Backward\d*$")
CONTAINERS = ("Sequential", "ModuleList")
LEAST = 2
"""Fewer blocks are no repetition."""
MOST = 200_000
"""Kernels among which blocks are looked for."""

Found = tuple[np.ndarray, tuple[str, ...], bool, tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class Layers:
    """Layers of a recording.

    ``layer`` is int32 [E], an index into ``names`` (-1: none); ``by_module`` says whether modules or repetition told them apart.
    ``families`` names each kind of layer with how many there are.
    """

    layer: np.ndarray
    names: tuple[str, ...]
    by_module: bool
    families: tuple[tuple[str, int], ...]


def layers_of(trace: Trace, rank: np.ndarray, forward: np.ndarray, creators: np.ndarray, call: np.ndarray) -> Layers:
    """Return the layer of every host event and, where only they repeat, device event.

    Parameters
    ----------
    trace : Trace
    rank : int64 [E]
    forward : bool [E]
        Events of the forward pass.
    creators : int64 [C]
        Forward operators that made a function of the backward pass.
    call : int32 [E]
        Launching call of device work (-1: none).
    """
    found = _by_modules(trace)
    if found is None and len(creators):
        found = _by_operators(trace, rank, creators)
    if found is None:
        return _by_kernels(trace, rank, forward, call)
    layer, names, by_module, families = found
    _backward(trace, rank, creators, layer)
    return Layers(layer, names, by_module, families)


def _by_modules(trace: Trace) -> Found | None:
    """Layers from frames of modules.

    Instances of one class in one parent are a family, if they hold modules themselves and are no mere containers; of families one
    within the other the outer counts, and the one that takes most time first.
    """
    e = trace.events
    rows = np.flatnonzero(e.category == Category.PYTHON)
    kinds = {int(i): m[1] for i in np.unique(e.name[rows]) if (m := MODULE.match(trace.strings[i]))}
    rows = rows[np.isin(e.name[rows], list(kinds))] if kinds else rows[:0]
    if not len(rows):
        return None
    parent, time, first = _instances(trace, rows)
    holders = set(parent.values())
    families: dict[tuple[int, str], list[int]] = defaultdict(list)
    for name in sorted(parent, key=lambda name: first[name]):
        if name in holders and kinds[name] not in CONTAINERS:
            families[parent[name], kinds[name]].append(name)
    chosen: dict[int, int] = {}
    kept: list[tuple[str, int]] = []
    for (_, kind), names in sorted(families.items(), key=lambda item: (-sum(time[name] for name in item[1]), item[1][0])):
        above = {up for name in names for up in _ancestors(parent, name)}
        nested = bool(above & chosen.keys()) or any(set(_ancestors(parent, name)) & set(names) for name in chosen)
        if len(names) >= LEAST and not nested:
            chosen |= {name: len(chosen) + i for i, name in enumerate(names)}
            kept.append((kind, len(names)))
    if not chosen:
        return None
    number = np.full(len(trace.strings), -1, dtype=np.int32)
    number[list(chosen)] = list(chosen.values())
    frame = np.zeros(len(e), dtype=bool)
    frame[rows[number[e.name[rows]] >= 0]] = True
    layer = _under(trace, frame, number[e.name])
    return layer, tuple(trace.strings[name].removeprefix("nn.Module: ") for name in chosen), True, tuple(kept)


def _instances(trace: Trace, rows: np.ndarray) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Parent (-1: none), time [ns] and first start [ns] of each instance of a module, by its name."""
    e = trace.events
    is_module = np.zeros(len(e), dtype=bool)
    is_module[rows] = True
    up = e.parent[rows]
    above = np.where(up >= 0, nearest(e.parent, is_module, np.maximum(up, 0).astype(np.int32)), -1)
    parent: dict[int, int] = {}
    time: dict[int, int] = defaultdict(int)
    first: dict[int, int] = {}
    columns = e.name[rows], np.where(above >= 0, e.name[above], -1), e.dur_ns[rows], e.start_ns[rows]
    for name, outer, dur, start in zip(*(column.tolist() for column in columns), strict=True):
        if outer != name:
            parent.setdefault(name, outer)
        time[name] += max(dur, 0)
        first[name] = min(first.get(name, start), start)
    for name in first:
        parent.setdefault(name, -1)
    return parent, time, first


def _ancestors(parent: dict[int, int], name: int) -> list[int]:
    out: list[int] = []
    up = parent.get(name, -1)
    while up >= 0 and up not in out:
        out.append(up)
        up = parent.get(up, -1)
    return out


def _under(trace: Trace, marked: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Value of the innermost marked event at or above each host event (-1: none), int32 [E]."""
    e = trace.events
    host = np.flatnonzero(np.isin(e.category, (Category.CPU_OP, *HOST_CALLS, Category.PYTHON, Category.ANNOTATION)))
    above = nearest(e.parent, marked, host.astype(np.int32))
    out = np.full(len(e), -1, dtype=np.int32)
    out[host[above >= 0]] = value[above[above >= 0]]
    return out


def _by_operators(trace: Trace, rank: np.ndarray, creators: np.ndarray) -> Found | None:
    """Layers from blocks of equal operators, those that made functions of the backward pass, step by step of each rank."""
    e = trace.events
    dims = trace.text_arg("Input Dims")
    tokens = np.unique(np.stack([e.name[creators], dims[creators]]), axis=1, return_inverse=True)[1].reshape(-1)
    layer = np.full(len(e), -1, dtype=np.int32)
    names, families = _blocks(trace, rank, creators, tokens, layer, by_start=True)
    if not names:
        return None
    top = np.zeros(len(e), dtype=bool)
    top[creators] = layer[creators] >= 0
    return _under(trace, top, layer), names, False, families


def _by_kernels(trace: Trace, rank: np.ndarray, forward: np.ndarray, call: np.ndarray) -> Layers:
    """Layers from blocks of equal kernels in the order of their launches; of the forward pass, where it is known."""
    e = trace.events
    device = np.flatnonzero(e.category == Category.KERNEL)
    launched = np.where(call[device] >= 0, e.start_ns[call[device]], e.start_ns[device])
    of_forward = (call[device] >= 0) & forward[call[device]]
    if of_forward.any():
        device, launched = device[of_forward], launched[of_forward]
    device = device[np.lexsort((e.start_ns[device], launched))]
    layer = np.full(len(e), -1, dtype=np.int32)
    if len(device) > MOST:
        return Layers(layer, (), False, ())
    grid = trace.text_arg("grid")
    tokens = np.unique(np.stack([e.name[device], grid[device]]), axis=1, return_inverse=True)[1].reshape(-1)
    names, families = _blocks(trace, rank, device, tokens, layer, by_start=False)
    return Layers(layer, names, False, families)


def _blocks(
    trace: Trace, rank: np.ndarray, rows: np.ndarray, tokens: np.ndarray, layer: np.ndarray, by_start: bool
) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """Number the repeating blocks of some events of each rank and step; write the number of each event's block to ``layer``."""
    at = trace.events.start_ns[rows]
    begins = np.sort(trace.steps.start_ns)
    group = rank[rows] * (len(begins) + 1) + np.searchsorted(begins, at, "right")
    known: dict[bytes, str] = {}
    number: dict[tuple[str, int], int] = {}
    for one in np.unique(group):
        mine = np.flatnonzero(group == one)
        mine = mine[np.argsort(at[mine], kind="stable")] if by_start else mine
        for run in runs(tokens[mine]):
            block = np.sort(tokens[mine[run.start : run.start + run.period]]).tobytes()  # the same layer, wherever its run begins
            family = known.setdefault(block, _letters(len(known)))
            for i in range(run.count):
                inside = mine[run.start + i * run.period : run.start + (i + 1) * run.period]
                layer[rows[inside]] = number.setdefault((family, i), len(number))
    counts: dict[str, int] = defaultdict(int)
    for family, i in number:
        counts[family] = max(counts[family], i + 1)
    return tuple(f"{family}{i}" for family, i in number), tuple(counts.items())


def _letters(number: int) -> str:
    return (chr(ord("A") + number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26) if number < 702 else f"F{number}_"


def _backward(trace: Trace, rank: np.ndarray, creators: np.ndarray, layer: np.ndarray) -> None:
    """Give functions of the backward pass, and what runs in them, the layer of the operator that made them."""
    e = trace.events
    sequence = trace.integer_arg("Sequence number")
    functions = np.flatnonzero((e.category == Category.CPU_OP) & (sequence >= 0) & (layer < 0))
    functions = functions[~np.isin(functions, creators)]
    own = creators[layer[creators] >= 0]
    if not len(functions) or not len(own):
        return
    width = int(sequence.max()) + 1
    keys, first = np.unique(rank[own] * width + sequence[own], return_index=True)
    asked = rank[functions] * width + sequence[functions]
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    hit = keys[at] == asked
    back = np.array([bool(BACKWARD.search(text)) for text in trace.strings] or [False])
    hit &= back[e.name[functions]]
    layer[functions[hit]] = layer[own[first[at[hit]]]]
    top = np.zeros(len(e), dtype=bool)
    top[functions[hit]] = True
    inherited = _under(trace, top, layer)
    layer[inherited >= 0] = inherited[inherited >= 0]
