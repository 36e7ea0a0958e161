"""A pipeline schedule in time: one lane a stage, a box an operation; white is waiting."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.replay.schedule import Run
from workbench.scale.schedules import Schedule, What
from workbench.view.backend import plotting

COLOURS = {What.FORWARD: "#56B4E9", What.BACKWARD: "#009E73", What.INPUT: "#009E73", What.WEIGHT: "#E69F00"}
NAMES = {What.FORWARD: "forward", What.BACKWARD: "backward", What.INPUT: "input gradient", What.WEIGHT: "weight gradient"}
MOST = 20_000
"""Boxes that are drawn; of longer schedules the first ones."""


def boxes(order: Schedule, run: Run) -> dict[str, np.ndarray]:
    """Return the operations as columns: stage, start and end [ms], what, microbatch, chunk, colour; idle time is what lies between.

    Parameters
    ----------
    order : Schedule
        N operations.
    run : Run
        When they run.
    """
    kept = np.argsort(run.start_s, kind="stable")[:MOST]
    what = [What(int(code)) for code in order.what[kept]]
    return {
        "stage": order.stage[kept], "start": 1e3 * run.start_s[kept], "end": 1e3 * run.finish_s[kept],
        "what": np.array([NAMES[one] for one in what]), "microbatch": order.microbatch[kept], "chunk": order.chunk[kept],
        "colour": np.array([COLOURS[one] for one in what]),
    }  # fmt: skip


def pipeline(order: Schedule, run: Run, *, width: int = 900, height: int | None = None) -> Any:
    """Return a schedule as HoloViews boxes, stage 0 on top.

    Parameters
    ----------
    order : Schedule
        Of a plan, e.g. ``step.order``.
    run : Run
        Its replay, e.g. ``step.run``.
    width, height : int
        Size [px]; 30 px a stage.

    Returns
    -------
    holoviews.Rectangles
        With hover: stage, microbatch, chunk, what, start and end.
    """
    hv = plotting()
    found = boxes(order, run)
    shade = np.where(found["chunk"] % 2 == 1, 0.55, 0.95)
    columns = {"x0": found["start"], "y0": -found["stage"] - 0.9, "x1": found["end"], "y1": -found["stage"] - 0.1, "shade": shade}
    rest = {name: found[name] for name in ("what", "stage", "microbatch", "chunk", "colour")}
    ticks = [(-stage - 0.5, f"stage {stage}") for stage in range(order.stages)]
    title = f"{order.name}, {order.stages} stages, {order.microbatches} microbatches"
    return hv.Rectangles({**columns, **rest}, ["x0", "y0", "x1", "y1"], ["what", "stage", "microbatch", "chunk", "colour", "shade"]).opts(
        color="colour", alpha="shade", line_color="white", line_width=0.3, tools=["hover"], width=width, xlabel="time [ms]", ylabel="",
        height=height or 90 + 30 * order.stages, yticks=ticks, title=f"{title}: forward blue, backward green, weights orange",
    )  # fmt: skip
