"""Numbers as a person reads them."""

from __future__ import annotations

import pytest

from workbench.view.text import percent, quantity, ratio


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.2345678e-3, "s", "1.235 ms"),
        (6e-6, "s", "6 µs"),
        (0.0, "s", "0 s"),
        (3.2e12, "B/s", "3.2 TB/s"),
        (-2e-3, "s", "−2 ms"),
        (float("nan"), "s", "–"),
        (float("inf"), "B/s", "–"),
        (123456.7, "", "123457"),
        (0.5, "", "0.5"),
    ],
)
def test_four_digits_prefix_unit(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_ratio_and_percent() -> None:
    assert ratio(3.0, 2.0) == "1.50x"
    assert ratio(1.0, 0.0) == "–"
    assert percent(0.1234) == "12.3 %"
    assert percent(float("nan")) == "–"
