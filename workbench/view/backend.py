"""HoloViews with something to draw with: a script needs no ``hv.extension``, a notebook calls it to show pictures inline."""

from __future__ import annotations

from typing import Any


def plotting() -> Any:
    """Return the module ``holoviews``, with Bokeh behind it where no other library was chosen."""
    import holoviews as hv

    if not hv.Store.registry:
        import holoviews.plotting.bokeh  # registers itself

        hv.Store.set_current_backend("bokeh")
    return hv
