"""The picture of a pipeline schedule shows every operation once, where the replay put it."""

from __future__ import annotations

import numpy as np

from workbench.replay.schedule import replay_schedule, stage_orders
from workbench.scale.schedules import schedule, seconds, times
from workbench.view.pipeline import boxes, pipeline


def test_boxes_are_the_replay() -> None:
    """1F1B by hand: 2 stages, 2 microbatches, F 1 s, B 2 s: 9 s; stage 0 is busy for 6 s of them."""
    order = schedule("1f1b", 2, 2)
    run = replay_schedule(stage_orders(order.ptr, order.source), times(order, seconds(1.0, 1.0, 1.0, (2, 1))))
    found = boxes(order, run)
    assert len(found["start"]) == 8
    assert found["end"].max() == 9e3
    first = found["stage"] == 0
    assert (found["end"] - found["start"])[first].sum() == 6e3
    assert set(found["what"]) == {"forward", "backward"}
    ends, starts = np.sort(found["end"][first]), np.sort(found["start"][first])
    assert (starts[1:] >= ends[:-1]).all()
    picture = pipeline(order, run)
    assert len(picture) == 8
    assert "2 stages" in picture.opts.get("plot").kwargs["title"]
