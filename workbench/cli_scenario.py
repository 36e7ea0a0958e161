"""Options that make a scenario of a recording, shared by the commands that predict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from workbench.cli_output import vendor_options

if TYPE_CHECKING:
    from workbench.study.scenario import Scenario
    from workbench.trace.trace import Trace

F = TypeVar("F", bound=Callable[..., Any])


def _factor(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 <= value < float("inf"):
        raise click.BadParameter("give a finite number of 0 or more", context, parameter)
    return value


def scenario_options(command: F) -> F:
    """Add the options that commands that predict share."""
    options = (
        click.option("--npu", metavar="NAME_OR_FILE", help="Candidate card: a catalogue name or a YAML description."),
        click.option("--source", metavar="NAME", help="Card the trace was recorded on, where it is not recognised."),
        click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help='Change a field: memory.hbm.bandwidth="3.2 TB/s".'),
        click.option("--vendor", metavar="FILE", help="A vendor's operator times (CSV, Excel, Parquet); they take precedence."),
        click.option("--vendor-columns", multiple=True, metavar="IN_FILE=MEANING,...", help="Rename its columns: dauer=time_us."),
        click.option("--vendor-contract", multiple=True, metavar="KEY=ANSWER,...", help="What its times mean: launch=no,clock=1.41 GHz."),
        click.option(
            "--host", metavar="NAME|FACTOR", help="Machine around the card (recorded, data/host, a YAML file), or a factor on host work."
        ),
        click.option("--source-host", metavar="NAME", help="Machine the trace was recorded on, where it is not recognised."),
        click.option("--host-factor", type=float, callback=_factor, help="Host work takes this many times as long (default 1)."),
        click.option(
            "--anchored/--model-only",
            default=None,
            help="Recorded times scaled by the ratio of models (default where the recording's card is known), or the model alone.",
        ),
        click.option("--unprofiled-step", metavar="TIME", help="Step without the profiler, e.g. 12.3ms: predict the unprofiled job."),
        click.option(
            "--scale", metavar="PATTERN=FACTOR", multiple=True, help="Operators or kernels of this name take FACTOR times as long."
        ),
        click.option("--rewrite", metavar="EDIT", multiple=True, help="Edit the recording: 'fuse:A > B', 'retype:gemm=bf16', capture ..."),
        click.option("--salvage", is_flag=True, help="Import what is whole of a damaged file, and say what is lost."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def each(paths: Sequence[str], salvage: bool) -> Iterable[tuple[str, Trace]]:
    """Open files one by one."""
    from workbench.trace.open import open_trace

    return ((path, open_trace([path], salvage=salvage)) for path in dict.fromkeys(paths))


def scenario_of(trace: Trace, npu: str | None, source: str | None, settings: Sequence[str], vendor: str | None,
                vendor_columns: Sequence[str], vendor_contract: Sequence[str], host: str | None, source_host: str | None,
                host_factor: float | None, anchored: bool | None, unprofiled_step: str | None, scale: Sequence[str],
                rewrite: Sequence[str]) -> Scenario:  # fmt: skip
    """Make the scenario the options describe."""
    from workbench import units
    from workbench.cost.vendor import read_vendor
    from workbench.graph.rewrite_text import parse_rewrite
    from workbench.hardware.host import load_host
    from workbench.hardware.npu import load_npu
    from workbench.study.asked import parse_host, parse_scale, parse_setting
    from workbench.study.scenario import Scenario
    from workbench.study.workload import Workload

    machine, factor = parse_host(host)
    if factor is not None and host_factor is not None:
        raise click.UsageError("--host gives a factor, and so does --host-factor: keep one")
    stated = vendor_options(vendor, vendor_columns, vendor_contract)
    made = Scenario(
        Workload(trace),
        npu=load_npu(npu) if npu is not None else None,
        source=load_npu(source) if source is not None else None,
        vendor=read_vendor(vendor, *stated) if vendor is not None else None,
        host_factor=next((f for f in (host_factor, factor) if f is not None), 1.0),
        anchored=anchored,
        host=machine,
        source_host=load_host(source_host) if source_host is not None else None,
        unprofiled_step_s=None if unprofiled_step is None else units.parse(unprofiled_step, "s", "--unprofiled-step"),
        scale=tuple(parse_scale(text) for text in scale),
        rewrites=tuple(parse_rewrite(text) for text in rewrite),
    )
    changes = dict(parse_setting(text) for text in settings)
    if len(changes) < len(settings):
        raise click.UsageError("a field is set twice")
    return made.with_(changes)
