"""One door for everything that leaves as a file: the ending of its name says the form."""

from __future__ import annotations

import os

from workbench import units
from workbench.errors import Refused
from workbench.study.arrow_files import write_arrow
from workbench.study.chakra import write_chakra
from workbench.study.export_tables import Table, events_table, lags_table, operators_table, timeline_table
from workbench.study.perfetto import write_perfetto
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.trace import Trace

TABLES = ("events", "timeline", "operators", "lags")
ARROW = (".parquet", ".arrow", ".feather")
JSON = (".json", ".json.gz")
FORMS = (*JSON, *ARROW, ".et")


def form_of(path: str | os.PathLike[str]) -> str:
    """Return the ending of a file's name that says its form.

    Raises
    ------
    Refused
        An ending no form has.
    """
    name = os.fspath(path).lower()
    found = [form for form in FORMS if name.endswith(form)]
    if not found:
        raise Refused(os.fspath(path), "no form is known by this ending", f"end it in one of {', '.join(FORMS)}")
    return max(found, key=len)


def export(source: Trace | Workload | Prediction, path: str | os.PathLike[str], table: str = "events") -> int:
    """Write a recording or a prediction as a file: Chrome trace JSON, Parquet, Arrow or Chakra.

    Parameters
    ----------
    source : Trace, Workload or Prediction
        A recording, or the answer of `predict`.
    path : str or path
        ``.json`` or ``.json.gz``: its timeline for Perfetto (of a prediction, measured and predicted); ``.parquet``, ``.arrow`` or
        ``.feather``: a table (needs the package pyarrow); ``.et``: its dependency graph as a Chakra trace, of one rank (of a
        prediction, with predicted times).
    table : {"events", "timeline", "operators", "lags"}
        Of Parquet and Arrow. Every event as recorded [ns]; every piece of work as measured and predicted [s]; unique operators; the
        largest lags no record explains.

    Returns
    -------
    int
        Rows, pieces of work or nodes written.

    Raises
    ------
    Refused
        An ending or a table that is not known, several ranks for Chakra, a missing package, a file that cannot be written.
    """
    form = form_of(path)
    if table not in TABLES:
        raise Refused("table", f"{table!r} is no table", f"write one of {', '.join(TABLES)}")
    if not isinstance(source, Trace | Workload | Prediction):
        raise Refused("export", f"a {type(source).__name__} is neither a recording nor a prediction", "pass what open_trace returns")
    if form in ARROW:
        return write_arrow(_table(source, table), path)
    if form == ".et":
        return write_chakra(source.trace if isinstance(source, Workload) else source, path)
    prediction = _prediction(source)
    write_perfetto(path, {_label(prediction): prediction}, predicted=isinstance(source, Prediction))
    return len(prediction.graph)


def _table(source: Trace | Workload | Prediction, table: str) -> Table:
    if table == "events":
        return events_table(source if isinstance(source, Trace) else _workload(source).trace)
    make = {"timeline": timeline_table, "operators": operators_table, "lags": lags_table}[table]
    return make(_prediction(source))


def _workload(source: Workload | Prediction) -> Workload:
    return source if isinstance(source, Workload) else source.scenario.workload


def _prediction(source: Trace | Workload | Prediction) -> Prediction:
    """Return a prediction; of a recording its replay as measured."""
    if isinstance(source, Prediction):
        return source
    return predict(Scenario(Workload(source) if isinstance(source, Trace) else source))


def _label(prediction: Prediction) -> str:
    paths = prediction.scenario.workload.path.split(", ")
    return os.path.basename(paths[0]) if len(paths) == 1 else units.count(len(paths), "file")
