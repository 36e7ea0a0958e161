"""Commands on files of operators: ``estimate`` and ``calibrate``."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workbench.cli_output import finite, pairs, show, vendor_options, writable

F = TypeVar("F", bound=Callable[..., Any])


def _table_options(command: F) -> F:
    """Add the options that say how a table of operators is read."""
    options = (
        click.option("--npu", required=True, metavar="NAME_OR_FILE", help="Card: a catalogue name or a YAML description."),
        click.option("--columns", multiple=True, metavar="IN_FILE=MEANING,...", help="Rename columns: M=m,latency=time_us."),
        click.option("--where", multiple=True, metavar="COLUMN=TEXT", help="Only rows whose cell begins with TEXT, e.g. device=A100."),
        click.option("--dtype", metavar="NAME", help="Element type of rows that do not say."),
        click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (workbench schema NAME describes it)."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("file", metavar="OPS.csv")
@_table_options
@click.option("--out", metavar="CSV", help="Write one row an operator.")
@click.option("--tile", metavar="MxNxK", help="Fixed tile of the matrix products, e.g. 128x256x64 (or MxNxKxSPLIT).")
@click.option("--unroll", type=click.IntRange(min=1), help="With --tile: steps of K fetched together and issued back to back; default 1.")
@click.option("--double-buffer", type=click.Choice(["on", "off"]), help="With --tile: off: a core loads, then computes; default on.")
@click.option("--sparse", is_flag=True, help="Weights of matrix products are pruned: two zeros in every four along K, left out.")
@click.option("--convolution", "algorithm", default="cheapest", show_default=True,
              type=click.Choice(["cheapest", "direct", "implicit", "winograd", "winograd2", "winograd4", "fft"]),
              help="Algorithm of convolutions; what it cannot compute is a product.")  # fmt: skip
@click.option("--copies", type=click.FloatRange(min=1), callback=finite,
              help="Working sets between two uses (1: operands stay on the chip); default: cold.")  # fmt: skip
@click.option("--vendor", metavar="FILE", help="A vendor's operator times (CSV, Excel, Parquet); they take precedence.")
@click.option("--vendor-columns", multiple=True, metavar="IN_FILE=MEANING,...", help="Rename its columns: dauer=time_us.")
@click.option("--vendor-contract", multiple=True, metavar="KEY=ANSWER,...", help="What its times mean: launch=no,clock=1.41 GHz.")
@click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help='Change a field: memory.hbm.bandwidth="3.2 TB/s".')
@click.option("--below", type=click.FloatRange(min=0, min_open=True), callback=finite, metavar="SHARE",
              help="List only products that use less of their unit's peak, e.g. 0.6.")  # fmt: skip
@click.option("--top", type=click.IntRange(0), default=20, show_default=True, help="Rows of the table.")
def estimate(
    file: str, npu: str, columns: tuple[str, ...], where: tuple[str, ...], dtype: str | None, as_json: bool, out: str | None,
    tile: str | None, unroll: int | None, double_buffer: str | None, sparse: bool, algorithm: str, copies: float | None, vendor: str | None,
    vendor_columns: tuple[str, ...], vendor_contract: tuple[str, ...], settings: tuple[str, ...], below: float | None, top: int,
) -> None:  # fmt: skip
    """Price the operators of a file on a card: seconds, what bounds them, cycle stack, bytes, evidence."""
    from workbench.cost.choices import COLD
    from workbench.cost.tiles import parse_tile
    from workbench.cost.vendor import read_vendor
    from workbench.hardware.npu import load_npu
    from workbench.study.asked import parse_setting
    from workbench.study.document import to_json
    from workbench.study.operator_times import price_operators, write_csv
    from workbench.study.operators_csv import read_operators
    from workbench.study.terminal_operators import estimate_text

    if out:
        writable(out, "--out")
    stated = vendor_options(vendor, vendor_columns, vendor_contract)
    if tile is None and (unroll or double_buffer):
        raise click.UsageError("--unroll and --double-buffer say how a fixed tile is worked on: give it with --tile")
    fixed = parse_tile(tile, unroll or 1, double_buffer != "off") if tile else None
    spec = load_npu(npu)
    changes = {path.removeprefix("npu."): value for path, value in map(parse_setting, settings)}
    spec = spec.with_(changes) if changes else spec
    operators = read_operators(file, columns=pairs(columns, "--columns"), where=pairs(where, "--where"), dtype=dtype)
    times = read_vendor(vendor, *stated) if vendor else None
    warm = COLD if copies is None else (copies, copies)
    document = price_operators(operators, spec, tile=fixed, algorithm=algorithm, copies=warm, sparse=sparse, vendor=times, below=below)
    if out:
        write_csv(document, out)
    if as_json:
        click.echo(to_json(document))
        return
    show(estimate_text(document, top))
    if out:
        click.echo(f"written to {out}")


@click.command()
@click.argument("files", metavar="MEASURED.csv...", nargs=-1, required=True)
@_table_options
@click.option("--out", metavar="FILE.yaml", help="Write the card with its fitted scalars and their errors.")
@click.option("--copies", metavar="N[,OUTPUTS]", help="Working sets (and outputs) the harness cycled through; 1: operands stay cached.")
@click.option("--clock", type=click.Choice(["kernel", "events", "loop", "wall"]), default="kernel", show_default=True,
              help="What the harness timed: kernels, a call between events, a loop of calls, a call and its synchronisation.")  # fmt: skip
def calibrate(
    files: tuple[str, ...], npu: str, columns: tuple[str, ...], where: tuple[str, ...], dtype: str | None, as_json: bool, out: str | None,
    copies: str | None, clock: str,
) -> None:  # fmt: skip
    """Fit three scalars a dtype on measured operators of all kinds together; errors are those of rows left out of the fit."""
    from workbench.cost.harness import Harness
    from workbench.hardware.npu import load_npu
    from workbench.study.calibration import calibrate_card
    from workbench.study.document import to_json
    from workbench.study.operators_csv import read_operators
    from workbench.study.terminal_operators import calibration_text

    if out:
        writable(out, "--out")
    spec, harness = load_npu(npu), Harness(_copies(copies), clock)
    asked = {"columns": pairs(columns, "--columns"), "where": pairs(where, "--where"), "dtype": dtype}
    tables = [read_operators(file, needs_time=True, **asked) for file in dict.fromkeys(files)]  # type: ignore[arg-type]
    found = calibrate_card(tables, spec, harness=harness, out=out)
    if out:
        Path(out).write_text(found.spec.to_yaml(), encoding="utf-8")
    if as_json:
        click.echo(to_json(found.document))
        return
    show(calibration_text(found.document))
    if out:
        click.echo(f"written to {out}: workbench predict TRACE --npu {out}")


def _copies(text: str | None) -> tuple[float, float]:
    """Read working sets and outputs between two uses: ``6`` or ``6,2``; nothing: cold."""
    if text is None:
        return math.inf, math.inf
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, 2) or not all(1.0 <= value < math.inf for value in values):
        raise click.UsageError(f"--copies {text!r}: write a number of at least 1, or two of them: 6,2")
    return values[0], values[-1]
