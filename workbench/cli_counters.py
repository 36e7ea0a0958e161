"""Command on hardware counters: ``counters``."""

from __future__ import annotations

import click

from workbench.cli_output import finite, pairs, show, writable


@click.command()
@click.argument("file", metavar="COUNTERS.csv")
@click.option("--npu", required=True, metavar="NAME_OR_FILE", help="Card they were recorded on: a catalogue name or a YAML description.")
@click.option(
    "--ops", metavar="OPS.csv", help="Operators of the kernels where the profile has no shapes: a row a kernel, or a column kernel."
)
@click.option("--columns", multiple=True, metavar="IN_FILE=MEANING,...", help="Rename columns of the counters: 'Op Class=Type'.")
@click.option("--copies", type=click.FloatRange(min=1), callback=finite,
              help="Working sets between two uses (1: operands stay on the chip); default: cold.")  # fmt: skip
@click.option("--out", metavar="CSV", help="Write one row a kernel.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="Rows of the tables.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema counters).")
def counters(
    file: str, npu: str, ops: str | None, columns: tuple[str, ...], copies: float | None, out: str | None, top: int, as_json: bool
) -> None:
    """Put hardware counters (Ascend kernel_details or op_summary, Nsight Compute CSV) beside the model: what bounds each kernel."""
    from workbench.cost.choices import FREE, Choices
    from workbench.hardware.npu import load_npu
    from workbench.operators.counters import read_counters
    from workbench.study.counters import compare_counters, write_counters
    from workbench.study.document import to_json
    from workbench.study.operators_csv import read_operators
    from workbench.study.terminal_counters import counters_text

    if out:
        writable(out, "--out")
    spec = load_npu(npu)
    operators = read_operators(ops) if ops else None
    choices = FREE if copies is None else Choices(copies=(copies, copies))
    document = compare_counters(read_counters(file, pairs(columns, "--columns")), spec, operators, choices)
    if out:
        write_counters(document, out)
    if as_json:
        click.echo(to_json(document))
        return
    show(counters_text(document, top))
    if out:
        click.echo(f"written to {out}")
