"""Steps and host of a prediction as text: how steps scatter, where the device waits for the host, on which host."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from workbench import units
from workbench.study.documents import PredictionDocument


def steps_text(document: PredictionDocument) -> Iterator[RenderableType]:
    """Yield a line on the scatter of the steps, where there are several, and one on launch-bound stretches, where there are any."""
    found = document.distribution
    if found.counted > 1:
        measured, predicted = (" / ".join(_seconds(value) for value in ends) for ends in (found.measured_s, found.predicted_s))
        warm = f"; warm-up: step {_list(found.warm_up)}" if found.warm_up else ""
        far = f"; outliers: step {_list(found.outliers)}" if found.outliers else ""
        yield Text(
            f"{units.count(found.counted, 'step')}, shortest / median / longest: {measured} measured, {predicted} predicted{warm}{far}"
        )
    bound = document.launch_bound
    if max(bound.measured, bound.predicted) >= 0.01:
        line = f"launch-bound: the device waits for the host to launch in {100 * bound.measured:.0f} % of the step measured"
        line += f", {100 * bound.predicted:.0f} % predicted"
        if bound.longest:
            one = bound.longest[0]
            line += f"; longest stretch {_seconds(one.end_s - one.begin_s)} with {one.launches} launch(es)"
        yield Text(line)


def host_words(document: PredictionDocument) -> list[str]:
    """Return what the headline says of the host."""
    out = [f"host {document.host}"] if document.host else []
    out += [f"host factor {document.host_factor:g}"] if document.host_factor != 1 else []
    if document.unprofiled_step_s is not None:
        out.append(f"without the profiler ({_seconds(document.profiler_event_s)} an event)")
    return out


def _seconds(value: float) -> str:
    return units.format(value, "s", 4)


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (" ..." if len(numbers) > 8 else "")
