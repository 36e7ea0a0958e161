"""Weights that every stage of a pipeline holds, once each; and those that two stages hold and must keep equal.

Embedding and output head may share one weight. Where one stage has both, it holds it once, and its gradient is whole when the first of the
blocks has run backward. Where two stages have it, both hold it, and their gradients are summed: an all-reduce between the first stage and
the last (Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3; Narayanan et al., arXiv 2104.04473, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.scale.shard import Share


@dataclass(frozen=True)
class Tie:
    """A weight of ``elements`` on a card of every one of ``stages`` (two or more, rising)."""

    stages: tuple[int, ...]
    elements: float


def own(share: Share, blocks: np.ndarray) -> np.ndarray:
    """Return the parameters, without experts, that one block of a kind adds to a stage: a tied weight counts with its first block there.

    Parameters
    ----------
    share : Share
        Of B blocks.
    blocks : int64 [p, B]
        How many of every block a stage holds.

    Returns
    -------
    float64 [p, B]
        0 where a stage has none of a block.
    """
    here = blocks > 0
    out = np.where(here, share.weights, 0.0)
    for tied in share.tied:
        has = here & (tied > 0)
        out -= np.where(has & (np.cumsum(has, axis=1) > 1), tied, 0.0)
    return out


def ties(share: Share, blocks: np.ndarray) -> tuple[Tie, ...]:
    """Return the weights that more than one stage holds; parameters as in `own`."""
    found = []
    for tied in share.tied:
        stages = np.flatnonzero(((blocks > 0) & (tied > 0)).any(axis=1))
        if len(stages) > 1:
            found.append(Tie(tuple(stages.tolist()), float(tied.max())))
    return tuple(found)
