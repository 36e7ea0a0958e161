"""Where a step's time goes, measured beside predicted, as rows for bars."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.cost.cost import Evidence
from workbench.replay.timeline import Account
from workbench.study.prediction import Prediction
from workbench.view.palette import ACCOUNT, EVIDENCE, Ink


@dataclass(frozen=True)
class Part:
    """One part of a bar."""

    word: str
    ink: Ink
    value: float


def account_parts(account: Account, complete: np.ndarray) -> tuple[Part, ...]:
    """Return the mean account of the complete steps (of all where none is) as parts [s] that add up to the mean step."""
    kept = complete if complete.any() else np.ones_like(complete)
    return tuple(Part(name.replace("_", " "), ink, float(getattr(account, f"{name}_s")[kept].mean())) for name, ink in ACCOUNT)


def words_of() -> dict[str, tuple[str, Ink]]:
    """Return word and colour of every part of an account."""
    return {name: (name.replace("_", " "), ink) for name, ink in ACCOUNT}


def breakdown(prediction: Prediction) -> dict[str, tuple[Part, ...]]:
    """Return the parts of the measured and of the predicted step [s]."""
    complete = prediction.graph.step_complete
    return {
        "measured": account_parts(prediction.measured_account, complete),
        "predicted": account_parts(prediction.account, complete),
    }


def evidence_parts(prediction: Prediction) -> tuple[Part, ...]:
    """Return the shares of predicted operator time by what they rest on, best evidence first."""
    shares = prediction.evidence_share
    known = ((evidence, shares.get(evidence.name.lower(), 0.0)) for evidence in Evidence)
    return tuple(Part(EVIDENCE[evidence].word, EVIDENCE[evidence], share) for evidence, share in known if share > 0)
