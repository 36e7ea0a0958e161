"""Tables and lists: operators (linked), the ledger of lags, the notes."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd
import panel as pn
import xarray as xr
from bokeh.models.widgets.tables import NumberFormatter

from workbench.app.html import Html, asset
from workbench.app.state import Session
from workbench.app.words import for_page
from workbench.errors import Note
from workbench.view.text import quantity

COLUMNS = {
    "name": "operator", "signature": "shapes", "measured": "measured [µs]", "predicted": "predicted [µs]", "ratio": "ratio",
    "count": "count", "total": "total [ms]", "share": "share [%]", "bound": "bound", "evidence": "evidence", "kind": "kind",
    "dtype": "dtype", "why": "why",
}  # fmt: skip
UNPRICED = ("scaled", "extrapolated", "measured")
_NUMBERS = {"measured": "0,0.00", "predicted": "0,0.00", "ratio": "0,0.00", "count": "0,0", "total": "0,0.000", "share": "0.0"}
_WIDTHS = {
    "name": 160, "signature": 165, "measured": 106, "predicted": 104, "ratio": 58, "count": 60, "total": 78, "share": 72, "bound": 74,
    "evidence": 88, "kind": 90, "dtype": 58, "why": 420,
}  # fmt: skip


def operator_frame(table: xr.Dataset) -> pd.DataFrame:
    """Return the operator table in the units of the columns; the index is the row of the OpTable."""
    measured, predicted = table.measured_s.values, table.predicted_s.values
    ratio = np.divide(predicted, measured, out=np.full(len(predicted), np.nan), where=measured > 0)
    data = {
        "name": table.name.values,
        "signature": [
            shapes_of(str(name), str(dtype), str(text))
            for name, dtype, text in zip(table.name.values, table["dtype"].values, table.signature.values, strict=True)
        ],
        "kind": [str(kind).replace("_", " ") for kind in table.kind.values],
        "dtype": table["dtype"].values,
        "measured": measured * 1e6,
        "predicted": predicted * 1e6,
        "ratio": ratio,
        "bound": table.bound.values,
        "evidence": table.evidence.values,
        "count": table["count"].values,
        "total": table.predicted_total_s.values * 1e3,
        "share": table.share.values * 100,
        "why": table.why.values,
    }
    return pd.DataFrame(data, index=pd.Index(table.operator.values, name="row"))[list(COLUMNS)]


def shapes_of(name: str, dtype: str, signature: str) -> str:
    """Return what a signature says beyond name and dtype, which have columns of their own."""
    return signature.removeprefix(name).strip(" |").removeprefix(dtype).strip(" |") or "–"


class LinkedTable:
    """A sortable table of operators, filtered in its headers; a click selects the operator everywhere. Its index is the row of the OpTable.

    Parameters
    ----------
    session : Session
    titles : mapping
        Column -> its title.
    widths : mapping
        Column -> width [px].
    numbers : mapping
        Column of numbers -> format.
    rows : int
        Rows of a page.
    """

    def __init__(self, session: Session, titles: dict[str, str], widths: dict[str, int], numbers: dict[str, str], rows: int) -> None:
        self.session = session
        kinds = {key: "float64" if key in numbers else "object" for key in titles}
        empty = pd.DataFrame({key: [] for key in titles}, index=pd.Index([], name="row", dtype="int64")).astype(kinds)
        self.table = pn.widgets.Tabulator(
            empty, titles=titles, widths=widths, show_index=False, disabled=True, selectable=1, pagination="local",
            page_size=rows, layout="fit_data", formatters={key: NumberFormatter(format=form) for key, form in numbers.items()},
            text_align=dict.fromkeys(numbers, "right"),
            header_filters={key: {"type": "input", "placeholder": "filter"} for key in titles if key not in numbers},
            theme="simple", sizing_mode="stretch_width", height=116 + 26 * rows, margin=0, configuration={"rowHeight": 26},
            stylesheets=[asset("table.css")],
        )  # fmt: skip
        self.table.on_click(self._clicked)
        session.param.watch(lambda _: self._select(), "selected")

    def _clicked(self, event: Any) -> None:
        self.session.selected = int(self.table.value.index[event.row])

    def _select(self) -> None:
        index = self.table.value.index
        found = np.flatnonzero((index == self.session.selected) & (index >= 0)).tolist()[:1]
        if found != self.table.selection:
            if found:
                self.table.page = found[0] // self.table.page_size + 1
            self.table.selection = found

    def fill(self, frame: pd.DataFrame) -> None:
        """Show other rows; the selection stays with its operator."""
        self.table.value = frame
        self._select()


class Operators(LinkedTable):
    """The operator table of the newest answer."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, COLUMNS, _WIDTHS, _NUMBERS, 14)
        self.words = Html(sizing_mode="stretch_width", margin=(4, 0, 4, 2))

    def update(self) -> None:
        """Show the newest answer."""
        if self.session.answer is None:
            return
        prediction = self.session.answer.prediction
        frame = operator_frame(prediction.operators())
        self.fill(frame)
        self.words.html = _unpriced(frame) if prediction.scenario.npu is not None else ""

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(self.words, self.table, sizing_mode="stretch_width")


def _unpriced(frame: pd.DataFrame) -> str:
    """Name what neither a vendor time nor the model prices, with its share of the predicted time."""
    rows = frame[frame.evidence.isin(UNPRICED)].sort_values("share", ascending=False)
    if not len(rows):
        return _line("Every operator is priced by a vendor time or the model.")
    names = ", ".join(f"{escape(str(row['name']))} ({row['share']:.1f} %)" for _, row in rows.head(6).iterrows())
    more = f" and {len(rows) - 6} more" if len(rows) > 6 else ""
    what = f"{len(rows)} operator{'s' if len(rows) > 1 else ''} without vendor time or model"
    return _line(f"<b>{what}</b>, {rows.share.sum():.1f} % of the predicted time: {names}{more}.")


def _line(text: str) -> str:
    return f'<div style="font:12.5px/1.4 Inter,Roboto,system-ui,sans-serif">{text}</div>'


def lag_html(table: xr.Dataset) -> str:
    """Return the ledger of lags as HTML."""
    if not table.sizes.get("lag", 0):
        return _line("No unexplained lag: every wait in the timeline has a recorded cause.")
    head = "<tr><th>lag</th><th>on the critical path</th><th>where</th><th>between</th><th>cause</th></tr>"
    rows = "".join(
        f'<tr><td class="n">{quantity(float(lag.seconds), "s")}</td><td>{"yes" if bool(lag.critical) else "no"}</td>'
        f"<td>{escape(str(lag['where'].item()))}</td>"
        f"<td>{escape(str(lag.before.item()))} → {escape(str(lag.after.item()))}</td><td>{escape(str(lag.cause.item()))}</td></tr>"
        for lag in (table.isel(lag=i) for i in range(table.sizes["lag"]))
    )
    return f"<table>{head}{rows}</table>"


def notes_html(notes: tuple[Note, ...]) -> str:
    """Return every note as HTML."""
    if not notes:
        return _line("No notes: nothing had to be tolerated or assumed.")
    return "".join(_note(note) for note in notes)


def _note(note: Note) -> str:
    code, text, where, fix = (escape(for_page(part)) for part in (note.code, note.text, note.where, note.fix))
    remedy = f'<div class="fix">{fix}</div>' if fix else ""
    head = f'<div><span class="code">{code}</span> · {note.count}×</div>'
    return f'<div class="note">{head}<div>{text}</div><div class="where">{where}</div>{remedy}</div>'


def html_list() -> Html:
    """Return a place for one of these lists."""
    return Html(stylesheets=[asset("list.css")], sizing_mode="stretch_width", margin=(4, 2))
