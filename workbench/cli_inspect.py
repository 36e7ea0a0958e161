"""`workbench inspect`: what is in a recording, and what looks wrong with it."""

from __future__ import annotations

import click

from workbench.cli_output import show


@click.command()
@click.argument("traces", nargs=-1, required=True)
@click.option("--npu", metavar="NAME_OR_FILE", help="Card the traces were recorded on, where it is not recognised.")
@click.option("--top", type=click.IntRange(0), default=5, show_default=True, help="Rows of the tables.")
@click.option("--all", "everything", is_flag=True, help="All rows, and the counts and sums of every file as recorded.")
@click.option("--memory", is_flag=True, help="Read the records of memory allocators in long profiles too.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema inspect).")
@click.option("--salvage", is_flag=True, help="Import what is whole of a damaged file, and say what is lost.")
@click.option("--ranks", metavar="R,R,...", help="Rank of every file, where the files do not say.")
def inspect(
    traces: tuple[str, ...],
    npu: str | None,
    top: int,
    everything: bool,
    memory: bool,
    as_json: bool,
    salvage: bool,
    ranks: str | None,
) -> None:
    """Say what is in one job's traces (files, directories, quoted patterns): where a step goes, what it consists of, what looks wrong."""
    from workbench.hardware.npu import load_npu
    from workbench.study.asked import parse_ranks
    from workbench.study.document import to_json
    from workbench.study.inspect import inspect as run
    from workbench.study.terminal_inspect import inspect_text
    from workbench.trace.open import open_trace

    card = load_npu(npu) if npu is not None else None
    document = run(open_trace(list(traces), salvage=salvage, ranks=parse_ranks(ranks, traces)), traces, card, memory)
    if as_json:
        click.echo(to_json(document))
    else:
        show(inspect_text(document, top, everything))
