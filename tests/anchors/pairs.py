"""One program recorded on two cards: the step of one predicted from the recording on the other, in both directions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from workbench.cost.host import HostTimes, host_times
from workbench.cost.host_fit import fit_hosts
from workbench.cost.vendor import VendorTimes, read_vendor
from workbench.hardware.host import HostSpec
from workbench.replay.launch_bound import launch_bound
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.recorded_on import detect_host_of, detect_source
from workbench.study.scenario import Scenario
from workbench.study.steps import kept_steps
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

WAYS = ("model alone", "anchored", "vendor times")


@dataclass(frozen=True)
class Recorded:
    """A recording and what of it is compared."""

    workload: Workload
    host: HostTimes
    busy_s: float
    step_s: float
    identity: float
    launch_bound: float

    @staticmethod
    def of(path: Path) -> Recorded:
        """Open one."""
        work = Workload(open_trace([path]))
        kept = kept_steps(work.graph.step_complete)
        steps, replayed = work.graph.measured_step_s[kept], work.measured_timeline.step_s[kept]
        waits = float(launch_bound(work.graph, work.measured_timeline).share[kept].mean())
        times = host_times(work.host_kinds, work.graph.measured_s)
        busy = float(work.measured_account.device_busy_s[kept].mean())
        return Recorded(work, times, busy, float(np.median(steps)), float(np.abs(replayed / steps - 1).max()), waits)


@dataclass(frozen=True)
class Guess:
    """One prediction against the other recording: relative errors of device busy time and step, whether the interval holds the step."""

    busy: float
    step: float
    inside: bool


@dataclass(frozen=True)
class Case:
    """One program from one card to another.

    ``one_other`` are guesses with vendor times and host figures fitted on one other program, by its name; ``kept`` are
    guesses with the host as recorded, ``left_out`` with host figures fitted on the *other* programs, ``shipped`` with the
    hosts that come with the workbench, fitted on all; each by `WAYS`.
    """

    program: str
    source: str
    target: str
    recorded: Recorded
    truth: Recorded
    one_other: Mapping[str, Guess]
    kept: Mapping[str, Guess]
    left_out: Mapping[str, Guess]
    shipped: Mapping[str, Guess]

    @property
    def no_change(self) -> float:
        """Relative error of the step where nothing is taken to change."""
        return self.recorded.step_s / self.truth.step_s - 1

    @property
    def same_busy(self) -> float:
        """The same of the device busy time."""
        return self.recorded.busy_s / self.truth.busy_s - 1


def load(folder: Path) -> dict[str, dict[str, Recorded]]:
    """Return the recordings of a folder by program and card, of files named ``program_card.json.gz``."""
    found: dict[str, dict[str, Recorded]] = {}
    for path in sorted(folder.glob("*_*.json.gz")):
        program, _, card = path.name.removesuffix(".json.gz").rpartition("_")
        one = Recorded.of(path)
        if detect_source(one.workload.trace) is not None:  # without a card there is nothing to predict for
            found.setdefault(program, {})[card] = one
    return {program: cards for program, cards in found.items() if len(cards) > 1}


def cases(recorded: Mapping[str, Mapping[str, Recorded]]) -> Iterator[Case]:
    """Yield every program in every direction."""
    for program, cards in recorded.items():
        for source, target in itertools.permutations(cards, 2):
            others = {
                name: (of[source].host, of[target].host) for name, of in recorded.items() if name != program and {source, target} <= set(of)
            }
            hosts = fit_hosts(list(others.values()), (source, target)) if others else (None, None)
            single = {name: fit_hosts([pair], (source, target)) for name, pair in others.items()}
            one = {name: _with_times(cards[source], cards[target], *pair) for name, pair in single.items()}
            known = tuple(detect_host_of(cards[card].workload.trace) for card in (source, target))
            ways = [(None, None), hosts, known]
            guesses = [_guesses(cards[source], cards[target], *pair) for pair in ways]
            yield Case(program, source, target, cards[source], cards[target], one, *guesses)


def _guesses(recorded: Recorded, truth: Recorded, here: HostSpec | None, there: HostSpec | None) -> dict[str, Guess]:
    asked = Scenario(recorded.workload, npu=detect_source(truth.workload.trace), source_host=here, host=there)
    return {
        "model alone": _guess(predict(asked.with_({"anchored": False})), truth),
        "anchored": _guess(predict(asked.with_({"anchored": True})), truth),
        "vendor times": _with_times(recorded, truth, here, there),
    }


def _with_times(recorded: Recorded, truth: Recorded, here: HostSpec | None, there: HostSpec | None) -> Guess:
    card = detect_source(truth.workload.trace)
    return _guess(predict(Scenario(recorded.workload, npu=card, vendor=times_of(truth.workload), source_host=here, host=there)), truth)


def _guess(prediction: Prediction, truth: Recorded) -> Guess:
    kept = kept_steps(prediction.graph.step_complete)
    busy = float(prediction.account.device_busy_s[kept].mean())
    low, high = prediction.interval_s
    return Guess(busy / truth.busy_s - 1, prediction.step_time_s / truth.step_s - 1, low <= truth.step_s <= high)


def times_of(workload: Workload) -> VendorTimes:
    """Return the operator times of a recording as a vendor would send them: a table of signatures and times, read from a file."""
    rows = zip(workload.table.signature, workload.table.measured_s, strict=True)
    quoted = ['"{}",{:.9g}'.format(name.replace('"', '""'), seconds * 1e6) for name, seconds in rows if seconds > 0]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "times.csv"
        path.write_text("\n".join(("signature,time_us", *quoted)) + "\n", encoding="utf-8")
        return read_vendor(path)


def skill(guesses: list[float], baseline: list[float]) -> float:
    """Return 1 - mean absolute error over that of a baseline [1]."""
    return 1.0 - float(np.abs(guesses).mean() / np.abs(baseline).mean())
