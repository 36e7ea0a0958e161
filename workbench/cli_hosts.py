"""Command that measures hosts: ``hosts``."""

from __future__ import annotations

import click

from workbench import units
from workbench.cli_output import folder, show


@click.command()
@click.argument("recordings", nargs=-1, required=True, metavar="FIRST SECOND [FIRST SECOND ...]")
@click.option("--names", default="first,second", show_default=True, metavar="A,B", help="Names of the two machines.")
@click.option("--out", metavar="DIR", help="Write A.yaml and B.yaml into this folder, for --source-host and --host.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON (schema: workbench schema hosts).")
def hosts(recordings: tuple[str, ...], names: str, out: str | None, as_json: bool) -> None:
    """Measure two machines' hosts on programs recorded on both, to predict other programs with --source-host and --host.

    Two files a program: on the first machine, on the second.
    """
    from pathlib import Path

    from workbench.study.document import to_json
    from workbench.study.measured_hosts import description, measured_hosts
    from workbench.study.terminal_hosts import hosts_text
    from workbench.trace.open import open_trace

    first, _, second = names.partition(",")
    named = first.strip(), second.strip()
    if len(recordings) % 2:
        raise click.UsageError(f"{units.count(len(recordings), 'file')} {'is' if len(recordings) == 1 else 'are'} not two a program")
    paths = [] if out is None else [Path(out) / f"{name}.yaml" for name in named]
    if out is not None:
        folder(out, "--out")
    traces = [open_trace([path]) for path in recordings]
    one, other, document = measured_hosts(list(zip(traces[::2], traces[1::2], strict=True)), named)
    for path, spec in zip(paths, (one, other), strict=False):
        path.write_text(description(spec), encoding="utf-8")
        document.out.append(str(path))
    if as_json:
        click.echo(to_json(document))
    else:
        show(hosts_text(document))
