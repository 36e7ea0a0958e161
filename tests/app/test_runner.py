"""Newest wins: a dragged slider must neither queue dozens of computations nor show an old answer after a new one."""

from __future__ import annotations

import csv
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbench.app.runner import Latest


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def settled(latest):
    while not latest.idle:
        time.sleep(0.005)
    time.sleep(0.02)


def test_a_burst_runs_at_most_three_times_and_ends_on_the_last_value(shared, pool):
    """The slider burst: 50 events while one computation takes longer than all of them; the last shown is the last asked.

    Event times are replayed as fast as they can be: the first computation is held until all have arrived.
    """
    with open(shared / "cases/field/39_slider_burst.csv") as file:
        values = [float(row["value"]) for row in csv.DictReader(file)]
    assert len(values) == 50
    gate, runs, shown = threading.Event(), [], []

    def compute(value):
        runs.append(value)
        gate.wait(5)
        return value

    latest = Latest(compute, shown.append, pool, lambda act: act())
    for value in values:
        latest.ask(value)
    gate.set()
    settled(latest)
    assert len(runs) <= 3
    assert [o.answer for o in shown] == [values[0], values[-1]]
    assert shown[-1].answer == values[-1] == 3.152
    assert [o.newest for o in shown] == [False, True]


def test_answers_never_go_back_in_time(pool):
    """Questions are numbered; whatever is dropped, the numbers shown only grow."""
    shown = []
    latest = Latest(lambda n: (time.sleep(0.002 * (n % 3)), n)[1], shown.append, pool, lambda act: act())
    for n in range(60):
        latest.ask(n)
        time.sleep(0.001)
    settled(latest)
    order = [o.answer for o in shown]
    assert order == sorted(order)
    assert order[-1] == 59


def test_an_error_is_delivered_and_the_next_question_is_answered(pool):
    def compute(n):
        if n == 0:
            raise ValueError("broken")
        return n

    shown = []
    latest = Latest(compute, shown.append, pool, lambda act: act())
    latest.ask(0)
    settled(latest)
    latest.ask(1)
    settled(latest)
    assert isinstance(shown[0].error, ValueError)
    assert shown[0].answer is None
    assert shown[1].answer == 1


def test_never_two_at_once(pool):
    """The executor has two workers, yet one session computes one thing at a time."""
    running, most = [], []

    def compute(n):
        running.append(n)
        most.append(len(running))
        time.sleep(0.003)
        running.pop()
        return n

    latest = Latest(compute, lambda _: None, pool, lambda act: act())
    for n in range(30):
        latest.ask(n)
        time.sleep(0.001)
    settled(latest)
    assert max(most) == 1
