"""Repeating blocks: by hand, and recovered from sequences made of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.graph.repeats import Run, runs


def test_a_stack_of_layers_with_a_head_and_a_tail() -> None:
    """Two tokens, then twelve layers of five, then three."""
    tokens = np.array([90, 91, *[1, 2, 3, 4, 5] * 12, 92, 93, 94])
    assert runs(tokens) == [Run(2, 5, 12)]


def test_stages_of_a_resnet() -> None:
    """ResNet-50 (He et al., CVPR 2016, table 1): 3, 4, 6 and 3 blocks; the first of each stage has a projection more."""
    tokens: list[int] = [0]
    for stage, blocks in enumerate((3, 4, 6, 3)):
        block = [10 * stage + i for i in range(1, 9)]
        tokens += [100 + stage, *block] + block * (blocks - 1)
    assert [run.count for run in runs(np.array(tokens))] == [3, 4, 6, 3]  # equal but for the projection
    assert all(run.period == 8 for run in runs(np.array(tokens)))


def test_two_layers_are_no_layer() -> None:
    """Blocks of five, four times: neither two blocks of ten, nor the pair of equal tokens within one, is what repeats."""
    assert runs(np.array([1, 2, 2, 3, 4] * 4)) == [Run(0, 5, 4)]


def test_what_is_no_layer() -> None:
    for tokens in ([], [1], [1, 1, 1, 1], [1, 2, 1, 2, 1, 2], list(range(50))):
        assert runs(np.array(tokens, dtype=np.int64)) == []


@given(
    block=st.lists(st.integers(0, 50), min_size=3, max_size=12, unique=True),
    count=st.integers(2, 9),
    head=st.lists(st.integers(100, 150), max_size=6, unique=True),
    tail=st.lists(st.integers(200, 250), max_size=6, unique=True),
)
def test_one_run_is_found_whatever_surrounds_it(block: list[int], count: int, head: list[int], tail: list[int]) -> None:
    assert runs(np.array(head + block * count + tail)) == [Run(len(head), len(block), count)]


@given(st.lists(st.integers(0, 3), max_size=60))
def test_runs_repeat_and_do_not_overlap(tokens: list[int]) -> None:
    array = np.array(tokens, dtype=np.int64)
    behind = 0
    for run in runs(array):
        assert run.start >= behind
        assert run.count >= 2
        blocks = array[run.start : run.stop].reshape(run.count, run.period)
        assert (blocks == blocks[0]).all()
        behind = run.stop
    assert behind <= len(tokens)
