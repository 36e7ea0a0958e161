"""Seconds of an operator on a card."""
