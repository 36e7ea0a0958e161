"""What a measuring harness shows of an operator: its clock, the host that runs beside the card, what it leaves warm.

Two harnesses time one small kernel on one card a factor ten apart, because one of them times the host on its way to the
launch. That is no property of the card, so it is not fitted into the card: the third scalar of such rows is the host's time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workbench.cost.choices import COLD, Copies

CLOCKS = ("kernel", "events", "loop", "wall")
"""``kernel``: the card's own time of the kernel, or replay without a host. ``events``: two events around one call, host and card
synchronised before. ``loop``: many calls issued one after the other. ``wall``: the host's clock around call and synchronisation."""
AFTER_LAUNCH = 0.5
"""Part of a plain call's host time that follows its launch (return, recording of the second event): 0.48-0.55 fitted on the
hosts of NeuSight's four cards; a plain half, because no profile of those hosts tells the two parts apart."""
HOST_WORK: tuple[tuple[str, float], ...] = (
    (r"(native_)?(ln|layer_?norm)", 1.8),  # module call, three results allocated
    (r"(linear|gemm|addmm|fc|dense)", 2.05),  # module call, transposed weight, bias
    (r"(log_)?softmax", 1.25),
    (r"(bmm|batched_gemm|baddbmm)", 1.2),
    (r"(relu|gelu|silu)", 1.18),  # module call
    (r"(add|sub|mul|div)u", 1.17),  # a number becomes a tensor
    (r"powu", 1.1),
)
"""Host time of a call relative to a plain one (torch.add of two tensors), by name; 1 where none matches.

Source: the shortest rows of NeuSight (MIT) on V100, A100, T4 and P100, fitting half: they agree within 5 % over the four hosts."""


@dataclass(frozen=True)
class Harness:
    """``copies`` as `workbench.cost.choices.COLD`; ``clock`` one of `CLOCKS`; ``attention`` its copies where they differ."""

    copies: Copies = COLD
    clock: str = "kernel"
    attention: Copies | None = None

    @property
    def times_host(self) -> bool:
        """Whether the third scalar of a fit is the host's time of a call instead of the card's kernel overhead."""
        return self.clock != "kernel"


def host_work(name: str) -> float:
    """Return the host time of a call relative to a plain one (`HOST_WORK`)."""
    return _host_work(name)


@lru_cache(4096)
def _host_work(name: str) -> float:
    plain = re.sub(r"\A(aten::|torch\.|aclnn)", "", name.strip().lower())
    return next((factor for pattern, factor in HOST_WORK if re.fullmatch(pattern, plain)), 1.0)


def observed(seconds: np.ndarray, host_s: np.ndarray | float, clock: str, relative: np.ndarray | float = 1.0) -> np.ndarray:
    """Return what a harness shows of operators that take ``seconds`` on the card.

    With H the host's time of the call, of which h = `AFTER_LAUNCH` x that of a plain call follows the launch:
    events: the first event passes at once, the card waits for the launch, the second event is recorded H after the first:
    max(H, H - h + t). loop: the slower of host and card sets the pace, max(H, t). wall: one after the other, H + t.

    Parameters
    ----------
    seconds : ndarray
        On the card, kernel overhead included [s].
    host_s : ndarray or float
        Host time of a plain call [s]; broadcasts against ``seconds``.
    clock : str
        One of `CLOCKS`; ``"kernel"`` shows ``seconds``.
    relative : ndarray or float
        Host time of each call relative to a plain one, see `host_work`.

    Returns
    -------
    ndarray
        [s].
    """
    if clock == "kernel":
        return seconds
    host = np.asarray(host_s) * relative
    if clock == "events":
        return np.maximum(host, host - AFTER_LAUNCH * np.asarray(host_s) + seconds)
    if clock == "loop":
        return np.maximum(host, seconds)
    if clock == "wall":
        return host + seconds
    raise ValueError(f"clock={clock!r} is none of {', '.join(CLOCKS)}")
