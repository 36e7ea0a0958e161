"""The command line. Exit codes: 0 done; 1 refused or invalid; 2 unreadable input or wrong usage. Heavy imports wait inside commands."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from workbench import __version__
from workbench.cli_cache import cache
from workbench.cli_compare import compare
from workbench.cli_counters import counters
from workbench.cli_export import export
from workbench.cli_hosts import hosts
from workbench.cli_inspect import inspect
from workbench.cli_models import models
from workbench.cli_network import collective
from workbench.cli_operators import calibrate, estimate
from workbench.cli_output import WIDTH, show, writable
from workbench.cli_plan import plan
from workbench.cli_rewrites import rewrites
from workbench.cli_scale import scale
from workbench.cli_scenario import each, scenario_of, scenario_options
from workbench.errors import WorkbenchError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; whatever goes wrong is one line on stderr, never a traceback (``--debug`` shows it)."""
    code: object = 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name this terminal has no letters for is no reason to stop
    try:
        code = cli.main(args=None if arguments is None else list(arguments), prog_name="workbench", standalone_mode=False)
        sys.stdout.flush()
    except WorkbenchError as fault:
        code = _fail(str(fault), fault.exit_code)
    except click.exceptions.NoArgsIsHelpError as fault:
        fault.show()
        code = 2
    except click.ClickException as fault:
        context = getattr(fault, "ctx", None)
        where = context.command_path if context else "workbench"
        code = _fail(f"{where}: {fault.format_message()} (see {where} --help)", 2)
    except (KeyboardInterrupt, click.Abort):
        code = _fail("workbench: interrupted (nothing was changed)", 1)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as fault:
        if "--debug" in (sys.argv[1:] if arguments is None else arguments):
            raise
        code = _unexpected(fault)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(text: str, code: int) -> int:
    click.echo(f"error: {' '.join(text.split())}", err=True)
    return code


def _unexpected(fault: Exception) -> int:
    text = f"workbench: {f'{type(fault).__name__}: {fault}'[:300]} (this is a bug: run again with --debug and report what it says)"
    if isinstance(fault, OSError):
        text = f"{fault.filename or 'output'}: {fault.strerror or fault} (check the path and the free space)"
    if isinstance(fault, MemoryError):
        text = "workbench: not enough memory (use a shorter recording or a smaller sweep)"
    return _fail(text, 1)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH})
@click.version_option(__version__, prog_name="workbench")
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
def cli(debug: bool) -> None:
    """From a real training trace to the predicted step on a card that does not exist."""


@cli.command()
@click.argument("traces", nargs=-1, required=True)
@scenario_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema predict).")
@click.option("--perfetto", metavar="FILE", help="Write measured and predicted timelines as Chrome trace JSON.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="Rows of the tables.")
def predict(traces: tuple[str, ...], as_json: bool, perfetto: str | None, top: int, **asked: Any) -> None:
    """Predict the step of each trace on a card; without --npu, replay it as measured."""
    from workbench.study.perfetto import write_perfetto
    from workbench.study.predict import predict as run
    from workbench.study.report import predict_document, to_json
    from workbench.study.terminal import prediction_text

    if perfetto is not None:
        writable(perfetto, "--perfetto")
    predictions = {path: run(scenario_of(trace, **asked)) for path, trace in each(traces, asked.pop("salvage"))}
    document = predict_document(predictions)
    if perfetto is not None:
        write_perfetto(perfetto, predictions)
    if as_json:
        click.echo(to_json(document))
        return
    for path, found in document.traces.items():
        show(prediction_text(path, found, top))


@cli.command()
@click.argument("traces", nargs=-1, required=True)
@scenario_options
@click.option("--axis", "axes", metavar="PATH=START:STOP:COUNT[UNIT]", multiple=True, required=True,
              help="Also PATH=A,B,C; PATH=START:STOP:COUNT[UNIT]:log; PATH,PATH=... ties fields.")  # fmt: skip
@click.option("--out", metavar="FILE.nc", help="Write the parameter space as netCDF.")
@click.option("--budget", default="2 GB", show_default=True, help="Most bytes of operator times (cells x operators x 8).")
@click.option("--accounts", is_flag=True, help="Also account for the time of every cell (slower).")
@click.option("--json", "as_json", is_flag=True, help="Print the space as JSON (schema: workbench schema sweep).")
def sweep(traces: tuple[str, ...], axes: tuple[str, ...], out: str | None, budget: str, accounts: bool, as_json: bool, **asked: Any) -> int:
    """Predict the step in every cell of a parameter space; several TRACES are an axis of it (--axis npu=A,B ranks cards on them)."""
    from workbench.study.asked import parse_axis
    from workbench.study.dataset import write_netcdf
    from workbench.study.report import sweep_document, to_json
    from workbench.study.sweep import sweep as run
    from workbench.study.terminal import sweep_text
    from workbench.study.terminal_order import order_text

    if out is not None:
        writable(out, "--out")
    space = dict(parse_axis(text) for text in axes)
    if len(space) < len(axes):
        raise click.UsageError("an axis is given twice")
    recordings = [recording for _, recording in each(traces, asked.pop("salvage"))]
    if len(recordings) > 1:
        space["workload"] = [*recordings]
    dataset = run(scenario_of(recordings[0], **asked), space, budget=budget, accounts=accounts)
    if out is not None:
        write_netcdf(dataset, out)
    if as_json:
        click.echo(to_json(sweep_document(dataset, out)))
    else:
        show((*sweep_text(dataset), *order_text(dataset)))
        if out is not None:
            click.echo(f"written to {out}")
    return 0 if bool(dataset["valid"].any()) else 1  # the reasons are shown


@cli.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON (schema: workbench schema check).")
def check(file: str, as_json: bool) -> int:
    """Say what a file is (card, vendor times, trace) and what is wrong with it."""
    from workbench.study.check import check_file
    from workbench.study.report import to_json
    from workbench.study.terminal import notes_text

    document, code = check_file(file)
    if as_json:
        click.echo(to_json(document))
    elif document.ok:
        click.echo(f"{file}: {document.summary}")
        show(notes_text(document.notes))
    if document.error is not None:
        _fail(document.error, code)
    return code


@cli.command()
@click.argument("traces", nargs=-1)
@click.option("--port", default=5006, show_default=True, help="Port on this machine (0: any free one).")
@click.option("--npu", default="", metavar="NAME_OR_FILE", help="Card at the start.")
@click.option("--folder", metavar="DIR", help="Folder below which traces on this machine may be picked.")
@click.option("--address", default="localhost", show_default=True, help="Address to listen on.")
@click.option("--allow-websocket-origin", "--origin", "origins", multiple=True, metavar="HOST", help="Host a proxy serves the page under.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser window.")
def serve(traces: tuple[str, ...], no_browser: bool, **asked: Any) -> None:
    """Open the app in the browser; the first of TRACES is opened."""
    from workbench.app.serve import serve as run

    run(traces, show=not no_browser, **asked)


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> int:
    """Open JupyterLab with the notebooks; plots need no network."""
    import subprocess

    notebooks = Path(__file__).resolve().parent.parent / "notebooks"
    environment = {**os.environ, "PANEL_INLINE": "true", "BOKEH_RESOURCES": "inline"}
    given = any("notebook-dir" in text or "root_dir" in text for text in arguments)
    folder = [] if given else [f"--notebook-dir={notebooks if notebooks.is_dir() else os.getcwd()}"]
    quiet = ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None"]  # nothing is asked outside
    return subprocess.call([sys.executable, "-m", "jupyterlab", *folder, *quiet, *arguments], env=environment)


@cli.command()
def warmup() -> None:
    """Compile everything once, so that the first prediction is as fast as the next."""
    from workbench.study.warmup import warmup as run
    from workbench.view.timeline import detail, lanes_of, rgb, statistics

    begin = time.perf_counter()
    for prediction in run():
        lanes = lanes_of(prediction)
        detail(lanes, 0.0, lanes.end_s, 100)
        rgb(lanes, 0.0, lanes.end_s, 100)
        statistics(lanes, lanes.ptr[1:] > lanes.ptr[:-1], 0.0, lanes.end_s)
    click.echo(f"compiled in {time.perf_counter() - begin:.1f} s")


@cli.command()
@click.argument("name")
def schema(name: str) -> None:
    """Print the JSON schema of the --json output of a command, e.g. predict."""
    from workbench.study.documents import schema as published

    click.echo(json.dumps(published(name), indent=2))


cli.add_command(inspect)
cli.add_command(estimate)
cli.add_command(calibrate)
cli.add_command(counters)
cli.add_command(cache)
cli.add_command(compare)
cli.add_command(export)
cli.add_command(collective)
cli.add_command(models)
cli.add_command(plan)
cli.add_command(rewrites)
cli.add_command(scale)
cli.add_command(hosts)

if __name__ == "__main__":
    main()
