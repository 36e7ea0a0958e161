"""The order of operations on the stages of a pipeline, schedule by schedule.

Every function returns (stage, chunk, microbatch, what), int64 [N], sorted by stage and then by order. Sources: `workbench.scale.schedules`.
"""

from __future__ import annotations

import numpy as np

FORWARD, BACKWARD, INPUT, WEIGHT = range(4)
Order = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def plain(name: str, stages: int, microbatches: int) -> Order:
    """Return GPipe, 1F1B, ZB-H1 or ZB-H2, which differ in two numbers.

    Stage s runs ``ahead`` forward passes before its first backward pass; then, for every microbatch k, in turn: the backward pass of k,
    the weight gradient of k - ``late`` (where the backward pass is split), and the next forward pass.

    ========  ===========  ======  =============================
    schedule  ahead        late    activations kept (at most)
    ========  ===========  ======  =============================
    gpipe     m            -       m
    1f1b      p - s        -       p - s
    zb-h1     p - s        s       p: as the first stage of 1F1B
    zb-h2     2(p - s)-1   2 s     2 p - 1
    ========  ===========  ======  =============================
    """
    stage = np.arange(stages)[:, None]
    k = np.arange(microbatches)[None, :]
    ahead = {"gpipe": np.full_like(stage, microbatches), "zb-h2": 2 * (stages - stage) - 1}.get(name, stages - stage)
    late = 2 * stage if name == "zb-h2" else stage
    keys, whats = [3 * (k - ahead) + 2, 3 * k + 0 * stage], [FORWARD, BACKWARD]
    if name in ("zb-h1", "zb-h2"):
        keys, whats = [*keys, 3 * (k + late) + 1], [FORWARD, INPUT, WEIGHT]
    order = np.argsort(np.concatenate(keys, axis=1), axis=1, kind="stable")
    what = np.asarray(whats)[order // microbatches].ravel()
    return np.repeat(np.arange(stages), order.shape[1]), np.zeros(order.size, dtype=np.int64), (order % microbatches).ravel(), what


def interleaved(stages: int, microbatches: int, virtual: int) -> Order:
    """Return interleaved 1F1B.

    Groups of p microbatches go through chunk after chunk; a stage runs ``2 (p - s - 1) + (v - 1) p`` forward passes ahead, then a
    forward and a backward pass in turn. A last group that is not full is generated full and thinned out: an order without some of its
    microbatches waits for nothing new.
    """
    full = -(-microbatches // stages) * stages
    total = full * virtual
    stage, k = np.arange(stages)[:, None], np.arange(total)[None, :]
    ahead = np.minimum(2 * (stages - stage - 1) + (virtual - 1) * stages, total)
    order = np.argsort(np.concatenate([2 * (k - ahead), 2 * k + 1 + 0 * stage], axis=1), axis=1, kind="stable").ravel()
    number, what = order % total, order // total
    chunk = number % (stages * virtual) // stages
    chunk = np.where(what == FORWARD, chunk, virtual - 1 - chunk)
    microbatch = number // (stages * virtual) * stages + number % stages
    keep = microbatch < microbatches
    return np.repeat(np.arange(stages), 2 * total)[keep], chunk[keep], microbatch[keep], what[keep]


def there_and_back(stages: int, microbatches: int, virtual: int = 2) -> Order:
    """Return ZB-V: stage s holds places s and 2 p - 1 - s of the pipeline. Fewer than 2 p - 1 microbatches are thinned out of 2 p - 1."""
    full = max(microbatches, 2 * stages - 1)
    rows = [_one_of_v(stages, s, full) for s in range(stages)]
    ops = np.concatenate(rows)
    stage = np.repeat(np.arange(stages), [len(row) for row in rows])
    keep = ops[:, 1] < microbatches
    return stage[keep], ops[keep, 0], ops[keep, 1], ops[keep, 2]


def _one_of_v(stages: int, stage: int, microbatches: int) -> np.ndarray:
    """Return (chunk, microbatch, what) of the operations of one stage of ZB-V in their order."""
    ops: list[tuple[int, int, int]] = []
    done = np.zeros((2, 4), dtype=np.int64).tolist()

    def run(chunk: int, *whats: int) -> None:
        for what in whats:
            ops.append((chunk, done[chunk][what], what))
            done[chunk][what] += 1

    for _ in range(2 * (stages - stage) - 1):
        run(0, FORWARD)
    for _ in range(stage):
        run(1, FORWARD)
        run(0, FORWARD)
    for _ in range(stages - stage):
        run(1, FORWARD, INPUT, WEIGHT)
    while done[1][FORWARD] < microbatches:
        if done[0][FORWARD] < microbatches:
            run(0, FORWARD)
        run(0, INPUT, WEIGHT)
        run(1, FORWARD, INPUT, WEIGHT)
    for _ in range(stage):
        run(0, INPUT)
        run(1, INPUT)
    for _ in range(stages - stage):
        run(0, INPUT, WEIGHT)
    for chunk in (1, 0):
        run(chunk, *[WEIGHT] * (microbatches - done[chunk][WEIGHT]))
    return np.asarray(ops)
