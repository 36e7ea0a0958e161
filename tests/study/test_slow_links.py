"""One slow link: large messages of groups that cross it take inversely longer, latencies stay."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.errors import InvalidSpec
from workbench.hardware.cluster_text import load_cluster
from workbench.network.curve import curve
from workbench.network.groups import strided
from workbench.operators.table import Kind
from workbench.study.slow_links import with_slow_links


def test_large_messages_go_at_the_pace_of_the_slow_link() -> None:
    whole = load_cluster("pyramid-1024")
    slow = with_slow_links(whole, {"unit": "0.5"})

    def spent(cluster, cards: int, size: float) -> float:
        return float(curve(cluster, Kind.ALL_REDUCE, strided(cluster, cards), "ring").seconds(np.array([size]))[0])

    assert spent(slow, 32, 8e9) / spent(whole, 32, 8e9) == pytest.approx(2.0, rel=1e-3)
    assert spent(slow, 8, 8e9) == spent(whole, 8, 8e9)
    assert spent(slow, 32, 0.0) == spent(whole, 32, 0.0)


@pytest.mark.parametrize(("tier", "share"), [("unti", "0.5"), ("unit", "2"), ("unit", "half"), ("unit", "0")])
def test_what_cannot_be(tier: str, share: str) -> None:
    with pytest.raises(InvalidSpec, match="--slow-link"):
        with_slow_links(load_cluster("pyramid-1024"), {tier: share})
