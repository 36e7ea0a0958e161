"""Host time on another host: by hand, and figures fitted on recordings made from known ones."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.cost.host import FEWEST, UNKNOWN, HostTimes, host_factors, host_times
from workbench.cost.host_fit import fit_hosts
from workbench.hardware.host import CALLS, KINDS, WORK, HostSpec

A = HostSpec("a", {"interpreter": 1.0, "library": 1.0}, {"launch": 4e-6}, {"interpreter": 0.1, "launch": 0.2})
B = HostSpec("b", {"interpreter": 0.5, "operators": 0.7}, {"launch": 6e-6}, {"interpreter": 0.3, "launch": 0.1})


def test_factors_by_hand() -> None:
    """Interpreter 0.5 / 1 with the larger spread; launch 6 / 4; what one of them does not state stays, with the spread of the unknown."""
    found = dict(
        zip(KINDS, zip(*(host_factors(A, B, moved=True).__dict__[end] for end in ("nominal", "low", "high")), strict=True), strict=True)
    )
    assert found["interpreter"] == pytest.approx((0.5, 0.5 / 1.3, 0.5 * 1.3))
    assert found["launch"] == pytest.approx((1.5, 1.5 / 1.2, 1.5 * 1.2))
    for kind in ("operators", "library", "compute", "copy"):
        assert found[kind] == pytest.approx((1.0, 1 / (1 + UNKNOWN[kind]), 1 + UNKNOWN[kind]))


def test_there_and_back_is_where_one_was() -> None:
    there, back = host_factors(A, B, moved=True), host_factors(B, A, moved=True)
    assert there.nominal * back.nominal == pytest.approx(np.ones(len(KINDS)))


def test_the_same_host_keeps_all() -> None:
    for found in (host_factors(A, A, moved=True), host_factors(A, None, moved=False), host_factors(None, None, moved=False)):
        assert (found.nominal == 1).all() and (found.low == 1).all() and (found.high == 1).all()
    assert (host_factors(A, None, moved=True).high > 1).all()


def test_time_is_summed_by_kind() -> None:
    kind = np.array([0, 0, -1, KINDS.index("launch")])
    found = host_times(kind, np.array([1.0, 3.0, 9.0, 2.0]))
    assert found.total_s[0] == 4.0 and found.count[0] == 2 and found.median_s[0] == 2.0
    assert found.total_s.sum() == 6.0


def _made(scale: float, count: int = 100) -> HostTimes:
    each = np.full(len(KINDS), scale)
    return HostTimes(each * count, np.full(len(KINDS), count), each)


def test_many_agreeing_programs_give_their_ratio() -> None:
    """200 programs at 0.8: the prior, 200 times outweighed, moves it by less than 1 %; work and calls alike."""
    first, second = fit_hosts([(_made(1.0), _made(0.8))] * 200, ("a", "b"))
    for kind in KINDS:
        here, there = first.figure(kind), second.figure(kind)
        assert here is not None and there is not None
        assert there / here == pytest.approx(0.8, rel=0.01)
    assert first.figure("interpreter") == 1.0
    assert set(second.takes) == set(WORK) and set(second.calls) == set(CALLS)


def test_one_program_by_hand() -> None:
    """Prior sd ln(1.2) / 1.2816 = 0.1423; scatter taken as ln(1.1) / 1.2816 = 0.0744: weight 0.02024 / (0.02024 + 0.00553) = 0.7854.

    ln 0.8 x 0.7854 = -0.1753, exp -> 0.8392; the spread is no smaller than that of an unknown host.
    """
    _, second = fit_hosts([(_made(1.0), _made(0.8))], ("a", "b"))
    assert second.takes["interpreter"] == pytest.approx(0.8392, rel=1e-3)
    assert second.spread["interpreter"] == UNKNOWN["interpreter"]


def test_scattered_programs_count_less() -> None:
    close = fit_hosts([(_made(1.0), _made(0.8)), (_made(1.0), _made(0.8))], ("a", "b"))[1]
    wide = fit_hosts([(_made(1.0), _made(0.5)), (_made(1.0), _made(1.28))], ("a", "b"))[1]
    assert close.takes["interpreter"] < wide.takes["interpreter"] < 1.0
    assert wide.spread["interpreter"] > close.spread["interpreter"]


def test_few_pieces_say_nothing() -> None:
    assert not fit_hosts([(_made(1.0, FEWEST - 1), _made(0.8, 100))], ("a", "b"))[1].takes
    assert not fit_hosts([], ("a", "b"))[1].takes
