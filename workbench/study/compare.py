"""Two predictions side by side: which operators got slower, and by how much of the step."""

from __future__ import annotations

import numpy as np
import xarray as xr

from workbench.study.prediction import Prediction
from workbench.study.steps import kept_steps
from workbench.study.tables import operator_table

ACCOUNT = ("compute_s", "exposed_communication_s", "exposed_copy_s", "host_s", "waiting_s", "idle_s")


def compare(base: Prediction, candidate: Prediction) -> xr.Dataset:
    """Align the operators of two predictions by signature.

    Parameters
    ----------
    base, candidate : Prediction
        Predictions of the same recording or of two recordings of the same job.

    Returns
    -------
    Dataset
        Dimension ``signature`` (union of both, largest change first) with base_s, candidate_s and delta_s over the
        recording [s] (nan where an operator occurs on one side only), base_bound and candidate_bound; dimension
        ``part`` with base_part_s, candidate_part_s and delta_part_s, the mean account of the steps that count [s]; scalars
        base_step_s, candidate_step_s, delta_step_s and speedup.
    """
    left, right = _totals(base), _totals(candidate)
    names = np.array(sorted(left.keys() | right.keys()), dtype=object)
    first = np.array([left.get(n, (np.nan, ""))[0] for n in names])
    second = np.array([right.get(n, (np.nan, ""))[0] for n in names])
    delta = second - first
    parts = _parts(base), _parts(candidate)
    data = {
        "base_s": ("signature", first, {"units": "s"}),
        "candidate_s": ("signature", second, {"units": "s"}),
        "delta_s": ("signature", delta, {"units": "s"}),
        "base_bound": ("signature", np.array([left.get(n, (0, ""))[1] for n in names], dtype=object)),
        "candidate_bound": ("signature", np.array([right.get(n, (0, ""))[1] for n in names], dtype=object)),
        "base_part_s": ("part", parts[0], {"units": "s"}),
        "candidate_part_s": ("part", parts[1], {"units": "s"}),
        "delta_part_s": ("part", parts[1] - parts[0], {"units": "s"}),
        "base_step_s": ((), base.step_time_s, {"units": "s"}),
        "candidate_step_s": ((), candidate.step_time_s, {"units": "s"}),
        "delta_step_s": ((), candidate.step_time_s - base.step_time_s, {"units": "s"}),
        "speedup": ((), base.step_time_s / candidate.step_time_s if candidate.step_time_s > 0 else np.nan),
    }
    out = xr.Dataset(data, coords={"signature": names, "part": [name.removesuffix("_s") for name in ACCOUNT]})
    return out.isel(signature=np.argsort(-np.abs(np.nan_to_num(delta, nan=0.0)), kind="stable"))


def _totals(prediction: Prediction) -> dict[str, tuple[float, str]]:
    table = operator_table(prediction)
    rows = zip(table.signature.values, table.predicted_total_s.values, table.bound.values, strict=True)
    return {signature: (float(total), str(bound)) for signature, total, bound in rows}


def _parts(prediction: Prediction) -> np.ndarray:
    mean = prediction.account.mean(kept_steps(prediction.graph.step_complete))
    return np.array([mean[name] for name in ACCOUNT])
