"""Newest wins: at most one computation running and one waiting, answers in the order of their questions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Outcome(Generic[Question, Answer]):
    """An answer (or the error instead of it) with its question; ``newest``: no newer question is waiting."""

    question: Question
    answer: Answer | None
    error: Exception | None
    newest: bool


class Latest(Generic[Question, Answer]):
    """Answer the newest question in the background.

    Parameters
    ----------
    compute : callable
        Question -> answer; runs in the executor.
    show : callable
        Gets every `Outcome`, through ``deliver``.
    executor : concurrent.futures.Executor
        Where ``compute`` runs.
    deliver : callable
        Runs a function where it may touch the models (the session's event loop).
    """

    def __init__(
        self,
        compute: Callable[[Question], Answer],
        show: Callable[[Outcome[Question, Answer]], None],
        executor: Executor,
        deliver: Callable[[Callable[[], None]], object],
    ) -> None:
        self._compute, self._show, self._executor, self._deliver = compute, show, executor, deliver
        self._lock = threading.Lock()
        self._waiting: list[Question] = []
        self._running = False

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        with self._lock:
            return not self._running and not self._waiting

    def ask(self, question: Question) -> None:
        """Start on a question, or put it in the place of the one that waits."""
        with self._lock:
            self._waiting = [question]
            if self._running:
                return
            self._running = True
        self._executor.submit(self._work)

    def _work(self) -> None:
        """Answer what waits until nothing does."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
                question = self._waiting.pop()
            answer: Answer | None = None
            error: Exception | None = None
            try:
                answer = self._compute(question)
            except Exception as fault:  # shown to the person who asked
                error = fault
            with self._lock:
                newest = not self._waiting
            outcome = Outcome(question, answer, error, newest)
            self._deliver(partial(self._show, outcome))
