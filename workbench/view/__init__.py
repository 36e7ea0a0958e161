"""A result becomes a picture (HoloViews, Bokeh; no physics)."""
