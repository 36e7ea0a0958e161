"""A session without a browser."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from workbench.app.shelf import Shelf
from workbench.app.state import Session


class AtOnce(ThreadPoolExecutor):
    """Runs what is submitted before it returns."""

    def submit(self, fn, /, *args, **kwargs):
        done: Future = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@pytest.fixture(scope="session")
def shelf():
    return Shelf()


@pytest.fixture
def said():
    """Errors that were shown."""
    return []


@pytest.fixture
def session(shelf, said):
    """A session with the synthetic sample open."""
    made = Session(shelf, AtOnce(1), lambda act: act(), said.append)
    made.open("synthetic_ddp.json.gz", (shelf.samples()["synthetic_ddp.json.gz"],))
    return made
