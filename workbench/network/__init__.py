"""Seconds of a message."""
