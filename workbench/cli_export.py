"""Command that takes things away: ``export``."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli_output import writable
from workbench.cli_scenario import scenario_of, scenario_options


@click.command()
@click.argument("traces", nargs=-1, required=True)
@click.option("--to", required=True, metavar="FILE",
              help=".json or .json.gz (Perfetto), .parquet, .arrow or .feather (a table), .et (Chakra).")  # fmt: skip
@click.option("--table", default="events", show_default=True, type=click.Choice(["events", "timeline", "operators", "lags"]),
              help="Of Parquet and Arrow: events as recorded, work as replayed or predicted, operators, unexplained lags.")  # fmt: skip
@scenario_options
def export(traces: tuple[str, ...], to: str, table: str, salvage: bool, **asked: Any) -> None:
    """Write a recording as a file; with --npu or any other change, the prediction too.

    TRACES are the files of one job, directories or quoted patterns. Without a change, the recording alone.
    """
    from workbench.study.export import export as write
    from workbench.study.export import form_of
    from workbench.study.predict import predict
    from workbench.trace.open import open_trace

    writable(to, "--to")
    form_of(to)
    trace = open_trace(list(traces), salvage=salvage)
    changed = any(value not in (None, ()) for value in asked.values())
    rows = write(predict(scenario_of(trace, **asked)) if changed else trace, to, table)
    click.echo(f"written to {to}: {rows} {'rows of ' + table if to.lower().endswith(('.parquet', '.arrow', '.feather')) else 'nodes'}")
