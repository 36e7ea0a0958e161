"""What edits of a recording would save: each alone, and together in greedy order, by replay of the whole step; losses included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.errors import Note, Refused
from workbench.graph.graph import DEVICE_KINDS, NodeKind
from workbench.graph.rewrite import Rewrite, recorded
from workbench.graph.rewrite_find import find
from workbench.graph.rewrite_text import parse_rewrite
from workbench.operators.table import Dtype
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.recorded_on import with_source
from workbench.study.rewritten import as_recorded
from workbench.study.scenario import Scenario
from workbench.study.steps import kept_steps, overlaps

MOST_PROPOSED = 20
"""Proposals that are replayed, those that touch most recorded time."""
NOTHING = 1e-9
"""A saving below this is none [s]."""
MOST_OF = 0.8
"""Share of the joint saving that the fewest edits are named for."""
EDIT_NOTES = "rewrite-"


@dataclass(frozen=True)
class Saving:
    """What one edit saves of the step [s]; negative: it costs.

    ``own_s`` is alone; ``joint_s`` after those before it in the list (nan: it is not among the joint ones, ``why`` says why).
    ``kernels`` and ``device_s`` are what it takes off the device in a step, alone: pieces of work and their time (negative: adds).
    """

    edit: Rewrite
    places: int
    own_s: float
    joint_s: float
    kernels: float
    device_s: float
    why: str
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class RewriteStudy:
    """Edits of one recording: those that save, in the order they were applied; then those that do not, then the refused ones."""

    base: Prediction
    joint: Prediction
    savings: tuple[Saving, ...]
    refused: tuple[tuple[str, str], ...]  # edit, reason
    by_period: bool  # steps overlap: a step counts from the end of the one before it
    invited: int | None  # how many edits the recording invites, tried or not (None: not looked for)

    @property
    def taken_off(self) -> tuple[float, float]:
        """Pieces of device work and device time [s] of a step that all edits that save take off together."""
        return _taken_off(self.base, self.joint)

    @property
    def base_step_s(self) -> float:
        """The step without edits [s]."""
        return _step_s(self.base, by_period=self.by_period)

    @property
    def joint_step_s(self) -> float:
        """The step with all edits that save [s]."""
        return _step_s(self.joint, by_period=self.by_period)

    @property
    def enough(self) -> int:
        """How many of the first edits together give `MOST_OF` of the joint saving."""
        whole, total = self.base_step_s - self.joint_step_s, 0.0
        for count, saving in enumerate(self.savings, 1):
            total += max(saving.joint_s, 0.0) if saving.joint_s == saving.joint_s else 0.0
            if whole > 0 and total >= MOST_OF * whole:
                return count
        return 0


def rewrites(scenario: Scenario, edits: Sequence[Rewrite | str] = (), *, propose: bool = True, limit: int = MOST_PROPOSED) -> RewriteStudy:
    """Find what edits of a recording would save of its step.

    Parameters
    ----------
    scenario : Scenario
        Its card prices what the edits make; without one the recording's own, times scaled by the ratio of models. Its own edits are
        part of the base.
    edits : sequence of Rewrite or str
        To try, e.g. ``Fuse("aten::addmm > aten::gelu")`` or ``"retype:gemm=bf16"``.
    propose : bool
        Also try what the recording invites: legal chains, attention, capture, products in 16 bits.
    limit : int
        Most proposals to try.

    Returns
    -------
    RewriteStudy
        An edit is applied jointly where it saves alone and still saves after those that save more. Where the host runs so far ahead
        that steps overlap, with an edit or without, a step counts from the end of the one before it: what a long job pays for it.

    Raises
    ------
    Refused
        The recording holds nothing to replay.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise Refused("limit", f"{limit!r} is no number of proposals", "give a whole number, 0 or more")
    base = predict(scenario)
    asked = [parse_rewrite(edit) if isinstance(edit, str) else edit for edit in edits]
    invited = proposals(base.scenario) if propose else []
    asked += [edit for edit in invited[:limit] if edit not in asked]
    tried: list[tuple[Rewrite, Prediction]] = []
    refused: list[tuple[str, str]] = []
    for edit in dict.fromkeys(asked):
        try:
            tried.append((edit, predict(_more(base.scenario, edit))))
        except Refused as fault:
            refused.append((edit.text, f"{fault.what} ({fault.fix})"))
    by_period = any(overlaps(p.step_time_s, p.period_s) for p in (base, *(p for _, p in tried)))
    tried.sort(key=lambda pair: _step_s(pair[1], by_period=by_period))
    joint, savings = _greedy(base, tried, by_period=by_period)
    return RewriteStudy(base, joint, tuple(savings), tuple(refused), by_period, len(invited) if propose else None)


def _step_s(prediction: Prediction, *, by_period: bool) -> float:
    return prediction.period_s if by_period else prediction.step_time_s


def _taken_off(base: Prediction, after: Prediction) -> tuple[float, float]:
    """Return by how many pieces of device work, and by how much of their time [s], a mean step differs."""
    (before, spent), (left, rest) = map(_on_device, (base, after))
    return before - left, spent - rest


def _on_device(prediction: Prediction) -> tuple[float, float]:
    """Pieces of device work of a mean step, and their time [s]; of a recording of the host alone, its operators."""
    graph = prediction.graph
    kept = kept_steps(graph.step_complete)
    work = np.isin(graph.kind, DEVICE_KINDS) | ((graph.kind == NodeKind.HOST_WORK) & (graph.op >= 0))
    mine = work & (graph.step >= 0)
    mine[mine] = kept[graph.step[mine]]
    steps = max(int(kept.sum()), 1)
    return float(mine.sum()) / steps, float(prediction.node_s[mine].sum()) / steps


def proposals(scenario: Scenario) -> list[Rewrite]:
    """Return the edits a recording invites, for its card or the candidate.

    Parameters
    ----------
    scenario : Scenario

    Returns
    -------
    list of Rewrite
        Legal somewhere in the recording; those that touch most recorded time first.
    """
    scenario = with_source(scenario)
    workload = as_recorded(scenario.workload)
    card = scenario.npu or scenario.source
    wanted = (Dtype.FP32, Dtype.TF32, Dtype.FP16, Dtype.BF16)
    rates = {dtype: card.peak_flops(dtype.name.lower()) for dtype in wanted} if card is not None else {}
    return find(recorded(workload.graph, workload.table, workload.trace), rates)


def _more(scenario: Scenario, edit: Rewrite) -> Scenario:
    return scenario.with_({"rewrites": (*scenario.rewrites, edit)})


def _greedy(base: Prediction, tried: Sequence[tuple[Rewrite, Prediction]], *, by_period: bool) -> tuple[Prediction, list[Saving]]:
    """Apply edits one after the other, the most saving first; one that saves nothing more is left out again."""
    joint = base
    taken: list[Saving] = []
    left: list[Saving] = []
    for edit, alone in tried:
        own = _step_s(base, by_period=by_period) - _step_s(alone, by_period=by_period)
        notes = tuple(n for n in alone.graph.notes if n.code.startswith(EDIT_NOTES) and n not in base.graph.notes)
        places = next((n.count for n in notes if n.code == "rewrite-applied"), 0)
        why, gain = ("costs" if own < -NOTHING else "saves nothing") if own <= NOTHING else "", float("nan")
        if not why:
            try:
                after = predict(_more(joint.scenario, edit)) if joint is not base else alone
                gain = _step_s(joint, by_period=by_period) - _step_s(after, by_period=by_period)
                why = (
                    "" if gain > NOTHING else "saves nothing beside those before it" if gain > -NOTHING else "costs beside those before it"
                )
                joint = joint if why else after
            except Refused as fault:
                why, gain = f"taken by those before it: {fault.what}", float("nan")
        (left if why else taken).append(Saving(edit, places, own, gain, *_taken_off(base, alone), why, notes))
    return joint, [*taken, *left]
