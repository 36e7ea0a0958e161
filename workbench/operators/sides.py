"""Cells of convolutions that state both sides at once: ``2``, ``2x1``, ``(1, 1)``, and paddings as ``1,1,1,1``."""

from __future__ import annotations

import re

from workbench.errors import InvalidSpec

BOTH = ("stride", "pad", "dilation", "kernel_size")
"""Columns that give a dimension of height and of width."""
_BY = r"\s*[,xX*; ]\s*"
_NUMBERS = re.compile(rf"[\[(]?\s*(\d+)(?:{_BY}(\d+)(?:{_BY}(\d+){_BY}(\d+))?)?\s*[\])]?\Z")


def side(text: str, name: str, dim: str, where: str) -> str:
    """Return the part of a cell that gives one dimension; a cell of a column that gives one dimension alone as it is.

    Parameters
    ----------
    text : str
    name : str
        Column.
    dim : str
        Dimension: of height (``stride_h``, ``r``) or of width (``stride_w``, ``s``).
    where : str
        Place, for the error.

    Raises
    ------
    InvalidSpec
        Neither one number, nor height and width, nor four equal ones.
    """
    if name not in BOTH:
        return text
    found = _NUMBERS.match(text.strip())
    numbers = [number for number in found.groups() if number is not None] if found else []
    if not numbers or (len(numbers) == 4 and len(set(numbers)) > 1):
        first, second = ("r", "s") if name == "kernel_size" else (f"{name}_h", f"{name}_w")
        raise InvalidSpec(
            where, f"{text!r} is neither one number nor height x width", f"write e.g. 2 or 2x1, or columns {first} and {second}"
        )
    return numbers[-1] if dim == "s" or dim.endswith("_w") else numbers[0]
