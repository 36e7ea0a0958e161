"""The notes that travel with a prediction: what readers and graph tolerated, and what the pricing assumed."""

from __future__ import annotations

import numpy as np

from workbench import units
from workbench.cost.cost import Evidence
from workbench.cost.interpolate import unmatched_notes
from workbench.cost.pack import resolve
from workbench.cost.vendor_apply import doubt_notes
from workbench.errors import Note
from workbench.graph.graph import DEVICE_KINDS
from workbench.operators.table import COLLECTIVES, Dtype
from workbench.study.prediction import Prediction
from workbench.study.shares import coverage, row_totals
from workbench.study.steps import kept_steps, outlying

LOW_COVERAGE = 0.90
HOST_SETS = 0.2
"""A step of which the device waits less for the host [1] hardly depends on what the profiler costs it."""
MISS = 2.5
"""No model's own error reaches this factor [1]: an end of an interval this far off is the scaled recording's."""


def prediction_notes(prediction: Prediction) -> tuple[Note, ...]:
    """Return all notes of a prediction, each once."""
    workload = prediction.scenario.workload
    notes = [*workload.trace.notes, *prediction.graph.notes, *_vendor(prediction), *_steps(prediction)]
    if prediction.scenario.npu is None and prediction.scenario.anchored:
        text = "nothing is anchored: without a card the recording is replayed as measured"
        notes.append(Note("anchored-unused", workload.path, 1, text, "name a card with --npu"))
    if prediction.scenario.npu is not None:
        notes += [
            *_source(prediction),
            *_host_only(prediction),
            *_host_kept(prediction),
            *_substitutions(prediction),
            *_coverage(prediction),
            *_card(prediction),
            *_roof(prediction),
            *_misses(prediction),
        ]
    return tuple(dict.fromkeys(notes))


def _steps(prediction: Prediction) -> list[Note]:
    """Name the steps far from the median one: warm-up at the begin, outliers elsewhere; and what the profiler was taken to cost."""
    steps, numbers = prediction.graph.measured_step_s, prediction.graph.step_numbers
    typical = np.median(steps[kept_steps(prediction.graph.step_complete)])
    warm, far = outlying(prediction.graph)
    out = []
    for code, which, tail in (("warm-up-step", warm, ": warming up; it counts, as the median allows"), ("outlier-step", far, "")):
        for i in which.tolist():
            text = f"{units.format(steps[i], 's', 4)}, {steps[i] / typical - 1:+.0%} from the median step{tail}"
            out.append(Note(code, f"step {numbers[i]}", 1, text))
    workload = prediction.scenario.workload
    if workload.unprofiled_step_s is not None:
        text = f"the profiler is taken to have cost the host {workload.event_s * 1e9:.0f} ns a recorded event: all times are without it"
        share = float(prediction.measured_launch_bound.share[kept_steps(prediction.graph.step_complete)].mean())
        if share < HOST_SETS:
            text += f"; the device waits for the host in {share:.0%} of the step only, so that the step tells little of that cost"
        out.append(Note("profiler-cost", workload.path, 1, text))
    return out


def _vendor(prediction: Prediction) -> list[Note]:
    """Return the notes of the vendor's table, and whether it prices anything at all."""
    vendor = prediction.scenario.vendor
    if vendor is None:
        return []
    used = bool(np.isin(prediction.cost.evidence, (Evidence.VENDOR, Evidence.INTERPOLATED, Evidence.EXTRAPOLATED)).any())
    rest = unmatched_notes(vendor, prediction.table) if used else ()
    text = f"none of the table's {len(vendor)} usable rows names an operator of the recording: no vendor time is used"
    fix = "compare kind or name, dtype and dims with the operator table (--json lists signatures)"
    unused = [] if used else [Note("vendor-unmatched", vendor.path, len(vendor), text, fix)]
    return [*vendor.notes, *rest, *doubt_notes(prediction.cost, vendor.path), *unused]


def _host_only(prediction: Prediction) -> list[Note]:
    if np.isin(prediction.graph.kind, DEVICE_KINDS).any():
        return []
    if prediction.scenario.npu is None:
        return []
    text = (
        "no device work is recorded: operators take the card's times where the host ran them, one after another, without launches; "
        "they count as compute of the card, as recorded they are host"
    )
    return [Note("host-only", prediction.scenario.workload.path, 1, text, "record with activities CPU and CUDA on a machine with a card")]


def _host_kept(prediction: Prediction) -> list[Note]:
    """Say of a step that the host sets that its host is kept, where the card comes without one."""
    scenario = prediction.scenario
    share = float(prediction.launch_bound.share[kept_steps(prediction.graph.step_complete)].mean())
    at_home = scenario.npu is not None and scenario.source is not None and scenario.npu.name == scenario.source.name
    if scenario.host is not None or scenario.host_factor != 1.0 or at_home or share < HOST_SETS:
        return []
    text = (
        f"the device waits for the host in {share:.0%} of the predicted step, and the host around the card is not stated: kept as recorded"
    )
    fix = "name it with --host, or --host recorded for the recording's own"
    return [Note("host-kept", scenario.workload.path, 1, text, fix)]


def _source(prediction: Prediction) -> list[Note]:
    if prediction.scenario.source is not None:
        return []
    devices = [name for rank in prediction.scenario.workload.trace.ranks for name in dict.fromkeys(rank.devices) if name]
    where = ", ".join(devices) or "the recording"
    text = "the card the recording was made on is not known: operators without a model keep their recorded time"
    return [Note("source-unknown", where, 1, text, "name it with --source")]


def _substitutions(prediction: Prediction) -> list[Note]:
    cost, table = prediction.cost, prediction.table
    out = []
    for code in np.unique(cost.note_code[cost.note_code > 0]):
        rows = np.flatnonzero(cost.note_code == code)
        names = ", ".join(dict.fromkeys(table.name[row] for row in rows[:4]))
        out.append(Note("pricing", names, len(rows), cost.reasons[code]))
    return out


def _coverage(prediction: Prediction) -> list[Note]:
    found = coverage(prediction.graph, prediction.table, prediction.cost)
    if found.total_s <= 0:
        return []
    out = []
    if prediction.scenario.npu is not None and found.priced_s <= 0:
        text = "nothing of the device time is priced by the card's model or a vendor: this is the recording moved by ratios, or kept"
        out.append(Note("nothing-priced", "operators", 1, text, "record with record_shapes=True, or give vendor times"))
    unshaped = 1 - found.shaped_s / found.total_s
    if unshaped > 1 - LOW_COVERAGE:
        text = f"{unshaped:.0%} of the device time has no recorded shapes and is scaled from the measurement"
        out.append(Note("no-shapes", "operators", 1, text, "record with record_shapes=True"))
    if found.shaped_s > 0 and found.priced_share < LOW_COVERAGE:
        text = f"only {found.priced_share:.0%} of the device time with shapes is priced by a vendor time or the model"
        out.append(Note("low-coverage", "operators", 1, text, "give vendor times for the operators listed as unpriced"))
    return out


def _card(prediction: Prediction) -> list[Note]:
    spec = prediction.scenario.npu
    if spec is None or spec.confidence == "high":
        return []
    weak = "; ".join(spec.weak)
    if spec.confidence == "medium":
        return [Note("weak-figures", spec.name, len(spec.weak), f"less certain figures of the card: {weak}")] if weak else []
    text = f"the card's figures are {spec.confidence}: the prediction is unvalidated"
    return [Note("unvalidated-card", spec.name, max(1, len(spec.weak)), f"{text}; weak: {weak}" if weak else text)]


def _roof(prediction: Prediction) -> list[Note]:
    """Measured operators faster than the source card's own peak: a wrong dtype, shape or clock somewhere."""
    source = prediction.scenario.source
    if source is None:
        return []
    codes, back = np.unique(prediction.table.dtype, return_inverse=True)
    peak = np.array([source.peak_flops(resolve(source, Dtype(code).name.lower())) if code else 0.0 for code in codes])[back]
    needed = np.divide(prediction.table.flops, peak, out=np.zeros_like(peak), where=peak > 0)
    fast = (prediction.table.measured_s > 0) & (needed > 1.02 * prediction.table.measured_s)
    if not fast.any():
        return []
    totals = row_totals(prediction.graph, len(prediction.table), prediction.graph.measured_s)
    rows = np.flatnonzero(fast)[np.argsort(-totals[fast])]
    names = ", ".join(dict.fromkeys(prediction.table.name[row] for row in rows[:3]))
    text = f"recorded faster than {source.name} can compute at its peak: a fast algorithm (Winograd), or not the dtype or shapes that ran"
    return [Note("faster-than-roof", names, len(rows), text)]


def _misses(prediction: Prediction) -> list[Note]:
    """Operators whose time the model misses on the recording's own card: their interval is wide for that reason."""
    cost = prediction.cost
    low, seconds, high = (np.maximum(array[:, 0], 1e-30) for array in (cost.low_s, cost.seconds, cost.high_s))
    rows = np.flatnonzero(
        (np.maximum(high / seconds, seconds / low) > MISS)
        & (cost.evidence == Evidence.MODEL)
        & ~np.isin(prediction.table.kind, COLLECTIVES)
    )
    totals = row_totals(prediction.graph, len(prediction.table), prediction.node_s)
    rows = rows[np.argsort(-totals[rows])]
    share = totals[rows].sum() / totals.sum() if totals.sum() > 0 else 0.0
    if prediction.scenario.source is None or share < 0.05:
        return []
    names = ", ".join(dict.fromkeys(prediction.table.name[row] for row in rows[:4]))
    text = f"on the recording's own card the model misses these operators by more than {MISS:g}x ({share:.0%} of the predicted device time)"
    return [Note("model-misses", names, len(rows), text, "compare with --anchored, which scales the recording")]
