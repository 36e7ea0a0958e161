"""What an algorithm of a collective moves, and in how many steps, tier by tier. No bandwidth and no latency enters here.

Sources: Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (IJHPCA 2005): ring, recursive
halving and doubling, binomial trees; Sanders, Speck, Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan
(Parallel Computing 2009): every card sends what it gets twice, half of it in either tree; Graham et al., SHARP (COMHPC 2016) and
NVIDIA NVLS for switches that add: a card sends its vector once; Cho et al., BlueConnect (MLSys 2019) for the hierarchical form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from workbench.hardware.cluster import ClusterSpec
from workbench.network.groups import Group
from workbench.network.topology import dimensions, neighbour_load, pair_load, parallel_rings, uniform_load
from workbench.operators.table import Kind

PASSES = {Kind.ALL_REDUCE: 2, Kind.ALL_GATHER: 1, Kind.REDUCE_SCATTER: 1}
"""Rounds in which every card passes on (n - 1)/n of the message: an all-reduce is a reduce-scatter and an all-gather."""


@dataclass(frozen=True)
class Traffic:
    """What one algorithm moves.

    ``steps[t]`` messages follow each other across tier t. Per byte of the message, ``out[t]`` bytes cross the busiest link out of an
    instance of the tier below, over ``lanes[t]`` cards' ports at most, and ``up[t]`` the links above it (see `topology`). Tiers work
    ``together`` or one after the other. ``copied`` bytes a member only copies, from its input or out of a buffer.
    """

    algorithm: str
    steps: tuple[float, ...]
    out: tuple[float, ...]
    up: tuple[float, ...]
    lanes: tuple[int, ...]
    together: bool = True
    in_network: bool = False
    copied: float = 0.0


@dataclass(frozen=True)
class Site:
    """A group on a cluster: what all algorithms ask for."""

    cluster: ClusterSpec
    group: Group

    @property
    def inside(self) -> tuple[int, ...]:
        """Members that one instance of the tier below every tier holds."""
        return tuple(math.prod(self.group.counts[:t]) for t in range(len(self.group.counts)))

    @property
    def used(self) -> tuple[int, ...]:
        """Tiers that messages of the group cross."""
        return tuple(t for t, n in enumerate(self.group.counts) if n > 1)

    def load(self, rule: Callable[..., tuple[float, float]], t: int, *more: int) -> tuple[float, float]:
        """Load of links and uplinks of a tier by one of the rules of `workbench.network.topology`."""
        return rule(self.cluster.tiers[t], self.group.counts[t], *more)


def algorithms(kind: Kind, site: Site) -> Iterator[Traffic]:
    """Yield every algorithm that can do a collective of one kind for a group.

    Parameters
    ----------
    kind : Kind
        A collective.
    site : Site

    Yields
    ------
    Traffic
    """
    if kind in PASSES or kind == Kind.BROADCAST:
        yield from _rings(kind, site)
    if kind in PASSES:
        yield _direct(site, PASSES[kind])
        yield from _grid(site, PASSES[kind])
        if all(n & (n - 1) == 0 for n in site.group.counts):
            yield _halving_doubling(site, PASSES[kind])
        if len(site.used) > 1 and site.group.whole:
            yield from _hierarchical(kind, site)
    if kind == Kind.ALL_TO_ALL:
        yield _direct(site, 1)
        if len(site.used) > 1 and site.group.whole:
            yield _staged_exchange(site)
    if kind == Kind.SEND_RECV:
        yield _message(site)
    if kind in (Kind.ALL_REDUCE, Kind.BROADCAST, Kind.BARRIER):
        yield _tree(kind, site)
        if all(site.cluster.tiers[t].in_network_reduction for t in site.used):
            yield _in_network(kind, site)


def _rings(kind: Kind, site: Site) -> Iterator[Traffic]:
    """Yield a ring over all members, and one ring for every card of an innermost instance (rails) or direction, each with its part."""
    n, group, tiers = site.group.size, site.group, range(len(site.group.counts))
    passes, share = (1, 1.0) if kind == Kind.BROADCAST else (PASSES[kind], PASSES[kind] * (n - 1) / n)
    own = 0.0 if kind == Kind.BROADCAST else 1.0 / n
    first = next((t for t in tiers if group.edges[t]), 0)  # of n messages round the ring, n - 1 follow each other
    steps = tuple(float(passes * (edges - (t == first))) for t, edges in enumerate(group.edges))
    moved = [share * group.crossings[t] for t in tiers]
    loads = [site.load(neighbour_load, t) for t in tiers]
    up = tuple(m * load[1] for m, load in zip(moved, loads, strict=True))
    out = tuple(m * load[0] for m, load in zip(moved, loads, strict=True))
    yield Traffic("ring", steps, out, up, tuple(max(1, c) for c in group.crossings), copied=own)
    apart = [parallel_rings(site.cluster.tiers[t], group.counts[t]) for t in tiers]
    if len(site.used) > 1 or max(apart) > 1:
        yield Traffic("rings", steps, tuple(o / a for o, a in zip(out, apart, strict=True)), up, _rails(site), copied=own)


def _grid(site: Site, passes: int) -> Iterator[Traffic]:
    """Yield rings along the dimensions of a mesh or torus, all at once, where the group fills one."""
    t = site.used[0] if len(site.used) == 1 else -1
    shape = dimensions(site.cluster.tiers[t], site.group.counts[t]) if t >= 0 else None
    if shape is not None:
        moved = passes * (site.group.size - 1) / site.group.size / shape[1]
        at = tuple(float(i == t) for i in range(len(site.group.counts)))
        yield Traffic("dimensions", tuple(a * passes * shape[0] for a in at), tuple(a * moved for a in at), (0.0,) * len(at), site.inside)


def _rails(site: Site) -> tuple[int, ...]:
    """Cards whose ports serve what leaves an instance, when every card of an innermost instance has a ring or tree of its own."""
    rails = site.group.counts[0]
    return tuple(min(site.inside[t], rails * max(1, site.group.crossings[t])) for t in range(len(site.group.counts)))


def _direct(site: Site, passes: int) -> Traffic:
    """Every member sends every other its part at once; what crosses an outer network has come through the inner one's ports."""
    counts, inside, n = site.group.counts, site.inside, site.group.size
    out = [passes * inside[t] * (counts[t] - 1) * inside[t] / n for t in range(len(counts))]
    up = [o * site.load(uniform_load, t)[1] for t, o in enumerate(out)]
    for t in range(len(counts) - 1, 0, -1):
        if site.cluster.medium(t) == site.cluster.medium(t - 1):
            out[t - 1] += out[t] / counts[t - 1]
    last = max(site.used, default=0)
    steps = tuple(float(passes) if t == last else 0.0 for t in range(len(counts)))
    return Traffic("direct", steps, tuple(o * site.load(uniform_load, t)[0] for t, o in enumerate(out)), tuple(up), inside, copied=1.0 / n)


def _halving_doubling(site: Site, passes: int) -> Traffic:
    """Halve the message with partners 1, 2, 4 ... ranks away, the nearest first, so that outer tiers carry least."""
    steps, out, up = [], [], []
    for t, n in enumerate(site.group.counts):
        rounds = range(n.bit_length() - 1)
        steps.append(float(passes * len(rounds)))
        loads = [(2.0 ** -(k + 1), *site.load(pair_load, t, 2**k)) for k in rounds]
        out.append(passes * sum(part * link for part, link, _ in loads))
        up.append(passes * sum(part * uplink for part, _, uplink in loads))
    return Traffic("halving-doubling", tuple(steps), tuple(out), tuple(up), site.inside, together=False)


def _tree(kind: Kind, site: Site) -> Traffic:
    """Two binary trees over the instances; a chain among cards that share memory or a bus, as a kernel of each card passes on."""
    ways = 1 if kind == Kind.BROADCAST else 2
    steps, out, up = [], [], []
    for t, n in enumerate(site.group.counts):
        chain = t == 0 and site.cluster.medium(0) != "network" and kind != Kind.BARRIER
        steps.append(float(ways * (n - 1 if chain else math.ceil(math.log2(n)))))
        moved = 0.0 if n == 1 or kind == Kind.BARRIER else float(ways)
        link, uplink = site.load(neighbour_load, t)
        out.append(moved * link)
        up.append(moved * uplink)
    return Traffic("tree", tuple(steps), tuple(out), tuple(up), _rails(site))


def _in_network(kind: Kind, site: Site) -> Traffic:
    """Switches add and copy: a card sends its vector once, and reads 1/n of it once more where it also gathers."""
    steps = tuple(2.0 if n > 1 else 0.0 for n in site.group.counts)
    moved = {Kind.ALL_REDUCE: 1.0 + 1.0 / site.group.size, Kind.BROADCAST: 1.0, Kind.BARRIER: 0.0}[kind]
    out = tuple(moved if n > 1 else 0.0 for n in site.group.counts)
    up = tuple(o * site.load(neighbour_load, t)[1] for t, o in enumerate(out))
    return Traffic("in-network", steps, out, up, site.inside, in_network=True)


def _hierarchical(kind: Kind, site: Site) -> Iterator[Traffic]:
    """Yield reduce-scatters from the inner tier outward, all-gathers back, one tier after the other, each by ring or direct."""
    passes, tiers = PASSES[kind], len(site.group.counts)
    for direct in product((False, True), repeat=len(site.used)):
        steps, out, up = [0.0] * tiers, [0.0] * tiers, [0.0] * tiers
        for t, at_once in zip(site.used, direct, strict=True):
            n = site.group.counts[t]
            steps[t] = float(passes * (1 if at_once else n - 1))
            link, uplink = site.load(uniform_load if at_once else neighbour_load, t)
            moved = passes * (n - 1) / n
            out[t] = moved * link / (1 if at_once else parallel_rings(site.cluster.tiers[t], n))
            up[t] = moved * uplink
        name = "hierarchical" if not any(direct) else "hierarchical direct" if all(direct) else "hierarchical mixed"
        yield Traffic(name, tuple(steps), tuple(out), tuple(up), site.inside, together=False)


def _staged_exchange(site: Site) -> Traffic:
    """All-to-all inside, sorted by the place of the receiver, then between instances at the same place: fewer, longer messages."""
    steps = tuple(1.0 if n > 1 else 0.0 for n in site.group.counts)
    moved = [site.inside[t] * (n - 1) / n for t, n in enumerate(site.group.counts)]
    loads = [site.load(uniform_load, t) for t in range(len(moved))]
    out, up = (tuple(m * load[way] for m, load in zip(moved, loads, strict=True)) for way in (0, 1))
    return Traffic("staged", steps, out, up, site.inside, together=False)


def _message(site: Site) -> Traffic:
    """One message across the outermost tier that lies between the two."""
    last = max(site.used, default=0)
    alone = tuple(1.0 if t == last else 0.0 for t in range(len(site.group.counts)))
    loads = [site.load(pair_load, t, 1) for t in range(len(alone))]
    out, up = (tuple(a * load[way] for a, load in zip(alone, loads, strict=True)) for way in (0, 1))
    return Traffic("direct", alone, out, up, site.inside)
