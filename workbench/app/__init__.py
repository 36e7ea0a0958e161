"""Widgets become a Scenario (Panel, ipywidgets)."""
