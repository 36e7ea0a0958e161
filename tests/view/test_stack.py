"""Cycle stacks as bars: they add up to the operators' totals, and every part has a colour of its own."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.cost.stack import PARTS
from workbench.study.stacks import stacks
from workbench.view.stack import WORDS, bar_columns, stack_bars


def test_bars_of_an_operator_follow_each_other_and_end_at_its_total(prediction):
    found = stacks(prediction)
    columns = bar_columns(found)
    for row, total in zip(found.operator.values, found.total_s.values, strict=True):
        at = [i for i, other in enumerate(columns["row"]) if other == row]
        left, right = np.array(columns["left"])[at], np.array(columns["right"])[at]
        assert left[0] == 0.0
        assert left[1:] == pytest.approx(right[:-1])
        assert right[-1] == pytest.approx(total)


def test_every_part_of_a_stack_has_its_own_colour():
    assert set(PARTS) <= set(WORDS)
    assert len({ink.light for ink in WORDS.values()}) == len(WORDS)


def test_the_picture_draws(prediction):
    import holoviews as hv

    hv.extension("bokeh")
    found = stacks(prediction, 5)
    figure = hv.render(stack_bars(found), backend="bokeh")
    assert len(figure.renderers[0].data_source.data["part"]) == len(bar_columns(found)["row"])
