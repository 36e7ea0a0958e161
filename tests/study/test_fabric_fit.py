"""Fits of a fabric: known scalars are found again, and messages that were left out tell the error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench.errors import Refused
from workbench.hardware.cluster_text import cluster_yaml, load_cluster, read_cluster
from workbench.network.curve import curve
from workbench.network.groups import strided
from workbench.operators.table import Kind
from workbench.study.collective_messages import Message
from workbench.study.fabric_fit import fit_fabric

SIZES = np.rint(np.geomspace(512, 1e9, 24))


def measured(cluster, noise: float = 0.0, cards=(2, 8)) -> list[Message]:
    """Messages timed by a model of the cluster, as if it had been measured."""
    random = np.random.default_rng(1)
    rows = []
    for kind in (Kind.ALL_REDUCE, Kind.ALL_GATHER):
        for n in cards:
            seconds = curve(cluster, kind, strided(cluster, n)).seconds(SIZES) * np.exp(noise * random.standard_normal(len(SIZES)))
            rows += [Message(kind, n, float(size), 1, float(t)) for size, t in zip(SIZES, seconds, strict=True)]
    return rows


def test_known_scalars_are_found_again() -> None:
    base = load_cluster("dgx-a100")
    true = replace(base.with_({"tiers.node.efficiency": 0.6}), launch_factor=1.5, step_factor=1.3)
    fit = fit_fabric(base, measured(true))
    assert fit.fitted == pytest.approx({"launch_factor": 1.5, "step_factor": 1.3, "tiers.node.efficiency": 0.6}, rel=0.02)
    assert fit.median < 0.01 < 0.1 < fit.before
    again = fit_fabric(base, measured(true, noise=0.1))
    assert again.median == pytest.approx(0.1 * 0.6745, rel=0.35)  # the median of a normal error's size


def test_the_outermost_tier_is_fitted_where_messages_cross_it() -> None:
    base = load_cluster("dgx-h100")
    true = base.with_({"tiers.unit.efficiency": 0.5})
    fit = fit_fabric(base, measured(true, cards=(8, 32)))
    assert fit.fitted["tiers.unit.efficiency"] == pytest.approx(0.5, rel=0.05)


def test_a_fitted_cluster_is_written_and_read_back() -> None:
    base = load_cluster("hpn-rails")
    fitted = replace(base, launch_factor=1.25, error=0.07)
    assert read_cluster(cluster_yaml(fitted), "written.yaml") == fitted


def test_too_little_to_fit() -> None:
    with pytest.raises(Refused, match="too few"):
        fit_fabric(load_cluster("dgx-a100"), measured(load_cluster("dgx-a100"))[:5])
