"""Writes the fits that the catalogue ships: ``python -m tests.anchors.ship SHARED`` fits all public rows anew.

Scalars are fitted on *all* rows of a device, harness and dtype (the report's are of one half); errors are cross-validated in
five folds by shape. What one card lends another (same die, other board) has wider errors and says so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.anchors.series import Series, knowledge, load
from workbench import units
from workbench.cost.calibrate import calibrate
from workbench.data import data_path
from workbench.hardware.npu import load_npu
from workbench.hardware.parts import Calibration

WIDER = 1.5  # power of (1 + low) and (1 + high) of a lent fit, a judgement
SECTION = re.compile(r"^calibration:\n(?:[ #].*\n)*", re.MULTILINE)
Fits = dict[tuple[str, str], Calibration]


def plan() -> Mapping[str, Any]:
    """Return which measurements stand behind which card."""
    return yaml.safe_load(Path(__file__).with_name("shipped.yaml").read_text(encoding="utf-8"))


def own(series: Series, launch_of_harness: bool) -> Calibration:
    """Return what a card states of a series: fitted on all its rows."""
    origin = knowledge()["harnesses"][series.source]["origin"]
    made = calibrate(series.spec, series.runs, series.table, "", harness=series.harness, make=series.make()).stated
    source = f"{origin}; {len(series.table)} rows of {', '.join(made.errors)} fitted together; errors five-fold by shape"
    if series.harness.times_host:
        source += "; launch is the card's own: the harness times the host"
    elif launch_of_harness:
        made = replace(made, launch=series.spec.runtime.launch_overhead)
        source += "; launch is the card's own: the harness's lies between the kernels of a loop"
    return replace(made, source=source)


def lent(fit: Calibration, factor: float, why: str) -> Calibration:
    """Return a fit as another card states it: with wider errors."""
    errors = {kind: (round((1 + low) ** WIDER - 1, 3), round((1 + high) ** WIDER - 1, 3)) for kind, (low, high) in fit.errors.items()}
    return replace(
        fit,
        compute=float(f"{fit.compute * factor:.3g}"),
        error=float(f"{fit.error * WIDER:.2g}"),
        errors=errors,
        source=f"errors widened by judgement; as fitted on {why}: {fit.source}",
    )


def written(fits: Mapping[str, Calibration]) -> str:
    """Return the calibration section of a card's description."""
    lines = ["calibration:"]
    for dtype in sorted(fits):
        fit = fits[dtype]
        lines += [f"  {dtype}:", f"    compute: {fit.compute:g}", f"    memory: {fit.memory:g}"]
        lines += [f'    launch: "{units.format(fit.launch, "s")}"', f"    error: {fit.error:g}"]
        if fit.errors:
            lines.append("    errors:")
            lines += [f"      {kind}: [{low:g}, {high:g}]" for kind, (low, high) in fit.errors.items()]
        lines.append(f'    source: "{fit.source}"')
    return "\n".join(lines) + "\n"


def fitted(shared: Path) -> Fits:
    """Return all fits of the plan."""
    found = {(series.device, series.source, series.dtype): series for series in load(shared)}
    host = plan()["launch_of_harness"]
    fits = {(card, dtype): own(found[tuple(key)], key[1] in host) for card, of in plan()["own"].items() for dtype, key in of.items()}
    for loan in plan()["lent"]:
        for dtype in loan["dtypes"]:
            fits[loan["to"], dtype] = lent(fits[loan["from"], dtype], float(loan["compute"]), loan["why"])
    return fits


def main(shared: Path) -> None:
    """Rewrite the calibration sections."""
    fits = fitted(shared)
    for card in sorted({card for card, _ in fits}):
        path = data_path("npu") / f"{card}.yaml"
        kept = {dtype: fit for dtype, fit in load_npu(card).calibration.items() if (card, dtype) not in fits}
        section = written({**kept, **{dtype: fit for (of, dtype), fit in fits.items() if of == card}})
        text = path.read_text(encoding="utf-8")
        old = SECTION.search(text)
        begin, end = old.span() if old else (len(text), len(text))
        path.write_text(text[:begin] + section + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
