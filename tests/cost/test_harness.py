"""What a harness shows: by hand, against a small event simulation of host and card, and on names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.cost.harness import AFTER_LAUNCH, CLOCKS, Harness, host_work, observed

TIME = st.floats(1e-6, 1e-3)


def test_by_hand():
    """Host 30 us a call, of which the last 15 us follow the launch; a kernel of 10 us ends before the second event is recorded."""
    seconds = np.array([10e-6, 40e-6])
    assert observed(seconds, 30e-6, "events") == pytest.approx([30e-6, 55e-6])
    assert observed(seconds, 30e-6, "loop") == pytest.approx([30e-6, 40e-6])
    assert observed(seconds, 30e-6, "wall") == pytest.approx([40e-6, 70e-6])
    assert observed(seconds, 30e-6, "kernel") is seconds
    assert observed(seconds, 30e-6, "events", np.array([1.0, 2.0])) == pytest.approx([30e-6, 85e-6])
    with pytest.raises(ValueError, match="none of kernel, events, loop, wall"):
        observed(seconds, 30e-6, "sundial")


@given(TIME, TIME)
def test_events_are_what_a_queue_of_one_call_gives(host, kernel):
    """An independent walk through the call: when is what enqueued, when does the card get to it."""
    first_event = 0.0  # the card is idle: recorded and passed at once
    launched = first_event + host * (1 - AFTER_LAUNCH)
    second_recorded = first_event + host
    kernel_ends = launched + kernel
    assert observed(np.array(kernel), host, "events") == pytest.approx(max(kernel_ends, second_recorded) - first_event)


@given(TIME, TIME, st.sampled_from(CLOCKS))
def test_no_harness_shows_less_than_the_card_takes(host, kernel, clock):
    assert observed(np.array(kernel), host, clock) >= kernel


def test_names():
    assert host_work("ln") == host_work("aten::layer_norm") == 1.8
    assert host_work("add") == host_work("tanh") == 1.0
    assert host_work("addu") == 1.17
    assert Harness(clock="events").times_host
    assert not Harness().times_host
