"""Command on recordings at scale: ``scale``."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli_output import finite, pairs, show
from workbench.cli_scenario import scenario_of, scenario_options


def _counts(text: str) -> list[int]:
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.UsageError(f"--cards {text!r}: write numbers of cards, e.g. 8,64,1024")
    return [int(part) for part in parts]


@click.command()
@click.argument("traces", nargs=-1, required=True)
@scenario_options
@click.option("--cluster", "cluster_name", required=True, metavar="NAME_OR_FILE", help="A catalogue name or a YAML description.")
@click.option("--cards", required=True, metavar="N,N,...", help="Numbers of cards.")
@click.option("--gradients", metavar="SIZE", help='All gradients of a card, where the recording does not say: "1.34 GB".')
@click.option("--bucket", default="25 MiB", show_default=True, metavar="SIZE", help="Gradients sent together; inf: all after the last.")
@click.option("--algorithm", default="", help="Of the all-reduce: ring, tree, hierarchical ...; default: the fastest.")
@click.option("--compress", "ratio", type=click.FloatRange(min=1), callback=finite, help="Compress gradients: bytes that become one.")
@click.option("--codec", "rate", metavar="RATE", help='With --compress: uncompressed bytes a second: "60 GB/s".')
@click.option("--adds", is_flag=True, help="With --compress: payloads can be summed.")
@click.option("--jitter", type=click.FloatRange(0, 0.5), default=0.0, show_default=True, help="Spread of a card's compute, step to step.")
@click.option("--straggler", type=click.FloatRange(0.1, 100), default=1.0, show_default=True, help="Compute of one card over the others'.")
@click.option("--set-cluster", "tiers", metavar="PATH=VALUE", multiple=True, help='Change a field: tiers.unit.oversubscription="4".')
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema scale).")
def scale(
    traces: tuple[str, ...], cluster_name: str, cards: str, gradients: str | None, bucket: str, algorithm: str, ratio: float | None,
    rate: str | None, adds: bool, jitter: float, straggler: float, tiers: tuple[str, ...], as_json: bool, **asked: Any,
) -> None:  # fmt: skip
    """Scale a recording out by data parallelism: step, efficiency, exposed messages on many cards; overlap follows from its graph.

    TRACES are one file, or all files of one job.
    """
    from workbench import units
    from workbench.hardware.cluster_text import load_cluster
    from workbench.network.compression import Codec
    from workbench.study.document import to_json
    from workbench.study.documents_scale import scale_document
    from workbench.study.scale_out import scale_out
    from workbench.study.terminal_scale import scale_text
    from workbench.trace.open import open_trace

    if (ratio is None) != (rate is None) or (adds and ratio is None):
        raise click.UsageError("--compress and --codec go together: by how much, and at which rate")
    codec = None if ratio is None else Codec(ratio, units.parse(rate, "B/s", "--codec"), adds)
    counts, rewrite = _counts(cards), asked.pop("rewrite")
    cluster = load_cluster(cluster_name).with_(pairs(tiers, "--set-cluster"))
    recording = open_trace(list(traces), salvage=asked.pop("salvage"))
    found = scale_out(
        scenario_of(recording, rewrite=rewrite, **asked), cluster, counts, gradient_bytes=gradients, bucket_bytes=bucket,
        algorithm=algorithm, codec=codec, jitter=jitter, straggler=straggler,
    )  # fmt: skip
    document = scale_document(", ".join(traces), found)
    if as_json:
        click.echo(to_json(document))
    else:
        show(scale_text(document))
