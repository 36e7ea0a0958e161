"""The account against intervals written by hand, and against a count of every nanosecond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.replay import kernels_account as kernels


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=8), min_size=5, max_size=5),
    st.integers(0, 30),
    st.integers(1, 40),
)
def test_every_moment_belongs_to_the_first_class_that_covers_it(classes: list[list[tuple[int, int]]], begin: int, length: int) -> None:
    expected = [0] * 6
    for moment in range(begin, begin + length):
        covering = [c for c, spans in enumerate(classes) if any(s <= moment < s + n for s, n in spans)]
        expected[covering[0] if covering else 5] += 1
    parts = []
    for spans in classes:
        low = np.array(sorted(s for s, _ in spans), dtype=float)
        high = np.array([s + n for s, n in sorted(spans)], dtype=float)
        parts.append(kernels.union(low, high))
    ptr = np.cumsum([0, *(len(low) for low, _ in parts)])
    out = np.empty(6)
    kernels.owned(
        ptr, np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), float(begin), float(begin + length), out
    )
    assert out.tolist() == expected


def test_touching_and_empty_intervals() -> None:
    low, high = kernels.union(np.array([0.0, 1, 1, 4]), np.array([1.0, 1, 3, 4]))
    assert low.tolist() == [0]
    assert high.tolist() == pytest.approx([3])
