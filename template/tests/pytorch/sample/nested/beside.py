"""Imported by its neighbour."""

VALUE = 3
