"""A cluster with a slow link: what waits for all members goes at its pace."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.errors import InvalidSpec
from workbench.hardware.check import unknown_key
from workbench.hardware.cluster import ClusterSpec


def with_slow_links(cluster: ClusterSpec, shares: Mapping[str, str]) -> ClusterSpec:
    """Return a cluster in which one link of some tiers is slow.

    Every step of a ring, tree or exchange waits for the link that carries it longest, so that one slow link slows the whole collective of
    every group that crosses it as if all links of its tier were slow. Groups that do not cross it are not slowed: they are shown too long.

    Parameters
    ----------
    cluster : ClusterSpec
    shares : mapping
        Tier -> share of its bandwidth that the slow link has, as text: ``{"node": "0.5"}``.

    Raises
    ------
    InvalidSpec
        An unknown tier, or a share outside (0, 1].
    """
    changes: dict[str, float] = {}
    names = {tier.name: tier for tier in cluster.tiers}
    for name, text in shares.items():
        if name not in names:
            raise unknown_key(name, names, "--slow-link", f"is no tier of {cluster.name}")
        try:
            share = float(text)
        except ValueError:
            share = float("nan")
        if not 0.0 < share <= 1.0:
            raise InvalidSpec("--slow-link", f"{name}={text[:40]} is no share", "give a number above 0, at most 1, e.g. node=0.5")
        changes[f"tiers.{name}.efficiency"] = names[name].efficiency * share
    return cluster.with_(changes)
