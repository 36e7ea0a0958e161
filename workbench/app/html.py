"""A piece of text that changes often: unlike a pane, a change does not lay the whole page out anew (0.3 s a slider move)."""

from __future__ import annotations

from pathlib import Path

import param
from panel.custom import JSComponent


def asset(name: str) -> str:
    """Return the text of one of the app's scripts or style sheets."""
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


class Html(JSComponent):
    """HTML that replaces itself in place."""

    html = param.String(default="")

    _esm = """
    export function render({model}) {
      const box = document.createElement("div");
      const show = () => { box.innerHTML = model.html; };
      model.on("change:html", show);
      model.on("msg:custom", (message) => { if (message.reveal) box.scrollIntoView({behavior: "smooth", block: "start"}); });
      show();
      return box;
    }
    """

    def reveal(self) -> None:
        """Scroll the page to this text."""
        self._send_msg({"reveal": True})
