"""Efficiencies against hand arithmetic, and laws between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import Refused
from workbench.scale.efficiency import Fixed, efficiency, parallel, peak_use, strong, throughput, weak

SECONDS = st.floats(1e-6, 1e4)


def test_a_claim_of_68_to_89_percent_is_worked_out() -> None:
    """By hand: time falls by 1 - 68/89 = 23.6 %, throughput rises by 30.9 %, exposed overhead 0.471 -> 0.124."""
    before, after = weak([1024], [1.0 / 0.68], 1, 1.0), weak([1024], [1.0 / 0.89], 1, 1.0)
    assert before.overhead[0] == pytest.approx(0.471, abs=5e-4)
    assert after.overhead[0] == pytest.approx(0.124, abs=5e-4)
    assert 1 - before.value[0] / after.value[0] == pytest.approx(0.236, abs=5e-4)
    assert after.value[0] / before.value[0] == pytest.approx(1.309, abs=5e-4)


def test_by_hand() -> None:
    """8 cards 1.0 s, 64 cards 1.25 s: weak 0.8. The same global batch in 0.25 s on 64: strong 1.0 * 8 / (0.25 * 64) = 0.5."""
    assert weak([8, 64], [1.0, 1.25], 8, 1.0).value == pytest.approx([1.0, 0.8])
    assert strong([64], [0.25], 8, 1.0).value == pytest.approx([0.5])
    assert peak_use(8e12, 2.0, 4, 1e13) == pytest.approx(0.1)
    assert throughput(256, 0.5) == 512


def test_n0_and_what_is_fixed_are_told() -> None:
    assert str(weak([8], [1.0], 8, 1.0)) == "weak scaling, N0 = 8, batch per card fixed"
    assert str(parallel([8], [1.0], 1.0, Fixed.GLOBAL)) == "parallel efficiency (strong scaling), N0 = 1, global batch fixed"


@given(st.integers(1, 4096), SECONDS, SECONDS, st.sampled_from(Fixed))
def test_every_efficiency_is_a_ratio_of_throughput_per_card(cards: int, seconds: float, base: float, fixed: Fixed) -> None:
    """The definition itself, with work of a step 3 a card or 3 in all."""
    work = [3.0 * n if fixed == Fixed.PER_CARD else 3.0 for n in (cards, 2)]
    expected = (throughput(work[0], seconds) / cards) / (throughput(work[1], base) / 2)
    assert efficiency([cards], [seconds], fixed, 2, base).value[0] == pytest.approx(float(expected))
    assert efficiency([2], [base], fixed, 2, base).value[0] == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_what_is_no_time_is_refused(bad: float) -> None:
    with pytest.raises(Refused):
        weak([8], [bad], 1, 1.0)
    with pytest.raises(Refused):
        weak([8], [1.0], 1, bad)
