"""What can be taken away: operators as CSV, both timelines for Perfetto, the card as YAML."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO

import panel as pn
import panel_material_ui as pmui

from workbench.app.state import Session
from workbench.errors import Refused
from workbench.study.perfetto import perfetto


def operators_csv(session: Session) -> BytesIO:
    """Return the operator table with SI units, one row an operator."""
    table = _answered(session).operators()
    names = {name: f"{name} [{table[name].attrs['units']}]" for name in table.data_vars if table[name].attrs.get("units", "1") != "1"}
    return BytesIO(table.to_dataframe().rename(columns=names).to_csv().encode())


def timeline_json(session: Session) -> BytesIO:
    """Return measured and predicted timeline as Chrome trace JSON."""
    prediction = _answered(session)
    card = prediction.scenario.npu.name if prediction.scenario.npu is not None else "as recorded"
    return BytesIO(json.dumps(perfetto({card: prediction})).encode())


def card_yaml(session: Session) -> BytesIO:
    """Return the card as edited, as a YAML description that loads back."""
    if session.spec is None:
        raise Refused("card", "no card is chosen", "choose one first")
    return BytesIO(session.spec.to_yaml().encode())


def _answered(session: Session):  # type: ignore[no-untyped-def]
    if session.answer is None:
        raise Refused("export", "there is no prediction yet", "open a trace first")
    return session.answer.prediction


class Exports:
    """The dialog behind the Export button."""

    def __init__(self, session: Session) -> None:
        self.session = session
        choices: tuple[tuple[str, str, Callable[[Session], BytesIO]], ...] = (
            ("Operators (CSV)", "operators.csv", operators_csv),
            ("Timelines for Perfetto (JSON)", "timelines.json", timeline_json),
            ("Card (YAML)", "card.yaml", card_yaml),
        )
        self.buttons = [self._button(*choice) for choice in choices]
        self.dialog = pmui.Dialog(
            *self.buttons,
            title="Export",
            title_variant="h6",
            show_close_button=True,
            close_on_click=True,
            width_option="xs",
            sizing_mode="stretch_width",
        )

    def _button(self, label: str, name: str, make: Callable[[Session], BytesIO]) -> pn.viewable.Viewable:
        def content() -> BytesIO:
            try:
                return make(self.session)
            except Refused as fault:
                self.session.complain(fault)
                return BytesIO(b"")

        return pmui.FileDownload(callback=content, filename=name, label=label, variant="outlined", sizing_mode="stretch_width")

    def show(self) -> None:
        """Open the dialog."""
        self.dialog.open = True
