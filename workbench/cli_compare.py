"""Command on two recordings: ``compare``."""

from __future__ import annotations

import click

from workbench.cli_output import show, writable


def _step(context: click.Context, parameter: click.Parameter, value: str) -> str | int:
    if value == "median":
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a step number nor median", context, parameter) from None


@click.command()
@click.argument("a", metavar="BEFORE")
@click.argument("b", metavar="AFTER")
@click.option(
    "--step", default="median", show_default=True, callback=_step, metavar="median|N", help="Step compared; N in both recordings."
)
@click.option("--rank", type=click.IntRange(0), metavar="R", help="Rank compared; default: the one whose change is typical.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="Rows of the tables.")
@click.option("--salvage", is_flag=True, help="Import what is whole of a damaged file, and say what is lost.")
@click.option("--out", metavar="CSV", help="Write one row an aligned operator.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema compare).")
def compare(a: str, b: str, step: str | int, rank: int | None, top: int, salvage: bool, out: str | None, as_json: bool) -> None:
    """Compare a step of two recordings (before and after, card A and card B): what got slower, by how much of the step.

    BEFORE is called A, AFTER is called B. Each is a file, or a directory or a quoted pattern of rank files.
    """
    from workbench.study.compare_traces import comparison
    from workbench.study.document import to_json
    from workbench.study.documents_compare import write_csv
    from workbench.study.terminal_compare import comparison_text
    from workbench.trace.open import open_trace

    if out:
        writable(out, "--out")
    first = open_trace([a], salvage=salvage)
    second = open_trace([b], salvage=salvage)
    document = comparison(first, second, step, rank)
    if out:
        write_csv(document, out)
    if as_json:
        click.echo(to_json(document))
        return
    show(comparison_text(document, top))
    if out:
        click.echo(f"written to {out}")
