"""A tiling fixed by hand: whether it fits a card, and how full it makes each buffer."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from workbench import units
from workbench.cost import kernels
from workbench.cost.pack import Cards, pack
from workbench.cost.pack_matrix import levels
from workbench.errors import InvalidSpec
from workbench.hardware.spec import NpuSpec

_FORM = re.compile(r"(\d+)x(\d+)x(\d+)(?:x(\d+))?\Z")
SUM_BYTES = 4.0  # partial sums are kept in fp32 or int32


@dataclass(frozen=True)
class Tile:
    """``tm`` x ``tn`` results a core works on at a time, ``tk`` products of K a step, ``split`` parts of K summed afterwards.

    ``unroll`` steps are fetched together and issued back to back: fewer issues and more bytes on the way, for as much more staging
    memory. With ``double_buffer`` the next of them arrive while these are worked on, which takes the room of both; without it a
    core first loads and then computes.
    """

    tm: int
    tn: int
    tk: int
    split: int = 1
    unroll: int = 1
    double_buffer: bool = True

    @property
    def copies(self) -> int:
        """How many groups of steps the staging memory holds."""
        return 2 if self.double_buffer else 1

    def __str__(self) -> str:
        """``128x256x64``, with what differs from the plain case."""
        rest = (f"x{self.split}" if self.split > 1 else "", f" unroll {self.unroll}" if self.unroll > 1 else "")
        return f"{self.tm}x{self.tn}x{self.tk}{''.join(rest)}{'' if self.double_buffer else ' single-buffered'}"


@dataclass(frozen=True)
class Buffer:
    """What a tile keeps in one buffer of a core: ``used`` of ``size`` [B], ``copies`` 2 where double-buffered."""

    level: str
    holds: str
    used: float
    size: float
    copies: int


def parse_tile(text: str, unroll: int = 1, double_buffer: bool = True) -> Tile:
    """Read ``"128x256x64"`` (m, n, k) or ``"128x256x64x4"`` (and a split of K); the rest as `Tile`.

    Raises
    ------
    InvalidSpec
        Another form, or an extent or unroll of 0.
    """
    found = _FORM.match(text.strip().lower())
    numbers = [int(part) for part in found.groups("1")] if found else []
    if not numbers or min(numbers) < 1:
        raise InvalidSpec(f"tile {text!r}", "not a tile", "write MxNxK, e.g. 128x256x64, or MxNxKxSPLIT")
    if unroll < 1:
        raise InvalidSpec(f"unroll {unroll}", "not a number of steps", "give 1 or more")
    tm, tn, tk, split = numbers
    return Tile(tm, tn, tk, split, unroll, double_buffer)


def buffers(spec: NpuSpec, dtype: str, tile: Tile, operand: tuple[float, float]) -> tuple[Buffer, ...]:
    """Return what a tile keeps in each buffer of a core; a buffer the card does not name is not listed.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    dtype : str
        What the product runs as.
    tile : Tile
        Tiling.
    operand : tuple of float
        Bytes an element of A and of B [B].

    Returns
    -------
    tuple of Buffer
        Sums in the accumulator, the unrolled steps of both operands in the staging level (twice where double-buffered: one group
        is worked on while the next arrives), and one quantum of K of each operand in its own buffer.
    """
    staging, matrix = levels(spec)[0], spec.matrix
    quantum = min(tile.tk, pack([spec], [dtype]).matrix[0, 0, kernels.QK])
    held = (
        (matrix.accumulator or staging, "sums", tile.tm * tile.tn * SUM_BYTES, None),
        (staging, "steps of A and B", (tile.tm * operand[0] + tile.tn * operand[1]) * tile.tk * tile.unroll, tile.copies),
        (matrix.operand_a, "A", tile.tm * quantum * operand[0], None),
        (matrix.operand_b, "B", tile.tn * quantum * operand[1], None),
    )
    out = []
    for level, what, used, copies in held:
        if level is not None:
            times = copies or (2 if spec.memory[level].double_buffer else 1)
            out.append(Buffer(level, what, used * times, spec.memory[level].size, times))
    return tuple(out)


def check_tile(spec: NpuSpec, dtype: str, tile: Tile, operand: tuple[float, float]) -> tuple[Buffer, ...]:
    """Return `buffers`, refusing a tile that does not fit.

    Raises
    ------
    InvalidSpec
        Naming the first buffer that is too small and by how much.
    """
    found = buffers(spec, dtype, tile, operand)
    for buffer in found:
        if buffer.used > buffer.size:
            twice = " (double-buffered)" if buffer.copies == 2 else ""
            raise InvalidSpec(
                f"tile {tile.tm}x{tile.tn}x{tile.tk} on {spec.name}",
                f"{buffer.holds}{twice} take {units.format(buffer.used, 'B', 4)} of {units.format(buffer.size, 'B', 4)} in {buffer.level}",
                "use a smaller tile",
            )
    return found


def stepping(cards: Cards, tile: Tile) -> Cards:
    """Return cards whose cores step as a tile says.

    A core issues once for all unrolled steps, has at most what it holds of them on the way (Little's law: so many products of K
    a latency), and without double buffering loads and computes in turn.
    """
    matrix: np.ndarray = cards.matrix.copy()
    width = np.maximum(tile.tk, matrix[..., kernels.QK]) * tile.unroll
    matrix[..., kernels.STEP_WIDTH], matrix[..., kernels.IN_FLIGHT] = width, width * tile.copies
    matrix[..., kernels.SINGLE] = not tile.double_buffer
    return replace(cards, matrix=matrix)
