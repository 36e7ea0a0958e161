"""How many cards the experts of a token lie on, and what dispatch and combine move.

A token goes to k of E experts, E/R of them on each of R cards. Where every choice of k is as likely as any other, a card has none of them
with probability ``C(E - E/R, k) / C(E, k)`` (hypergeometric), so the token goes to ``R (1 - C(E - E/R, k) / C(E, k))`` cards. It is sent
to a card once, however many of its experts lie there (DeepEP; DeepSeek-AI, arXiv 2412.19437, section 3.2.2). Tokens kept to a few nodes:
the same over the experts of those nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def distinct_ranks(experts: ArrayLike, top_k: ArrayLike, ranks: ArrayLike) -> np.ndarray:
    """Return the expected number of cards that a token goes to, its own counted where it is one of them.

    Parameters
    ----------
    experts : array_like
        Experts, E.
    top_k : array_like
        Experts of a token, k <= E.
    ranks : array_like
        Cards they lie on, R; each holds E/R (a fraction stands for an uneven share).

    Returns
    -------
    ndarray of float64
        Between 1 and min(k, R).
    """
    e, k, r = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (experts, top_k, ranks)))
    none = np.ones(e.shape)
    for i in range(int(k.max(initial=0))):
        left = np.maximum(e - e / r - i, 0.0) / np.maximum(e - i, 1.0)
        none = none * np.where(i < k, left, 1.0)
    return np.asarray(np.clip(r * (1.0 - none), 1.0, np.minimum(k, r)))


def busiest_card(experts: ArrayLike, factor: ArrayLike, ranks: ArrayLike) -> np.ndarray:
    """Return the rows of the card that has the busiest expert, over the mean of all cards.

    One expert has ``factor`` times the mean; the others share the rest evenly: ``(f + (E/R - 1) (E - f) / (E - 1)) R / E``.

    Parameters
    ----------
    experts : array_like
        Experts, E.
    factor : array_like
        Rows of the busiest expert over the mean, f, from 1 to E.
    ranks : array_like
        Cards they lie on, R.

    Returns
    -------
    ndarray of float64
        1 for one card or f = 1; f where every card has one expert.
    """
    e, f, r = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (experts, factor, ranks)))
    f = np.clip(f, 1.0, np.maximum(e, 1.0))
    others = np.maximum(e / r - 1.0, 0.0) * (e - f) / np.maximum(e - 1.0, 1.0)
    return np.asarray(np.maximum((f + others) * r / np.maximum(e, 1.0), 1.0))
