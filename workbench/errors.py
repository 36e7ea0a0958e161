"""What can go wrong, and what was tolerated.

A `WorkbenchError` stops the work and always says *where*, *what* and *how to mend it*.
A `Note` does not stop anything: it travels with the result and is shown beside the number it touches.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_LETTERS = 4000
"""Of a message: what it quotes may be a whole file in one cell."""


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS // 2]} ... {text[-MOST_LETTERS // 2 :]}"


class WorkbenchError(Exception):
    """A refusal a person can act on.

    Parameters
    ----------
    where : str
        File, line, field or operator the fault is in.
    what : str
        What is wrong, in one sentence.
    fix : str
        What to do about it.
    """

    exit_code = 1

    def __init__(self, where: str, what: str, fix: str) -> None:
        self.where, self.what, self.fix = (_cut(text) for text in (where, what, fix))
        super().__init__(f"{self.where}: {self.what} ({self.fix})")


class UnreadableInput(WorkbenchError):
    """A file that cannot be read: missing, truncated, damaged, or of no known kind."""

    exit_code = 2


class InvalidSpec(WorkbenchError):
    """A hardware, cluster or scenario description that contradicts itself or the schema."""


class Refused(WorkbenchError):
    """A question that has no honest answer with what was given."""


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """Something tolerated on the way to a result.

    Parameters
    ----------
    code : str
        Stable kebab-case name, e.g. ``same-stream-overlap``.
    where : str
        File, track, operator or step it was seen in.
    count : int
        How many times.
    text : str
        One sentence for a person.
    fix : str
        What would remove the note; empty when nothing can be done.
    """

    code: str
    where: str
    count: int
    text: str
    fix: str = ""

    def __str__(self) -> str:
        tail = f" ({self.fix})" if self.fix else ""
        return f"[{self.code}] {self.where}: {self.text} [{self.count}x]{tail}"
