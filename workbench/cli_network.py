"""Command on the network of a cluster: ``collective``."""

from __future__ import annotations

from pathlib import Path

import click

from workbench.cli_output import finite, pairs, show, writable


@click.command()
@click.argument("file", metavar="[SIZES.csv]", required=False)
@click.option("--cluster", "cluster_name", required=True, metavar="NAME_OR_FILE", help="A catalogue name or a YAML description.")
@click.option("--collective", "name", help="Without a file: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv.")
@click.option("--cards", metavar="N,N,...", help="Without a file: sizes of the group; default: the whole cluster.")
@click.option("--sizes", default="8 B:8 GB:31", show_default=True, metavar="FROM:TO:COUNT", help="Without a file: sizes, evenly in log.")
@click.option("--algorithm", default="", help="Keep to one: ring, rings, tree, halving-doubling, direct, in-network, hierarchical.")
@click.option("--protocol", default="", help="Keep to one of the library's.")
@click.option(
    "--placement",
    type=click.Choice(["ordered", "scattered"]),
    default="ordered",
    show_default=True,
    help="scattered: a ring hops to another node with every message.",
)
@click.option("--alone", is_flag=True, help="No other group of the cluster communicates at the same time.")
@click.option(
    "--compress", "ratio", type=click.FloatRange(min=1), callback=finite, help="Also compress all-reduces: bytes that become one."
)
@click.option("--codec", "rate", metavar="RATE", help='With --compress: uncompressed bytes a second, encoded or decoded: "60 GB/s".')
@click.option("--adds", is_flag=True, help="With --compress: payloads can be summed (low rank); else they are exchanged or gathered.")
@click.option(
    "--slow-link", "slow", metavar="TIER=SHARE", multiple=True, help="One link of a tier has this share of its bandwidth: node=0.5."
)
@click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help='Change a field: tiers.node.latency="1 us".')
@click.option("--fit", "fitted", metavar="FILE.yaml", help="Fit the cluster to the measured times of SIZES.csv, and write it.")
@click.option("--out", metavar="CSV", help="Write one row a message.")
@click.option("--top", type=click.IntRange(0), default=40, show_default=True, help="Rows of the table.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema collective).")
def collective(
    file: str | None, cluster_name: str, name: str | None, cards: str | None, sizes: str, algorithm: str, protocol: str, placement: str,
    alone: bool, ratio: float | None, rate: str | None, adds: bool, slow: tuple[str, ...],
    settings: tuple[str, ...], fitted: str | None, out: str | None,
    top: int, as_json: bool,
) -> None:  # fmt: skip
    """Time collectives on a cluster: SIZES.csv has the columns collective, cards, bytes (and stride, time_us where measured)."""
    from workbench import units
    from workbench.hardware.cluster_text import cluster_yaml, load_cluster
    from workbench.network.compression import Codec
    from workbench.study.collective import Placed, collectives, write_collectives
    from workbench.study.collective_messages import asked_messages, read_messages
    from workbench.study.document import to_json
    from workbench.study.fabric_fit import fit_fabric
    from workbench.study.slow_links import with_slow_links
    from workbench.study.terminal_collective import collective_text

    if (file is None) == (name is None):
        raise click.UsageError("give a file of messages, or --collective NAME with --cards and --sizes")
    for path, option in ((out, "--out"), (fitted, "--fit")):
        if path:
            writable(path, option)
    if (ratio is None) != (rate is None) or (adds and ratio is None):
        raise click.UsageError("--compress and --codec go together: by how much, and at which rate")
    codec = None if ratio is None else Codec(ratio, units.parse(rate, "B/s", "--codec"), adds)
    cluster = with_slow_links(load_cluster(cluster_name).with_(pairs(settings, "--set")), pairs(slow, "--slow-link"))
    messages = read_messages(file) if file else asked_messages(cluster, name or "", cards, sizes)
    fit = fit_fabric(cluster, messages) if fitted else None
    placed = Placed(algorithm, protocol, placement == "scattered", alone, codec)
    document = collectives(cluster if fit is None else fit.cluster, messages, placed, fit)
    if fitted and fit is not None:
        Path(fitted).write_text(cluster_yaml(fit.cluster), encoding="utf-8")
    if out:
        write_collectives(document, out)
    if as_json:
        click.echo(to_json(document))
        return
    show(collective_text(document, top))
    if out:
        click.echo(f"written to {out}")
    if fitted:
        click.echo(f"the fitted cluster is written to {fitted}")
