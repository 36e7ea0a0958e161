"""Closed forms of pipeline bubbles, and where they are exact; `workbench.replay.schedule` runs the orders and has no such limits.

F, I and W are the times of forward pass, input gradient and weight gradient of one microbatch on one whole stage, T = F + I + W; p stages
that are all alike, m microbatches, v chunks a stage; l is the time of a message from one stage to the next. The bubble is what a step
takes beyond m T: for ZB-H2 and ZB-V of the longest span of a stage (`workbench.replay.schedule.Run.period_s`), else of all stages.

Sources. GPipe and 1F1B (p - 1) T, interleaved (p - 1) T / v: Narayanan et al., arXiv 2104.04473, section 2.2. ZB-H1 (p - 1)(F + I - W),
ZB-H2 (p - 1)(F + I - 2 W), 0 for equal times: Qi et al., arXiv 2401.10241, table 1. ZB-V 0 for equal times: Qi et al., arXiv 2405.15362.

Terms with l, and those for m < p, follow from the orders (the longest path through them), as the tests show by replay. In 1F1B
neighbouring stages wait for each other at every microbatch, so messages add up with m, not only with p: ::

    GPipe         2 (p - 1) l
    1F1B          2 (m + p - 2 - ceil((m - 1) / p)) l
    interleaved   2 (p v - 1) l                            where a message takes no longer than a chunk's pass
    ZB-H1         as 1F1B, at most 4 (p - 1) l             where W <= F, W <= I and 2 l <= W
    ZB-H2         (p - 1)(F + I - 2 W + 2 l), at least 0   where W <= F and 2 l <= W
"""

from __future__ import annotations

import numpy as np

from workbench.errors import InvalidSpec
from workbench.scale.plan import SCHEDULES

Numbers = np.ndarray | float


def bubble_s(
    name: str,
    stages: Numbers,
    microbatches: Numbers,
    virtual: Numbers,
    forward_s: Numbers,
    input_s: Numbers,
    weight_s: Numbers,
    message_s: Numbers = 0.0,
) -> np.ndarray:
    """Return the bubble of a schedule by its closed form.

    Parameters
    ----------
    name : str
        One of `workbench.scale.plan.SCHEDULES`.
    stages, microbatches, virtual : int or ndarray
        p, m, v; all numbers broadcast.
    forward_s, input_s, weight_s : float or ndarray
        F, I, W of a whole stage [s].
    message_s : float or ndarray
        l, latency and occupancy of the link together [s].

    Returns
    -------
    ndarray [s]
        Exact where `is_exact` says so. Elsewhere: too long at most for an interleaved order whose last round is not full,
        too short at most for ZB-H1, ZB-H2, ZB-V and for messages beyond the limits above.

    Raises
    ------
    InvalidSpec
        A name that is no schedule.
    """
    p, m, v = np.asarray(stages), np.asarray(microbatches), np.asarray(virtual)
    f, i, w, message = np.asarray(forward_s), np.asarray(input_s), np.asarray(weight_s), np.asarray(message_s)
    whole = f + i + w
    in_turn = 2 * (m + p - 2 - np.ceil((m - 1) / p)) * message
    match name:
        case "gpipe":
            return (p - 1) * (whole + 2 * message)
        case "1f1b":
            return (p - 1) * whole + in_turn
        case "interleaved":
            return ((p - 1) + (v - 1) * (-m % p)) * whole / v + 2 * (p * v - 1) * message * (p > 1)
        case "zb-h1":
            first = np.minimum(m, p)
            until = (p - 1) * f + np.minimum(in_turn, 4 * (p - 1) * message) - (p - 1) * message  # the last input gradient begins its way
            return until + (p - first) * (i + message) + (first - 1) * np.maximum(i + message - w, 0.0)
        case "zb-h2":
            return np.maximum((p - 1) * (f + i - 2 * w + 2 * message), 0.0)
        case "zb-v":
            return 0.0 * (p + m + v + whole + message)
    raise InvalidSpec("schedule", f"{name!r} is no schedule", f"choose one of {', '.join(SCHEDULES)}")


def is_exact(
    name: str,
    stages: Numbers,
    microbatches: Numbers,
    virtual: Numbers,
    forward_s: Numbers,
    input_s: Numbers,
    weight_s: Numbers,
    message_s: Numbers = 0.0,
) -> np.ndarray:
    """Return where `bubble_s` is what the replay of the schedule gives, bool.

    Parameters
    ----------
    name, stages, microbatches, virtual, forward_s, input_s, weight_s, message_s
        As in `bubble_s`.
    """
    p, m, v = np.asarray(stages), np.asarray(microbatches), np.asarray(virtual)
    f, i, w, message = np.asarray(forward_s), np.asarray(input_s), np.asarray(weight_s), np.asarray(message_s)
    everywhere = np.ones(np.broadcast_shapes(*(a.shape for a in (p, m, v, f, i, w, message))), dtype=bool)
    free = message == 0
    match name:
        case "gpipe" | "1f1b":
            return everywhere
        case "interleaved":
            return everywhere & (m % p == 0) & (free | (message <= np.minimum(f, i + w) / v))
        case "zb-h1":
            return everywhere & (((w <= f) & (2 * message <= w)) | (p == 1))
        case "zb-h2":
            return everywhere & (((w <= f) & (m >= 2 * p - 1) & (2 * message <= w)) | (p == 1))
        case "zb-v":
            return everywhere & (((f == i) & (i == w) & (m >= 2 * p - 1) & free) | (p == 1))
    raise InvalidSpec("schedule", f"{name!r} is no schedule", f"choose one of {', '.join(SCHEDULES)}")


def pipeline_s(
    name: str,
    stages: Numbers,
    microbatches: Numbers,
    virtual: Numbers,
    forward_s: Numbers,
    input_s: Numbers,
    weight_s: Numbers,
    message_s: Numbers = 0.0,
) -> np.ndarray:
    """Return the time of a whole schedule, m T and its bubble [s].

    Parameters
    ----------
    name, stages, microbatches, virtual, forward_s, input_s, weight_s, message_s
        As in `bubble_s`.
    """
    work = np.asarray(microbatches) * (np.asarray(forward_s) + input_s + weight_s)
    return work + bubble_s(name, stages, microbatches, virtual, forward_s, input_s, weight_s, message_s)


def heavy_stage_s(microbatches: Numbers, stage_s: np.ndarray) -> np.ndarray:
    """Return the time of a schedule with unequal stages over free links: m times the longest stage and all others once [s].

    ``stage_s`` [..., p] is F + I + W of every stage. Exact for GPipe where one stage is the longest in both passes, and for 1F1B where
    that is the last; with another longest stage 1F1B hides some of the stages behind it, and this is a bound from above.
    """
    longest = stage_s.max(axis=-1)
    return np.asarray(microbatches) * longest + stage_s.sum(axis=-1) - longest
