"""A Trace becomes dependencies and unique operators."""
