"""Torchsmith: renders a PyTorch backend for hardware from a template."""

__version__ = "0.1.0"
