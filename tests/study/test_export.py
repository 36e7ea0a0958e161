"""Everything that leaves by one door: tables hold what the recording holds, other forms are those of their own writers."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench import export, lag_table, load_npu, open_trace, predict
from workbench.data import data_path
from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS
from workbench.study.export_tables import Column, Table, events_table, lags_table, operators_table, timeline_table
from workbench.study.prediction import Prediction
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.trace import Category, Trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return open_trace([data_path("traces", "synthetic_ddp.json.gz")])


@pytest.fixture(scope="module")
def faster(trace: Trace) -> Prediction:
    return predict(Scenario(Workload(trace), npu=load_npu("npu-x")))


def cells(column: Column) -> list[object]:
    """Values of a column as Python sees them, None where nothing is."""
    if column.words is not None:
        return [column.words[code] if code >= 0 else None for code in column.values.tolist()]
    known = np.ones(len(column.values), dtype=bool) if column.known is None else column.known
    return [value if fine else None for value, fine in zip(column.values.tolist(), known.tolist(), strict=True)]


@pytest.mark.parametrize("name", ["synthetic_ddp", "cpu_transformer_b4"])
def test_events_hold_what_the_file_holds(name: str) -> None:
    """Against the JSON of the file itself, event by event: names, lanes, integer nanoseconds, every argument."""
    path = data_path("traces", f"{name}.json.gz")
    table = events_table(open_trace([path]))
    columns = {key: cells(column) for key, column in table.columns.items()}
    written = [event for event in json.loads(gzip.decompress(Path(path).read_bytes()))["traceEvents"] if event["ph"] == "X"]
    assert len(table) == len(written)
    for row, event in enumerate(written):
        assert columns["name"][row] == event["name"]
        assert columns["raw_category"][row] == event["cat"]
        assert (columns["pid"][row], columns["tid"][row]) == (str(event["pid"]), str(event["tid"]))
        assert columns["dur_ns"][row] == round(event["dur"] * 1000)
        given = {key: value for key, value in event.get("args", {}).items() if value is not None}
        found = {key[5:]: columns[key][row] for key in columns if key.startswith("args.") and columns[key][row] is not None}
        assert found.keys() == given.keys()
        for key, value in given.items():
            text = found[key]
            assert text == value or text == str(value) or json.loads(str(text)) == value
    assert {columns["category"][row] for row in range(len(table))} <= {category.name.lower() for category in Category}


def test_parents_are_rows_that_enclose(trace: Trace) -> None:
    columns = {key: cells(column) for key, column in events_table(trace).columns.items()}
    inside = [(row, parent) for row, parent in enumerate(columns["parent"]) if parent is not None]
    assert inside
    for row, parent in inside:
        assert columns["tid"][row] == columns["tid"][parent]
        assert columns["start_ns"][parent] <= columns["start_ns"][row]


def test_the_timeline_holds_both_times(faster: Prediction) -> None:
    columns = {key: np.array(cells(column), dtype=object) for key, column in timeline_table(faster).columns.items()}
    device = np.isin(columns["kind"], [kind.name.lower() for kind in DEVICE_KINDS])
    graph = faster.graph
    assert columns["measured_s"][device].sum() == pytest.approx(graph.measured_s[np.isin(graph.kind, DEVICE_KINDS)].sum())
    assert columns["predicted_s"][device].sum() == pytest.approx(faster.node_s[np.isin(graph.kind, DEVICE_KINDS)].sum())
    assert all(name is not None for name in columns["operator"][device])
    assert set(columns["step"]) == {None, *graph.step_numbers.tolist()}


def test_operators_and_lags_are_the_tables_of_the_prediction(faster: Prediction) -> None:
    table, dataset = operators_table(faster), faster.operators()
    for name in dataset.data_vars:
        values = [None if isinstance(value, float) and not np.isfinite(value) else value for value in dataset[name].values.tolist()]
        assert cells(table.columns[str(name)]) == values
    row = cells(table.columns["kind"]).index("gemm")
    assert 2 * np.prod([cells(table.columns[d])[row] for d in ("batch", "m", "n", "k")]) == cells(table.columns["flops"])[row]
    assert cells(table.columns["group_size"])[row] is None
    assert cells(lags_table(faster).columns["seconds"]) == lag_table(faster, 1000)["seconds"].values.tolist()


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
@pytest.mark.parametrize("kind", ["events", "timeline", "operators", "lags"])
def test_tables_there_and_back(trace: Trace, kind: str, ending: str, tmp_path: Path) -> None:
    """Read again by pyarrow: every cell, every unit, and which recording it is of."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / f"{kind}.{ending}"
    rows = export(trace, path, kind)
    read = parquet.read_table(path) if ending == "parquet" else pa.ipc.open_file(path).read_all()
    prediction = predict(Scenario(Workload(trace)))
    make = {"timeline": timeline_table, "operators": operators_table, "lags": lags_table}
    table: Table = events_table(trace) if kind == "events" else make[kind](prediction)
    assert (read.num_rows, read.column_names) == (rows, list(table.columns))
    assert rows > 0
    for name, column in table.columns.items():
        assert read[name].to_pylist() == cells(column)
        assert (read.schema.field(name).metadata or {}).get(b"units", b"").decode() == column.unit
    about = read.schema.metadata
    assert (about[b"workbench.table"], about[b"workbench.digest"]) == (kind.encode(), trace.digest.encode())


def test_a_missing_package_is_named(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Refused, match=r"needs? the package pyarrow, which is not installed.*pip install 'npu-workbench\[tables\]'"):
        export(trace, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


def test_a_recording_alone_has_one_timeline(trace: Trace, faster: Prediction, tmp_path: Path) -> None:
    for source, groups in ((trace, ["measured"]), (faster, ["measured", "predicted on npu-x"])):
        nodes = export(source, tmp_path / "a.json.gz")
        events = json.loads(gzip.decompress((tmp_path / "a.json.gz").read_bytes()))["traceEvents"]
        names = [event["args"]["name"].split(":")[0] for event in events if event["name"] == "process_name"]
        assert (names, nodes) == (groups, len(faster.graph))


def test_chakra_holds_predicted_times_of_a_prediction(trace: Trace, faster: Prediction, tmp_path: Path) -> None:
    """Device time of the file, read again: as recorded, or as predicted, to the microsecond a node the form counts in."""
    for source, seconds in ((trace, faster.graph.measured_s), (faster, faster.node_s)):
        export(source, tmp_path / "a.et")
        again = open_trace(tmp_path / "a.et")
        device = np.isin(faster.graph.kind, DEVICE_KINDS)
        assert again.events.dur_ns[again.is_device_work].sum() * 1e-9 == pytest.approx(seconds[device].sum(), abs=5e-7 * device.sum())


def test_what_is_refused(trace: Trace, tmp_path: Path) -> None:
    for path, table, words in (
        ("a.csv", "events", r"\.parquet"),
        ("a.parquet", "kernels", "one of events"),
        ("no/a.json", "events", "written"),
    ):
        with pytest.raises(Refused, match=words):
            export(trace, tmp_path / path, table)
    with pytest.raises(Refused, match="neither a recording nor a prediction"):
        export("a.json", tmp_path / "a.json")  # type: ignore[arg-type]
