"""The accuracy report of steps: programs recorded on two cards, as text."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import workbench
from tests.anchors.pairs import WAYS, Case, Guess, Recorded, skill
from workbench.cost.host_fit import fit_hosts
from workbench.data import data_path
from workbench.hardware.host import CALLS, KINDS, WORK

HEADER = (
    "| program | from | to | step [ms] | launch-bound | identity | no change | vendor, host kept | vendor, host fitted "
    "| anchored, host fitted | model alone, host fitted | vendor, host shipped | in (fitted: vendor, anchored, model) |"
)
PACKAGE = Path(workbench.__file__).parent
HEAD = """# Accuracy of steps across cards

Written by `python3 run.py accuracy` on {date}; digest of the recordings {data}; digest of the model
(graph, replay, cost, cards, hosts) {model}.

source: this project's predictions against public recordings of one program on two cards, each with its own host (AMD-AGI/TraceLens,
tests/traces)

From the recording on one card the device busy time and the step on the other are predicted, in both directions; errors are
predicted / recorded - 1 in percent.

- **Model alone**: operators by the card's model. **Anchored**: recorded times x model(target) / model(source), the default where the
  recording's card is known. **Vendor**: the other recording's operator times as a vendor's table, by signature.
- **No change**: the other card's step is that of the recording. **Skill**: 1 - mean |error| / mean |error of no change|.
- **Host kept**: host time as recorded. **Host fitted**: figures of both hosts by kind of host work (`workbench/cost/host.py`), fitted on
  the *other* programs only; a kind they do not show keeps its time. **Host shipped**: `data/host/`, fitted on all
  but what its `weak:` leaves out: in-sample.
- **Launch-bound**: share of the recorded step in which the device waits for the host to launch (`workbench/replay/launch_bound.py`).
- **In**: the step lies in the 80 % interval. **Identity**: the recording replayed as measured.
"""


def digests(folder: Path) -> tuple[str, str]:
    """Return the digests of the recordings and of what predicts them."""
    sources = [path for room in ("graph", "replay", "cost") for path in sorted((PACKAGE / room).glob("*.py"))]
    model = [*sources, *sorted(data_path("npu").glob("*.yaml")), *sorted(data_path("host").glob("*.yaml"))]
    both = (sorted(folder.glob("*_*.json.gz")), model)
    first, second = (hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16] for paths in both)
    return first, second


def markdown(found: Sequence[Case], recorded: Mapping[str, Mapping[str, Recorded]], date: str, data: str, model: str) -> str:
    """Return the report as text."""
    parts = [
        HEAD.format(date=date, data=data, model=model),
        *_summary(found),
        *_steps(found),
        *_busy(found),
        *_one(found),
        *_hosts(recorded),
    ]
    return "\n".join(parts) + "\n"


def _summary(found: Sequence[Case]) -> list[str]:
    out = ["## Over all pairs", "", "| way | host | mean busy | mean step | median step | skill | in |", "|---|---|---|---|---|---|---|"]
    nothing = [case.no_change for case in found]
    busy = _mean([case.same_busy for case in found])
    out.append(f"| no change |  | {busy} | {_mean(nothing)} | {_median(nothing)} | 0.00 |  |")
    for way in WAYS:
        for host, of in (("kept", "kept"), ("fitted on the others", "left_out"), ("shipped (in-sample)", "shipped")):
            guesses: list[Guess] = [getattr(case, of)[way] for case in found]
            steps = [guess.step for guess in guesses]
            inside = f"{sum(guess.inside for guess in guesses)} of {len(guesses)}"
            line = f"| {way} | {host} | {_mean([g.busy for g in guesses])} | {_mean(steps)} | {_median(steps)} |"
            out.append(f"{line} {skill(steps, nothing):.2f} | {inside} |")
    one = [guess for case in found for guess in case.one_other.values()]
    steps = [guess.step for guess in one]
    baseline = [case.no_change for case in found for _ in case.one_other]
    line = f"| vendor times | fitted on one other | {_mean([g.busy for g in one])} | {_mean(steps)} | {_median(steps)} |"
    out.append(f"{line} {skill(steps, baseline):.2f} | {sum(guess.inside for guess in one)} of {len(one)} |")
    return [*out, ""]


def _steps(found: Sequence[Case]) -> list[str]:
    out = ["## Step, by pair", ""]
    out.append(HEADER)
    out += ["|" + "---|" * 13]
    for case in found:
        fitted = case.left_out
        cells = [case.program, case.source, case.target, f"{case.truth.step_s * 1e3:.4g}", f"{100 * case.recorded.launch_bound:.0f} %"]
        cells += [f"{100 * case.recorded.identity:.3f}", _percent(case.no_change), _percent(case.kept["vendor times"].step)]
        cells += [_percent(fitted[way].step) for way in ("vendor times", "anchored", "model alone")]
        cells += [_percent(case.shipped["vendor times"].step)]
        cells += [", ".join("yes" if fitted[way].inside else "no" for way in ("vendor times", "anchored", "model alone"))]
        out.append("| " + " | ".join(cells) + " |")
    return [*out, ""]


def _busy(found: Sequence[Case]) -> list[str]:
    out = [
        "## Device busy time, by pair",
        "",
        "| program | from | to | busy [ms] | no change | " + " | ".join(WAYS) + " |",
        "|" + "---|" * 8,
    ]
    for case in found:
        cells = [case.program, case.source, case.target, f"{case.truth.busy_s * 1e3:.4g}", _percent(case.same_busy)]
        out.append("| " + " | ".join([*cells, *(_percent(case.kept[way].busy) for way in WAYS)]) + " |")
    return [*out, ""]


def _one(found: Sequence[Case]) -> list[str]:
    """Say what the step comes to with vendor times and the hosts measured on one other program, by that program."""
    out = ["## Step with vendor times, hosts fitted on one other program", ""]
    out += ["| program | from | to | no change | host kept | fitted on |", "|" + "---|" * 6]
    for case in found:
        fits = ", ".join(f"{name}: {_percent(guess.step)}" for name, guess in case.one_other.items())
        cells = [case.program, case.source, case.target, _percent(case.no_change), _percent(case.kept["vendor times"].step), fits]
        out.append("| " + " | ".join(cells) + " |")
    return [*out, ""]


def _hosts(recorded: Mapping[str, Mapping[str, Recorded]]) -> list[str]:
    """Say how host time of each kind differs between two machines, program by program: what the shipped hosts rest on."""
    out = ["## Host time by kind", "", "Work: time on the second host over that on the first. Calls: median call on both [us]. n: pieces."]
    for first, second in sorted({pair for cards in recorded.values() for pair in itertools.combinations(sorted(cards), 2)}):
        work = " | ".join(f"{kind} ({second} / {first})" for kind in WORK)
        out += ["", f"| program | {work} | {' | '.join(CALLS)} |", "|" + "---|" * (1 + len(KINDS))]
        pairs = {name: (cards[first].host, cards[second].host) for name, cards in recorded.items() if {first, second} <= set(cards)}
        for program, (a, b) in pairs.items():
            cells = [f"{b.total_s[k] / a.total_s[k]:.2f} (n {a.count[k]}, {b.count[k]})" if a.count[k] else "-" for k in range(len(WORK))]
            cells += [f"{a.median_s[k] * 1e6:.2f}, {b.median_s[k] * 1e6:.2f}" for k in range(len(WORK), len(KINDS))]
            out.append(f"| {program} | {' | '.join(cells)} |")
        here, there = fit_hosts(list(pairs.values()), (first, second))
        cells = [f"{there.takes[kind]:.2f}" if kind in there.takes else "-" for kind in WORK]
        cells += [f"{here.calls[kind] * 1e6:.2f}, {there.calls[kind] * 1e6:.2f}" if kind in here.calls else "-" for kind in CALLS]
        out.append(f"| **fitted on all** | {' | '.join(cells)} |")
    return out


def _percent(value: float) -> str:
    return f"{100 * value:+.1f}"


def _mean(values: Sequence[float]) -> str:
    return f"{100 * float(np.abs(values).mean()):.1f}"


def _median(values: Sequence[float]) -> str:
    return f"{100 * float(np.median(np.abs(values))):.1f}"
