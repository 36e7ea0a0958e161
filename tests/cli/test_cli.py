"""The command line: answers, exit codes (0 done, 1 refused or invalid, 2 unreadable or wrong usage), one line for every fault."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import xarray as xr

import workbench
from workbench.cli import cli, main
from workbench.hardware.npu import load_npu
from workbench.study.dataset import changes_at
from workbench.study.predict import predict
from workbench.study.report import schema
from workbench.study.scenario import Scenario
from workbench.trace.open import open_trace

HEAVY = ("numpy", "numba", "xarray", "pandas", "pydantic", "rich", "yaml", "pint", "h5py", "holoviews", "bokeh", "panel", "IPython")


def answer(done: subprocess.CompletedProcess[str], name: str) -> dict:
    """The document a run printed, checked against its published schema; strict JSON."""
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    jsonschema.Draft202012Validator(schema(name)).validate(document)
    return document


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit code and the one line on stderr of a run in this process."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    out, line = capsys.readouterr()
    assert out == ""
    assert line.startswith("error: ")
    assert line.count("\n") == 1
    assert "Traceback" not in line
    return int(ended.value.code or 0), line


def test_help_imports_nothing_heavy():
    """`--help` under a second, asserted on what is loaded instead of on a clock."""
    code = (
        "import sys\nfrom workbench.cli import main\n"
        "try: main(['predict', '--help'])\nexcept SystemExit: pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(workbench.__file__).parent.parent
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--npu" in done.stdout


def test_every_command_and_option_has_help():
    for name, command in cli.commands.items():
        assert command.help, name
        assert all(option.help for option in command.params if option.param_type_name == "option"), name


def test_without_a_card_the_step_is_as_measured(identity, traces):
    """Identity, <= 0.1 %: measured times on the recorded graph give the recorded step."""
    found = answer(identity, "predict")["traces"]
    assert list(found) == traces
    for document in found.values():
        assert document["npu"] is None
        assert document["step_time_s"] == pytest.approx(document["measured_step_s"], rel=1e-3)


def test_a_prediction_is_that_of_the_library(candidate, traces, folder):
    found = answer(candidate, "predict")["traces"][traces[0]]
    scenario = Scenario(open_trace([traces[0]]), npu=load_npu("npu-x"), host_factor=0.5)
    assert found["step_time_s"] == predict(scenario.with_({"npu.memory.hbm.bandwidth": "3.2 TB/s"})).step_time_s
    assert found["host_factor"] == 0.5
    timelines = json.loads(gzip.decompress((folder / "timelines.json.gz").read_bytes()))
    assert {event["pid"] for event in timelines["traceEvents"]} == {1, 2}


def test_a_sweep_writes_a_file_whose_cells_can_be_asked_again(swept, traces, folder):
    found = answer(swept, "sweep")
    assert found["shape"] == [3, 2]
    with xr.open_dataset(folder / "space.nc", engine="h5netcdf") as space:
        assert space["step_time"].values.ravel().tolist() == found["step_time_s"]
        changes = changes_at(space.load(), **{"npu.matrix.rows": 1, "npu.memory.hbm.bandwidth": 2})
    scenario = Scenario(open_trace([traces[0]]), npu=load_npu("npu-x")).with_(changes)
    assert predict(scenario).step_time_s == found["step_time_s"][-1]


def test_vendor_times_take_precedence(capsys, traces, folder, candidate):
    """Of a vendor's table with one operator, exactly that one rests on it, at the stated time."""
    largest = answer(candidate, "predict")["traces"][traces[0]]["operators"][1]
    table = folder / "vendor.csv"
    table.write_text(f'signature,latency_us\n"{largest["signature"]}",123.5\n')
    with pytest.raises(SystemExit):
        main(["predict", traces[0], "--npu", "npu-x", "--vendor", str(table), "--json"])
    found = json.loads(capsys.readouterr().out)["traces"][traces[0]]
    priced = [row for row in found["operators"] if row["evidence"] == "vendor"]
    assert [(row["signature"], row["predicted_s"]) for row in priced] == [(largest["signature"], 123.5e-6)]
    assert found["vendor"]
    assert 0 < found["evidence_share"]["vendor"] < 1


def test_an_operator_twice_as_long_is_asked_in_one_call(capsys, traces):
    """Doubling every operator's device time leaves host and lags alone: the step grows by no more than the device was busy."""
    steps = {}
    for factor in (1, 2):
        with pytest.raises(SystemExit):
            main(["predict", traces[0], "--scale", f"*={factor}", "--json"])
        steps[factor] = json.loads(capsys.readouterr().out)["traces"][traces[0]]
    busy = max(step["measured_s"] for step in steps[1]["steps"])
    assert steps[1]["step_time_s"] < steps[2]["step_time_s"] <= steps[1]["step_time_s"] + busy


def test_people_get_plain_text_in_a_pipe(run, traces):
    done = run("predict", traces[0], "--npu", "npu-x", "--top", 3)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "largest operators (3 of" in done.stdout


def test_facts_of_a_trace(capsys, traces):
    with pytest.raises(SystemExit) as ended:
        main(["inspect", traces[0], "--json"])
    document = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    jsonschema.validate(document, schema("inspect"))
    assert list(document["traces"]) == [traces[0]]


def test_every_published_schema_is_printed(capsys):
    for name in ("inspect", "predict", "sweep", "check"):
        with pytest.raises(SystemExit):
            main(["schema", name])
        assert json.loads(capsys.readouterr().out) == schema(name)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("predict", "missing.json"), 2, "missing.json"),
        (("predict",), 2, "TRACES"),
        (("predict", "a.json", "--unknown"), 2, "--unknown"),
        (("unknown",), 2, "unknown"),
        (("inspect", "a.json", "b.json", "--ranks", "1"), 2, "--ranks"),
        (("check", "missing.yaml"), 2, "missing.yaml"),
        (("schema", "unknown"), 1, "inspect, predict, sweep, check"),
        (("predict", "TRACE", "--npu", "h1000"), 1, "h100"),
        (("predict", "TRACE", "--npu", "npu-x", "--set", "memory.hbm.bandwith=1 TB/s"), 1, "bandwidth"),
        (("predict", "TRACE", "--npu", "npu-x", "--set", "memory.hbm.bandwidth=1"), 1, "unit"),
        (("predict", "TRACE", "--set", "memory.hbm.bandwidth=1 TB/s"), 1, "card"),
        (("predict", "TRACE", "--npu", "npu-x", "--set", "cores"), 2, "path=value"),
        (("predict", "TRACE", "--scale", "aten::mm"), 2, "PATTERN=FACTOR"),
        (("predict", "TRACE", "--host-factor", "-1"), 2, "host-factor"),
        (("predict", "TRACE", "--host-factor", "nan"), 2, "host-factor"),
        (("predict", "TRACE", "--perfetto", "no/such/folder/x.json"), 2, "--perfetto"),
        (("sweep", "TRACE", "--npu", "npu-x"), 2, "--axis"),
        (("sweep", "TRACE", "--npu", "npu-x", "--axis", "cores=1:2"), 2, "COUNT"),
        (("sweep", "TRACE", "--axis", "cores=1,2"), 1, "card"),
        (("predict", "TRACE", "--npu", ""), 1, "no card of this name"),
        (("predict", "TRACE", "--source", ""), 1, "no card of this name"),
        (("predict", "TRACE", "--vendor", ""), 2, "is a directory"),
        (("predict", "TRACE", "--perfetto", ""), 2, "--perfetto"),
        (("predict", "TRACE", "--perfetto", "a\0b"), 2, "--perfetto"),
        (("predict", "TRACE", "--top", "-1"), 2, "--top"),
        (("predict", "TRACE", "--host-factor", "1e308"), 1, "host_factor"),
        (("predict", "TRACE", "--npu", "npu-x", "--set", "cores=3", "--set", "npu.cores=4"), 2, "set twice"),
        (("predict", "TRACE", "--npu", "npu-x", "--set", "anchored=yes"), 1, "true or false"),
        (("sweep", "TRACE", "--npu", "npu-x", "--axis", "cores=16,32", "--out", ""), 2, "--out"),
        (("sweep", "TRACE", "--npu", "npu-x", "--axis", "cores=1:1000000000:1000000000"), 1, "thin npu.cores"),
        (("sweep", "TRACE", "--npu", "npu-x", "--axis", "cores=1,2", "--out", "no/such/folder/x.nc"), 2, "--out"),
    ],
)
def test_faults_are_one_line_with_their_exit_code(capsys, traces, arguments, code, words):
    found, line = fails(capsys, *(traces[1] if argument == "TRACE" else argument for argument in arguments))
    assert (found, words in line) == (code, True), line


def test_faulty_files_are_checked_with_their_line(capsys, tmp_path):
    card = tmp_path / "card.yaml"
    card.write_text(load_npu("npu-x").to_yaml().replace("bandwidth:", "bandwith:", 1))
    code, line = fails(capsys, "check", card)
    assert code == 1
    assert f"{card}:" in line
    assert "did you mean 'bandwidth'" in line
    (tmp_path / "cut.json").write_text('{"traceEvents": [{"ph": "X", "na')
    assert fails(capsys, "check", tmp_path / "cut.json")[0] == 2
    (tmp_path / "empty.json").write_text('{"traceEvents": []}')
    for command in ("check", "predict"):
        code, line = fails(capsys, command, tmp_path / "empty.json")
        assert (code, "the recording holds no" in line) == (1, True)
    (tmp_path / "labels.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "x", "ts": 1, "dur": 9, "pid": 1, "tid": 1}]}'
    )
    for command in (("predict",), ("check",), ("sweep", "--npu", "npu-x", "--axis", "cores=1,2")):
        code, line = fails(capsys, *command, tmp_path / "labels.json")
        assert (code, "the recording holds no" in line) == (1, True)


def test_an_unexpected_fault_is_one_line_that_calls_it_a_bug(capsys, monkeypatch, traces):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("workbench.trace.open.open_trace", broken)
    code, line = fails(capsys, "predict", traces[0])
    assert code == 1
    assert "this is a bug" in line
    with pytest.raises(ZeroDivisionError):
        main(["--debug", "predict", traces[0]])


def test_an_interruption_is_one_line(capsys, monkeypatch, traces):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.trace.open.open_trace", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["predict", traces[0]])
    assert ended.value.code == 1
    assert capsys.readouterr().err.strip() == "error: workbench: interrupted (nothing was changed)"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_one_line(run):
    with Path("/dev/full").open("w") as full:
        done = run("schema", "predict", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_is_no_fault(project):
    command = f"{sys.executable} -m workbench.cli schema predict | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, cwd=project)
    assert done.stdout == "{\n"
    assert done.stderr == ""


def test_the_lab_loads_plots_without_a_network(monkeypatch):
    seen = {}
    monkeypatch.setattr("subprocess.call", lambda command, env: seen.update(command=command, env=env) or 0)
    with pytest.raises(SystemExit) as ended:
        main(["lab", "--no-browser"])
    assert ended.value.code == 0
    assert (seen["env"]["PANEL_INLINE"], seen["env"]["BOKEH_RESOURCES"]) == ("true", "inline")
    assert seen["command"][-1] == "--no-browser"


def test_the_front_offers_every_verb_it_names():
    for name in workbench.__all__:
        assert getattr(workbench, name) is not None
    assert set(workbench._HOMES) | {"__version__"} == set(workbench.__all__) == set(dir(workbench))
    with pytest.raises(AttributeError, match="no_such"):
        _ = workbench.no_such


def test_a_sweep_without_a_valid_cell_says_why_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "data/traces/synthetic_launch_bound.json.gz", "--npu", "npu-x", "--axis", "memory.l1.size=200:300:2GB"])
    assert ended.value.code == 1
    assert "smaller than all core-local memory" in " ".join(capsys.readouterr())


def test_serve_says_what_it_cannot_serve(run):
    """Every option of the server is there; a trace that does not exist is named before anything is started."""
    said = run("serve", "--help")
    assert all(option in said.stdout for option in ("--npu", "--folder", "--address", "--port", "--allow-websocket-origin", "--no-browser"))
    refused = run("serve", "gone.json.gz", "--port", 0, "--address", "127.0.0.1", "--npu", "npu-x", "--folder", ".", "--no-browser")
    assert refused.returncode == 2 and "gone.json.gz: no such file" in refused.stderr and "Traceback" not in refused.stderr
