"""Efficiency of many cards: weak, strong and parallel scaling, exposed overhead, use of the peak. Defined here and nowhere else.

With ``T(N)`` the step time on N cards and ``W(N)`` the work of a step (samples, tokens or floating-point operations), the throughput is
``thr(N) = W(N) / T(N)`` and every efficiency is ``[thr(N) / N] / [thr(N0) / N0]``. They differ in what is held fixed:

- weak scaling: the batch per card, so ``W(N) = N W(1)`` and ``E = T(N0) / T(N)`` (Gustafson, Reevaluating Amdahl's law, CACM 1988);
- strong scaling: the global batch, so ``W(N) = W`` and ``E = T(N0) N0 / (T(N) N)`` (Amdahl, AFIPS 1967);
- parallel efficiency: either of them with ``N0 = 1`` (Kumar et al., Introduction to Parallel Computing, 1994, section 5.2).

An efficiency without its N0 and what is fixed says nothing: `Efficiency` carries both, and ``str`` tells them.
Use of the peak: MFU counts the operations of the model, HFU those that were executed (Chowdhery et al., PaLM, 2022, appendix B).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import Refused


class Fixed(StrEnum):
    """What does not change with the number of cards."""

    PER_CARD = "batch per card"  # weak scaling
    GLOBAL = "global batch"  # strong scaling


@dataclass(frozen=True)
class Efficiency:
    """Efficiency at every number of cards, with what it is measured against."""

    cards: np.ndarray  # int64 [N]
    value: np.ndarray  # float64 [N] [1]
    base_cards: int  # N0
    fixed: Fixed

    @property
    def overhead(self) -> np.ndarray:
        """Exposed overhead ``c = 1 / E - 1`` [1], float64 [N]: time added for every second of useful time."""
        return 1.0 / self.value - 1.0

    @property
    def name(self) -> str:
        """Kind of scaling; parallel efficiency where N0 is one card."""
        kind = "weak" if self.fixed == Fixed.PER_CARD else "strong"
        return f"{kind} scaling" if self.base_cards > 1 else f"parallel efficiency ({kind} scaling)"

    def __str__(self) -> str:
        return f"{self.name}, N0 = {self.base_cards}, {self.fixed} fixed"


def throughput(work: ArrayLike, step_s: ArrayLike) -> np.ndarray:
    """Return ``W / T``, the work done in a second [1/s].

    Parameters
    ----------
    work : array_like, shape (N,)
        Samples, tokens or operations of a step of all cards together.
    step_s : array_like, shape (N,)
        Step time [s].

    Raises
    ------
    Refused
        Work or a time that is not positive.
    """
    return _positive("work of a step", work) / _positive("step time", step_s)


def efficiency(cards: ArrayLike, step_s: ArrayLike, fixed: Fixed, base_cards: int, base_step_s: float) -> Efficiency:
    """Return weak or strong scaling efficiency, parallel efficiency where ``base_cards`` is 1.

    Parameters
    ----------
    cards : array_like of int, shape (N,)
    step_s : array_like, shape (N,)
        Step time at every number of cards [s].
    fixed : Fixed
        What is the same at every number of cards: it decides which efficiency this is.
    base_cards : int
        N0.
    base_step_s : float
        Step time on N0 cards [s].

    Returns
    -------
    Efficiency

    Raises
    ------
    Refused
        Numbers of cards below one, times that are not positive, or shapes that differ.
    """
    count, seconds = _positive("number of cards", cards), _positive("step time", step_s)
    if count.shape != seconds.shape or base_cards < 1:
        raise Refused("efficiency", f"{count.shape} cards, {seconds.shape} times, N0 = {base_cards}", "give one time a number of cards")
    base = float(_positive("step time of N0", base_step_s))
    work, base_work = (count, base_cards) if Fixed(fixed) == Fixed.PER_CARD else (1.0, 1.0)
    value = (work / (count * seconds)) / (base_work / (base_cards * base))
    return Efficiency(count.astype(np.int64), value, base_cards, Fixed(fixed))


def weak(cards: ArrayLike, step_s: ArrayLike, base_cards: int, base_step_s: float) -> Efficiency:
    """Return ``[thr(N) / N] / [thr(N0) / N0] = T(N0) / T(N)``, the batch per card fixed (see `efficiency`)."""
    return efficiency(cards, step_s, Fixed.PER_CARD, base_cards, base_step_s)


def strong(cards: ArrayLike, step_s: ArrayLike, base_cards: int, base_step_s: float) -> Efficiency:
    """Return ``T(N0) N0 / (T(N) N)``, the global batch fixed (see `efficiency`)."""
    return efficiency(cards, step_s, Fixed.GLOBAL, base_cards, base_step_s)


def parallel(cards: ArrayLike, step_s: ArrayLike, one_card_s: float, fixed: Fixed = Fixed.PER_CARD) -> Efficiency:
    """Return the efficiency against one card, ``N0 = 1`` (see `efficiency`)."""
    return efficiency(cards, step_s, fixed, 1, one_card_s)


def peak_use(operations: ArrayLike, step_s: ArrayLike, cards: ArrayLike, peak: float) -> np.ndarray:
    """Return MFU or HFU [1]: ``operations / (T N peak)``.

    Parameters
    ----------
    operations : array_like, shape (N,)
        Of a step on all cards: those of the model for MFU, those executed (recomputed ones too) for HFU [FLOP].
    step_s : array_like, shape (N,)
        [s].
    cards : array_like of int, shape (N,)
    peak : float
        Dense peak of one card [FLOP/s].

    Raises
    ------
    Refused
        A number that is not positive.
    """
    return throughput(operations, step_s) / (_positive("number of cards", cards) * _positive("dense peak", peak))


def _positive(what: str, value: ArrayLike) -> np.ndarray:
    out = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(out).all() and (out > 0).all()):
        raise Refused("efficiency", f"a {what} that is not positive", "an efficiency needs positive, finite numbers")
    return out
