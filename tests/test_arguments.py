"""Verbs of the front with arguments of a wrong type: a refusal that names the argument, never Python's own error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

import pytest

import workbench
from workbench.arguments import checked, fits
from workbench.errors import Refused

WRONG: tuple[object, ...] = (None, 3, -1.5, "nope", b"x", [], [1], {"a": 1}, object(), 10**400)
MORE: dict[str, tuple[object, ...]] = {"sweep": ({},), "write_chakra": ("nowhere.et",)}
VERBS = ("predict", "sweep", "inspect", "facts", "stragglers", "links", "operator_table", "lag_table", "stacks", "rewrites", "write_chakra")


@pytest.mark.parametrize("name", VERBS)
def test_the_first_argument_of_a_verb(name: str) -> None:
    for value in WRONG:
        with pytest.raises(workbench.WorkbenchError):
            getattr(workbench, name)(value, *MORE.get(name, ()))


def test_the_refusal_names_argument_and_maker() -> None:
    with pytest.raises(Refused, match=r"trace = 3 is of type int, not Trace.*open_trace"):
        workbench.facts(3)  # type: ignore[arg-type]


def test_a_failure_with_fitting_arguments_stays_what_it_is() -> None:
    def divide(number: int, by: int = 0) -> float:
        return number / by

    with pytest.raises(ZeroDivisionError):
        checked(divide)(1)
    with pytest.raises(Refused, match="by = 'x' is of type str, not int"):
        checked(divide)(1, by="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        checked(divide)()  # type: ignore[call-arg]
    assert checked(divide)(6, by=3) == 2


@pytest.mark.parametrize(
    ("value", "hint", "is_one"),
    [
        (1, float, True), (True, int, False), (1.0, int, False), (None, int | None, True), ("a", Literal["a", "b"], True),
        ("c", Literal["a", "b"], False), ([1, 2], Sequence[int], True), ([1, "x"], Sequence[int], False), ("ab", Sequence[str], True),
        ("ab", Sequence[int], False), ({"a": 1}, Mapping[str, int], True), ({"a": "x"}, Mapping[str, int], False),
    ],
)  # fmt: skip
def test_what_fits(value: object, hint: object, is_one: bool) -> None:
    assert fits(value, hint) is is_one


def test_pictures_need_no_extension() -> None:
    """In a script nothing has chosen a library to draw with."""
    code = """
from workbench import Scenario, load_npu, open_trace, predict, roofline, timeline
found = predict(Scenario(open_trace("data/traces/synthetic_ddp.json.gz"), npu=load_npu("npu-x")))
print(type(roofline(found)).__name__, type(timeline(found)).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.split() == ["Overlay", "DynamicMap"], done.stderr
