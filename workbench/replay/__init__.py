"""Time over the graph."""
